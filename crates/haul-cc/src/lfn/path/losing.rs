//! What is lost on the path, and the trials that tell whether it is the path's own.

use std::time::Duration;

use haul_units::Time;

use super::{CRUISE_EPOCH, MAX_RAISE, MIN_RTT_LIFETIME, PathModel};
use crate::AckSample;
use crate::lfn::epoch::{Epoch, Summary};
use crate::lfn::loss::BaseLoss;
use crate::lfn::trials::{LOSSY, Trial};

impl PathModel {
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
        if !self.is_without_queue(summary) {
            return;
        }
        if summary.loss <= LOSSY || !self.exceeds(summary) {
            self.loss.learn(summary.loss, self.packets(summary));
        } else if self.trials.is_half_allowed(now) {
            self.begin_trial(now, Trial::Half);
        }
    }

    fn judge_half(&mut self, now: Time, summary: &Summary) {
        let soon = self.min_rtt().max(CRUISE_EPOCH) * SOON_EPOCHS;
        self.trials.again(now, soon);
        // A queue that stands although half is sent is others', and overflows. (One late packet is no queue.)
        if summary.delay_min > self.queue_threshold(8) {
            return self.loss.lower(summary.loss);
        }
        let (packets, before, was_limited) = (self.packets(summary), self.loss.ratio(), std::mem::take(&mut self.is_limited));
        let since = now.before(MIN_RTT_LIFETIME);
        if self.trials.judge_half(since, &mut self.loss, (summary.loss, packets), self.bandwidth_bps) {
            if self.loss.ratio() > LOSSY {
                // What looked like an overflow was none.
                self.raise = MAX_RAISE;
            }
            self.trials.again_later(now);
        } else if !was_limited {
            // Too much was sent: what arrives of it is our part.
            let arriving = (1.0 - self.trials.whole_loss()) / (1.0 - before);
            self.limit_bandwidth(self.bandwidth_bps * arriving);
        }
    }

    /// More is lost than chance makes of what is known, and there is no queue that it would come from.
    pub(super) fn is_lossier(&self, summary: &Summary) -> bool {
        // As long as flows of this kind make it, and as much again.
        let has_queue = summary.delay_min.saturating_sub(self.floor) > self.wanted_delay() * 2;
        !summary.app_limited && !has_queue && summary.loss > LOSSY && self.exceeds(summary)
    }

    /// After an epoch of cruise: is there reason for a trial?
    pub(super) fn watch_loss(&mut self, ack: &AckSample, summary: &Summary, trial: Option<Trial>, lossy: bool, risen: bool) {
        if trial != Some(Trial::Half) {
            self.trials.note_whole(ack.now, summary.loss, self.packets(summary));
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
        } else if self.is_without_queue(summary) && self.trials.is_half_allowed(ack.now) {
            self.begin_trial(ack.now, Trial::Half);
        }
    }

    /// Much more is lost than before: either the path loses more by chance, or it carries less, behind a queue too short to be seen. Both let pass what arrives now.
    fn doubt(&mut self, ack: &AckSample, summary: &Summary) {
        // The newest sample knows nothing of the time before.
        let newest_bps = ack.rate.map_or(f64::MAX, |sample| sample.rate.as_bps() as f64);
        self.limit_bandwidth(summary.arrived_bps.min(newest_bps));
        self.is_limited = true;
        // The epoch in which it began shows half of it.
        self.trials.restart_whole(summary.loss, self.packets(summary));
        self.begin_trial(ack.now, Trial::Half);
        self.lossy_epochs = 0;
    }

    /// An attempt at more ends because much is lost: the trial that follows sends half of what arrived.
    pub(in crate::lfn) fn stop_at_loss(&mut self, summary: &Summary) {
        self.limit_bandwidth(summary.mean_bps);
        self.note_overflow();
        if self.loss.has_risen(summary.loss, self.packets(summary)) {
            self.trials.wish_half();
        }
    }

    /// For an epoch what is lost is not made up for, and is the path's own.
    pub(in crate::lfn) fn test_loss(&mut self, now: Time) {
        if self.trials.is_half_due(now, self.loss.ratio(), self.bandwidth_bps) {
            self.begin_trial(now, Trial::Half);
        } else if self.loss.ratio() <= BaseLoss::UNTRIED {
            self.begin_trial(now, Trial::Plain);
        } else {
            // Not to make up for so much would cost as much.
            self.restart_epoch(now);
        }
    }

    fn begin_trial(&mut self, now: Time, trial: Trial) {
        let late = match trial {
            Trial::Plain => Duration::ZERO,
            // What was sent before it is taken for lost after the first of what is sent in it has arrived: RFC 9002 6.1.2.
            Trial::Half => self.min_rtt() / 8,
        };
        self.trials.begin(trial, now + late + self.half_length());
        self.epoch = Epoch::new(now + self.min_rtt() + late);
    }

    /// A quarter of a round trip costs little; on short paths as long as it takes to see enough packets, but no longer than other epochs.
    pub(super) fn half_length(&self) -> Duration {
        // An eighth of it is late, and as much again is left to see.
        self.packets_time(TRIAL_PKTS).min(CRUISE_EPOCH).max(self.min_rtt() / 4)
    }

    fn exceeds(&self, summary: &Summary) -> bool {
        self.loss.is_exceeded(summary.loss, self.packets(summary))
    }

    fn is_without_queue(&self, summary: &Summary) -> bool {
        summary.delay_max <= self.jitter() * 2 + self.queue_threshold(8)
    }
}

/// One alone may be a burst, or an outage.
const LOSSY_EPOCHS: u32 = 2;
/// Of so many the half that is sent loses 5 % to within 1 %.
const TRIAL_PKTS: u64 = 1_000;
/// Three epochs at the whole rate between two trials at half of it.
const SOON_EPOCHS: u32 = 4;
