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

pub mod block;
mod cancel;
mod clock;
mod dirs;
mod engine;
mod error;
mod job;
pub mod journal;
pub mod memory;
mod meta;
mod observe;
pub mod protocol;
mod ranges;
mod receive;
mod resolve;
mod send;
mod session;
mod transport;

pub use cancel::Cancel;
pub use engine::{pull, push, serve};
pub use error::{CopyError, Fault, FileProblem, Stop, Why, WirePath};
pub use job::{Access, Destination, Export, Options, PullJob, PushJob, SourceSpec, Stream};
pub use observe::{Event, MAX_PROBLEMS, Observer, Report, Silent, Waits};
pub use transport::{BlockRx, BlockTx, Link, Transport};
