//! What a proxy has to tell while it runs.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;

use haul::{Connection, ConnectionError};
use haul_peer::Refusal;

use super::error::ClientError;
use super::relay::{Cut, Moved};
use super::wire::Refused;

/// Something that has happened.
pub enum Event<'a> {
    /// A port is listened on.
    Listening {
        /// The port.
        address: &'a dyn Display,
        /// What for.
        to: &'a dyn Display,
    },
    /// The other side is there.
    Connected {
        /// The other side.
        peer: &'a dyn Display,
    },
    /// The other side is there no more.
    Lost {
        /// The other side.
        peer: &'a dyn Display,
        /// Why.
        error: &'a ConnectionError,
    },
    /// A client has said nothing, or nothing that makes sense.
    AsksNothing {
        /// The client.
        peer: &'a dyn Display,
        /// What came instead.
        error: &'a io::Error,
    },
    /// A client was not let in.
    TurnedAway {
        /// The client.
        peer: &'a dyn Display,
        /// What it was told.
        refusal: &'a Refusal,
    },
    /// The other side could not be reached again this time; it will be tried again.
    Unreached {
        /// The other side.
        peer: &'a dyn Display,
        /// Why.
        error: ClientError,
    },
    /// A TCP connection is carried.
    Opened {
        /// Its client.
        from: SocketAddr,
        /// Its target.
        to: &'a dyn Display,
    },
    /// A TCP connection is over.
    Closed {
        /// Its client.
        from: SocketAddr,
        /// Its target.
        to: &'a dyn Display,
        /// What was carried.
        moved: Moved,
        /// Whether both directions ended, or what cut them.
        result: &'a Result<(), Cut>,
    },
    /// A TCP connection did not come about.
    Refused {
        /// Its client.
        from: SocketAddr,
        /// Its target.
        to: &'a dyn Display,
        /// Why.
        refused: &'a Refused,
    },
    /// The system has not files enough for as many connections as there may be.
    TooFewFiles {
        /// Files that this process may have.
        files: u64,
        /// Connections that they are enough for.
        enough_for: u32,
        /// Connections that there were to be at most.
        most: u32,
    },
}

/// Who hears of it. Called from the tasks that move the bytes: it must not wait.
pub trait Observer: Send + Sync {
    /// Something has happened.
    fn event(&self, event: Event<'_>);

    /// The asking side has this connection from now on, for the first time or again. Said before it carries anything.
    fn connection(&self, _: &Connection) {}
}

/// Hears nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _: Event<'_>) {}
}
