//! Trials of what is lost: is it the path's own, or the overflow of a queue that others fill too?
//!
//! A path that loses by chance loses the same part of whatever is sent. Of an overflow less is lost when less is sent; but where others send as much as before, less by little only,
//! and who then makes up for what is lost at its own rate adds to it. N equal flows, each of which sends by 1 + r more than arrives and takes what it loses without doing so for the
//! path's own, lose (N - 1) r of their packets for good: a third for four flows and a tenth. If each takes what it loses at *half* its rate, what they believe falls as long as
//! r < 1 / (2N - 1). docs/controllers/fair.md has the steps.

use std::time::Duration;

use haul_units::Time;

use crate::lfn::measure::{BaseLoss, LossMean, is_clean};

/// A trial of what the path loses by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trial {
    /// Sends what arrives.
    Plain,
    /// Sends half of it.
    Half,
}

/// Which trial is under way, what was found, and when the next one is due.
#[derive(Debug, Clone)]
pub(super) struct Trials {
    running: Option<Trial>,
    /// Half the rate is sent until then.
    held_until: Time,
    is_held: bool,
    /// The next one is at half the rate, whatever is known.
    wishes_half: bool,
    /// What is lost at the whole rate and at half of it.
    whole: LossMean,
    half: LossMean,
    /// Epochs in a row in which next to nothing was lost, and when there had last been enough of them.
    clean_epochs: u32,
    clean_at: Option<Time>,
    /// The bandwidth at the last one at half the rate.
    tried_bps: f64,
    /// The next one at half the rate is due then, and was put off by so much.
    next_half: Time,
    wait: Duration,
}

impl Default for Trials {
    fn default() -> Self {
        Self {
            running: None,
            held_until: Time::ZERO,
            is_held: false,
            wishes_half: false,
            whole: LossMean::new(WHOLE_MEMORY),
            half: LossMean::new(HALF_MEMORY),
            clean_epochs: 0,
            clean_at: None,
            tried_bps: 0.0,
            next_half: Time::ZERO,
            wait: Duration::ZERO,
        }
    }
}

impl Trials {
    pub(super) fn begin(&mut self, trial: Trial, held_until: Time) {
        self.running = Some(trial);
        self.held_until = held_until;
        self.is_held = trial == Trial::Half;
        self.wishes_half &= trial != Trial::Half;
    }

    pub(super) fn running(&self) -> Option<Trial> {
        self.running
    }

    /// The trial is over, or given up.
    pub(super) fn take(&mut self) -> Option<Trial> {
        self.is_held = false;
        self.running.take()
    }

    pub(super) fn on_ack(&mut self, now: Time) {
        self.is_held &= now < self.held_until;
    }

    /// Part of the bandwidth to send at, where so much of it is lost.
    pub(super) fn share(&self, base_loss: f64) -> f64 {
        match self.running {
            Some(Trial::Plain) => 1.0,
            Some(Trial::Half) if self.is_held => 0.5,
            _ => 1.0 / (1.0 - base_loss),
        }
    }

    /// What was lost in an epoch at the whole rate.
    pub(super) fn note_whole(&mut self, now: Time, loss: f64, packets: f64) {
        self.whole.add(loss, packets);
        self.clean_epochs = if is_clean(loss) { self.clean_epochs + 1 } else { 0 };
        if self.clean_epochs >= CLEAN_EPOCHS {
            self.clean_at = Some(now);
        }
    }

    pub(super) fn whole_loss(&self) -> f64 {
        self.whole.ratio()
    }

    fn is_clean_since(&self, since: Time) -> bool {
        self.clean_at.is_some_and(|at| at >= since)
    }

    /// Much more is lost than before.
    pub(super) fn restart_whole(&mut self, loss: f64, packets: f64) {
        self.whole.forget();
        self.whole.add(loss, packets);
    }

    /// The next trial is at half the rate.
    pub(super) fn wish_half(&mut self) {
        self.wishes_half = true;
    }

    /// Whether enough time has passed since the last one at half the rate.
    pub(super) fn is_half_allowed(&self, now: Time) -> bool {
        now >= self.next_half
    }

    /// Whether the next trial is to be at half the rate.
    pub(super) fn is_half_due(&self, now: Time, base_loss: f64, bandwidth_bps: f64) -> bool {
        // What was believed with a small part of the bottleneck may be found out with a larger one.
        let has_grown = bandwidth_bps > self.tried_bps * GROWN;
        self.wishes_half || base_loss > LOSSY && (self.is_half_allowed(now) || has_grown)
    }

