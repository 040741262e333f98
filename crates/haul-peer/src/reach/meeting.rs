//! The near side of a meeting: gets a pair of a relay, has the far side come there too, and keeps the pair while it is needed.

use std::error::Error;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use haul::Aside;
use haul::carrier::Carrier;
use haul_relay::{KEY_BYTES, Key, Ticket};
use haul_units::Cancel;
use thiserror::Error;

use crate::clock;
use crate::operand::DaemonHost;
use crate::relay::{Heard, Meeting, Met, PUNCH_INTERVAL, Post};

/// How long the relay's port may take to answer.
const REGISTER: Duration = Duration::from_millis(2500);
/// How long the far side may take to say where it is seen: it waits for the relay too.
const FAR: Duration = Duration::from_secs(4);
/// Meetings of one connection.
const MOST: usize = 8;

/// Why there is no meeting.
#[derive(Debug, Error)]
pub(super) enum NoMeeting {
    /// There is no pair.
    #[error("{0}")]
    NotGranted(#[source] Box<dyn Error + Send + Sync>),
    /// There is one, and the relay's port is silent.
    #[error("its UDP port {0} does not answer here")]
    Silent(u16),
    /// The same, for the far side.
    #[error("its UDP port {0} does not answer the other side")]
    SilentThere(u16),
    /// The far side says nothing.
    #[error("the other side does not come to it")]
    NobodyCame,
    /// It was tried often enough.
    #[error("it was of no help {MOST} times")]
    TooOften,
}

/// A relay's pair.
pub(super) struct Pair {
    /// Where its datagrams go.
    pub(super) relay: SocketAddr,
    pub(super) ours: Ticket,
    pub(super) theirs: Ticket,
    /// The pair ends when this is dropped.
    pub(super) kept: Box<dyn Send>,
}

/// Gets a pair.
pub(super) type Ask = Box<dyn Fn() -> Result<Pair, Box<dyn Error + Send + Sync>> + Send>;

/// A relay by which the two sides may meet.
pub(super) struct RelayWay {
    pub(super) by: DaemonHost,
    ask: Ask,
    aside: Option<Aside>,
    meetings: usize,
    staying: Option<(Cancel, thread::JoinHandle<Aside>)>,
}

/// Both are known to the relay.
pub(super) struct BothThere {
    /// Where the far side is seen.
    pub(super) seen: SocketAddr,
    post: Post,
    kept: Box<dyn Send>,
    punched: Option<Instant>,
}

impl RelayWay {
    /// By that relay, from the port of this.
    pub(super) const fn new(by: DaemonHost, aside: Aside, ask: Ask) -> Self {
        Self { by, ask, aside: Some(aside), meetings: 0, staying: None }
    }

    /// Has both sides make themselves known to the relay; `channel` is the one to the far side.
    pub(super) fn meet(&mut self, channel: &Carrier) -> Result<BothThere, NoMeeting> {
        self.leave();
        let Some(aside) = self.aside.take().filter(|_| self.meetings < MOST) else { return Err(NoMeeting::TooOften) };
        match (self.ask)() {
            Ok(pair) => {
                self.meetings += 1;
                self.meet_by(pair, aside, channel)
            }
            Err(error) => {
                self.aside = Some(aside);
                Err(NoMeeting::NotGranted(error))
            }
        }
    }

    fn meet_by(&mut self, pair: Pair, aside: Aside, channel: &Carrier) -> Result<BothThere, NoMeeting> {
        let mut key: Key = [0; KEY_BYTES];
        let is_random = aws_lc_rs::rand::fill(&mut key).is_ok();
        let mut post = Post::new(aside, pair.relay, pair.ours.clone(), key);
        let met = if is_random { invite(&mut post, &pair, &key, channel) } else { Err(NoMeeting::NobodyCame) };
        match met {
            Ok(seen) => Ok(BothThere { seen, post, kept: pair.kept, punched: None }),
            Err(error) => {
                self.aside = Some(post.into_aside());
                Err(error)
            }
        }
    }

    /// It was of no use, or is no longer.
    pub(super) fn give_up(&mut self, there: BothThere) {
        self.aside = Some(there.post.into_aside());
    }

    /// Stays known to the relay, which carries from now on. What comes back keeps the pair.
    pub(super) fn stay(&mut self, there: BothThere) -> Box<dyn Send> {
        let (left, mut post) = (Cancel::new(), there.post);
        let until = left.clone();
        let stay = move || {
            while !until.is_cancelled() && post.stay() {
                post.hear(PUNCH_INTERVAL * 10);
            }
            post.into_aside()
        };
        match thread::Builder::new().name("haul-meet".to_owned()).spawn(stay) {
            Ok(thread) => self.staying = Some((left, thread)),
            Err(error) => tracing::warn!(%error, "nobody tells the relay of a new address"),
        }
        there.kept
    }

    /// Ends what [`Self::stay`] began.
    pub(super) fn leave(&mut self) {
        if let Some((left, thread)) = self.staying.take() {
            left.cancel();
            self.aside = thread.join().ok();
        }
    }
}

impl Drop for RelayWay {
    fn drop(&mut self) {
        if let Some((left, _)) = &self.staying {
            left.cancel();
        }
    }
}

impl BothThere {
    /// Where the relay takes what it is to forward.
    pub(super) const fn relay(&self) -> SocketAddr {
        self.post.relay()
    }

    /// Punches a hole for the far side, now and then.
    pub(super) fn punch(&mut self, at: SocketAddr) {
        if self.punched.is_none_or(|punched| punched.elapsed() >= PUNCH_INTERVAL) {
            self.punched = Some(clock::now());
            self.post.punch(at);
        }
    }

    /// From where the far side's hole punching comes; waited for so long.
    pub(super) fn is_punched_from(&mut self, patience: Duration) -> Option<SocketAddr> {
        match self.post.hear(patience)? {
            Heard::Punched(from) => Some(from),
            Heard::Known(_) => None,
        }
    }
}

/// Where the far side is seen, once both are known.
fn invite(post: &mut Post, pair: &Pair, key: &Key, channel: &Carrier) -> Result<SocketAddr, NoMeeting> {
    let port = pair.relay.port();
    let seen = post.register(REGISTER).ok_or(NoMeeting::Silent(port))?;
    channel.say(&Meeting::new(pair.relay, &pair.theirs, key, seen).to_bytes());
    let said = clock::now();
    while let Some(left) = FAR.checked_sub(said.elapsed()) {
        let Some(message) = channel.hear(left) else { break };
        match Met::from_bytes(&message).filter(|met| met.pair == pair.ours.pair) {
            Some(Met { seen: Some(there), .. }) => {
                tracing::debug!(here = %seen, %there, "both are known to the relay");
                return Ok(there);
            }
            Some(Met { seen: None, .. }) => return Err(NoMeeting::SilentThere(port)),
            // Of an earlier meeting.
            None => {}
        }
    }
    Err(NoMeeting::NobodyCame)
}
