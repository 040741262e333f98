//! Bytes both ways between this side's streams and the other side's, and how it went.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use haul::{Connection, RecvStream, SendStream};
use haul_units::Ratio;

use super::exchange::{Ends, Events, Stop, exchange};
use super::local::Local;
use crate::clock;

/// What was moved, and over what path.
#[derive(Debug, Clone, Copy)]
pub struct Outcome {
    /// Bytes of both directions.
    pub ends: Ends,
    /// How long it took.
    pub elapsed: Duration,
    /// Round-trip time in the end, smoothed.
    pub rtt: Duration,
    /// Part of this side's packets that were lost.
    pub loss: Ratio,
}

/// Moves bytes until both directions have ended, or something is in the way. `stop` ends our own; so does the peer's end, where our input never ends by itself.
pub(super) fn carry(
    connection: &Connection,
    streams: (SendStream, RecvStream),
    local: Local,
    stop: &Arc<AtomicBool>,
    events: Events,
    goes_on: &dyn Fn() -> io::Result<()>,
) -> io::Result<Outcome> {
    let started = clock::now();
    let (input, output, ends_by_itself) = local.open(stop);
    let give_up = if ends_by_itself { Stop::AtEnd } else { Stop::WithPeer(stop) };
    // Whoever reads our input does not hear that nobody is there to send it to.
    let is_there = || connection.end().map_or_else(goes_on, |end| Err(end.into()));
    let ends = exchange(input, output, streams, give_up, events, &is_there)?;
    let stats = connection.stats();
    Ok(Outcome { ends, elapsed: clock::now() - started, rtt: stats.rtt, loss: stats.loss })
}
