//! So many bytes a second, and a burst of a quarter of a second.

use std::time::Duration;

use haul_units::{BitRate, Time};

/// How long a pair that has been silent may send as fast as it likes.
const BURST: Duration = Duration::from_millis(250);
/// The least that a burst is, in bytes: two trains.
const LEAST_BURST: u64 = 2 * 65_536;

/// What may still be forwarded. A token bucket.
#[derive(Debug, Clone)]
pub struct Bucket {
    rate: BitRate,
    allowed_bytes: u64,
    since: Time,
}

impl Bucket {
    /// A full one.
    pub fn new(now: Time, rate: BitRate) -> Self {
        Self { rate, allowed_bytes: burst(rate), since: now }
    }

    /// Takes so many bytes, if they are there.
    pub fn take(&mut self, now: Time, bytes: usize) -> bool {
        let earned = bytes_in(self.rate, now.since(self.since));
        if earned > 0 {
            self.allowed_bytes = (self.allowed_bytes + earned).min(burst(self.rate));
            self.since = now;
        }
        let left = self.allowed_bytes.checked_sub(bytes as u64);
        self.allowed_bytes = left.unwrap_or(self.allowed_bytes);
        left.is_some()
    }
}

fn burst(rate: BitRate) -> u64 {
    bytes_in(rate, BURST).max(LEAST_BURST)
}

fn bytes_in(rate: BitRate, time: Duration) -> u64 {
    let bytes = u128::from(rate.as_bps()) * time.as_nanos() / 8_000_000_000;
    u64::try_from(bytes).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_in_a_second_is_the_rate_and_a_burst() {
        let rate = BitRate::mbps(80);
        let mut bucket = Bucket::new(Time::ZERO, rate);
        let mut passed = 0;
        for step in 0..10_000 {
            let now = Time::ZERO + Duration::from_micros(100) * step;
            passed += u64::from(bucket.take(now, 5_000)) * 5_000;
        }
        // 10 MB in a second, and 2.5 MB that were there.
        assert!((12_400_000..12_600_000).contains(&passed), "{passed}");
    }
}
