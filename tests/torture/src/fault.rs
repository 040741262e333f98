//! What can happen to a copy.

use std::time::Duration;

use e2e::{Random, Running, pause};
use haul_lab::LinkOptions;
use haul_units::Ratio;
use rustix::process::Signal;

use crate::field::{Field, kill as kill_on};

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
    /// Nothing passes for so long.
    Outage(Duration),
    /// The near host has another address.
    Address,
    /// Packets longer than this do not pass.
    Mtu(u16),
    /// Every packet twice.
    Duplicates,
    /// Packets that others overtake.
    Reordering,
    /// Packets that are lost.
    Loss,
    /// Packets that arrive with other bytes.
    Corruption,
    /// Random datagrams for the daemon.
    Garbage(u64),
    /// Strangers at the daemon.
    Strangers(usize),
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
    match random.within(0..6) {
        0 | 1 => Fault::KillNear,
        2 | 3 => Fault::KillFar,
        4 => Fault::KillSshd,
        _ => Fault::KillBoth,
    }
}

fn network(random: &mut Random) -> Fault {
    match random.within(0..9) {
        0 | 1 => Fault::Outage(random.millis(200..8000)),
        2 => Fault::Address,
        3 => Fault::Mtu(1280 + random.within(0..220) as u16),
        4 => Fault::Duplicates,
        5 => Fault::Reordering,
        6 => Fault::Loss,
        7 => Fault::Corruption,
        _ => Fault::Calm,
    }
}

fn visitors(random: &mut Random) -> Fault {
    match random.within(0..3) {
        0 => Fault::Garbage(random.within(500..5000)),
        1 => Fault::Strangers(random.within(10..100) as usize),
        _ => Fault::Calm,
    }
}

impl Fault {
    /// Whether processes die of it; returns how many did in [`Fault::happen`].
    pub const fn is_kill(&self) -> bool {
        matches!(self, Self::KillNear | Self::KillFar | Self::KillSshd | Self::KillBoth)
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
            Self::KillFar => return kill_far(field, daemon),
            Self::KillSshd if daemon => return kill_far(field, daemon),
            Self::KillSshd => return kill_on(field.far(), &["sshd", "root"]),
            Self::KillBoth => {
                copy.signal(Signal::KILL);
                return 1 + kill_far(field, daemon);
            }
            Self::Outage(time) => {
                field.relink(&other(&|link| link.loss = Ratio::ONE));
                pause(*time);
                field.relink(link);
            }
            Self::Address => field.renumber(),
            Self::Mtu(mtu) => field.set_mtu(*mtu),
            Self::Duplicates => field.relink(&other(&|link| link.duplicate = Ratio::ONE)),
            Self::Reordering => field.relink(&other(&|link| {
                link.reorder = Ratio::percent(30.0);
                link.reorder_by = Duration::from_millis(50);
            })),
            Self::Loss => field.relink(&other(&|link| link.loss = Ratio::percent(10.0))),
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

fn kill_far(field: &mut Field, daemon: bool) -> u64 {
    if daemon {
        field.restart_daemon();
        return 1;
    }
    kill_on(field.far(), &["haul remote"])
}
