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
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use haul_files::{Access, Cancel, PushJob, Silent, push, serve};
//! use haul_ramstore::memory;
//!
//! let (from, to) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! std::fs::write(from.path().join("a"), "content")?;
//! let job = PushJob::new([from.path().join("a")], to.path());
//!
//! let (client, server) = memory::pair(memory::Conditions::default());
//! let report = std::thread::scope(|scope| {
//!     scope.spawn(|| serve(server, &Access::Account { home: "/".into() }, &Silent, &Cancel::new()));
//!     push(client, &job, &Silent, &Cancel::new())
//! })?;
//! assert_eq!(report.files, 1);
//! assert_eq!(std::fs::read(to.path().join("a"))?, b"content");
//! # Ok(())
//! # }
//! ```
//!
//! Where the files are is a [`Store`]: [`push_from`], [`pull_into`] and [`serve_store`] take any; the three above use the directories of this machine ([`Local`]).
//! `examples/gather.rs` makes one file from its replicas in several stores, without the engine.
//!
//! Who needs parts of files from several servers, in an order of its own, asks each with [`order`].
//!
//! The control messages are in [`protocol`], the blocks in [`block`], what survives a kill in [`journal`].

mod clock;
mod destination;
mod dirs;
mod engine;
mod expand;
#[cfg(unix)]
mod here;
mod job;
mod locks;
mod observe;
mod order;
mod outcome;
mod process;
pub mod protocol;
mod receive;
mod report;
mod send;
mod session;
pub mod store;
mod terms;
pub mod walk;

pub use engine::{Asking, pull_into, push_fed, push_from, serve_asked, serve_store};
pub use haul_faults::{ChangedFile, CopyError, Fault, FileProblem, MAX_NOTES, Note, Stop, Why, WirePath};
pub use haul_names::{Chosen, ChosenError, Filter, FilterError, MAX_ALL_PATTERNS, MAX_PATTERN, MAX_PATTERNS, RuleError, rules};
use haul_pieces::stamp;
use haul_pieces::transport;
pub use haul_pieces::transport::{BlockRx, BlockTx, Left, Link, Transport};
pub use haul_pieces::{block, journal};
pub use haul_units::Cancel;
pub use haul_xattrs::Keep;
#[cfg(unix)]
pub use here::{pull, push, serve};
pub use job::{
    Access, Changed, Delete, Destination, Export, Options, Ownership, PullJob, PushJob, Same, SourceSpec, Stream, Verify,
};
pub use observe::{Asked, Commit, Event, FileUnderWay, Observer, Silent, Wishes};
pub use order::{Customer, Delivery, OrderJob, Wish, order};
pub use protocol::{Change, Would};
pub use receive::limit_remembered;
pub use report::{MAX_PROBLEMS, ReadBack, Report, Verified, Waits};
pub use send::{Fed, Feed, Thing};
#[cfg(unix)]
pub use store::Local;
pub use store::{Discarded, Interrupted, Store, StoreError};
