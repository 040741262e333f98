//! One end of a pair at its own socket: makes itself known to the relay, stays so, and knocks at the other end's NAT.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use haul::Aside;
use haul_relay::{Key, Registration, Ticket, is_knock, knock};

use crate::clock;

/// How often the relay is asked that does not answer.
const AGAIN: Duration = Duration::from_millis(250);
/// How often it is told where this end is: an address that changes is known there so long after.
const REFRESH: Duration = Duration::from_secs(5);
/// A relay that has not answered for so long has ended the pair.
const FORGOTTEN: Duration = Duration::from_secs(40);
/// How often is knocked.
pub const KNOCK: Duration = Duration::from_millis(50);

/// One end.
pub struct Post {
    aside: Aside,
    relay: SocketAddr,
    ticket: Ticket,
    registration: Registration,
    knock: Key,
    /// When the relay was last told, and when it last answered.
    told: Instant,
    answered: Instant,
}

/// What has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// The relay knows this end, by this address.
    Known(SocketAddr),
    /// The other end has knocked, from this address.
    Knocked(SocketAddr),
}

impl Post {
    /// Not known yet.
    pub fn new(aside: Aside, relay: SocketAddr, ticket: Ticket, knock: Key) -> Self {
        let (registration, now) = (Registration::new(ticket.clone()), clock::now());
        Self { aside, relay, ticket, registration, knock, told: now, answered: now }
    }

    /// Where the relay is.
    pub const fn relay(&self) -> SocketAddr {
        self.relay
    }

    /// Gives the port's datagrams back.
    pub fn into_aside(self) -> Aside {
        self.aside
    }

    /// Makes itself known within so long; where it is seen, if the relay answers.
    pub fn register(&mut self, patience: Duration) -> Option<SocketAddr> {
        let until = clock::now() + patience;
        while clock::now() < until {
            self.tell();
            let asked = clock::now();
            while asked.elapsed() < AGAIN {
                if let Some(Heard::Known(at)) = self.hear(AGAIN.saturating_sub(asked.elapsed())) {
                    return Some(at);
                }
            }
        }
        None
    }

    /// Tells the relay again where it is, if that is due; false once the relay has forgotten this end, or the socket is gone.
    pub fn stay(&mut self) -> bool {
        self.answered.elapsed() < FORGOTTEN && (self.told.elapsed() < REFRESH || self.tell())
    }

    /// Knocks there.
    pub fn knock(&self, at: SocketAddr) {
        self.aside.send(at, &knock(self.ticket.pair, self.ticket.end, &self.knock));
    }

    /// What comes next, waited for so long.
    pub fn hear(&mut self, patience: Duration) -> Option<Heard> {
        let (from, datagram) = self.aside.receive(patience)?;
        if is_knock(&datagram, self.ticket.pair, self.ticket.end.opposite(), &self.knock) {
            return Some(Heard::Knocked(from));
        }
        match self.registration.hears(&datagram).filter(|_| from == self.relay)? {
            haul_relay::Heard::Again => {
                self.tell();
                None
            }
            haul_relay::Heard::Known(at) => {
                self.answered = clock::now();
                Some(Heard::Known(at))
            }
        }
    }

    fn tell(&mut self) -> bool {
        self.told = clock::now();
        self.aside.send(self.relay, &self.registration.says())
    }
}
