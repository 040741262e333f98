//! One end of a pair at its own socket: makes itself known to the relay, stays so, and punches a hole for the other end.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use haul::Aside;
use haul_relay::{Key, Registration, Ticket, is_punch, punch};

use crate::clock;

/// How often the relay is asked that does not answer.
const AGAIN: Duration = Duration::from_millis(250);
/// How often it is told where this end is: an address that changes is known there so long after.
const REFRESH: Duration = Duration::from_secs(5);
/// A relay that has not answered for so long has ended the pair.
const FORGOTTEN: Duration = Duration::from_secs(40);
/// From one datagram that punches a hole to the next.
pub const PUNCH_INTERVAL: Duration = Duration::from_millis(50);

/// One end.
pub struct Post {
    aside: Aside,
    relay: SocketAddr,
    ticket: Ticket,
    registration: Registration,
    punch: Key,
    /// When the relay was last told, and when it last answered.
    told: Instant,
    answered: Instant,
}

/// What has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// The relay knows this end, by this address.
    Known(SocketAddr),
    /// The other end's hole punching comes from this address.
    Punched(SocketAddr),
}

impl Post {
    /// Not known yet.
    pub fn new(aside: Aside, relay: SocketAddr, ticket: Ticket, punch: Key) -> Self {
        let (registration, now) = (Registration::new(ticket.clone()), clock::now());
        Self { aside, relay, ticket, registration, punch, told: now, answered: now }
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

    /// Opens the NAT here for what comes from there, and says so there.
    pub fn punch(&self, at: SocketAddr) {
        self.aside.send(at, &punch(self.ticket.pair, self.ticket.end, &self.punch));
    }

    /// What comes next, waited for so long.
    pub fn hear(&mut self, patience: Duration) -> Option<Heard> {
        let (from, datagram) = self.aside.receive(patience)?;
        if is_punch(&datagram, self.ticket.pair, self.ticket.end.opposite(), &self.punch) {
            return Some(Heard::Punched(from));
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
