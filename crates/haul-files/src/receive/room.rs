//! Memory for what peers make a process remember: one may have so much, all together so much.
//!
//! A daemon has many clients, and one user may come many times. Who comes may take half of what the others have left, so that whoever comes later
//! finds room too: n that take all they can have a part of n + 1 each (dynamic thresholds, Choudhury and Hahne 1998).

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// What there is.
#[derive(Debug)]
pub(super) struct Room {
    each: usize,
    all: AtomicUsize,
    used: AtomicUsize,
}

impl Room {
    /// Of `all` bytes together nobody has more than `each`.
    pub(super) const fn new(each: usize, all: usize) -> Self {
        Self { each, all: AtomicUsize::new(all), used: AtomicUsize::new(0) }
    }

    /// From now on there are so many bytes for all together.
    pub(super) fn set_all(&self, bytes: usize) {
        self.all.store(bytes, Relaxed);
    }

    /// Nothing, for one who comes.
    pub(super) const fn enter(&self) -> Share<'_> {
        Share { room: self, bytes: AtomicUsize::new(0) }
    }
}

/// What one has, until it is dropped.
#[derive(Debug)]
pub(super) struct Share<'a> {
    room: &'a Room,
    bytes: AtomicUsize,
}

impl Share<'_> {
    /// It is so much now; false where that is more than it may be.
    pub(super) fn hold(&self, bytes: usize) -> bool {
        let before = self.bytes.swap(bytes, Relaxed);
        // Wraps to less where it has become less.
        let more = bytes.wrapping_sub(before);
        let used = self.room.used.fetch_add(more, Relaxed).wrapping_add(more);
        let left = self.room.all.load(Relaxed).saturating_sub(used.saturating_sub(bytes));
        bytes <= self.room.each && bytes <= left / 2
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.hold(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes all that it may have, in steps of one byte.
    fn fill(share: &Share<'_>) -> usize {
        let most = (1..10_000).take_while(|&bytes| share.hold(bytes)).last().unwrap_or_default();
        share.hold(most);
        most
    }

    #[test]
    fn one_has_its_bound_and_many_leave_room_for_the_next() {
        let room = Room::new(300, 1000);
        assert_eq!(fill(&room.enter()), 300, "and it is given back");
        let shares: Vec<Share<'_>> = (0..9).map(|_| room.enter()).collect();
        for _ in 0..20 {
            for share in &shares {
                fill(share);
            }
        }
        let held: Vec<usize> = shares.iter().map(fill).collect();
        assert!(held.iter().all(|bytes| (90..=110).contains(bytes)), "a tenth each: {held:?}");
        let late = room.enter();
        assert!(fill(&late) >= 40, "half of what is left");
        drop(shares);
        assert_eq!(fill(&late), 300);
        room.set_all(400);
        assert_eq!(fill(&late), 200);
    }
}
