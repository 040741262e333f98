//! Which frame leaves next, or how long a gap.
//!
//! Time is counted in bytes of the line (PSPacer's *byte clock*): a line that is never silent is as exact a clock as there is, and no timer is asked. A class with a
//! rate owes each of its frames a place on this clock, so far behind the one before as
//!
//! ```text
//! frame + gap = frame x line rate / target rate
//! ```
//!
//! which is `line rate x frame / (frame + gap) = target rate` (IPG-aware packet scheduling). Until a place comes, the line is filled: with frames of classes that have
//! no rate, if they fit, or with gaps.
//!
//! Invariants: gaps and frames leave one after the other, and the clock is their sum; a class never gets more than its rate over any stretch of the clock by more than
//! a frame for each class, plus what cannot be filled ([`LEAST`]).

use std::collections::VecDeque;

use haul_netdev::ethernet::{LEAST, MOST};
use haul_units::{BitRate, Bytes};

/// A class of a scheduler, in the order in which they were added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub usize);

/// What the line carries next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next<F> {
    /// This frame.
    Frame(F),
    /// Nothing that anybody waits for: so many bytes of the line, between [`LEAST`] and [`MOST`].
    Gap(Bytes),
    /// Nobody has anything to send.
    Idle,
}

/// Frames of several classes for one line.
#[derive(Debug, Clone)]
pub struct Scheduler<F> {
    line: BitRate,
    classes: Vec<Class<F>>,
    /// What the line has carried.
    clock: u64,
    /// Frames that wait, of all classes.
    waiting: usize,
}

#[derive(Debug, Clone)]
struct Class<F> {
    /// None: whenever nobody else's place comes.
    rate: Option<BitRate>,
    limit: Bytes,
    queue: VecDeque<(F, Bytes)>,
    queued: Bytes,
    /// The place of its next frame.
    due: u64,
    /// What places fell short of whole bytes, in units of a byte over the target rate.
    remainder: u128,
    dropped_pkts: u64,
}

impl<F> Scheduler<F> {
    /// For a line of this rate, without classes.
    pub const fn new(line: BitRate) -> Self {
        Self { line, classes: Vec::new(), clock: 0, waiting: 0 }
    }

    /// Adds a class that is held to a rate (of at least 1 bit/s), or to none; it keeps `limit` at most.
    pub fn add_class(&mut self, rate: Option<BitRate>, limit: Bytes) -> ClassId {
        let class =
            Class { rate, limit, queue: VecDeque::new(), queued: Bytes::ZERO, due: self.clock, remainder: 0, dropped_pkts: 0 };
        self.classes.push(class);
        ClassId(self.classes.len() - 1)
    }

    /// From its next frame on.
    pub fn set_rate(&mut self, class: ClassId, rate: Option<BitRate>) {
        if let Some(class) = self.classes.get_mut(class.0) {
            class.rate = rate;
            class.remainder = 0;
        }
    }

    /// A frame that takes `bytes` on the line. False where its class has no room: then it is dropped, and counted.
    pub fn push(&mut self, class: ClassId, frame: F, bytes: Bytes) -> bool {
        let clock = self.clock;
        let Some(class) = self.classes.get_mut(class.0) else { return false };
        if class.queued + bytes > class.limit {
            class.dropped_pkts += 1;
            return false;
        }
        if class.queue.is_empty() && class.due < clock {
            // Time that it let pass is not owed to it.
            class.due = clock;
            class.remainder = 0;
        }
        class.queued += bytes;
        class.queue.push_back((frame, bytes));
        self.waiting += 1;
        true
    }

    /// What the line carries next; it has carried it when this returns.
    pub fn carry(&mut self) -> Next<F> {
        if self.waiting == 0 {
            return Next::Idle;
        }
        let paced = |class: &Class<F>| class.rate.is_some() && !class.queue.is_empty();
        let first = (0..self.classes.len()).filter(|&n| paced(&self.classes[n])).min_by_key(|&n| self.classes[n].due);
        let Some(first) = first else {
            let free = self.unpaced(u64::MAX);
            return free.map_or(Next::Idle, |n| self.take(n));
        };
        let until = self.classes[first].due.saturating_sub(self.clock);
        // A gap that no frame can fill is as well none, or the least, whichever is nearer; places do not move by that.
        if until < LEAST.0 / 2 {
            return self.take(first);
        }
        if let Some(n) = self.unpaced(until) {
            return self.take(n);
        }
        let gap = if until <= MOST.0 { until.max(LEAST.0) } else { MOST.0.min(until - LEAST.0).max(LEAST.0) };
        self.clock += gap;
        Next::Gap(Bytes(gap))
    }

    /// The line was silent for so long: places that were missed are not owed.
    pub fn silent(&mut self, bytes: Bytes) {
        self.clock = self.clock.saturating_add(bytes.0);
    }

    /// Frames that wait.
    pub const fn waiting(&self) -> usize {
        self.waiting
    }

    /// Frames of a class that found no room.
    pub fn dropped_pkts(&self, class: ClassId) -> u64 {
        self.classes.get(class.0).map_or(0, |class| class.dropped_pkts)
    }

    /// The first class without a rate whose frame takes at most `room`.
    fn unpaced(&self, room: u64) -> Option<usize> {
        let fits = |class: &Class<F>| class.rate.is_none() && class.queue.front().is_some_and(|(_, bytes)| bytes.0 <= room);
        self.classes.iter().position(fits)
    }

