//! The third layer: the rate and the window that follow from what is measured and from who else is there.
//!
//! | file | law |
//! |---|---|
//! | `share.rs` | how flows of this kind divide a bottleneck: the queue that each wants to see |
//! | `cruise.rs` | the rate that follows, epoch by epoch |
//! | `compete.rs` | an equal part beside elastic cross traffic: a window as CUBIC's |
//! | `hold.rs` | the same beside flows that are deaf to loss: a window that is held |
//! | `trials.rs`, `losing.rs` | how much loss is the path's own, and made up for |
//! | `company.rs` | several paths of one connection on one bottleneck: one flow to others |
//! | `room.rs` | what the receiver makes room for |
//! | `sending.rs` | the pacing rate and the window in bytes |

mod company;
mod compete;
mod cruise;
mod hold;
mod losing;
mod room;
mod sending;
mod share;
mod trials;

use std::time::Duration;

use haul_units::{Bytes, Time};

pub(in crate::lfn) use self::compete::{Compete, Outcome};
use self::room::Room;
use self::trials::{Trial, Trials};
use super::cross_traffic::{CrossTraffic, Stance};
use super::measure::{Path, Summary};
use super::mode::Mode;
use crate::AckSample;
use crate::rate_sampler::LONG_PATH;

/// What the phase is up to, as far as the laws have to know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::lfn) enum Doing {
    /// Looking for the bandwidth.
    Search,
    /// Emptying the queue of the search.
    Drain,
    /// Sending what arrives.
    Cruise,
    /// Trying for more, or emptying the queue of the attempt.
    Attempt,
    /// Holding a part beside others, with so many bytes less in flight than a moment ago.
    Compete { less: f64 },
    /// Leaving the queue empty.
    ProbeRtt,
}

impl Doing {
    const fn stance(self) -> Stance {
        match self {
            Self::Cruise => Stance::GivesWay,
            Self::Compete { less } => Stance::Competes { less },
            Self::Search | Self::Drain | Self::Attempt | Self::ProbeRtt => Stance::Other,
        }
    }
}

/// A flow: its path, the others on it, and what it makes of both.
#[derive(Debug, Clone)]
pub(in crate::lfn) struct Flow {
    pub(in crate::lfn) path: Path,
    pub(in crate::lfn) cross: CrossTraffic,
    mode: Mode,
    trials: Trials,
    room: Room,
    /// Epochs in a row in which more was lost than before.
    lossy_epochs: u32,
    /// The trial under way began with the rate brought down to what arrives.
    is_limited: bool,
    /// Pacing gain of cruise, below one while a queue stands.
    cruise_gain: f64,
    /// Epochs without a queue.
    empty_epochs: u32,
    /// So many tell that there is room.
    room_epochs: u32,
    /// By how much more than arrives is sent where there is no queue.
    raise: f64,
    /// The bandwidth when the queue was last too short.
    overflow_bps: f64,
    /// Of what arrives on all paths of the connection that may share the bottleneck, the part that arrives on this one.
    part: f64,
    /// What had been delivered when the bandwidth was cut for an outage.
    cut_at: Option<Bytes>,
}

impl Flow {
    pub(in crate::lfn) fn new(mode: Mode, packet: Bytes) -> Self {
        Self {
            path: Path::new(packet),
            cross: CrossTraffic::default(),
            mode,
            trials: Trials::default(),
            room: Room::default(),
            lossy_epochs: 0,
            is_limited: false,
            cruise_gain: 1.0,
            empty_epochs: 0,
            room_epochs: ROOM_EPOCHS,
            raise: cruise::MAX_RAISE,
            overflow_bps: 0.0,
            part: 1.0,
            cut_at: None,
        }
    }

