//! Streams of bytes between programs, over one connection.
//!
//! ```text
//!   client                                     server
//!   control stream   --- opening line ------->              (what is asked: a command, a subsystem, a TCP connection, a pipe)
//!                    <-- reply line ----------              (granted, or refused and why)
//!                    <-- frames --------------              (a command's standard error and its exit status)
//!   data stream      === bytes both ways =====              (half-closed by either side when it has no more)
//! ```
//!
//! The client opens both streams at once and waits for no answer: asking costs no round trip. A byte goes before the data: a peer hears of a stream with its first byte, and a command may speak
//! before its client has anything to say.
//!
//! ```text
//!   client     who asks: connects to one that listens, or has a command run by way of ssh
//!   listen     who waits for another program
//!   server     what both kinds of serving have in common; the far side of ssh
//!   command    a command and its streams
//!   subsystem  what sshd would run under a name, such as sftp
//!   transfer   bytes both ways, and how it went; exchange is the moving itself
//!   local      this program's own ends of the streams
//!   opening, frame   what is said
//! ```

mod client;
mod command;
mod error;
mod exchange;
mod frame;
mod listen;
mod local;
mod opening;
mod outlet;
mod own_end;
mod server;
mod subsystem;
mod transfer;

use std::time::Duration;

use haul::{Bytes, ControllerChoice, TransportConfig};

pub use client::{Far, Ran};
pub use error::{ListenError, TunnelError};
pub use exchange::Ends;
pub use frame::Status;
pub use listen::{ListenSettings, Listener, guests};
pub use local::Local;
pub use opening::Ask;
pub use server::{Session, serve_account};
pub use transfer::Outcome;

/// Application protocol name, agreed in the handshake.
pub const PROTOCOL: &[u8] = b"haul-tunnel/2";
/// A tunnel has one stream with much in it: it starts with what a connection starts with.
const STREAM_WINDOW: Bytes = Bytes::mib(64);

/// How the connection of a tunnel behaves. `idle_timeout` is the silence after which it is given up; of both sides the shorter one counts.
pub fn transport(controller: ControllerChoice, idle_timeout: Duration) -> TransportConfig {
    // The programs at its ends may well greet each other before one of them has much to say.
    TransportConfig { controller, stream_window: STREAM_WINDOW, filler: true, idle_timeout, ..TransportConfig::default() }
}

/// What goes before a client's data.
const BEGIN: [u8; 1] = [0];

/// Close code: everything asked for was done.
pub const CLOSE_DONE: u64 = 0;
/// Close code: given up in the middle.
pub const CLOSE_ABORTED: u64 = 1;
/// Close code: not granted.
pub const CLOSE_REFUSED: u64 = 2;
/// Stream error code: the program that read the stream has gone, as with a broken pipe.
pub const READER_GONE: u64 = 1;
