//! How fast a class may send: the target-rate estimator of IPG-aware packet scheduling.

use std::time::Duration;

use haul_units::{BitRate, Bytes};

/// A window of packets each round trip. None without a round trip.
pub fn of_window(window_pkts: u64, packet: Bytes, rtt: Duration) -> Option<BitRate> {
    let bytes = u128::from(window_pkts) * u128::from(packet.0);
    let bits_per_second = bytes.saturating_mul(8 * 1_000_000_000).checked_div(rtt.as_nanos())?;
    Some(BitRate::from_bps(u64::try_from(bits_per_second).unwrap_or(u64::MAX)))
}

/// What a connection's window asks for, round trip by round trip.
///
/// DEVIATION: the shortest round trip that was seen, for the smoothed one. What waits for its place on the line is in TCP's round trip too, so a window divided by the latter is the rate at
/// which the line sends anyway, whatever that is, and would never rise.
#[derive(Debug, Clone, Copy, Default)]
pub struct Estimator {
    shortest: Option<Duration>,
}

impl Estimator {
    /// With the connection's window, what one of its packets takes on the line, and its round trip as it is now.
    pub fn target(&mut self, window_pkts: u64, packet: Bytes, rtt: Duration) -> Option<BitRate> {
        if !rtt.is_zero() {
            self.shortest = Some(self.shortest.map_or(rtt, |shortest| shortest.min(rtt)));
        }
        of_window(window_pkts, packet, self.shortest?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_each_round_trip() {
        // 8333 packets of 1500 bytes in 100 ms: 1 Gbit/s.
        let rate = of_window(8333, Bytes(1500), Duration::from_millis(100));
        assert_eq!(rate, Some(BitRate::from_bps(999_960_000)));
        assert_eq!(of_window(1, Bytes(1500), Duration::ZERO), None);
        assert_eq!(of_window(u64::MAX, Bytes(u64::MAX >> 8), Duration::from_nanos(1)), Some(BitRate::MAX));
    }

    #[test]
    fn what_waits_for_its_place_does_not_lower_the_rate() {
        let mut estimator = Estimator::default();
        let mut target = |pkts, ms| estimator.target(pkts, Bytes(1250), Duration::from_millis(ms)).map(BitRate::as_bps);
        assert_eq!(target(10, 0), None);
        assert_eq!(target(10, 20), Some(5_000_000));
        assert_eq!(target(20, 40), Some(10_000_000), "twice the window is twice the rate");
        assert_eq!(target(20, 10), Some(20_000_000));
    }
}
