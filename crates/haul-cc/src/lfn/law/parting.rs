//! Leaving a competition that may be one among flows of this kind alone.
//!
//! A flow that joins while a queue stands knows no path without it, and does not give way to it; those who do give way then take it for elastic cross traffic, and in the end all keep the queue up together,
//! each of them sure of the others. But all ask at the same time, for they ask when the queue overflows, and halve their windows: then the queue is gone. Where one of
//! two is CUBIC, six tenths of what was in flight stay, and a queue of two thirds of a product or more does not vanish. So it is left then, and who was wrong, for
//! the next queue stands again, goes back at once to the window that he had, and does not leave for four times as long as the time before.

use std::time::Duration;

use haul_units::Time;

/// What was left, and when it may be left again.
#[derive(Debug, Clone, Default)]
pub(super) struct Parting {
    /// When, and the window that was given up.
    left: Option<(Time, f64)>,
    allowed: Time,
    wait: Duration,
}

impl Parting {
    pub(super) fn is_allowed(&self, now: Time) -> bool {
        now >= self.allowed
    }

    pub(super) fn leave(&mut self, now: Time, window: f64) {
        self.left = Some((now, window));
    }

    /// It was left so lately that the next queue that stands is the same one's.
    pub(super) fn is_recent(&self, now: Time) -> bool {
        self.left.is_some_and(|(at, _)| now.since(at) < RECENT)
    }

    /// A competition begins: the window to go on with, where it is the one that was left.
    pub(super) fn take_back(&mut self, now: Time) -> Option<f64> {
        let is_recent = self.is_recent(now);
        let (_, window) = self.left.take()?;
        if !is_recent {
            self.wait = Duration::ZERO;
            return None;
        }
        self.wait = (self.wait * RARER).clamp(WAIT, WAIT_MAX);
        self.allowed = now + self.wait;
        Some(window)
    }
}

/// CUBIC is back at its window after K, 9 s at 100 Mbit/s and 50 ms (RFC 9438 4.2).
const RECENT: Duration = Duration::from_secs(10);
/// As trials of loss, `trials.rs`.
const WAIT: Duration = Duration::from_secs(5);
const RARER: u32 = 4;
const WAIT_MAX: Duration = Duration::from_secs(60);

#[cfg(test)]
mod tests {
    use super::*;

    fn second(s: u64) -> Time {
        Time::ZERO + Duration::from_secs(s)
    }

    #[test]
    fn who_was_wrong_has_the_window_back_and_leaves_ever_more_rarely() {
        let mut parting = Parting::default();
        let (mut now, mut left) = (0, Vec::new());
        while now < 300 {
            if parting.is_allowed(second(now)) {
                left.push(now);
                parting.leave(second(now), 7e6);
                assert!(parting.is_recent(second(now + 3)));
                assert_eq!(parting.take_back(second(now + 3)), Some(7e6));
            }
            now += 1;
        }
        assert_eq!(left, [0, 8, 31, 94, 157, 220, 283]);
    }

    #[test]
    fn who_was_right_begins_anew() {
        let mut parting = Parting::default();
        parting.leave(second(0), 7e6);
        assert_eq!(parting.take_back(second(1)), Some(7e6));
        parting.leave(second(10), 7e6);
        assert!(!parting.is_recent(second(21)));
        assert_eq!(parting.take_back(second(21)), None, "another queue, another window");
        parting.leave(second(30), 8e6);
        assert_eq!(parting.take_back(second(31)), Some(8e6));
        assert!(!parting.is_allowed(second(35)) && parting.is_allowed(second(36)));
    }
}
