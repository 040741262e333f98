//! Holds a sender to a rate: how long to wait before the next block.

use std::time::{Duration, Instant};

use haul_units::{BitRate, Bytes};

/// What a sender may be behind its rate and catch up.
const CATCH_UP: Duration = Duration::from_millis(100);

/// A rate, and when the next block may leave.
#[derive(Debug)]
pub struct Throttle {
    rate: Option<BitRate>,
    next: Instant,
}

impl Throttle {
    /// No bound without a rate.
    pub const fn new(rate: Option<BitRate>, now: Instant) -> Self {
        Self { rate, next: now }
    }

    /// A block of `bytes` wants to leave: how long it is to wait first.
    pub fn wait(&mut self, now: Instant, bytes: usize) -> Duration {
        let Some(rate) = self.rate else { return Duration::ZERO };
        let due = now.checked_sub(CATCH_UP).map_or(self.next, |earliest| self.next.max(earliest));
        self.next = due + rate.time_for(Bytes(bytes as u64));
        due.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_leave_at_the_rate_and_a_delay_is_caught_up() {
        let start = crate::clock::now();
        let mut throttle = Throttle::new(Some(BitRate::from_bps(8_000_000)), start);
        let waits: Vec<_> = (0..3).map(|_| throttle.wait(start, 10_000)).collect();
        assert_eq!(waits, [0, 10, 20].map(Duration::from_millis));
        let late = start + Duration::from_millis(50);
        assert_eq!(throttle.wait(late, 10_000), Duration::ZERO);
        assert_eq!(throttle.wait(late, 10_000), Duration::ZERO);
        let much_later = start + Duration::from_secs(5);
        let free = (0..100).take_while(|_| throttle.wait(much_later, 10_000) == Duration::ZERO).count();
        assert_eq!(free, 11, "a tenth of a second is caught up, not five seconds");
        assert_eq!(Throttle::new(None, start).wait(start, 1 << 30), Duration::ZERO);
    }
}
