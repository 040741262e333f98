//! One copy over one connection: what is said before the engine takes over, and what both sides need around it.
//!
//! ```text
//!   client                                    server
//!   control stream   --- opening line ------>              (version, rate limit)
//!                    <-- reply line ---------              (served, or refused and why)
//!                    === the engine's own protocol, with a stream of blocks ===
//!   telemetry stream <-- a line a second ----              (the server's view of the path, and how busy it is)
//! ```

mod adapter;
mod client;
mod clock;
mod opening;
mod processor;
mod server;
mod telemetry;

pub use client::{ClientSession, Job};
pub use opening::Opening;
pub use processor::ProcessorWatch;
pub use server::{ServerSession, refuse};
pub use telemetry::{PathReport, PathView};

/// Application protocol name, agreed in the handshake.
pub const PROTOCOL: &[u8] = b"haul-cp/1";

/// Close code: the copy is over.
pub const CLOSE_DONE: u64 = 0;
/// Close code: the copy was given up.
pub const CLOSE_ABORTED: u64 = 1;
/// Close code: the client may not use this server.
pub const CLOSE_REFUSED: u64 = 2;
