//! Whether blocks are to be packed at this moment: only where that cannot make a copy slower.
//!
//! 1. The link is what is waited for: over the last tenth of a second the transport spent half of its time or more in waits that the link is the cause of (window, pacing, a limit), and not at work or waiting for the receiver. Where a
//!    processor is the limit, of the sender or of the receiver, nothing is packed.
//! 2. The link has enough to do meanwhile: what it was given and has not sent yet lasts it for twice the time that packing the next block takes, at the speed of those before. So it never runs dry for a block that is being packed; and where
//!    packing is slower than the link, only as many blocks are packed as there is time for.
//!
//! Whether a block gains is the [`Packer`](crate::Packer)'s to find out.

use std::time::Duration;

/// How often the transport is looked at.
const INTERVAL: Duration = Duration::from_millis(100);
/// The part of the time that the link must be waited for.
const WAITED: f64 = 0.5;
/// How many times the time that packing takes there must be work for the link.
const AHEAD: f64 = 2.0;
/// Seconds that a byte takes before any was packed: 50 MB/s, slower than any machine of these years is.
const FIRST_COST: f64 = 20e-9;
/// The weight of the newest block in the average of what packing takes.
const NEWEST: f64 = 0.125;

/// What is looked at: totals since the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Look {
    /// When.
    pub at: Duration,
    /// How long the transport has waited because of the link.
    pub waited: Duration,
    /// Bytes that have left.
    pub left: u64,
}

/// Decides.
#[derive(Debug, Clone)]
pub struct Judge {
    last: Look,
    is_waiting: bool,
    /// Bytes a second that left of late.
    rate: f64,
    /// Seconds that packing a byte takes.
    cost: f64,
}

impl Default for Judge {
    fn default() -> Self {
        Self { last: Look::default(), is_waiting: false, rate: 0.0, cost: FIRST_COST }
    }
}

impl Judge {
    /// Whether it is time for a look.
    pub fn is_due(&self, at: Duration) -> bool {
        at.saturating_sub(self.last.at) >= INTERVAL
    }

    /// Takes a look.
    pub fn look(&mut self, look: Look) {
        let elapsed = look.at.saturating_sub(self.last.at).as_secs_f64();
        if elapsed > 0.0 {
            self.is_waiting = look.waited.saturating_sub(self.last.waited).as_secs_f64() >= WAITED * elapsed;
            self.rate = look.left.saturating_sub(self.last.left) as f64 / elapsed;
            self.last = look;
        }
    }

    /// Whether a block of so many bytes is to be packed, while so many bytes wait for the link.
    pub fn packs(&self, block: usize, waiting: u64) -> bool {
        self.is_waiting && waiting as f64 >= AHEAD * self.cost * block as f64 * self.rate
    }

    /// Packing a block, or finding that it does not gain, took so long.
    pub fn took(&mut self, block: usize, time: Duration) {
        if block > 0 {
            self.cost += NEWEST * (time.as_secs_f64() / block as f64 - self.cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 1 << 20;

    /// A copy of so many blocks: `read` bytes a second come from the disk, packing makes `pack` bytes a second and leaves a part of each, the link carries `link`, the transport's own work `work`. How long it takes, in seconds, and
    /// how many blocks were packed.
    struct World {
        read: f64,
        pack: f64,
        gain: f64,
        link: f64,
        work: f64,
        packs: bool,
    }

    impl World {
        fn play(&self, blocks: usize) -> (f64, usize) {
            const ROOM: f64 = 8.0 * BLOCK as f64;
            let rate = self.link.min(self.work);
            // Of the time that a byte takes, what the transport's own work does not is waited for the link.
            let waits = (1.0 / self.link - 1.0 / self.work).max(0.0);
            let (mut now, mut waited, mut left) = (0.0_f64, 0.0_f64, 0.0_f64);
            let mut pass = |time: f64, queue: &mut f64| {
                let gone = (rate * time).min(*queue);
                *queue -= gone;
                (now, waited, left) = (now + time, waited + gone * waits, left + gone);
                Look { at: Duration::from_secs_f64(now), waited: Duration::from_secs_f64(waited), left: left as u64 }
            };
            let (mut judge, mut queue, mut packed) = (Judge::default(), 0.0_f64, 0);
            for _ in 0..blocks {
                let look = pass(BLOCK as f64 / self.read, &mut queue);
                if judge.is_due(look.at) {
                    judge.look(look);
                }
                let mut size = BLOCK as f64;
                if self.packs && judge.packs(BLOCK, queue as u64) {
                    let time = BLOCK as f64 / self.pack;
                    pass(time, &mut queue);
                    judge.took(BLOCK, Duration::from_secs_f64(time));
                    if self.gain < 0.875 {
                        (size, packed) = (size * self.gain, packed + 1);
                    }
                }
                pass(((queue + size - ROOM) / rate).max(0.0), &mut queue);
                queue += size;
            }
            let end = pass(queue / rate, &mut queue);
            (end.at.as_secs_f64(), packed)
        }
    }

    #[test]
    fn a_slow_link_carries_packed_blocks_and_is_faster_for_it() {
        let world = World { read: 2e9, pack: 400e6, gain: 0.4, link: 12.5e6, work: 1e9, packs: true };
        let ((plain, _), (fast, packed)) = (World { packs: false, ..world }.play(400), world.play(400));
        assert!(packed > 350 && fast < 0.5 * plain, "{packed} of 400 packed: {fast} s, {plain} s without");
    }

    /// Whatever the speeds are, it is never slower; and where a processor is the limit, nothing is packed.
    #[test]
    fn nothing_is_slower_for_it() {
        for read in [0.05e9, 0.5e9, 5e9] {
            for pack in [20e6, 400e6, 2e9] {
                for gain in [0.05, 0.5, 1.0] {
                    for link in [1e6, 12.5e6, 125e6, 1.25e9] {
                        for work in [0.1e9, 1e9, 3e9] {
                            let world = World { read, pack, gain, link, work, packs: true };
                            let ((plain, _), (fast, packed)) = (World { packs: false, ..world }.play(600), world.play(600));
                            let story = format!("read {read:e} pack {pack:e} gain {gain} link {link:e} work {work:e}");
                            assert!(fast <= plain * 1.02 + 0.05, "{story}: {fast} s, {plain} s without, {packed} packed");
                            if work <= link {
                                assert_eq!(packed, 0, "{story}: the processor is the limit");
                            }
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_rule_is_as_it_is_said() {
        let mut judge = Judge::default();
        let at = Duration::from_millis;
        assert!(judge.is_due(at(100)) && !judge.is_due(at(99)) && !judge.packs(BLOCK, u64::MAX), "nothing is known yet");
        judge.look(Look { at: at(100), waited: at(50), left: 1_000_000 });
        assert!(!judge.is_due(at(150)));
        // 10 MB/s leave, and a block takes 21 ms: 0.42 MB must wait.
        assert!(judge.packs(BLOCK, 420_000) && !judge.packs(BLOCK, 410_000));
        judge.took(BLOCK, at(100));
        assert!(!judge.packs(BLOCK, 420_000), "packing is slower than was thought");
        judge.look(Look { at: at(200), waited: at(99), left: 2_000_000 });
        assert!(!judge.packs(BLOCK, u64::MAX), "less than half of the time was waited for the link");
    }
}
