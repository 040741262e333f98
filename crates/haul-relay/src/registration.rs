//! One end: it makes itself known to a relay, and is told where it is seen.

use std::net::SocketAddr;

use crate::Ticket;
use crate::message::{Content, Cookie, MESSAGE_BYTES, decode, encode};

/// An end that makes itself known: [`Self::says`] again and again, [`Self::hears`] what comes back. Done once, the same keeps it known, also where its address changes.
#[derive(Debug)]
pub struct Registration {
    ticket: Ticket,
    cookie: Option<Cookie>,
    count: u64,
}

/// What a relay has said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It wants to hear what there is to be said once more, at once.
    Again,
    /// It knows this end, by this address.
    Known(SocketAddr),
}

impl Registration {
    /// Of whoever holds this.
    pub const fn new(ticket: Ticket) -> Self {
        Self { ticket, cookie: None, count: 0 }
    }

    /// What to send to the relay.
    pub fn says(&mut self) -> [u8; MESSAGE_BYTES] {
        self.count += 1;
        let content = match self.cookie {
            Some(cookie) => Content::Prove { count: self.count, cookie },
            None => Content::Ask { count: self.count },
        };
        encode(content, self.ticket.pair, self.ticket.end, &self.ticket.key)
    }

    /// What has come from it; none where that is no message of the relay's to this end.
    pub fn hears(&mut self, datagram: &[u8]) -> Option<Heard> {
        match decode(datagram, self.ticket.pair, self.ticket.end, &self.ticket.key)? {
            Content::Cookie { cookie } => {
                // One that is said already, and asked for again, is the answer to what was said before it.
                let is_new = self.cookie.replace(cookie) != Some(cookie);
                is_new.then_some(Heard::Again)
            }
            Content::Place { at } => Some(Heard::Known(at)),
            Content::Ask { .. } | Content::Prove { .. } | Content::Punch => None,
        }
    }
}
