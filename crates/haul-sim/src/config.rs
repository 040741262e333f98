//! What a link is like.

use std::time::Duration;

use haul_units::{BitRate, Bytes, Ratio};

use crate::{Discipline, Rng, TokenBucket};

/// One direction of a link.
///
/// ```text
/// send -> policer -> [queue: tail drop, RED or CoDel, marks] -> shaper -> rate -> loss -> delay + jitter + reordering -> duplicate, corrupt -> pop
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkConfig {
    /// Serialisation rate. [`BitRate::MAX`]: none, nothing queues.
    pub rate: BitRate,
    /// Propagation delay, one way.
    pub delay: Duration,
    /// Delay on top, between zero and this, wandering over about this time. It keeps the order, as queues elsewhere do.
    pub jitter: Duration,
    /// What the queue holds, the packet being sent included; a packet that does not fit is dropped.
    pub queue: Bytes,
    /// Packets lost on the wire, after they have taken their time on it.
    pub loss: LossModel,
    /// Packets that arrive late, out of order.
    pub reorder: Reorder,
    /// Packets that arrive twice.
    pub duplicate: Ratio,
    /// Packets whose bytes have changed on the way.
    pub corrupt: Ratio,
    /// A packet that finds more than this in the queue is marked.
    pub ecn_threshold: Option<Bytes>,
    /// What the queue does besides dropping what does not fit.
    pub discipline: Discipline,
    /// Drops what exceeds a rate, before the queue.
    pub policer: Option<TokenBucket>,
    /// Holds what exceeds a rate back in the queue.
    pub shaper: Option<TokenBucket>,
    /// Seed of all chance on this link.
    pub seed: u64,
}

/// A change of a link while it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// Another rate; the packet being sent is started again.
    Rate(BitRate),
    /// Another propagation delay, for packets that have not left the queue yet. A shorter one lets them overtake.
    Delay(Duration),
    /// Another amplitude of jitter.
    Jitter(Duration),
    /// Another loss on the wire.
    Loss(LossModel),
    /// Another bound of the queue; what it holds already stays.
    Queue(Bytes),
    /// An outage: all that leaves the queue is lost, until [`Change::Up`].
    Down,
    /// The end of an outage.
    Up,
}

impl Default for LinkConfig {
    /// 1 Gbit/s, 10 ms, a queue of 1.25 MB (10 ms), and nothing wrong.
    fn default() -> Self {
        Self {
            rate: BitRate::gbps(1),
            delay: Duration::from_millis(10),
            jitter: Duration::ZERO,
            queue: Bytes(1_250_000),
            loss: LossModel::None,
            reorder: Reorder::default(),
            duplicate: Ratio::ZERO,
            corrupt: Ratio::ZERO,
            ecn_threshold: None,
            discipline: Discipline::TailDrop,
            policer: None,
            shaper: None,
            seed: 1,
        }
    }
}

/// How packets are lost on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LossModel {
    /// None is.
    None,
    /// Each on its own.
    Random(Ratio),
    /// In bursts: all while the link is in its bad state (Gilbert's model).
    Bursts {
        /// Lost in the long run, below one.
        ratio: Ratio,
        /// Mean length of a burst in packets, at least 1.
        mean_pkts: f64,
    },
    /// In two states with a loss of their own each (Elliott's model): in the good one few are lost, in the bad one many.
    TwoStates {
        /// Chance of a packet to turn a good link bad.
        enter_bad: Ratio,
        /// Chance of a packet to turn a bad link good.
        leave_bad: Ratio,
        /// Lost in the good state.
        good: Ratio,
        /// Lost in the bad state.
        bad: Ratio,
    },
    /// Every nth, and no chance in it: what the textbooks' formulae assume. None for zero.
    Every(u64),
    /// All are: an outage.
    All,
}

/// Packets that take a longer way.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reorder {
    /// How many.
    pub ratio: Ratio,
    /// By how much later they arrive.
    pub extra: Duration,
}

/// Decides for each packet whether it is lost.
#[derive(Debug, Clone)]
pub struct LossState {
    model: LossModel,
    bad: bool,
    count: u64,
}

impl LossState {
    /// A link in its good state.
    pub fn new(model: LossModel) -> Self {
        Self { model, bad: false, count: 0 }
    }

    /// Whether the next packet is lost.
    pub fn next(&mut self, rng: &mut Rng) -> bool {
        match self.model {
            LossModel::None => false,
            LossModel::All => true,
            LossModel::Random(ratio) => rng.chance(ratio),
            LossModel::Bursts { ratio, mean_pkts } => {
                let leave_bad = 1.0 / mean_pkts.max(1.0);
                // Balance of the two states: enter * (1 - ratio) = leave * ratio
                let enter_bad = leave_bad * ratio.as_f64() / (1.0 - ratio.as_f64()).max(1e-9);
                let change = if self.bad { leave_bad } else { enter_bad };
                self.bad ^= rng.unit() < change;
                self.bad
            }
            LossModel::TwoStates { enter_bad, leave_bad, good, bad } => {
                self.bad ^= rng.chance(if self.bad { leave_bad } else { enter_bad });
                rng.chance(if self.bad { bad } else { good })
            }
            LossModel::Every(n) => {
                self.count += 1;
                n > 0 && self.count.is_multiple_of(n)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_have_the_ratio_and_the_length_asked_for() {
        let mut state = LossState::new(LossModel::Bursts { ratio: Ratio::percent(2.0), mean_pkts: 20.0 });
        let mut rng = Rng::new(3);
        let (mut lost, mut bursts, mut last) = (0, 0, false);
        for _ in 0..1_000_000 {
            let now = state.next(&mut rng);
            lost += u32::from(now);
            bursts += u32::from(now && !last);
            last = now;
        }
        assert!((15_000..25_000).contains(&lost), "{lost}");
        let mean = f64::from(lost) / f64::from(bursts);
        assert!((17.0..23.0).contains(&mean), "{mean}");
    }

    #[test]
    fn two_states_lose_what_their_balance_says() {
        let model = LossModel::TwoStates {
            enter_bad: Ratio::new(0.01),
            leave_bad: Ratio::new(0.04),
            good: Ratio::new(0.001),
            bad: Ratio::new(0.3),
        };
        let (mut state, mut rng) = (LossState::new(model), Rng::new(5));
        let lost = (0..1_000_000).filter(|_| state.next(&mut rng)).count();
        // A fifth of the time in the bad state: 0.8 * 0.001 + 0.2 * 0.3
        assert!((57_000..65_000).contains(&lost), "{lost}");
    }

    #[test]
    fn every_nth_is_every_nth() {
        let (mut state, mut rng) = (LossState::new(LossModel::Every(4)), Rng::new(5));
        let lost: Vec<usize> = (1..=12).filter(|_| state.next(&mut rng)).collect();
        assert_eq!(lost, [4, 8, 12]);
    }
}
