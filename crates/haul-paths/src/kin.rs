//! Whether two paths share a bottleneck.
//!
//! Packets that stand in one queue at the same time wait equally long. So the one-way delays of both paths are averaged over the same short stretches of the *receiver's* clock, which
//! is one for all paths (as the sender's is: by how much they differ does not matter, nor how long the paths are), and compared: with a and b the delays, and var their variances,
//!
//! ```text
//! r = var(a - b) / (var a + var b)      one queue: what differs is noise, r near 0      two queues: r about 1
//! ```
//!
//! Nothing is said while neither varies by more than noise, nor before there are enough stretches. Two queues that both grow for a while look like one, so the common
//! delay must also have gone up and down again, or both have grown very much alike.
//! DEVIATION from RFC 8382, which compares skewness, variance and crossings of each path by itself and takes 10 s and more: here both are seen by one
//! sender at one receiver, so they can be compared stretch by stretch.

/// What is known of two paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Verdict {
    /// Too little has been seen.
    #[default]
    Unknown,
    /// One bottleneck.
    Shared,
    /// Two.
    Separate,
}

/// Delays of one path over stretches of the receiver's clock.
#[derive(Debug, Clone, Default)]
pub(crate) struct Delays {
    /// The stretch that is being filled, sum of its delays in seconds, and how many.
    open: (u64, f64, u32),
    /// The last ones that are over, by number.
    over: [Option<(u64, f64)>; KEPT],
}

impl Delays {
    /// A packet that arrived in this stretch was on the way for so long. The stretch that is over with it, if one is: its number and mean.
    pub(crate) fn on_delay(&mut self, stretch: u64, seconds: f64) -> Option<(u64, f64)> {
        let (open, sum, count) = self.open;
        if stretch < open {
            return None;
        }
        if stretch == open {
            self.open = (open, sum + seconds, count + 1);
            return None;
        }
        self.open = (stretch, seconds, 1);
        let mean = (count > 0).then(|| (open, sum / f64::from(count)))?;
        self.over[(open % KEPT as u64) as usize] = Some(mean);
        Some(mean)
    }

    /// The mean of a stretch that is over.
    pub(crate) fn mean(&self, stretch: u64) -> Option<f64> {
        self.over[(stretch % KEPT as u64) as usize].filter(|(number, _)| *number == stretch).map(|(_, mean)| mean)
    }
}

/// What two paths have met at the same times.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Kin {
    /// Stretches, up to [`MEMORY`].
    count: u32,
    mean_a: f64,
    mean_b: f64,
    var_a: f64,
    var_b: f64,
    var_difference: f64,
    /// Whether the common delay was last above its mean, and how often that has changed.
    above: bool,
    turns: u32,
    /// For how many stretches what had been told apart has looked like one, and how many turns there had been before.
    alike: (u32, u32),
    verdict: Verdict,
}

impl Kin {
    /// Delays in seconds over the same stretch.
    pub(crate) fn on_stretch(&mut self, a: f64, b: f64) {
        self.count = (self.count + 1).min(MEMORY);
        let weight = 1.0 / f64::from(self.count);
        let (off_a, off_b) = (a - self.mean_a, b - self.mean_b);
        self.mean_a += off_a * weight;
        self.mean_b += off_b * weight;
        // West (1979): variance about a mean that moves; the first sample has none.
        let vary = |var: &mut f64, off: f64| *var = (1.0 - weight) * (*var + weight * off * off);
        vary(&mut self.var_a, off_a);
        vary(&mut self.var_b, off_b);
        vary(&mut self.var_difference, off_a - off_b);
        let off = f64::midpoint(off_a, off_b);
        if off.abs() > NOISE_SECONDS && (off > 0.0) != self.above {
            self.above = off > 0.0;
            self.turns += 1;
        }
        self.judge();
    }

    pub(crate) const fn verdict(&self) -> Verdict {
        self.verdict
    }

    fn judge(&mut self) {
        let varies = self.var_a.max(self.var_b).sqrt();
        if varies < NOISE_SECONDS || self.count < LEAST {
            return;
        }
        let differ = self.var_difference / (self.var_a + self.var_b);
        if self.verdict == Verdict::Separate {
            return self.doubt(differ);
        }
        // A rise alone, if it is the same to the millisecond.
        let is_one = differ < SHARED && self.turns >= LEAST_TURNS || differ < RISES_AS_ONE && self.turns > 0;
        if is_one {
            self.verdict = Verdict::Shared;
        } else if differ > SEPARATE && varies > 2.0 * NOISE_SECONDS {
            (self.verdict, self.alike) = (Verdict::Separate, (0, self.turns));
        }
    }

