//! The haul transport, sans-IO: wire format, handshake, paths, recovery, streams.
//!
//! Nothing here reads a clock, opens a socket or starts a thread: time comes in as [`haul_units::Time`], randomness as a seed of 256 bits, datagrams as bytes, so a failing run
//! replays exactly.
//!
//! ```text
//!   application                                       driver (socket, clock, threads)
//!       | write, read, blocks      +------------+  handle_train, handle_timeout  |
//!       +------------------------> | Connection | <------------------------------+
//!       | <----- poll_event ------ |            | ------ poll_transmit --------> |
//!                                  +------------+ ------ poll_timeout ---------> |
//!                                        ^
//!                                  +-----+------+
//!                                  |  Endpoint  |  strangers, cookies, resets: which datagram is whose
//!                                  +------------+
//! ```
//! - [`Connection`]: one TLS 1.3 handshake ([`handshake`]), then data packets under its keys ([`crypto`]).
//! - A connection has paths, each with its own packet numbers, recovery and congestion controller, and streams that run over them.
//! - A driver with threads takes trains by [`Connection::poll_train`] and seals them ([`Train::sealed`]) when it has let go of the connection.
//! - [`wire`] is what travels.

mod config;
mod connection;
pub mod crypto;
mod distributions;
mod endpoint;
mod flow;
pub mod handshake;
pub mod identity;
mod opening;
mod path;
mod receive;
mod recovery;
mod reset;
mod rng;
mod strangers;
mod streams;
pub mod wire;

pub use config::{ClientConfig, PATHS_MAX, Pacing, ServerConfig, TransportConfig};
pub use connection::{
    CloseReason, Connection, Event, OpenError, Origin, PathStats, ProtocolViolation, ReadError, Stats, TRAIN_BYTES, Train,
    Transmit, Waits, WriteError,
};
pub use distributions::Distributions;
pub use endpoint::{AnswerError, Endpoint, EndpointConfig, Handled};
pub use haul_paths::{Announced, Class, Exit, Scheduler, Standing, Via, ViaSyntaxError};
pub use haul_strangers::ReturnToken;
pub use haul_units::Distribution;
pub use opening::{BeginError, Opening};
pub use receive::Ecn;
pub use reset::{Met, ResetKey, ResetToken};
pub use strangers::{Admission, AdmittedBy};
pub use streams::{BlockData, Side, Sink, SinkFactory, StreamId, StreamKind};
pub use wire::{data_destination, data_path};

/// A number that one end gives a connection; the peer's packets carry it, so it finds the connection among those of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnectionId(pub u32);
