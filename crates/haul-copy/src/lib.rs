//! One copy of files over one connection: the engine of haul-files on the transport, with what is said before and what both sides need around it.
//!
//! ```text
//!   client                                    server
//!   control stream   --- opening line ------>              (version, rate limit)
//!                    <-- reply line ---------              (served, or refused and why)
//!                    === the engine's own protocol, with a stream of blocks ===
//!   telemetry stream <-- a line a second ----              (the server's view of the path, and how busy it is)
//! ```
//!
//! # The smallest program
//!
//! Both ends in one process. `examples/copy_tree.rs` copies a tree to an ssh host, where `haul` is the other end.
//!
//! ```
//! use haul::{ClientConfig, Endpoint, Identity, PeerTrust, ServerConfig};
//! use haul_copy::{ClientSession, Job, PROTOCOL, ServerSession};
//! use haul_files::{Access, Cancel, PushJob, Silent};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (from, to) = (tempfile::tempdir()?, tempfile::tempdir()?);
//! let identity = Identity::generate();
//! let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
//! let server = ServerConfig { protocols: vec![PROTOCOL.to_vec()], ..ServerConfig::new(identity, PeerTrust::Anyone) };
//! let server = Endpoint::listen("127.0.0.1:0".parse()?, server)?;
//! let address = server.local_addr();
//! let serving = std::thread::spawn(move || {
//!     let session = ServerSession::accept(server.accept().expect("a client")).expect("an opening");
//!     let (result, farewell) = session.serve(&Access::Account { home: "/".into() }, None, &Silent, &Cancel::new());
//!     farewell.part(&Cancel::new());
//!     result
//! });
//!
//! std::fs::write(from.path().join("a"), "content")?;
//! let job = Job::Push(PushJob::new([from.path().join("a")], to.path()));
//! let config = ClientConfig { protocols: vec![PROTOCOL.to_vec()], ..ClientConfig::new(trust) };
//! let connection = Endpoint::bind("127.0.0.1:0".parse()?)?.connect(address, config)?;
//! let report = ClientSession::new(connection, &job).run(&job, None, &Silent, &Cancel::new())?;
//! assert_eq!((report.files, report.problem_count), (1, 0));
//! assert_eq!(std::fs::read(to.path().join("a"))?, b"content");
//! assert_eq!(serving.join().expect("served")?.files, 1);
//! # Ok(())
//! # }
//! ```
//!
//! [`Copier`] does all that is around it for a client: it connects with a [`Host`](haul_peer::Host), again where a daemon was restarted, looks whether ssh still runs, keeps what was learned of the path, and says
//! why a copy broke and what limited it.
//!
//! # Who serves, and what
//!
//! `haul remote`, started by ssh, serves one client with everything that the account may; `haul serve` serves those whose keys are authorised with its exports. Both make a [`ServerSession`] of a connection whose application
//! protocol is [`PROTOCOL`], and decide by [`Access`](haul_files::Access) what can be reached. [`refuse`] turns a client away in a way that it understands.
//!
//! # Where files are
//!
//! A path that begins with `gfarm:` is in the Gfarm file system, one that begins with `ram:` in this user's directory in the memory of the machine, others in its directories (`./gfarm:` is a local name). That holds for
//! the paths of a [`Job`] on this side, and on the other side for a client that has the whole account. [`space`] tells what room there is.
//!
//! # Single files
//!
//! [`Errands`] is another way to use a server of copies: many small requests over one connection, to look, list, read and write single files. A file system is made of it.
//!
//! # Errors
//!
//! Those of the engine, [`CopyError`](haul_files::CopyError): the connection, the other side's word, this side's. A server that refuses is a `CopyError::Connection` whose inner error is the [`Refusal`](haul_peer::Refusal).
//! Single files that could not be copied are no error: the observer and the report have them.
//!
//! # Progress and cancellation
//!
//! The [`Observer`](haul_files::Observer) hears what the engine does (a [`Tally`] counts it), [`ClientSession::path`] how the path does, in the sender's eyes. [`Cancel`](haul_units::Cancel) stops a copy in a state that the next one resumes; both sides save what
//! has arrived.

mod adapter;
mod client;
mod clock;
mod control;
mod copier;
mod deadline;
mod direct;
mod errands;
mod here;
mod keep;
mod kept;
mod log;
mod machine;
mod manifest;
mod opening;
mod parts;
mod paths;
mod places;
mod plan;
mod processor;
mod server;
mod squeeze;
mod status;
mod storage;
mod stores;
mod tally;
mod telemetry;
pub mod told;
mod verdict;

pub use adapter::{ConnectionTransport, IncomingBlock, IncomingBlocks, OutgoingBlocks};
pub use client::{ClientSession, Job, Opened, Parting};
pub use control::{CopyControl, Seen};
pub use copier::{Carried, Copied, Copier, CopyWatch, NotCopied, PathProbe};
pub use direct::Direct;
pub use errands::{ErrandError, Errands, Found, FoundKind, Problem, Reading, Writing, roots};
pub use keep::{Guest, Keeping, Unwelcome};
pub use kept::{Kept, KeptCopy, KeptRequest};
pub use log::{CopyLog, LogError};
pub use machine::{MachineReport, MachineWatch};
pub use manifest::{Manifest, ManifestError, Sum};
pub use opening::{Opening, Purpose};
pub use parts::{Part, Parts};
pub use paths::OnePath;
pub use places::Places;
pub use plan::{Plan, PlanError, Standard, at_daemon};
pub use processor::{Demand, ProcessorWatch};
pub use server::{ServerSession, refuse};
pub use status::{MAX_WORK, PlaceReport, StatusReport, WorkReport, ask as ask_status};
pub use storage::StorageReport;
pub use stores::{InStore, in_store, is_directory, locate, space};
pub use tally::{ActiveFile, Counts, Tally};
pub use telemetry::{PathReport, PathView};
pub use verdict::{Conditions, verdict};

/// Application protocol name, agreed in the handshake.
pub const PROTOCOL: &[u8] = b"haul-cp/1";

/// Close code: the copy is over.
pub const CLOSE_DONE: u64 = 0;
/// Close code: the copy was given up.
pub const CLOSE_ABORTED: u64 = 1;
/// Close code: the client may not use this server.
pub const CLOSE_REFUSED: u64 = 2;