    /// Takes an acknowledgement in; the summary of the epoch if it ends one.
    pub(in crate::lfn) fn on_ack(&mut self, ack: &AckSample, doing: Doing) -> Option<Summary> {
        self.path.on_ack(ack, matches!(doing, Doing::Search | Doing::Drain));
        self.trials.on_ack(ack.now);
        let summary = self.path.end_of_epoch(ack, self.epoch_length(doing));
        self.cross.on_ack(ack, &self.path, doing.stance(), summary.is_some());
        let summary = summary?;
        if doing != Doing::Search && self.path.loss.falls(summary.loss, self.path.packets(&summary)) {
            // What was sent to make up for it arrives.
            self.path.bandwidth.raise(summary.arrived_bps);
            self.raise = cruise::MAX_RAISE;
        }
        match doing {
            // What a jump into a queue that others keep full loses is no loss of the path, and shows no delay.
            Doing::Search | Doing::Drain | Doing::ProbeRtt => {}
            Doing::Compete { .. } => {
                if !summary.app_limited {
                    self.path.bandwidth.follow(summary.mean_bps, false);
                }
            }
            Doing::Attempt => self.path.bandwidth.raise(summary.mean_bps),
            Doing::Cruise => self.end_cruise_epoch(ack, &summary),
        }
        self.path.note_delay(&summary);
        Some(summary)
    }

    fn end_cruise_epoch(&mut self, ack: &AckSample, summary: &Summary) {
        let trial = self.judge_trial(ack.now, summary);
        let lossy = trial.is_none() && self.is_lossier(summary);
        let risen = lossy && self.path.loss.has_risen(summary.loss, self.path.packets(summary));
        if trial == Some(Trial::Half) {
            // Half the rate says nothing of the queue.
            self.cruise_gain = 1.0;
        } else {
            // Until it is known what it is, the rate stays.
            self.cruise(summary, trial.is_some() || risen);
        }
        self.watch_loss(ack, summary, trial, lossy, risen);
    }

    fn epoch_length(&self, doing: Doing) -> Duration {
        match doing {
            Doing::Cruise if self.trials.running() == Some(Trial::Half) => self.half_length(),
            Doing::Cruise => self.path.epoch_length(),
            Doing::Attempt => self.path.min_rtt().max(UP_EPOCH),
            _ => self.path.min_rtt(),
        }
    }

    /// Cruise begins with what arrives, not made up for loss: for an epoch what is lost then is the path's own.
    pub(in crate::lfn) fn enter_cruise(&mut self, now: Time) {
        self.settle();
        self.cross.restart();
        self.test_loss(now);
    }

    /// Startup has ended, perhaps for a host that was busy for a moment: the first epoch without a queue is enough for an attempt.
    pub(in crate::lfn) fn expect_room(&mut self) {
        if self.path.min_rtt() >= LONG_PATH {
            self.room_epochs = 1;
        }
    }

    pub(in crate::lfn) fn enter_up(&mut self, now: Time) {
        self.trials.take();
        self.room_epochs = ROOM_EPOCHS;
        self.path.bandwidth.begin_attempt();
        self.path.begin_epoch(now);
    }

    /// Each probe that nobody answers is told of as one: nothing more is known by it until something has arrived again.
    pub(in crate::lfn) fn on_outage(&mut self) {
        let delivered = self.path.delivered();
        if self.cut_at.replace(delivered) != Some(delivered) {
            self.path.bandwidth.cut();
        }
        self.settle();
    }

    pub(in crate::lfn) const fn mode(&self) -> Mode {
        self.mode
    }
}

/// Shorter than in cruise, for an attempt is there to be found out about soon.
const UP_EPOCH: Duration = Duration::from_millis(30);
/// One without a queue may be chance.
const ROOM_EPOCHS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_outage_is_one() {
        let mut flow = Flow::new(Mode::Fair, Bytes(1472));
        flow.path.bandwidth.set(1e9);
        (0..30).for_each(|_| flow.on_outage());
        assert!(flow.path.bandwidth_bps() > 0.5e9, "{}", flow.path.bandwidth_bps());
    }
}
