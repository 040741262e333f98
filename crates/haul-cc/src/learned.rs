//! What is known of a path when a controller begins.
//!
//! Two sources: the controller that held the path until this moment, which is to be believed, and an earlier connection to the same host,
//! which is a hope (RFC 9959). Both are the same three numbers.

use std::time::Duration;

use haul_units::{BitRate, Bytes};

/// What a controller has learned about its path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Learned {
    /// Rate that arrives, UDP payload.
    pub bandwidth: BitRate,
    /// Smallest round-trip time.
    pub min_rtt: Duration,
    /// Part of the packets that the path loses whatever the rate, 0..=1.
    pub base_loss: f64,
}

impl Learned {
    /// What a window without a model stands for: the rate that it lets through, as far as twice the newest delivery rate bears it out.
    pub fn from_window(window: Bytes, smoothed_rtt: Duration, min_rtt: Duration, delivery_rate: BitRate) -> Option<Self> {
        let bandwidth = BitRate::of(window, smoothed_rtt).min(delivery_rate.scaled(2.0));
        (bandwidth > BitRate::ZERO).then_some(Self { bandwidth, min_rtt, base_loss: 0.0 })
    }

    /// Bytes that fill the path without a queue.
    pub fn window(&self) -> Bytes {
        self.bandwidth.bytes_in(self.min_rtt)
    }

    /// Whether a round-trip time measured at the start fits the one of these numbers.
    pub fn fits(&self, rtt: Duration) -> bool {
        // RFC 9959, confirming the path: not if current_rtt <= saved_rtt / 2 or current_rtt >= 10 * saved_rtt
        rtt > self.min_rtt / 2 && rtt < self.min_rtt * 10
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_round_trip_time_is_another_path() {
        let ms = Duration::from_millis;
        let learned = Learned { bandwidth: BitRate::gbps(1), min_rtt: ms(100), base_loss: 0.0 };
        assert_eq!(learned.window(), Bytes(12_500_000));
        for (rtt, fits) in [(50, false), (51, true), (100, true), (999, true), (1000, false)] {
            assert_eq!(learned.fits(ms(rtt)), fits, "{rtt} ms");
        }
    }
}
