//! A rate that the user knows, for circuits that are reserved for the transfer.

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use crate::pacer::quantum;
use crate::{AckSample, Controller, EcnSample, LossSample, PathStart, SentSample, Snapshot};

/// Sends at a fixed rate whatever happens. The window only bounds what a dead path can swallow: it is twice what the rate needs.
#[derive(Debug, Clone)]
pub struct Fixed {
    rate: BitRate,
    packet: Bytes,
    round_trip: Duration,
}

impl Fixed {
    /// A controller that sends at `rate`, UDP payload.
    pub fn new(rate: BitRate, start: &PathStart) -> Self {
        Self { rate, packet: start.packet, round_trip: start.learned.map_or(INITIAL_RTT, |learned| learned.min_rtt) }
    }
}

impl Controller for Fixed {
    fn on_sent(&mut self, _sent: &SentSample) {}

    fn on_ack(&mut self, ack: &AckSample) {
        self.round_trip = ack.smoothed_rtt.max(ack.rtt.unwrap_or_default());
    }

    fn on_loss(&mut self, _loss: &LossSample) {}

    fn on_spurious(&mut self, _now: Time, _bytes: Bytes) {}

    fn on_ecn(&mut self, _ecn: &EcnSample) {}

    fn on_idle(&mut self, _now: Time) {}

    fn on_mtu(&mut self, packet: Bytes) {
        self.packet = packet;
    }

    fn on_path_change(&mut self, _now: Time, rtt: Option<Duration>) {
        self.round_trip = rtt.unwrap_or(INITIAL_RTT);
    }

    fn window(&self) -> Bytes {
        let needed = self.rate.bytes_in((self.round_trip + MARGIN).saturating_mul(2));
        // A few trains, or the window would rule on short paths.
        needed.clamp(self.burst() * 4, MAX_WINDOW)
    }

    fn rate(&self) -> BitRate {
        self.rate
    }

    fn burst(&self) -> Bytes {
        quantum(self.rate, self.packet)
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            algorithm: "fixed",
            phase: "steady",
            is_starting: false,
            bandwidth: Some(self.rate),
            base_loss: None,
            ssthresh: None,
        }
    }
}

/// Beyond any path.
const MAX_WINDOW: Bytes = Bytes::gib(1024);
/// Until it is measured. RFC 9002 6.2.2
const INITIAL_RTT: Duration = Duration::from_millis(333);
/// For acknowledgement intervals, jitter and the time until a loss is found out, on paths of any length.
const MARGIN: Duration = Duration::from_millis(50);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_rules() {
        let start = PathStart::new(Time::ZERO, Bytes(1472), 0);
        let fixed = Fixed::new(BitRate::gbps(10), &start);
        assert_eq!(fixed.rate(), BitRate::gbps(10));
        assert!(fixed.window() >= fixed.rate().bytes_in(INITIAL_RTT * 2));
        assert_eq!(fixed.burst(), Bytes(44 * 1472));
    }
}
