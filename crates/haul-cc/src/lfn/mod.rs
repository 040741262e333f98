//! The controller for long fat networks.

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use crate::pacer::quantum;
use crate::{AckSample, Controller, EcnSample, LossSample, PathStart, SentSample, Snapshot};

/// Paces at the largest delivery rate seen, whatever is lost.
#[derive(Debug, Clone)]
pub struct Lfn {
    packet: Bytes,
    bandwidth: BitRate,
    full_rounds: u32,
    full_bandwidth: BitRate,
    min_rtt: Option<Duration>,
}

impl Lfn {
    /// A controller in startup.
    pub fn new(start: &PathStart) -> Self {
        Self { packet: start.packet, bandwidth: BitRate::ZERO, full_rounds: 0, full_bandwidth: BitRate::ZERO, min_rtt: None }
    }
}

impl Controller for Lfn {
    fn on_sent(&mut self, _sent: &SentSample) {}

    fn on_ack(&mut self, ack: &AckSample) {
        self.min_rtt = Some(ack.min_rtt);
        if let Some(sample) = ack.rate {
            self.bandwidth = self.bandwidth.max(sample.rate);
        }
        if ack.round_start && self.full_rounds < 3 {
            if self.bandwidth >= self.full_bandwidth.scaled(1.25) {
                self.full_bandwidth = self.bandwidth;
                self.full_rounds = 0;
            } else {
                self.full_rounds += 1;
            }
        }
    }

    fn on_loss(&mut self, _loss: &LossSample) {}

    fn on_spurious(&mut self, _now: Time, _bytes: Bytes) {}

    fn on_ecn(&mut self, _ecn: &EcnSample) {}

    fn on_idle(&mut self, _now: Time) {}

    fn on_mtu(&mut self, packet: Bytes) {
        self.packet = packet;
    }

    fn on_path_change(&mut self, now: Time) {
        *self = Self::new(&PathStart { now, packet: self.packet, seed: 0 });
    }

    fn window(&self) -> Bytes {
        let pipe = self.min_rtt.map_or(Bytes::ZERO, |rtt| self.bandwidth.bytes_in(rtt * 2));
        pipe.max(self.packet * 10) + self.burst() * 2
    }

    fn rate(&self) -> BitRate {
        let gain = if self.full_rounds < 3 { 2.77 } else { 1.0 };
        match self.min_rtt {
            Some(_) => self.bandwidth.scaled(gain),
            None => BitRate::of(self.packet * 10, Duration::from_millis(1)),
        }
    }

    fn burst(&self) -> Bytes {
        quantum(self.rate(), self.packet)
    }

    fn snapshot(&self) -> Snapshot {
        let phase = if self.full_rounds < 3 { "startup" } else { "cruise" };
        Snapshot { algorithm: "lfn", phase, bandwidth: Some(self.bandwidth), base_loss: None, ssthresh: None }
    }
}
