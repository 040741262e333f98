//! Streams of one connection share it evenly: none is further ahead of the slowest than a few blocks.
//!
//! They wait for the same memory, and whoever wakes first when some is free takes it all; left alone, one of four had half of a path.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Blocks that a stream may be ahead of the slowest: enough that nobody waits at every one.
const AHEAD_BLOCKS: u64 = 4;

/// How far each stream is.
#[derive(Debug)]
pub(super) struct Turns {
    /// Blocks that each has handed over; none of one that is over.
    streams: Mutex<Vec<Option<u64>>>,
    moved: Condvar,
}

/// A stream's part in it, which ends with the value.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    turns: &'a Turns,
    stream: usize,
}

impl Turns {
    pub(super) fn new(streams: usize) -> Self {
        Self { streams: Mutex::new(vec![Some(0); streams]), moved: Condvar::new() }
    }

    /// The part of a stream, by its place.
    pub(super) const fn of(&self, stream: usize) -> Turn<'_> {
        Turn { turns: self, stream }
    }

    /// Nobody waits any more.
    pub(super) fn end(&self) {
        self.lock().fill(None);
        self.moved.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Option<u64>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn<'_> {
    /// Waits while this stream is too far ahead, and counts the block that it hands over then.
    pub(super) fn next(&self) {
        let is_ahead = |streams: &mut Vec<Option<u64>>| {
            let least = streams.iter().flatten().min().copied().unwrap_or_default();
            streams.get(self.stream).copied().flatten().is_some_and(|own| own >= least + AHEAD_BLOCKS)
        };
        let streams = self.turns.lock();
        let mut streams = self.turns.moved.wait_while(streams, is_ahead).unwrap_or_else(PoisonError::into_inner);
        let least = streams.iter().flatten().min().copied();
        let Some(own) = streams.get_mut(self.stream).and_then(Option::as_mut) else { return };
        *own += 1;
        // Others wait for the slowest alone.
        if least.is_some_and(|least| *own == least + 1) {
            drop(streams);
            self.turns.moved.notify_all();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.turns.lock().get_mut(self.stream) {
            *own = None;
        }
        self.turns.moved.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn nobody_is_far_ahead_of_a_slow_one_and_nobody_waits_for_one_that_is_over() {
        let turns = Turns::new(3);
        let counts = [const { AtomicU64::new(0) }; 3];
        thread::scope(|scope| {
            for stream in 0..3 {
                let (turns, counts) = (&turns, &counts);
                scope.spawn(move || {
                    let turn = turns.of(stream);
                    // The last one ends early; the first is slow.
                    for block in 0..if stream == 2 { 50 } else { 1000 } {
                        turn.next();
                        counts[stream].store(block + 1, Ordering::SeqCst);
                        if stream == 0 {
                            thread::yield_now();
                        } else {
                            let slow = counts[0].load(Ordering::SeqCst);
                            assert!(block < slow + AHEAD_BLOCKS + 1, "{block} and {slow}");
                        }
                    }
                });
            }
        });
        assert_eq!(counts.map(AtomicU64::into_inner), [1000, 1000, 50]);
        turns.end();
        turns.of(0).next();
    }
}
