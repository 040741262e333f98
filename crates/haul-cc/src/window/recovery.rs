//! The round trip after a cut: what is in flight comes down to the new window evenly, not by silence and then a burst.
//!
//! For each byte delivered, new window / flight at the cut may leave. Once less is in flight than the window allows, because much was
//! lost, as much may leave as is delivered, and a packet more each time. Source: RFC 6937 (PRR, with the slow start reduction bound).

use haul_units::{Bytes, Time};

use crate::AckSample;

/// A reduction under way. In bytes.
#[derive(Debug, Clone)]
pub(super) struct Recovery {
    since: Time,
    /// The window to come down to: ssthresh in the RFC.
    target: f64,
    /// In flight at the cut: RecoverFS.
    flight: f64,
    packet: f64,
    /// Delivered since: prr_delivered.
    delivered: f64,
    /// Sent since: prr_out.
    sent: f64,
    /// What may be in flight.
    limit: f64,
}

impl Recovery {
    pub(super) fn new(now: Time, target: Bytes, flight: Bytes, packet: Bytes) -> Self {
        let bytes = |value: Bytes| value.as_u64() as f64;
        let flight = bytes(flight).max(1.0);
        Self { since: now, target: bytes(target), flight, packet: bytes(packet), delivered: 0.0, sent: 0.0, limit: flight }
    }

    pub(super) fn on_sent(&mut self, bytes: Bytes) {
        self.sent += bytes.as_u64() as f64;
    }

    pub(super) fn on_ack(&mut self, ack: &AckSample) {
        self.delivered += ack.acked.as_u64() as f64;
        self.allow(ack.in_flight, ack.acked);
    }

    pub(super) fn on_loss(&mut self, in_flight: Bytes) {
        self.allow(in_flight, Bytes::ZERO);
    }

    fn allow(&mut self, in_flight: Bytes, acked: Bytes) {
        let pipe = in_flight.as_u64() as f64;
        // RFC 6937 3.1: sndcnt
        let send = if pipe > self.target {
            (self.delivered * self.target / self.flight).ceil() - self.sent
        } else {
            let bound = (self.delivered - self.sent).max(acked.as_u64() as f64) + self.packet;
            bound.min(self.target - pipe)
        };
        self.limit = pipe + send.max(0.0);
    }

    /// Whether a packet sent after the cut has been acknowledged.
    pub(super) fn is_over(&self, ack: &AckSample) -> bool {
        let round_trip = ack.rtt.unwrap_or(ack.smoothed_rtt * 2);
        ack.now.since(self.since) > round_trip
    }

    /// What may be in flight.
    pub(super) fn limit(&self) -> Bytes {
        Bytes(self.limit as u64)
    }
}
