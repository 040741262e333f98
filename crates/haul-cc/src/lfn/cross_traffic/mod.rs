//! The second layer: who else is on the bottleneck. It sees measurements, and gives one verdict.
//!
//! | evidence | file | verdict |
//! |---|---|---|
//! | the queue falls when we send less, or is short | `standing.rs` | alone, or with flows of this kind |
//! | it stands although we send less, for longer than the news of it takes | `standing.rs` | elastic |
//! | it vanishes at once and is soon back | `silence.rs` | elastic, if it was long |
//! | and does so again after as long as BBR waits between its silences | here | deaf to loss |
//!
//! Nimbus (Goyal et al., SIGCOMM 2022) sends a pulse and looks for it in the cross traffic, Copa (Arun, Balakrishnan, NSDI 2018 §2.2) looks whether the queue is ever nearly empty. This is Copa's question, asked
//! with the rate brought down: sending less is what flows of this kind do with a standing queue anyway, so the question costs nothing while nobody is there. A pulse would cost its share of every round trip for ever.

mod silence;
mod standing;

use std::ops::RangeInclusive;
use std::time::Duration;

use haul_units::Time;

pub(in crate::lfn) use self::silence::Silence;
use self::silence::{Moment, Silences};
use self::standing::StandingQueue;
use super::measure::{Path, Summary};
use crate::AckSample;

/// Who else is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lfn) enum Verdict {
    /// Nobody who keeps the queue up; others of this kind may be.
    Alone,
    /// Somebody who sends until packets drop.
    Elastic,
    /// Somebody who goes on when they do.
    Deaf,
}

/// What we do that the queue shows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::lfn) enum Stance {
    /// Give way to a queue.
    GivesWay,
    /// Keep a window, of which so many bytes fewer are in flight than a moment ago.
    Competes { less: f64 },
    /// Something that hides what others do.
    Other,
}

/// The others on the bottleneck.
#[derive(Debug, Clone, Default)]
pub(in crate::lfn) struct CrossTraffic {
    standing: StandingQueue,
    silences: Silences,
    /// Has just ended.
    silence: Option<Silence>,
    /// The one before it ended then.
    silent_at: Option<Time>,
    /// They are as far apart as BBR's.
    is_regular: bool,
}

impl CrossTraffic {
    /// Whether somebody is silent for a moment.
    pub(in crate::lfn) fn on_ack(&mut self, ack: &AckSample, path: &Path, stance: Stance, ends_epoch: bool) {
        self.silence = None;
        let less = match stance {
            Stance::GivesWay => 0.0,
            Stance::Competes { less } => less,
            Stance::Other => return self.silences.restart(),
        };
        // The smallest one-way delay is that of the last 10 s, in which the queue may never have been empty.
        let Some(rtt) = ack.rtt else { return };
        let newest = Moment { now: ack.now, delivered: ack.delivered, delay: rtt.saturating_sub(path.min_rtt()) };
        self.silence = self.silences.on_ack(newest, less, path.bandwidth_bps(), path.long_queue() / 2, ends_epoch);
        if self.silence.is_some() {
            let apart = self.silent_at.replace(ack.now).map(|at| ack.now.since(at));
            // One alone may be a host's that stood still.
            self.is_regular =
                matches!(stance, Stance::Competes { .. }) && apart.is_some_and(|apart| SILENCES_APART.contains(&apart));
        }
    }

    /// An epoch of cruise is over, in which this part of what arrives was sent.
    pub(in crate::lfn) fn on_epoch(&mut self, summary: &Summary, gain: f64, path: &Path) {
        self.standing.on_epoch(summary, gain, path);
    }

    /// A new look, for the queue has been emptied.
    pub(in crate::lfn) fn restart(&mut self) {
        self.standing.restart();
    }

    /// From now on silences are counted.
    pub(in crate::lfn) fn begin_competition(&mut self, now: Time) {
        self.silent_at = self.silence.map(|_| now);
        self.is_regular = false;
    }

    pub(in crate::lfn) fn verdict(&self, path: &Path) -> Verdict {
        match self.silence {
            Some(_) if self.is_regular => Verdict::Deaf,
            Some(silence) if silence.level > path.min_rtt() / 2 => Verdict::Elastic,
            _ if self.standing.is_kept_up() => Verdict::Elastic,
            _ => Verdict::Alone,
        }
    }

    /// The queue ought to have fallen: somebody may be there.
    pub(in crate::lfn) fn is_suspected(&self) -> bool {
        self.standing.resists()
    }

    /// A silence of somebody's, if it has just ended.
    pub(in crate::lfn) const fn silence(&self) -> Option<Silence> {
        self.silence
    }

    /// What arrived before we began to give way, and whether that is known to be an equal part.
    pub(in crate::lfn) fn part(&self, bandwidth_bps: f64) -> (f64, bool) {
        self.standing.part(bandwidth_bps)
    }
}

/// BBR's silences are 10 s apart in its first version, 5 s in the later ones, after a round trip or two in which the queue falls; one between may be hidden.
const SILENCES_APART: RangeInclusive<Duration> = Duration::from_millis(4500)..=Duration::from_secs(22);