    /// A trial at half the rate has lost this part of so many packets. True if it is the same part as at the whole rate. What was sent without loss before `since` no longer counts.
    pub(super) fn judge_half(
        &mut self,
        since: Time,
        loss: &mut BaseLoss,
        (lost, packets): (f64, f64),
        bandwidth_bps: f64,
    ) -> bool {
        self.tried_bps = bandwidth_bps;
        self.half.add(lost, packets);
        // Who has not sent without loss of late has never seen the path without the others.
        let most = if self.is_clean_since(since) { 1.0 } else { BaseLoss::UNTRIED };
        !loss.believe(&self.whole, &self.half, most)
    }

    /// The next one at half the rate is allowed after this time.
    pub(super) fn again(&mut self, now: Time, soon: Duration) {
        self.next_half = now + soon;
    }

    /// Each that finds the same makes the next one rarer.
    pub(super) fn again_later(&mut self, now: Time) {
        // Four times as rare costs a quarter; four that agree are enough.
        self.wait = (self.wait * 4).clamp(WAIT, WAIT_MAX);
        self.next_half = now + self.wait;
    }
}

/// Part of the packets: more is believed only if as much is lost at half the rate. As much as BBR takes for no congestion, draft-ietf-ccwg-bbr 2.7.
pub(super) const LOSSY: f64 = 0.02;
/// Of the weight of an epoch the next one leaves three quarters: the mean of four.
const WHOLE_MEMORY: f64 = 0.75;
/// The mean of two trials: of more, the first would be of another overflow.
const HALF_MEMORY: f64 = 0.5;
/// Half as much again as at the last trial.
const GROWN: f64 = 1.5;
/// A trial costs an eighth of a round trip, or 50 ms: 1 % of this.
const WAIT: Duration = Duration::from_secs(5);
/// Three lifetimes of the smallest round trip: routes change.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// A start that overflows a queue is over by then.
const CLEAN_EPOCHS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Of so many equal flows on one bottleneck, each of which makes up for what it believes and sends by `raise` more: what they believe, and so what is lost, after some trials in turn.
    fn believed(flows: usize, raise: f64, trials: usize) -> f64 {
        let capacity = 1.0;
        let mut losses = vec![BaseLoss::default(); flows];
        let mut all = vec![Trials::default(); flows];
        let mut rates = vec![capacity * 1.5 / flows as f64; flows];
        for round in 0..trials * flows {
            let i = round % flows;
            let sum: f64 = rates.iter().sum();
            let overflow = (1.0 - capacity / sum).max(0.0);
            let at_half = (1.0 - capacity / (sum - rates[i] / 2.0)).max(0.0);
            all[i].restart_whole(overflow, 1e6);
            all[i].half.forget();
            all[i].judge_half(Time::ZERO, &mut losses[i], (at_half, 1e6), 1.0);
            // Each sends so much more than arrives, as it believes.
            for j in 0..flows {
                rates[j] = rates[j] * (1.0 - overflow) * (1.0 + raise) / (1.0 - losses[j].ratio());
            }
        }
        losses.iter().map(BaseLoss::ratio).fold(0.0, f64::max)
    }

    #[test]
    fn an_overflow_of_equal_flows_is_believed_by_none() {
        for flows in [2, 4, 8, 16] {
            assert!(believed(flows, 0.02, 20) < 0.1, "{flows} flows: {:.3}", believed(flows, 0.02, 20));
        }
    }

    #[test]
    fn chance_is_believed_and_then_tried_ever_more_rarely() {
        let (mut trials, mut loss) = (Trials::default(), BaseLoss::default());
        trials.restart_whole(0.1, 10_000.0);
        assert!(trials.judge_half(Time::ZERO, &mut loss, (0.11, 500.0), 1e9));
        assert!((loss.ratio() - 0.1).abs() < 1e-9);
        trials.again_later(Time::ZERO);
        assert!(!trials.is_half_due(Time::ZERO + WAIT / 2, 0.1, 1e9) && trials.is_half_due(Time::ZERO + WAIT, 0.1, 1e9));
        assert!(trials.is_half_due(Time::ZERO, 0.1, 2e9), "with twice the part of the bottleneck at once");
        trials.again_later(Time::ZERO);
        assert!(!trials.is_half_due(Time::ZERO + WAIT * 2, 0.1, 1e9));
    }

    #[test]
    fn what_half_the_rate_does_not_lose_is_overflow() {
        let (mut trials, mut loss) = (Trials::default(), BaseLoss::default());
        trials.restart_whole(0.3, 10_000.0);
        assert!(!trials.judge_half(Time::ZERO, &mut loss, (0.15, 500.0), 1e9));
        assert!(loss.ratio() < 0.18, "{}", loss.ratio());
    }
}
