//! Files in the Gfarm file system: a [`Store`](haul_files::Store) through Gfarm's own library, which is loaded when it is first needed.
//!
//! ```text
//!   engine's threads ── calls ──► one thread ──► libgfarm.so.1 ──► gfmd (names), gfsd (content)
//! ```
//!
//! Nothing here is linked with Gfarm: where it is not installed everything else works, and [`Gfarm::open`] says what is missing. Who this process is for Gfarm, and where its metadata server is, libgfarm takes from
//! the user's configuration, as `gfls` does.
//!
//! # What is promised after a kill
//! A copy makes its files in a directory `.haul-<8 hex>` beside the destination, of mode 0700, with a journal, all of it in Gfarm; that of [`haul_files::store`] is kept but for what follows.
//! - A process that is killed: Gfarm's servers notice that its connections are gone and close what it had open, so everything that it wrote, and its journal, is there for the next run. The next run waits for
//!   that up to 12 s. Where the *machine* is lost the servers take as long as TCP does, up to two hours; until then the copy counts as running ([`Stop::Busy`](haul_files::Stop::Busy)).
//! - A storage server that is lost takes with it what lies only there: a part, the journal. The copy fails for the files it had there (or as a whole, with the journal), and the next run sends them again.
//! - Content is synced on its server's disk before its file is given its name. How durable names are is the metadata server's business: with a database they are.
//! - No two copies have the same stage: the journal is open for writing while a copy runs, which Gfarm tells to others (in the flags of its checksum), and it is taken over by a rename, which only one can win.
//!
//! # What Gfarm cannot do
//! - Names cannot be looked up below a directory that is held: every call has a whole path. Others who may write in a directory above could put another one in its place between two calls; what is found is
//!   compared with what was seen (inode numbers), but not at the same instant.
//! - A file that another process writes to has the size, and the state, of before, until that process closes it.
//! - What a disk has cannot be read past the server's cache: `--verify read-back` is [`Unsupported`](haul_files::StoreError::Unsupported).
//! - Owners are names and no numbers: they are not carried over.
//! - A file is written on one server. Copies of it are Gfarm's business (`gfncopy`, `gfrep`).
//!
//! # Care that is taken
//! Every call's count of bytes is checked, and a file's size when it is finished: a file that Gfarm has cut short never gets its name. Direct access to the disk of a storage server on this machine is off. Where a
//! server falls silent or is gone while a file is read, reading goes on with another replica of the same generation.

mod error;
mod files;
mod here;
mod library;
mod path;
mod servers;
mod service;
mod stage;
mod store;

pub use error::OpenError;
pub use files::{GfarmFile, GfarmPart};
pub use path::GfarmDir;
pub use servers::{StorageServer, storage_servers};
pub use stage::GfarmStage;
pub use store::{Gfarm, GfarmTop};

/// What the name of a file in Gfarm begins with, where files of several kinds can be named.
pub const SCHEME: &str = "gfarm:";
