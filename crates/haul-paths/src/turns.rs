//! The order in which paths are asked to take a train, and which of them are not asked.

use std::time::Duration;

use haul_units::Time;

use crate::PATHS_MAX;
use crate::scheduler::Scheduler;

/// A path that may carry data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Candidate {
    /// Its number, below [`PATHS_MAX`].
    pub id: u8,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// When something last left on it.
    pub sent_at: Time,
    /// Bytes acknowledged on it: of two that share a bottleneck the one that carries more stays.
    pub carried: u64,
    /// Bytes a second that it carries.
    pub rate: u64,
}

/// Paths in the order in which they are asked to take data.
#[derive(Debug, Clone, Copy, Default)]
pub struct Turns {
    /// Round-trip time, none for those about as short as the shortest; when something last left; number.
    order: [(Duration, Time, u8); PATHS_MAX],
    len: usize,
}

impl Turns {
    /// In the scheduler's order.
    pub(crate) fn new(scheduler: Scheduler, paths: impl Iterator<Item = Candidate> + Clone) -> Self {
        let shortest = paths.clone().map(|path| path.rtt).min().unwrap_or_default();
        let as_short = match scheduler {
            Scheduler::RoundRobin => Duration::MAX,
            _ => shortest + shortest / 4 + AS_SHORT,
        };
        let mut turns = Self::default();
        for path in paths.take(PATHS_MAX) {
            turns.insert((if path.rtt <= as_short { Duration::ZERO } else { path.rtt }, path.sent_at, path.id));
        }
        turns
    }

    /// Leaves out what would end later than without it: a path by which a packet that leaves now arrives after the ones before it in the order have carried all that is left.
    pub(crate) fn end_soonest(&mut self, candidates: &[Candidate], left: u64) {
        let of = |id: u8| candidates.iter().find(|path| path.id == id);
        let mut rate = 0.0;
        let mut shortest = Duration::MAX;
        for nth in 0..self.len {
            let Some(path) = of(self.order[nth].2) else { continue };
            // One way is half of the round trip, as far as anybody knows.
            let others_end =
                Duration::try_from_secs_f64(left as f64 / rate).unwrap_or(Duration::MAX).saturating_add(shortest / 2);
            if path.rtt / 2 >= others_end {
                self.len = nth;
                return;
            }
            rate += path.rate as f64;
            shortest = shortest.min(path.rtt);
        }
    }

    fn insert(&mut self, entry: (Duration, Time, u8)) {
        let at = self.order[..self.len].partition_point(|other| *other <= entry);
        self.order.copy_within(at..self.len, at + 1);
        self.order[at] = entry;
        self.len += 1;
    }

    /// The numbers of the paths, in this order.
    pub fn iter(&self) -> impl Iterator<Item = u8> {
        self.order[..self.len].iter().map(|(.., id)| *id)
    }

    /// How many there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Round trips that differ by no more than this and a quarter count as equal: what timers and acknowledgements blur.
const AS_SHORT: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(paths: &[(u64, u64, u8)]) -> Vec<Candidate> {
        let new = |&(rtt_us, sent_us, id): &(u64, u64, u8)| Candidate {
            id,
            rtt: Duration::from_micros(rtt_us),
            sent_at: Time::ZERO + Duration::from_micros(sent_us),
            rate: 1_000_000,
            ..Candidate::default()
        };
        paths.iter().map(new).collect()
    }

    fn ids(turns: &Turns) -> Vec<u8> {
        turns.iter().collect()
    }

    fn order(paths: &[(u64, u64, u8)]) -> Vec<u8> {
        ids(&Turns::new(Scheduler::Completion, candidates(paths).into_iter()))
    }

    #[test]
    fn shortest_first_and_equals_in_turn() {
        assert_eq!(order(&[(200_000, 0, 0), (20_000, 9, 1), (25_900, 5, 2)]), [2, 1, 0]);
        assert_eq!(order(&[(400, 9, 0), (1_400, 5, 1), (3_000, 1, 2)]), [1, 0, 2], "a millisecond is blur");
        assert_eq!(order(&[]), Vec::<u8>::new());
    }

    #[test]
    fn round_robin_knows_no_round_trips() {
        let paths = candidates(&[(20_000, 9, 0), (200_000, 5, 1), (1_000, 7, 2)]);
        assert_eq!(ids(&Turns::new(Scheduler::RoundRobin, paths.iter().copied())), [1, 2, 0]);
        assert_eq!(ids(&Turns::new(Scheduler::ShortestRtt, paths.iter().copied())), [2, 0, 1]);
    }

    /// Two paths of 1 MB/s, 10 ms and 100 ms one way: 90 kB is what the near one carries until a packet has come by the far one.
    #[test]
    fn a_far_path_gets_nothing_that_the_near_one_ends_sooner() {
        let paths = candidates(&[(20_000, 0, 0), (200_000, 0, 1)]);
        let asked = |left| {
            let mut turns = Turns::new(Scheduler::Completion, paths.iter().copied());
            turns.end_soonest(&paths, left);
            ids(&turns)
        };
        assert_eq!(asked(89_000), [0]);
        assert_eq!(asked(91_000), [0, 1]);
        assert_eq!(asked(0), [0], "one is always asked");
    }

    /// Of paths about as short none is left out while there is as much as one packet's time.
    #[test]
    fn a_path_without_a_rate_leaves_none_out() {
        let mut paths = candidates(&[(20_000, 0, 0), (200_000, 0, 1)]);
        paths[0].rate = 0;
        let mut turns = Turns::new(Scheduler::Completion, paths.iter().copied());
        turns.end_soonest(&paths, 1);
        assert_eq!(ids(&turns), [0, 1]);
    }
}
