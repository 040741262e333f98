//! File trees across a network: manifest, blocks, journal, verification, stores.
//!
//! The engine of `haul cp`, over a transport that it does not know: anything that has an ordered byte stream both ways (control) and
//! carries blocks of up to 2 MiB in any order ([`Transport`]).
//!
//! ```text
//!   client                                          server
//!   push(link, job, ..)    --- request, entries --->  serve(link, access, ..)
//!                          === blocks ===========>
//!                          <-- wants, progress, results
//!   pull(link, job, ..)    is the same with the roles of sender and receiver exchanged
//! ```
//!
//! The control messages are in [`protocol`], the blocks in [`block`], what survives a kill in [`journal`].

mod cancel;
mod engine;
mod error;
mod job;
mod observe;
mod transport;

pub use cancel::Cancel;
pub use engine::{pull, push, serve};
pub use error::{CopyError, Fault, FileProblem, Stop, Why, WirePath};
pub use job::{Access, Destination, Export, Options, PullJob, PushJob, SourceSpec, Stream};
pub use observe::{Event, MAX_PROBLEMS, Observer, Report, Silent, Waits};
pub use transport::{BlockRx, BlockTx, Link, Transport};

/// Blocks and what is in them.
pub mod block {
    /// Largest block in bytes, its piece table included.
    pub const MAX_BLOCK: usize = 2 << 20;
}
