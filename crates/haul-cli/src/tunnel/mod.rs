//! A tunnel: streams of bytes between programs, over one connection.
//!
//! ```text
//!   client                                     server
//!   control stream   --- opening line ------->              (what is asked: a command, a pipe)
//!                    <-- reply line ----------              (granted, or refused and why)
//!                    <-- frames --------------              (a command's standard error and its exit status)
//!   data stream      === bytes both ways =====              (half-closed by either side when it has no more)
//! ```
//!
//! The client opens both streams at once and waits for no answer: asking costs no round trip.

mod command;
mod exchange;
mod frame;
mod opening;
mod server;

use crate::args::SilenceArgs;
use haul::{Bytes, ControllerChoice, TransportConfig};

pub use exchange::{Ends, Stop, enlarge_pipe, exchange};
pub use frame::{Frame, Status};
pub use opening::{Ask, ask};
pub use server::{Session, serve_account};

/// Application protocol name, agreed in the handshake.
pub const PROTOCOL: &[u8] = b"haul-tunnel/1";
/// A tunnel has one stream with much in it: it starts with what a connection starts with.
const STREAM_WINDOW: Bytes = Bytes::mib(64);

/// How the connection of a tunnel behaves.
pub fn transport(controller: ControllerChoice, silence: SilenceArgs) -> TransportConfig {
    // The programs at its ends may well greet each other before one of them has much to say.
    TransportConfig {
        controller,
        stream_window: STREAM_WINDOW,
        filler: true,
        idle_timeout: silence.timeout(),
        ..TransportConfig::default()
    }
}

/// Close code: everything asked for was done.
pub const CLOSE_DONE: u64 = 0;
/// Close code: given up in the middle.
pub const CLOSE_ABORTED: u64 = 1;
/// Close code: not granted.
pub const CLOSE_REFUSED: u64 = 2;
/// Stream error code: the program that read the stream has gone, as with a broken pipe.
pub const READER_GONE: u64 = 1;