    /// What has once been told apart takes more to be one after all: flows do the same things at the same times, as to empty their queues for a moment 10 s after they began.
    fn doubt(&mut self, differ: f64) {
        if differ > SHARED / 2.0 {
            self.alike = (0, self.turns);
            return;
        }
        self.alike.0 += 1;
        if self.alike.0 >= LONG_ALIKE && self.turns - self.alike.1 >= LONG_TURNS {
            self.verdict = Verdict::Shared;
        }
    }
}

/// Stretches that a path's means are kept for: round trips differ by four of them at most.
const KEPT: usize = 16;
/// Six round trips at four stretches each.
const LEAST: u32 = 24;
/// Some sixty round trips: several attempts at more of each path.
const MEMORY: u32 = 256;
/// A thread that waits for its processor delays by more.
const NOISE_SECONDS: f64 = 0.4e-3;
/// Of what both vary, what may differ in one queue: reports see it at different moments.
const SHARED: f64 = 0.2;
/// Two queues of which one grows by a third more than the other differ by as much.
const RISES_AS_ONE: f64 = 0.05;
/// Two queues that have nothing to do with each other are at 1.
const SEPARATE: f64 = 0.5;
/// Up and down again.
const LEAST_TURNS: u32 = 3;
/// Four memories.
const LONG_ALIKE: u32 = 4 * MEMORY;
/// A moment that both have in common makes three.
const LONG_TURNS: u32 = 24;

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(delays: impl Iterator<Item = (f64, f64)>) -> Verdict {
        let mut kin = Kin::default();
        delays.for_each(|(a, b)| kin.on_stretch(a / 1e3, b / 1e3));
        kin.verdict()
    }

    /// Milliseconds of a queue that fills and empties, with a period in stretches.
    fn wave(at: u32, period: f64, height: f64) -> f64 {
        height * (0.5 + 0.5 * (f64::from(at) * std::f64::consts::TAU / period).sin())
    }

    #[test]
    fn one_queue_is_seen_by_both() {
        let noise = |at: u32| f64::from(at * 7 % 5) * 0.1;
        assert_eq!(verdict((0..100).map(|at| (wave(at, 30.0, 5.0), wave(at, 30.0, 5.0) + noise(at)))), Verdict::Shared);
        assert_eq!(verdict((0..100).map(|at| (wave(at, 30.0, 5.0) + 20.0, wave(at, 30.0, 5.0)))), Verdict::Shared);
    }

    #[test]
    fn two_queues_are_not_one() {
        assert_eq!(verdict((0..100).map(|at| (wave(at, 30.0, 5.0), wave(at, 17.0, 5.0)))), Verdict::Separate);
        assert_eq!(verdict((0..100).map(|at| (wave(at, 30.0, 5.0), 0.0))), Verdict::Separate);
    }

    #[test]
    fn nothing_is_said_of_noise_nor_of_what_only_grows() {
        assert_eq!(verdict((0..300).map(|at| (wave(at, 9.0, 0.3), wave(at, 7.0, 0.3)))), Verdict::Unknown);
        assert_eq!(verdict((0..60).map(|at| (f64::from(at) * 0.1, f64::from(at) * 0.06))), Verdict::Unknown);
        assert_eq!(verdict((0..20).map(|at| (wave(at, 5.0, 5.0), 0.0))), Verdict::Unknown);
    }

    #[test]
    fn one_moment_in_common_does_not_join_what_was_told_apart() {
        let apart = |at: u32| (wave(at, 30.0, 5.0), wave(at, 17.0, 5.0));
        // Both queues are emptied at once, and are steady before and after.
        let steady = |at: u32| if (100..140).contains(&at) { (0.0, 0.0) } else { (4.0, 4.0) };
        let both = (0..100).map(apart).chain((0..3000).map(steady));
        assert_eq!(verdict(both), Verdict::Separate);
        let moved = (0..100).map(apart).chain((0..3000).map(|at| (wave(at, 40.0, 5.0), wave(at, 40.0, 5.0))));
        assert_eq!(verdict(moved), Verdict::Shared);
    }

    #[test]
    fn only_the_same_stretch_is_compared() {
        let mut delays = Delays::default();
        assert_eq!(delays.on_delay(3, 2e-3), None);
        assert_eq!(delays.on_delay(3, 4e-3), None);
        assert_eq!(delays.on_delay(5, 1e-3).map(|(number, _)| number), Some(3));
        assert!(delays.mean(3).is_some_and(|mean| (mean - 3e-3).abs() < 1e-9));
        assert_eq!((delays.mean(4), delays.mean(3 + KEPT as u64)), (None, None));
        assert_eq!(delays.on_delay(2, 0.0), None, "late");
    }
}