    fn take(&mut self, n: usize) -> Next<F> {
        // Who waits for others' frames is late by one of each at most; what is later was never possible.
        let late = MOST.0 * self.classes.len() as u64;
        let class = &mut self.classes[n];
        let Some((frame, bytes)) = class.queue.pop_front() else { return Next::Idle };
        class.queued = class.queued.saturating_sub(bytes);
        self.waiting -= 1;
        if let Some(rate) = class.rate {
            let due = class.due.max(self.clock.saturating_sub(late));
            let rate = u128::from(rate.as_bps().max(1));
            let place = u128::from(bytes.0) * u128::from(self.line.as_bps()) + class.remainder;
            class.remainder = place % rate;
            // Not faster than the line, whatever was asked.
            let step = u64::try_from(place / rate).unwrap_or(u64::MAX).max(bytes.0);
            class.due = due.saturating_add(step);
        }
        self.clock = self.clock.saturating_add(bytes.0);
        Next::Frame(frame)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GIGABIT: BitRate = BitRate::gbps(1);

    /// The place of each frame of a class, the line being filled all the time.
    fn places(scheduler: &mut Scheduler<usize>, frames: usize) -> Vec<(usize, u64)> {
        let mut places = Vec::new();
        while places.len() < frames {
            let at = scheduler.clock;
            match scheduler.carry() {
                Next::Frame(class) => places.push((class, at)),
                Next::Gap(bytes) => assert!((LEAST..=MOST).contains(&bytes), "{bytes}"),
                Next::Idle => break,
            }
        }
        places
    }

    fn filled(rates: &[Option<BitRate>], frames: usize, bytes: Bytes) -> Scheduler<usize> {
        let mut scheduler = Scheduler::new(GIGABIT);
        for (n, rate) in rates.iter().enumerate() {
            let class = scheduler.add_class(*rate, Bytes::gib(1));
            (0..frames).for_each(|_| assert!(scheduler.push(class, n, bytes)));
        }
        scheduler
    }

    #[test]
    fn a_tenth_of_the_line_is_a_frame_in_ten() {
        let mut scheduler = filled(&[Some(BitRate::mbps(100))], 100, Bytes(1538));
        let places: Vec<u64> = places(&mut scheduler, 100).into_iter().map(|(_, at)| at).collect();
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] == 15_380), "{places:?}");
    }

    #[test]
    fn a_rate_that_leaves_less_than_the_smallest_frame_holds_over_frames() {
        // 980 Mbit/s: a gap of 31 bytes, which nothing fills.
        let mut scheduler = filled(&[Some(BitRate::mbps(980))], 10_000, Bytes(1538));
        let places = places(&mut scheduler, 10_000);
        let rate = 1538.0 * 9999.0 / places[9999].1 as f64;
        assert!((rate - 0.98).abs() < 0.0001, "{rate}");
        assert!(places.windows(2).all(|pair| pair[1].1 - pair[0].1 <= 1538 + LEAST.0), "no gap is longer than the least frame");
    }

    #[test]
    fn what_has_no_rate_gets_what_is_left_and_moves_nobody() {
        let mut scheduler = filled(&[Some(BitRate::mbps(250)), None], 1000, Bytes(1538));
        let places = places(&mut scheduler, 1500);
        let paced: Vec<u64> = places.iter().filter(|(class, _)| *class == 0).map(|(_, at)| *at).collect();
        assert!(paced.windows(2).all(|pair| pair[1] - pair[0] == 4 * 1538));
        let free = places.iter().filter(|(class, _)| *class == 1).count();
        assert_eq!(free, 1000, "three frames fit into each gap");
    }

    #[test]
    fn time_that_a_class_let_pass_is_not_made_up_for() {
        let mut scheduler = filled(&[Some(BitRate::mbps(100))], 1, Bytes(1538));
        assert_eq!(scheduler.carry(), Next::Frame(0));
        scheduler.silent(Bytes::mib(10));
        for _ in 0..3 {
            assert!(scheduler.push(ClassId(0), 0, Bytes(1538)));
        }
        let start = scheduler.clock;
        let at: Vec<u64> = places(&mut scheduler, 3).into_iter().map(|(_, at)| at - start).collect();
        assert_eq!(at, [0, 15_380, 30_760]);
    }

    #[test]
    fn a_full_class_drops_and_counts() {
        let mut scheduler = Scheduler::new(GIGABIT);
        let class = scheduler.add_class(None, Bytes(3000));
        assert!(scheduler.push(class, 0, Bytes(1538)));
        assert!(!scheduler.push(class, 1, Bytes(1538)));
        assert_eq!((scheduler.dropped_pkts(class), scheduler.waiting()), (1, 1));
        assert!(!scheduler.push(ClassId(9), 0, Bytes(84)), "nobody's");
    }

    proptest! {
        /// Each class gets its rate, as long as all of them fit onto the line, and none gets more.
        #[test]
        fn classes_get_their_rates(
            parts in prop::collection::vec(1u64..300, 1..4),
            bytes in prop::collection::vec(84u64..=1538, 4),
        ) {
            let mut scheduler = Scheduler::new(GIGABIT);
            for (n, part) in parts.iter().enumerate() {
                let class = scheduler.add_class(Some(BitRate::mbps(*part)), Bytes::gib(1));
                (0..8000).for_each(|_| assert!(scheduler.push(class, n, Bytes(bytes[n]))));
            }
            let places = places(&mut scheduler, 4000);
            let end = places.last().map_or(0, |(_, at)| *at) as f64;
            for (n, part) in parts.iter().enumerate() {
                let frames = places.iter().filter(|(class, _)| *class == n).count() as f64;
                let (had, owed) = (frames * bytes[n] as f64, end * *part as f64 / 1000.0);
                let slack = 2.0 * bytes[n] as f64 + MOST.0 as f64 * (parts.len() + 1) as f64 * *part as f64 / 1000.0;
                prop_assert!((had - owed).abs() <= slack, "class {n}: {had} of {owed}");
            }
        }
    }
}
