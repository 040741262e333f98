//! Packet numbers that are left out, so that a peer that acknowledges what it has not received is caught.
//!
//! Who acknowledges packets before they come, or those that were lost, has more sent to it than the path carries, at the cost of everybody else there. It cannot know which numbers were never used. A number is left out only
//! before a control packet, so trains stay whole, and what was not sent is in no ring: it is never lost, nor sent again, nor measured. At the peer it is a gap of one packet, one among thousands. Source: RFC 9000 21.4.

use std::ops::RangeInclusive;

/// So many of the numbers left out are remembered: with the distances between them, more than any window has packets.
const REMEMBERED: usize = 16;
/// The first one comes within this many packets; each one after it within twice as many as the one before,
const FIRST_WITHIN_PKTS: u64 = 64;
/// but no more than this many.
const WITHIN_PKTS_MAX: u64 = 1 << 15;
/// No number is left out before: a connection that says little pays nothing.
const UNTOUCHED_PKTS: u64 = 16;

/// The numbers that one path leaves out.
#[derive(Debug, Default)]
pub struct Skips {
    /// The next control packet from this number on leaves one out; `None` before the first packet.
    due: Option<u64>,
    /// Left out so far.
    count: u64,
    /// The newest of them, that with number n at `n % REMEMBERED`.
    left_out: [u64; REMEMBERED],
}

impl Skips {
    /// Whether to leave out `next_number`. `random`: numbers that nobody can foresee.
    pub fn leaves_out(&mut self, next_number: u64, random: impl FnOnce() -> u64) -> bool {
        let leaves_out = self.due.is_some_and(|due| next_number >= due);
        if leaves_out {
            self.left_out[self.count as usize % REMEMBERED] = next_number;
            self.count += 1;
        }
        if leaves_out || self.due.is_none() {
            let within = (FIRST_WITHIN_PKTS << self.count.min(16)).min(WITHIN_PKTS_MAX);
            self.due = Some(next_number.max(UNTOUCHED_PKTS) + 1 + random() % within);
        }
        leaves_out
    }

    /// Whether one of `runs`, highest first, covers a number that was left out.
    pub fn are_in(&self, runs: &[RangeInclusive<u64>]) -> bool {
        let known = (self.count as usize).min(REMEMBERED);
        self.left_out[..known].iter().any(|number| {
            let at = runs.partition_point(|run| run.start() > number);
            runs.get(at).is_some_and(|run| run.contains(number))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_left_out_soon_and_then_seldom() {
        let (mut skips, mut random) = (Skips::default(), crate::rng::Rng::new(&[5; 32]));
        let left_out: Vec<u64> = (0..1 << 20).filter(|&number| skips.leaves_out(number, || random.next_u64())).collect();
        assert!((17..=81).contains(&left_out[0]), "{left_out:?}");
        assert!(left_out.is_sorted() && (40..120).contains(&left_out.len()), "{left_out:?}");
    }

    #[test]
    fn only_reports_that_cover_one_are_wrong() {
        let mut skips = Skips::default();
        let left_out: Vec<u64> = (0..200).filter(|&number| skips.leaves_out(number, || 20)).collect();
        let (first, second) = (left_out[0], left_out[1]);
        let honest = [second + 1..=second + 9, first + 1..=second - 1, 0..=first - 1];
        assert!(!skips.are_in(&honest) && !skips.are_in(&[]));
        assert!(
            skips.are_in(&[0..=second + 9]) && skips.are_in(&[first..=first]) && skips.are_in(&[second + 5..=300, 3..=first])
        );
        assert!(!Skips::default().are_in(&[0..=100]), "number 0 is none of them");
    }
}
