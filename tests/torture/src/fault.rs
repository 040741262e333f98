//! What can happen to a copy.

use std::time::Duration;

use e2e::{Random, Running, pause};
use haul_lab::LinkOptions;
use haul_units::Ratio;
use rustix::process::Signal;

use crate::field::{Field, signal_on};

/// One fault.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// kill -9 of `haul cp`.
    KillNear,
    /// kill -9 of `haul remote`, or of the daemon, which is started again.
    KillFar,
    /// kill -9 of the session's sshd.
    KillSshd,
    /// kill -9 of both ends at once.
    KillBoth,
    /// SIGINT or SIGTERM for `haul cp`: asked to end, it keeps what has arrived.
    Ask(Signal),
    /// SIGTERM for `haul remote`, or for the daemon, which is started again.
    AskFar,
    /// Nothing passes for so long.
    Outage(Duration),
    /// The near host has another address.
    Address,
    /// Packets longer than this do not pass.
    Mtu(u16),
    /// Every packet twice.
    Duplicates,
    /// Packets that others overtake, by so much.
    Reordering(Duration),
    /// Packets that are lost.
    Loss,
    /// Most packets are lost, in percent, for so long.
    Storm(u64, Duration),
    /// A round trip of 3 s, for so long.
    Far(Duration),
    /// Packets that arrive with other bytes.
    Corruption,
    /// Random datagrams for the daemon.
    Garbage(u64),
    /// Strangers at the daemon.
    Strangers(usize),
    /// Somebody else's file and directory in the stage of the copy.
    Litter,
    /// Everything is as it was.
    Calm,
}

/// What sort of thing happens in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Theme {
    /// Processes die.
    Kills,
    /// The network misbehaves.
    Network,
    /// Others come.
    Visitors,
    /// The disk is too small at first.
    Disk,
    /// All of it.
    Everything,
}

impl Theme {
    /// One of them; kills oftenest.
    pub fn draw(random: &mut Random) -> Self {
        match random.within(0..8) {
            0..=2 => Self::Kills,
            3 | 4 => Self::Network,
            5 => Self::Visitors,
            6 => Self::Disk,
            _ => Self::Everything,
        }
    }

    /// The next fault.
    pub fn fault(self, random: &mut Random) -> Fault {
        match self {
            // A disk that fills up is fault enough; what else happens to it is a kill.
            Self::Kills | Self::Disk => kill(random),
            Self::Network => network(random),
            Self::Visitors => visitors(random),
            Self::Everything => match random.within(0..3) {
                0 => kill(random),
                1 => network(random),
                _ => visitors(random),
            },
        }
    }
}

fn kill(random: &mut Random) -> Fault {
    match random.within(0..9) {
        0 | 1 => Fault::KillNear,
        2 | 3 => Fault::KillFar,
        4 => Fault::KillSshd,
        5 => Fault::KillBoth,
        6 => Fault::Ask(Signal::INT),
        7 => Fault::Ask(Signal::TERM),
        _ => Fault::AskFar,
    }
}

fn network(random: &mut Random) -> Fault {
    match random.within(0..11) {
        0 | 1 => Fault::Outage(random.millis(200..8000)),
        2 => Fault::Address,
        3 => Fault::Mtu(1280 + random.within(0..220) as u16),
        4 => Fault::Duplicates,
        5 => Fault::Reordering(Duration::from_millis([50, 200][random.within(0..2) as usize])),
        6 => Fault::Loss,
        7 => Fault::Corruption,
        8 => Fault::Storm(random.within(50..81), random.millis(2000..6000)),
        9 => Fault::Far(random.millis(3000..8000)),
        _ => Fault::Calm,
    }
}

fn visitors(random: &mut Random) -> Fault {
    match random.within(0..4) {
        0 => Fault::Garbage(random.within(500..5000)),
        1 => Fault::Strangers(random.within(10..100) as usize),
        2 => Fault::Litter,
        _ => Fault::Calm,
    }
}

impl Fault {
    /// Whether processes end by it; how many did is what [`Fault::happen`] returns.
    pub const fn is_kill(&self) -> bool {
        matches!(self, Self::KillNear | Self::KillFar | Self::KillSshd | Self::KillBoth | Self::Ask(_) | Self::AskFar)
    }

    /// Lets it happen; returns how many processes died.
    pub fn happen(&self, field: &mut Field, link: &LinkOptions, copy: &Running, daemon: bool, random: &mut Random) -> u64 {
        let other = |change: &dyn Fn(&mut LinkOptions)| {
            let mut link = link.clone();
            change(&mut link);
            link
        };
        match self {
            Self::KillNear => {
                copy.signal(Signal::KILL);
                return 1;
            }
            Self::KillFar => return end_far(field, daemon, Signal::KILL),
            Self::KillSshd if daemon => return end_far(field, daemon, Signal::KILL),
            Self::KillSshd => return signal_on(field.far(), &["sshd", "root"], Signal::KILL),
            Self::KillBoth => {
                copy.signal(Signal::KILL);
                return 1 + end_far(field, daemon, Signal::KILL);
            }
            Self::Ask(signal) => {
                copy.signal(*signal);
                return 1;
            }
            Self::AskFar => return end_far(field, daemon, Signal::TERM),
            Self::Outage(time) => {
                field.relink(&other(&|link| link.loss = Ratio::ONE));
                pause(*time);
                field.relink(link);
            }
            Self::Address => field.renumber(),
            Self::Mtu(mtu) => field.set_mtu(*mtu),
            Self::Duplicates => field.relink(&other(&|link| link.duplicate = Ratio::ONE)),
            Self::Reordering(by) => field.relink(&other(&|link| {
                link.reorder = Ratio::percent(30.0);
                link.reorder_by = *by;
            })),
            Self::Loss => field.relink(&other(&|link| link.loss = Ratio::percent(10.0))),
            Self::Storm(percent, time) => {
                field.relink(&other(&|link| link.loss = Ratio::percent(*percent as f64)));
                pause(*time);
                field.relink(link);
            }
            Self::Far(time) => {
                // Each of the two links has half of it.
                field.relink(&other(&|link| link.rtt = FAR / 2));
                pause(*time);
                field.relink(link);
            }
            Self::Litter => field.litter(),
            Self::Corruption => field.relink(&other(&|link| link.corrupt = Ratio::percent(2.0))),
            Self::Garbage(count) => field.flood(*count, random),
            Self::Strangers(count) => field.invite_strangers(*count),
            Self::Calm => {
                field.dismiss_strangers();
                field.relink(link);
                field.set_mtu(1500);
            }
        }
        0
    }
}

/// A signal for the far end, by which it ends; returns how many processes got it.
fn end_far(field: &mut Field, daemon: bool, signal: Signal) -> u64 {
    if daemon {
        field.restart_daemon(signal);
        return 1;
    }
    signal_on(field.far(), &["haul remote"], signal)
}

/// A round trip as over a slow satellite link, or a full one.
const FAR: Duration = Duration::from_secs(3);
