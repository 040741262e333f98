//! How fast a class may send.

use std::time::Duration;

use haul_units::{BitRate, Bytes};

/// The target rate of IPG-aware packet scheduling: a window of packets each round trip. None without a round trip.
pub fn of_window(window_pkts: u64, packet: Bytes, rtt: Duration) -> Option<BitRate> {
    let bytes = u128::from(window_pkts) * u128::from(packet.0);
    let bits_per_second = bytes.saturating_mul(8 * 1_000_000_000).checked_div(rtt.as_nanos())?;
    Some(BitRate::from_bps(u64::try_from(bits_per_second).unwrap_or(u64::MAX)))
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
}
