//! Who hears what a proxy does: a log for people, lines of JSON for programs.
//!
//! Events are `listening` (`address`, `to`), `connected` and `lost` (`peer`, and `error`), `open` (`from`, `to`), `close` (the same, `up_bytes`, `down_bytes`, `end`: `done` or why it
//! was cut) and `refused` (`from`, `to`, `error`, `code`). `up` is what the TCP connection of this side sent.

use std::fmt::Display;
use std::net::SocketAddr;

use haul::{CloseReason, ConnectionError};
use haul_tunnel::proxy::{CLOSE_DONE, Cut, Event, Moved, Observer, Refused};
use serde_json::{Value, json};
use tracing::{debug, info, warn};

use crate::exit::{Failure, chain};
use crate::interrupt;

/// Tells of what happens.
#[derive(Debug, Clone, Copy)]
pub struct ProxyReport {
    /// By JSON too.
    pub json: bool,
}

impl Observer for ProxyReport {
    fn event(&self, event: Event<'_>) {
        match event {
            Event::Listening { address, to } => self.listening(address, to),
            Event::Connected { peer } => self.connected(peer),
            Event::Lost { peer, error } => self.lost(peer, error),
            Event::AsksNothing { peer, error } => info!("{peer}: it asks for nothing: {}", chain(error)),
            Event::TurnedAway { peer, refusal } => warn!("{peer}: turned away: {refusal}"),
            Event::Unreached { peer, error } => warn!("{peer}: {}", Failure::from(error)),
            Event::Opened { from, to } => self.opened(from, to),
            Event::Closed { from, to, moved, result } => self.closed(from, to, moved, result),
            Event::Refused { from, to, refused } => self.refused(from, to, refused),
            Event::TooFewFiles { files, enough_for, most } => warn!(
                "the system lets this process have {files} files: {enough_for} connections at once instead of {most}; \
                 raise the hard limit (ulimit -Hn, LimitNOFILE= of a systemd unit), or lower --max-connections"
            ),
        }
    }
}

impl ProxyReport {
    fn listening(self, address: &dyn Display, to: &dyn Display) {
        info!("listening on {address}, for {to}");
        self.event(|| json!({ "event": "listening", "address": address.to_string(), "to": to.to_string() }));
    }

    fn connected(self, peer: &dyn Display) {
        // From now on an end has connections to cut.
        interrupt::under_way();
        info!("connected to {peer}");
        self.event(|| json!({ "event": "connected", "peer": peer.to_string() }));
    }

    fn lost(self, peer: &dyn Display, error: &ConnectionError) {
        let why = chain(error);
        match error {
            ConnectionError::Ended(CloseReason::Peer { code: CLOSE_DONE, .. }) | ConnectionError::ClosedHere => {
                info!("{peer} has left: {why}");
            }
            _ => warn!("connection to {peer} lost: {why}"),
        }
        self.event(|| json!({ "event": "lost", "peer": peer.to_string(), "error": why }));
    }

    fn opened(self, from: SocketAddr, to: &dyn Display) {
        debug!("{from} to {to}: open");
        self.event(|| json!({ "event": "open", "from": from.to_string(), "to": to.to_string() }));
    }

    fn closed(self, from: SocketAddr, to: &dyn Display, moved: Moved, result: &Result<(), Cut>) {
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

    fn refused(self, from: SocketAddr, to: &dyn Display, refused: &Refused) {
        warn!("{from} to {to}: refused: {}", refused.why);
        self.event(|| {
            json!({
                "event": "refused", "from": from.to_string(), "to": to.to_string(), "error": refused.why, "code": refused.code,
            })
        });
    }

    fn event(self, event: impl FnOnce() -> Value) {
        if self.json {
            super::print_event(&event());
        }
    }
}
