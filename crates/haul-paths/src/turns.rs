//! The order in which paths are asked to take a train.

use std::time::Duration;

use haul_units::Time;

use crate::PATHS_MAX;

/// Paths in the order in which they are asked to take data.
#[derive(Debug, Clone, Copy, Default)]
pub struct Turns {
    /// Round-trip time, none for those about as short as the shortest; when something last left; number.
    order: [(Duration, Time, u8); PATHS_MAX],
    len: usize,
}

impl Turns {
    /// The shortest round trip first; those about as short take turns. Each path: its round trip, when something last left on it, its number.
    pub(crate) fn new(paths: impl Iterator<Item = (Duration, Time, u8)> + Clone) -> Self {
        let shortest = paths.clone().map(|(rtt, ..)| rtt).min().unwrap_or_default();
        let as_short = shortest + shortest / 4 + AS_SHORT;
        let mut turns = Self::default();
        for (rtt, sent_at, id) in paths.take(PATHS_MAX) {
            turns.insert((if rtt <= as_short { Duration::ZERO } else { rtt }, sent_at, id));
        }
        turns
    }

    fn insert(&mut self, entry: (Duration, Time, u8)) {
        let at = self.order[..self.len].partition_point(|other| *other <= entry);
        self.order.copy_within(at..self.len, at + 1);
        self.order[at] = entry;
        self.len += 1;
    }

    /// The number of the path whose turn is the `nth`.
    pub fn get(&self, nth: usize) -> Option<u8> {
        self.order[..self.len].get(nth).map(|(.., id)| *id)
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

    fn order(paths: &[(u64, u64, u8)]) -> Vec<u8> {
        let at = |us| Time::ZERO + Duration::from_micros(us);
        let turns = Turns::new(paths.iter().map(|&(rtt_us, sent_us, id)| (Duration::from_micros(rtt_us), at(sent_us), id)));
        (0..).map_while(|nth| turns.get(nth)).collect()
    }

    #[test]
    fn shortest_first_and_equals_in_turn() {
        assert_eq!(order(&[(200_000, 0, 0), (20_000, 9, 1), (25_900, 5, 2)]), [2, 1, 0]);
        assert_eq!(order(&[(400, 9, 0), (1_400, 5, 1), (3_000, 1, 2)]), [1, 0, 2], "a millisecond is blur");
        assert_eq!(order(&[]), Vec::<u8>::new());
    }
}
