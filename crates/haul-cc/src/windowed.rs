//! The smallest value of a sliding window, in constant space.
//!
//! The window is cut into ten slots; each keeps its minimum, and a slot is emptied when the window moves past it. A value is therefore
//! remembered for nine to ten tenths of the window.

use std::time::Duration;

use haul_units::Time;

/// The minimum of what was inserted during the last `window`.
#[derive(Debug, Clone)]
pub(crate) struct WindowedMin<T> {
    slot_nanos: u64,
    newest: u64,
    slots: [Option<T>; SLOTS as usize],
}

impl<T: Copy + Ord> WindowedMin<T> {
    pub(crate) fn new(window: Duration) -> Self {
        let slot_nanos = (window.as_nanos() as u64 / SLOTS).max(1);
        Self { slot_nanos, newest: 0, slots: [None; SLOTS as usize] }
    }

    /// Inserts a value; `now` must not go back by more than the window.
    pub(crate) fn insert(&mut self, now: Time, value: T) {
        self.advance(now);
        let slot = &mut self.slots[(self.newest % SLOTS) as usize];
        *slot = Some(slot.map_or(value, |old| old.min(value)));
    }

    /// The minimum, as of the last call of `insert` or `advance`.
    pub(crate) fn get(&self) -> Option<T> {
        self.slots.iter().flatten().copied().min()
    }

    /// Forgets what has left the window.
    pub(crate) fn advance(&mut self, now: Time) {
        let slot = now.as_nanos() / self.slot_nanos;
        if slot <= self.newest {
            return;
        }
        for passed in 1..=(slot - self.newest).min(SLOTS) {
            self.slots[((self.newest + passed) % SLOTS) as usize] = None;
        }
        self.newest = slot;
    }
}

/// What is remembered is a tenth of the window off at most.
const SLOTS: u64 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forgets_after_the_window() {
        let mut min = WindowedMin::new(Duration::from_secs(10));
        min.insert(Time::ZERO, 5);
        min.insert(Time::from_nanos(4_000_000_000), 7);
        assert_eq!(min.get(), Some(5));
        min.insert(Time::from_nanos(10_500_000_000), 9);
        assert_eq!(min.get(), Some(7));
        min.insert(Time::from_nanos(90_000_000_000), 11);
        assert_eq!(min.get(), Some(11));
        min.insert(Time::from_nanos(89_000_000_000), 10);
        assert_eq!(min.get(), Some(10), "an older value counts as current");
    }
}
