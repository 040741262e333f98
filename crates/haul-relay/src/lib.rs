//! A rendezvous for two ends that are both behind NATs, and a relay of their datagrams where the NATs let nothing else pass.
//!
//! ```text
//!   end A                 relay                  end B
//!     --- ask ------------>                             each from the socket that its connection has, with a proof of its key
//!     <-- cookie ----------                             to the address that the question came from, and as long as that
//!     --- prove ---------->                             with the cookie: the address is the end's
//!     <-- where it is -----  <-- ask .. where it is --  what the relay sees: the address outside of the NAT
//!     --- punch ------------------------------------->  each to where the other one is, at the same time: what has left opens the NAT for what comes
//!     --- anything -------> --- the same ----------->
//! ```
//! - Nobody gets a pair of tickets ([`Relay::allocate`]) whom the program has not let in; how, is its business, and how the tickets come to the two ends.
//! - A relay forwards between two addresses only, both of which have proved that they hold a ticket of the pair and that they get what is sent there. Nobody can have it send anything elsewhere.
//! - Who holds no ticket gets nothing at all, not even an error. An answer is as long as its question: there is nothing to amplify.
//! - What it forwards it does not read. It holds the keys of tickets, and none of what is forwarded.
//! - A pair takes a fixed amount of memory, and ends by itself when nothing comes.
//!
//! [`Relay`] is the relay, [`Registration`] an end. Neither reads a clock or opens a socket: time, randomness and datagrams are handed in.

mod message;
mod rate;
mod registration;
mod relay;

pub use message::{KEY_BYTES, Key, MARK, MESSAGE_BYTES, PairId, is_punch, punch};
pub use registration::{Heard, Registration};
pub use relay::{Allocation, Full, Limits, RANDOM_BYTES, Relay};

/// One of the two ends of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    /// The one that has asked for the pair.
    Asking,
    /// The other one.
    Other,
}

impl End {
    /// The other end.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Asking => Self::Other,
            Self::Other => Self::Asking,
        }
    }

    const fn index(self) -> usize {
        match self {
            Self::Asking => 0,
            Self::Other => 1,
        }
    }
}

/// What lets its holder be one end of a pair.
#[derive(Clone, PartialEq, Eq)]
pub struct Ticket {
    /// Which pair.
    pub pair: PairId,
    /// Which end of it.
    pub end: End,
    /// What its messages are proved with. Secret.
    pub key: Key,
}

impl std::fmt::Debug for Ticket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ticket").field("pair", &self.pair).field("end", &self.end).finish_non_exhaustive()
    }
}
