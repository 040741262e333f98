//! Streams: names, buffers, credit, and who sends next.
//!
//! [`Streams`] is the table of a connection's streams. It knows limits and credit, and hands the sender runs of bytes stream by stream: lost before new,
//! higher priority before lower, equals in turn.

mod chunks;
mod data;
mod placed;
mod receive;
mod schedule;
mod send;
mod sink;
mod table;

pub use data::{BlockData, Fixed};
pub use receive::{ReadOutcome, StreamViolation};
pub use send::SendRun;
pub use sink::{Sink, SinkFactory};
pub use table::{Limits, Receiver, Streams};

pub use crate::wire::{Side, StreamId, StreamKind};
