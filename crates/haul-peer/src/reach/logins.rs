//! More logins, where ssh's channel carries and is slow.
//!
//! The far side listens on TCP already; a firewall before it lets nobody there, and ssh's own forwarding leads past it (`ssh/forward.rs`). The first login is tried alone: a host that asks for a password, or forwards
//! nothing, has refused one login by then and no more, and the channel carries on. Where it succeeds, there are as many as make it faster (`growth.rs`).

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use haul::carrier::{Carrier, tcp};
use haul_units::Cancel;

use super::growth::{self, Growth};
use crate::ssh::Forward;

/// OpenSSH's server turns some away while ten have not logged in (sshd_config(5), `MaxStartups`), and others may be about to.
const MAX_LOGINS: usize = 8;
/// How long one may take: a busy host, and some round trips of the longest path.
const LOGIN: Duration = Duration::from_secs(30);

/// The way by more logins.
pub(super) struct LoginsWay {
    pub(super) carrier: Carrier,
    /// The address that stands for it.
    pub(super) at: SocketAddr,
    pub(super) name: tcp::Name,
    pub(super) forward: Forward,
}

impl LoginsWay {
    /// So many more, all at once; what the first of them came to is told.
    fn log_in(&self, more: usize, over: &Cancel) -> mpsc::Receiver<io::Result<()>> {
        let (tell, told) = mpsc::channel();
        for _ in 0..more {
            let (tell, carrier, forward, name, over) =
                (tell.clone(), self.carrier.clone(), self.forward.clone(), self.name, over.clone());
            thread::spawn(move || {
                let opened = forward.lane(&name, LOGIN, &over).and_then(|lane| carrier.add(lane));
                let _ = tell.send(opened.inspect_err(|error| tracing::debug!(%error, "no further login")));
            });
        }
        told
    }
}

/// How far they have got.
pub(super) enum Logins {
    /// The channel carries alone: since when is measured, and what it had moved then.
    Alone(Option<(Instant, u64)>),
    /// The first one is under way; so fast the channel was, in bytes a second.
    Trying(mpsc::Receiver<io::Result<()>>, f64),
    /// They carry.
    Carrying(Growth),
    /// There will be none.
    Refused,
}

/// What is to be done.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing.
    Wait,
    /// The first one has opened: the connection may go over to it.
    GoOver,
    /// There are so many more now.
    More(usize),
}

impl Logins {
    /// Looks at what has become of them. `channel` has moved so many bytes.
    pub(super) fn step(&mut self, way: &LoginsWay, channel: u64, now: Instant, over: &Cancel) -> Step {
        match self {
            Self::Alone(from) => {
                let (since, before) = *from.get_or_insert((now, channel));
                if let Some(rate) = growth::rate_worth_more(now - since, channel.saturating_sub(before)) {
                    *self = Self::Trying(way.log_in(1, over), rate);
                } else if now - since >= growth::GROW {
                    *from = Some((now, channel));
                }
                Step::Wait
            }
            Self::Trying(told, rate) => match told.try_recv() {
                Err(TryRecvError::Empty) => Step::Wait,
                Ok(Ok(())) => {
                    *self = Self::Carrying(Growth::beyond(*rate, MAX_LOGINS));
                    Step::GoOver
                }
                Ok(Err(_)) | Err(TryRecvError::Disconnected) => {
                    *self = Self::Refused;
                    Step::Wait
                }
            },
            Self::Carrying(growth) => {
                let (lanes, (sent, received)) = (way.carrier.lanes(), way.carrier.moved_bytes());
                let Some(wanted) = growth.wanted(now, sent + received, lanes) else { return Step::Wait };
                drop(way.log_in(wanted.saturating_sub(lanes), over));
                Step::More(wanted)
            }
            Self::Refused => Step::Wait,
        }
    }

    /// Whether the connection goes by them.
    pub(super) const fn carry(&self) -> bool {
        matches!(self, Self::Carrying(_))
    }
}
