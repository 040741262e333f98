//! Errands: what a client wants of single names at a server, many over one connection. A file system is made of them, where a copy would be too much: look, list, read a range, write one file, make, remove and
//! rename. Trees, and whatever is large, are copied: only a copy is hashed, and resumed.
//!
//! ```text
//!   client                                     server
//!   control stream   --- opening line ------>         (errands)
//!                    <-- reply line ---------
//!                    <-- errands line -------         (the version of what follows)
//!   a stream an errand, eight of them at once, and 256 files that are being written:
//!                    --- Errand ------------>
//!                    <-- Answer -------------         and, of a file that is read, its bytes
//!                    --- bytes ------------->         of a file that is written; their end is its end
//!                    <-- Answer -------------         when it is durable under its name
//! ```
//!
//! # Rights
//! Those of a copy: what is read is resolved as a source, what is written, made, removed or renamed as a destination, which a root that is read-only, or a key that may only read, is not. A root itself, and the names of
//! unfinished copies, cannot be touched; a directory is removed only when it is empty. A file that is written has its name when it is whole and durable, as a copied one.
//!
//! # Ends
//! The client closes the connection. The server parts from a client that has had no errand for ten minutes; whoever has another one then connects again.

mod client;
mod doing;
mod roots;
mod serve;

use haul_files::{Why, WirePath};
use haul_units::PeerText;
use serde::{Deserialize, Serialize};

pub use client::{ErrandError, Errands, Reading, Writing};
pub use roots::roots;
pub(crate) use serve::serve;

/// Of what follows the opening.
const VERSION: u16 = 1;

/// What the server says behind its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Welcome {
    errands: u16,
}

/// Says that errands can begin.
pub(crate) fn welcome(control: &mut impl std::io::Write) -> std::io::Result<()> {
    control.write_all(&haul_peer::to_line(&Welcome { errands: VERSION }))?;
    control.flush()
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Errand {
    /// What has this name.
    Look(WirePath),
    /// What is in a directory; of a daemon's `/` its roots.
    List(WirePath),
    /// A part of a file, as far as it goes.
    Read { path: WirePath, from: u64, length: u64 },
    /// A new file, or a new content for one.
    Write { path: WirePath },
    /// A directory that is not there.
    Make { path: WirePath },
    /// A file or link goes.
    Remove { path: WirePath },
    /// An empty directory goes.
    RemoveDirectory { path: WirePath },
    /// Another name, in the place of any file that has it.
    Rename { from: WirePath, to: WirePath },
    /// The same content under another name as well.
    Copy { from: WirePath, to: WirePath },
}

/// What comes of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Answer {
    Found(Found),
    /// Some of a directory; more follow until there are none in one.
    Listed(Vec<Found>),
    /// So many bytes follow, of a file of this size.
    Content {
        length: u64,
        size: u64,
    },
    /// The server is ready for the content, or it is done.
    Done,
    Failed(Problem),
}

/// What something is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Its name in its directory; as it was asked for by [`Errands::look`].
    pub name: WirePath,
    /// What it is.
    pub kind: FoundKind,
    /// Bytes of a file's content.
    pub size: u64,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// When its content was last changed: seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
    /// Tells it from others on its file system.
    pub inode: u64,
    /// What a symbolic link in a listing says.
    pub target: Option<WirePath>,
}

/// What something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum FoundKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, which is not followed.
    Link,
    /// A device, socket or named pipe.
    Special,
}

/// Why an errand was not done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{path}: {words}")]
pub struct Problem {
    /// What it is about.
    pub path: WirePath,
    /// The number of the system's error nearest to it.
    pub errno: i32,
    /// What happened.
    pub words: PeerText,
}

impl Problem {
    fn new(path: &WirePath, errno: haul_faults::Errno, words: &str) -> Self {
        Self { path: path.clone(), errno: errno.raw_os_error(), words: words.into() }
    }

    fn of(path: &WirePath, why: &Why) -> Self {
        use haul_faults::Errno;
        let errno = match why {
            Why::Os(number) => *number,
            Why::InTheWay | Why::OtherSpelling => Errno::EXIST.raw_os_error(),
            Why::LinkNotFollowed => Errno::LOOP.raw_os_error(),
            Why::NeedsDirectory => Errno::NOTDIR.raw_os_error(),
            Why::CannotBeNamed => Errno::INVAL.raw_os_error(),
            Why::OutsideRoot | Why::Reserved => Errno::ACCESS.raw_os_error(),
            _ => Errno::IO.raw_os_error(),
        };
        Self { path: path.clone(), errno, words: why.to_string().as_str().into() }
    }
}

/// Longest frame, in bytes: two paths, or a part of a directory.
const MAX_FRAME: usize = 256 << 10;
/// Longest path, in bytes.
const MAX_PATH: usize = 64 << 10;
/// Names of a directory in one frame, and their bytes, at most.
const MAX_LISTED: usize = 512;
const MAX_LISTED_BYTES: usize = 128 << 10;

/// A message with its length before it.
fn framed(message: &impl Serialize) -> std::io::Result<Vec<u8>> {
    let body = postcard::to_stdvec(message).map_err(std::io::Error::other)?;
    if body.len() > MAX_FRAME {
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "too long a name"));
    }
    Ok([&(body.len() as u32).to_le_bytes(), &*body].concat())
}

fn unframed<T: for<'a> Deserialize<'a>>(body: &[u8]) -> std::io::Result<T> {
    postcard::from_bytes(body).map_err(|error| std::io::Error::new(std::io::ErrorKind::InvalidData, error))
}
