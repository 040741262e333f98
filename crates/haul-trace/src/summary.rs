//! A connection in a line.

use std::fmt;

use haul_units::{BitRate, Bytes, PeerText};

use crate::Connection;

/// What a connection did.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    id: PeerText,
    algorithm: PeerText,
    seconds: f64,
    sent: Bytes,
    received: Bytes,
    loss: f64,
    min_rtt_s: f64,
    phases: Vec<(PeerText, f64)>,
}

impl Connection {
    /// What it did, for people.
    pub fn summary(&self) -> Summary {
        let last = self.last();
        let mut phases: Vec<(PeerText, f64)> = Vec::new();
        for (since, until, name) in self.phases() {
            match phases.iter_mut().find(|(known, _)| *known == name) {
                Some((_, seconds)) => *seconds += until - since,
                None => phases.push((name, until - since)),
            }
        }
        Summary {
            id: self.id.clone(),
            algorithm: last.algorithm.clone(),
            seconds: self.seconds(),
            sent: Bytes(last.acknowledged_bytes),
            received: Bytes(last.received_bytes),
            loss: last.lost_pkts as f64 / last.sent_pkts.max(1) as f64,
            min_rtt_s: last.min_rtt_s,
            phases,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, algorithm, seconds, sent, received, loss, min_rtt_s, phases } = self;
        let rate = |bytes: &Bytes| BitRate::from_bps((bytes.as_u64() as f64 * 8.0 / seconds.max(1e-6)) as u64);
        write!(f, "{id}  {seconds:.1} s  {algorithm}  RTT {:.2} ms", min_rtt_s * 1e3)?;
        write!(f, "  sent {sent}, {}, {:.2} % lost  received {received}, {}", rate(sent), loss * 100.0, rate(received))?;
        for (n, (name, seconds)) in phases.iter().enumerate() {
            write!(f, "{}{name} {seconds:.1} s", if n == 0 { "  " } else { ", " })?;
        }
        Ok(())
    }
}
