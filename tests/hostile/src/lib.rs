//! Peers that mean harm, on real UDP sockets, and the program that must bear them.
//!
//! ```text
//!   Attempt --- handshake ---> Peer --- play(&[Step]) ---> packets that no honest peer sends
//!   Crowd: many Attempts, from one address or from many, that come again when they are turned away
//!   Host:  the same from the other side, for clients to connect to
//!   Victim: `haul serve`, `pipe -l`, `proxy serve` or `perf -s` as a process, with what /proc tells of it
//! ```
//! The wire format is haul-proto's own ([`haul_proto::wire`], [`haul_proto::handshake`]): what is built here by hand is everything after the
//! handshake. A peer has no streams, no recovery, no congestion control and no honesty.
//!
//! Nothing here needs root: many addresses are those of 127.0.0.0/8.

mod attempt;
mod copy;
mod crowd;
mod host;
mod outlet;
mod peer;
mod perf;
mod script;
mod victim;

pub use attempt::{Attempt, Outcome};
pub use copy::ask_for_file;
pub use crowd::{Crowd, Manner, Sources};
pub use host::Host;
pub use outlet::Outlet;
pub use peer::{Heard, Peer, is_end};
pub use perf::{ask_for_download, ask_for_upload};
pub use script::{Flow, Lie, Step};
pub use victim::{Client, Listener, Readings, Victim};
