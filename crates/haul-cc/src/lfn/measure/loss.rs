//! Base loss: the part of the packets that the path loses whatever the rate.
//!
//! It is what is lost while no more is sent than arrives and the queue is short. Pacing that makes up for loss cannot tell: behind a queue
//! too short to show as delay, or a policer, sending a tenth too much because a tenth is lost loses it.

/// The estimate.
#[derive(Debug, Clone, Default)]
pub(in crate::lfn) struct BaseLoss {
    ratio: f64,
    /// How many packets it is the mean of.
    memory_pkts: f64,
}

impl BaseLoss {
    /// More is not made up for before a trial has shown it, and a trial that makes up for nothing costs no more.
    pub(in crate::lfn) const UNTRIED: f64 = 0.15;

    /// What another connection had learned: half as good as what is learned here.
    pub(in crate::lfn) fn remembered(ratio: f64) -> Self {
        Self { ratio: ratio.clamp(0.0, Self::UNTRIED), memory_pkts: MEMORY_PKTS / 2.0 }
    }

    pub(in crate::lfn) fn ratio(&self) -> f64 {
        self.ratio
    }

    /// What was lost of so many packets in a test.
    pub(in crate::lfn) fn learn(&mut self, loss: f64, packets: f64) {
        self.memory_pkts = (self.memory_pkts + packets).min(MEMORY_PKTS);
        let weight = if self.memory_pkts <= packets {
            1.0
        } else if loss + 2.0 * self.deviation(packets) < self.ratio {
            // Too few lost for chance: what was learned before was overflow.
            LOWER_WEIGHT
        } else {
            (packets / self.memory_pkts.max(1.0)).min(0.5)
        };
        self.ratio = (self.ratio + (loss - self.ratio) * weight).min(MOST);
    }

    /// So much is lost at the whole rate, and so much at half of it: what is lost at both is the path's own. True if less is lost at half the rate, beyond chance: then the
    /// rest was overflow.
    pub(in crate::lfn) fn believe(&mut self, whole: &LossMean, half: &LossMean, most: f64) -> bool {
        let suspected = whole.ratio().min(MOST);
        let deviation = (suspected * (1.0 - suspected) / half.packets().max(1.0)).sqrt();
        // The whole rate's is the mean of more packets; half the rate's says only that it is not too much.
        self.ratio = suspected.min(half.ratio() + deviation).min(most);
        self.memory_pkts = half.packets().min(MEMORY_PKTS);
        half.ratio() + 2.0 * deviation < suspected
    }

    /// No more than this is the path's own.
    pub(in crate::lfn) fn lower(&mut self, loss: f64) {
        self.ratio = self.ratio.min(loss);
    }

    /// Whether so much more is lost than ever before that the path is another one, or carries much less.
    pub(in crate::lfn) fn has_risen(&self, loss: f64, packets: f64) -> bool {
        packets >= LEAST_PKTS && loss > self.ratio + MUCH
    }

    /// Takes note of what is lost if that is so much less that it can be no chance. True if so.
    pub(in crate::lfn) fn falls(&mut self, loss: f64, packets: f64) -> bool {
        let falls = packets >= LEAST_PKTS && loss + MUCH.min(self.ratio / 2.0) + 2.0 * self.deviation(packets) < self.ratio;
        if falls && self.ratio > Self::UNTRIED {
            self.ratio = loss;
            return true;
        }
        false
    }

    /// Whether more was lost of so many packets than chance explains.
    pub(in crate::lfn) fn is_exceeded(&self, loss: f64, packets: f64) -> bool {
        loss > self.ratio + MARGIN + 2.0 * self.deviation(packets)
    }

    /// Standard deviation of the part lost of so many packets.
    fn deviation(&self, packets: f64) -> f64 {
        (self.ratio * (1.0 - self.ratio) / packets.max(1.0)).sqrt()
    }
}

/// What is lost at one rate: the mean over some epochs, the newest weighing most.
#[derive(Debug, Clone)]
pub(in crate::lfn) struct LossMean {
    /// What an epoch keeps of the weight of those before.
    memory: f64,
    lost_pkts: f64,
    packets: f64,
}

impl LossMean {
    pub(in crate::lfn) fn new(memory: f64) -> Self {
        Self { memory, lost_pkts: 0.0, packets: 0.0 }
    }

    /// Takes an epoch in; where so much more or less is lost than before, what was before says nothing of it.
    pub(in crate::lfn) fn add(&mut self, loss: f64, packets: f64) {
        if (loss - self.ratio()).abs() > MUCH {
            self.forget();
        }
        self.lost_pkts = self.lost_pkts * self.memory + loss * packets;
        self.packets = self.packets * self.memory + packets;
    }

    pub(in crate::lfn) fn forget(&mut self) {
        *self = Self::new(self.memory);
    }

    pub(in crate::lfn) fn ratio(&self) -> f64 {
        self.lost_pkts / self.packets.max(1.0)
    }

    pub(in crate::lfn) fn packets(&self) -> f64 {
        self.packets
    }
}

/// Ten times what arrives is sent at most.
const MOST: f64 = 0.9;
/// Whether next to nothing is lost.
pub(in crate::lfn) fn is_clean(loss: f64) -> bool {
    loss <= MARGIN
}

/// Of a loss of 1 % the mean of so many packets has a standard deviation of 0.13 %.
const MEMORY_PKTS: f64 = 6_000.0;
/// What was overflow is forgotten in two tests, to a sixteenth, and not in one alone.
const LOWER_WEIGHT: f64 = 0.75;
/// Part of the packets: a burst alone is no overflow.
const MARGIN: f64 = 0.01;
/// A fifth of the packets more than before: no path that loses by chance does so from one epoch to the next.
const MUCH: f64 = 0.2;
/// Of fewer, a fifth is less than four packets, and may be chance.
const LEAST_PKTS: f64 = 20.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chance_is_averaged_and_overflow_forgotten() {
        let mut base = BaseLoss::default();
        base.learn(0.05, 1000.0);
        base.learn(0.06, 1000.0);
        assert!((base.ratio() - 0.055).abs() < 1e-9);
        assert!(!base.is_exceeded(0.07, 1000.0) && base.is_exceeded(0.1, 1000.0));
        base.learn(0.0, 1000.0);
        assert!(base.ratio() < 0.015);
    }
}
