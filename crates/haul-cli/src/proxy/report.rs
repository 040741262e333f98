//! Who hears what a proxy does: a log for people, lines of JSON for programs.
//!
//! Events are `listening` (`address`, `to`), `connected` and `lost` (`peer`, and `error`), `open` (`from`, `to`), `close` (the same, `up_bytes`, `down_bytes`, `end`: `done` or why it
//! was cut) and `refused` (`from`, `to`, `error`, `code`). `up` is what the TCP connection of this side sent.

use std::fmt::Display;
use std::net::SocketAddr;

use haul::{CloseReason, ConnectionError};
use serde_json::{Value, json};
use tracing::{debug, info, warn};

use super::relay::{Cut, Moved};
use super::session::CLOSE_DONE;
use super::wire::Refused;
use crate::exit::chain;
use crate::output;

/// Tells of what happens.
#[derive(Debug, Clone, Copy)]
pub struct Report {
    /// By JSON too.
    pub json: bool,
}

impl Report {
    /// A port is listened on.
    pub fn listening(self, address: &dyn Display, to: &dyn Display) {
        info!("listening on {address}, for {to}");
        self.event(|| json!({ "event": "listening", "address": address.to_string(), "to": to.to_string() }));
    }

    /// The other side is there.
    pub fn connected(self, peer: &dyn Display) {
        info!("connected to {peer}");
        self.event(|| json!({ "event": "connected", "peer": peer.to_string() }));
    }

    /// The other side is there no more.
    pub fn lost(self, peer: &dyn Display, error: &ConnectionError) {
        let why = chain(error);
        match error {
            ConnectionError::Ended(CloseReason::Peer { code: CLOSE_DONE, .. }) | ConnectionError::ClosedHere => {
                info!("{peer} has left: {why}");
            }
            _ => warn!("connection to {peer} lost: {why}"),
        }
        self.event(|| json!({ "event": "lost", "peer": peer.to_string(), "error": why }));
    }

    /// A TCP connection is carried.
    pub fn opened(self, from: SocketAddr, to: &dyn Display) {
        debug!("{from} to {to}: open");
        self.event(|| json!({ "event": "open", "from": from.to_string(), "to": to.to_string() }));
    }

    /// It is over.
    pub fn closed(self, from: SocketAddr, to: &dyn Display, moved: Moved, result: &Result<(), Cut>) {
        let end = match result {
            Err(Cut::Refused(refused)) => return self.refused(from, to, refused),
            Ok(()) => "done".to_owned(),
            Err(Cut::Here(error)) => format!("broken on this side: {error}"),
            Err(Cut::There) => "reset on the other side".to_owned(),
            Err(Cut::Link(error)) => chain(error),
        };
        let Moved { up, down } = moved;
        debug!("{from} to {to}: {end} (up {up} bytes, down {down} bytes)");
        self.event(|| {
            json!({
                "event": "close", "from": from.to_string(), "to": to.to_string(), "up_bytes": up, "down_bytes": down, "end": end,
            })
        });
    }

    /// It did not come about.
    pub fn refused(self, from: SocketAddr, to: &dyn Display, refused: &Refused) {
        warn!("{from} to {to}: refused: {}", refused.why);
        self.event(|| {
            json!({
                "event": "refused", "from": from.to_string(), "to": to.to_string(), "error": refused.why, "code": refused.code,
            })
        });
    }

    fn event(self, event: impl FnOnce() -> Value) {
        if self.json {
            output::print_event(&event());
        }
    }
}
