//! What is lost on the path, and the trials that tell whether it is the path's own.

use std::time::Duration;

use haul_units::Time;

use super::Flow;
use super::cruise::MAX_RAISE;
use super::trials::{LOSSY, Trial};
use crate::AckSample;
use crate::lfn::measure::{BaseLoss, MIN_RTT_LIFETIME, Summary};

impl Flow {
    /// A trial ends with the epoch: what it has found.
    pub(super) fn judge_trial(&mut self, now: Time, summary: &Summary) -> Option<Trial> {
        let trial = self.trials.take()?;
        match trial {
            Trial::Plain => self.judge_plain(now, summary),
            Trial::Half => self.judge_half(now, summary),
        }
        Some(trial)
    }

    /// What was lost although no more was sent than arrives. Where it is more than before it may be others' overflow.
    fn judge_plain(&mut self, now: Time, summary: &Summary) {
        if !self.path.is_without_queue(summary) {
            return;
        }
        if summary.loss <= LOSSY || !self.path.exceeds_loss(summary) {
            self.path.loss.learn(summary.loss, self.path.packets(summary));
        } else if self.trials.is_half_allowed(now) {
            self.begin_trial(now, Trial::Half);
        }
    }

    fn judge_half(&mut self, now: Time, summary: &Summary) {
        let soon = self.path.epoch_length() * SOON_EPOCHS;
        self.trials.again(now, soon);
        // A queue that stands although half is sent is others', and overflows. (One late packet is no queue.)
        if summary.delay_min > self.path.queue_threshold(8) {
            return self.path.loss.lower(summary.loss);
        }
        let (packets, before, was_limited) =
            (self.path.packets(summary), self.path.loss.ratio(), std::mem::take(&mut self.is_limited));
        let (since, bandwidth_bps) = (now.before(MIN_RTT_LIFETIME), self.path.bandwidth_bps());
        if self.trials.judge_half(since, &mut self.path.loss, (summary.loss, packets), bandwidth_bps) {
            if self.path.loss.ratio() > LOSSY {
                // What looked like an overflow was none.
                self.raise = MAX_RAISE;
            }
            self.trials.again_later(now);
        } else if !was_limited {
            // Too much was sent: what arrives of it is our part.
            let arriving = (1.0 - self.trials.whole_loss()) / (1.0 - before);
            self.path.bandwidth.limit(bandwidth_bps * arriving);
        }
    }

    /// More is lost than chance makes of what is known, and there is no queue that it would come from.
    pub(super) fn is_lossier(&self, summary: &Summary) -> bool {
        // As long as flows of this kind make it, and as much again.
        let has_queue = self.path.queue.standing(summary) > self.wanted_delay() * 2;
        !summary.app_limited && !has_queue && summary.loss > LOSSY && self.path.exceeds_loss(summary)
    }

    /// After an epoch of cruise: is there reason for a trial?
    pub(super) fn watch_loss(&mut self, ack: &AckSample, summary: &Summary, trial: Option<Trial>, lossy: bool, risen: bool) {
        if trial != Some(Trial::Half) {
            self.trials.note_whole(ack.now, summary.loss, self.path.packets(summary));
        }
        self.lossy_epochs = match trial {
            _ if lossy => self.lossy_epochs + 1,
            Some(Trial::Plain) => self.lossy_epochs,
            _ => 0,
        };
        if self.lossy_epochs < LOSSY_EPOCHS {
            return;
        }
        if risen {
            self.doubt(ack, summary);
        } else if self.path.is_without_queue(summary) && self.trials.is_half_allowed(ack.now) {
            self.begin_trial(ack.now, Trial::Half);
        }
    }

    /// Much more is lost than before: either the path loses more by chance, or it carries less, behind a queue too short to be seen. Both let pass what arrives now.
    fn doubt(&mut self, ack: &AckSample, summary: &Summary) {
        // The newest sample knows nothing of the time before.
        let newest_bps = ack.rate.map_or(f64::MAX, |sample| sample.rate.as_bps() as f64);
        self.path.bandwidth.limit(summary.arrived_bps.min(newest_bps));
        self.is_limited = true;
        // The epoch in which it began shows half of it.
        self.trials.restart_whole(summary.loss, self.path.packets(summary));
        self.begin_trial(ack.now, Trial::Half);
        self.lossy_epochs = 0;
    }

    /// An attempt at more ends because much is lost: the trial that follows sends half of what arrived.
    pub(in crate::lfn) fn stop_at_loss(&mut self, summary: &Summary) {
        self.path.bandwidth.limit(summary.mean_bps);
        self.note_overflow();
        if self.path.loss.has_risen(summary.loss, self.path.packets(summary)) {
            self.trials.wish_half();
        }
    }

    /// For an epoch what is lost is not made up for, and is the path's own.
    pub(in crate::lfn) fn test_loss(&mut self, now: Time) {
        if self.trials.is_half_due(now, self.path.loss.ratio(), self.path.bandwidth_bps()) {
            self.begin_trial(now, Trial::Half);
        } else if self.path.loss.ratio() <= BaseLoss::UNTRIED {
            self.begin_trial(now, Trial::Plain);
        } else {
            // Not to make up for so much would cost as much.
            self.path.begin_epoch(now);
        }
    }

    /// Nothing was in flight: what is sent from now on is no half of the rate, once the time for that is over.
    pub(in crate::lfn) fn on_idle(&mut self, now: Time) {
        if self.trials.running() == Some(Trial::Half) {
            self.trials.take();
            self.trials.wish_half();
        }
        self.path.begin_epoch(now);
    }

    fn begin_trial(&mut self, now: Time, trial: Trial) {
        let late = match trial {
            Trial::Plain => Duration::ZERO,
            // What was sent before it is taken for lost after the first of what is sent in it has arrived: RFC 9002 6.1.2.
            Trial::Half => self.path.min_rtt() / 8,
        };
        self.trials.begin(trial, now + late + self.half_length());
        self.path.begin_epoch(now + self.path.min_rtt() + late);
    }

    /// A quarter of a round trip costs little; on short paths as long as it takes to see enough packets, but no longer than other epochs.
    pub(super) fn half_length(&self) -> Duration {
        // An eighth of it is late, and as much again is left to see.
        self.path.packets_time(TRIAL_PKTS).min(MOST_TRIAL).max(self.path.min_rtt() / 4)
    }
}

/// One alone may be a burst, or an outage.
const LOSSY_EPOCHS: u32 = 2;
/// Of so many the half that is sent loses 5 % to within 1 %.
const TRIAL_PKTS: u64 = 1_000;
/// On slow paths; no longer than an epoch of cruise there.
const MOST_TRIAL: Duration = Duration::from_millis(100);
/// Three epochs at the whole rate between two trials at half of it.
const SOON_EPOCHS: u32 = 4;

#[cfg(test)]
mod tests {
    use haul_units::Bytes;

    use super::*;
    use crate::lfn::mode::Mode;

    #[test]
    fn a_pause_in_a_trial_at_half_the_rate_puts_it_off() {
        let mut flow = Flow::new(Mode::Fair, Bytes(1472));
        let now = Time::ZERO + Duration::from_secs(1);
        for trial in [Trial::Plain, Trial::Half] {
            flow.begin_trial(now, trial);
            flow.on_idle(now + Duration::from_secs(1));
            let is_half = trial == Trial::Half;
            assert_eq!(
                flow.trials.running(),
                Some(trial).filter(|_| !is_half),
                "what arrives at the whole rate is told in a plain one"
            );
            assert_eq!(flow.trials.is_half_due(now, 0.0, 0.0), is_half);
        }
    }
}
