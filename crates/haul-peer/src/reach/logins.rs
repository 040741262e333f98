//! More logins, where ssh's channel carries and is slow.
//!
//! The far side listens on TCP already; a firewall before it lets nobody there, and ssh's own forwarding leads past it (`ssh/forward.rs`). The first login is tried alone: a host that asks for a password, or forwards
//! nothing, has refused one login by then and no more, and the channel carries on. Where it succeeds, there are as many as make it faster (`growth.rs`); where the window was what bounded the channel, that need not be tried.
//! The connection goes over to them together: one alone is a TCP that has just begun, and slower than the channel.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use haul::carrier::{Carrier, tcp};
use haul_units::Cancel;

use super::growth::{self, FIRST_LANES, Growth};
use crate::ssh::Forward;

/// OpenSSH's server turns some away while ten have not logged in (sshd_config(5), `MaxStartups`), and others may be about to.
const MAX_LOGINS: usize = 8;
/// About what a login takes on a long path: what is over by then has no use for one more.
const TRY_AFTER: Duration = Duration::from_secs(1);
/// What OpenSSH lets a channel have on its way (`CHAN_SES_WINDOW_DEFAULT`).
const WINDOW_BYTES: f64 = (2u64 << 20) as f64;
/// It opens the window again when half of it has been used, and in its first round trips TCP sends less: a mean of a quarter is what a window bounds.
const BOUNDED: f64 = 0.25;
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
    /// The first one is under way since then; what there is to be once it has succeeded.
    Trying(mpsc::Receiver<io::Result<()>>, Instant, Growth),
    /// The others are under way, and waited for until then.
    Joining(mpsc::Receiver<io::Result<()>>, Instant, Growth),
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
    /// They have opened: the connection may go over to them.
    GoOver,
    /// There are so many more now.
    More(usize),
}

impl Logins {
    /// Looks at what has become of them. `channel` has moved so many bytes; a round trip of ssh's takes `rtt`.
    pub(super) fn step(&mut self, way: &LoginsWay, channel: u64, rtt: Option<Duration>, now: Instant, over: &Cancel) -> Step {
        match self {
            Self::Alone(from) => {
                let (since, before) = *from.get_or_insert((now, channel));
                if now - since < TRY_AFTER {
                    return Step::Wait;
                }
                match growth::rate_worth_more(now - since, channel.saturating_sub(before)) {
                    Some(rate) => *self = Self::Trying(way.log_in(1, over), now, wanted_beside(rate, rtt)),
                    None => *from = Some((now, channel)),
                }
                Step::Wait
            }
            Self::Trying(told, began, growth) => {
                match told.try_recv() {
                    Err(TryRecvError::Empty) => {}
                    Ok(Ok(())) => {
                        // As long as if they came one after the other: a busy host is no faster with several at once.
                        let more = growth.first().saturating_sub(1);
                        let until = now + (now - *began) * more as u32;
                        *self = Self::Joining(way.log_in(more, over), until, growth.clone());
                    }
                    Ok(Err(_)) | Err(TryRecvError::Disconnected) => *self = Self::Refused,
                }
                Step::Wait
            }
            Self::Joining(told, until, growth) => {
                let is_over = loop {
                    match told.try_recv() {
                        Ok(_) => {}
                        Err(TryRecvError::Empty) => break now >= *until,
                        Err(TryRecvError::Disconnected) => break true,
                    }
                };
                if !is_over {
                    return Step::Wait;
                }
                // Those that are under way yet count as well.
                let (mut growth, (sent, received)) = (growth.clone(), way.carrier.moved_bytes());
                growth.wanted(now, sent + received, growth.first());
                *self = Self::Carrying(growth);
                Step::GoOver
            }
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

/// How many there are to be, where the channel carried so many bytes a second.
fn wanted_beside(rate: f64, rtt: Option<Duration>) -> Growth {
    let is_bounded = rtt.is_some_and(|rtt| rate * rtt.as_secs_f64() >= WINDOW_BYTES * BOUNDED);
    Growth::beyond(rate, if is_bounded { MAX_LOGINS } else { FIRST_LANES }, MAX_LOGINS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    fn first_wanted(rate: f64, rtt: Option<Duration>) -> Option<usize> {
        wanted_beside(rate, rtt).wanted(clock::now(), 0, 1)
    }

    #[test]
    fn where_the_window_was_the_bound_all_come_at_once() {
        let rtt = Some(Duration::from_millis(100));
        assert_eq!(first_wanted(12e6, rtt), Some(MAX_LOGINS), "1.2 MB in each round trip");
        assert_eq!(first_wanted(0.7e6, rtt), Some(FIRST_LANES), "it loses packets");
        assert_eq!(first_wanted(12e6, Some(Duration::from_millis(1))), Some(FIRST_LANES), "12 kB are a link's bound");
        assert_eq!(first_wanted(12e6, None), Some(FIRST_LANES));
    }

    #[test]
    fn those_that_are_under_way_are_not_asked_for_again() {
        let (mut growth, now) = (wanted_beside(12e6, Some(Duration::from_millis(100))), clock::now());
        assert_eq!(growth.wanted(now, 0, growth.first()), None);
        assert_eq!(growth.wanted(now + Duration::from_millis(50), 0, 2), None, "six of eight are logging in");
    }
}
