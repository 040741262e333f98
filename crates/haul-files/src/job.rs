//! What is to be copied, and what a server allows.

use std::fmt;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use haul_faults::WirePath;
use haul_names::Filter;
use haul_xattrs::Keep;

/// How to copy; the letters are scp's where it has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// `-r`: directories with all that is in them. Without it a directory is a problem, and the other sources go on.
    pub recursive: bool,
    /// `-p`: times (to the nanosecond), modes, and owners where the receiver is root. Without it a mode is the source's less the umask.
    pub preserve: bool,
    /// `--update`: files that are newer at the destination stay there, and those of the same modification time and size; of the same time
    /// and another size they are copied. As with rsync's `-u` it is about regular files, and their hard links, only.
    pub update: bool,
    /// `--skip-same`: files whose size and modification time are equal at the destination are skipped; rsync's quick check.
    pub skip_same: bool,
    /// `--changed`: what becomes of a file that is written to while it is copied.
    pub changed: Changed,
    /// `--verify`, `--no-verify`: what is checked against the BLAKE3 hashes of what was read.
    pub verify: Verify,
    /// Go on from what an earlier run left; off with `--no-resume`, which removes it. Default on.
    pub resume: bool,
    /// `--size-only`, `--checksum`: by what a file of the same name at the destination counts as the same one, and stays as it is. Crosses the network as `dry_run` does.
    #[serde(skip)]
    pub same: Same,
    /// `-L`: symbolic links below a source are followed. Crosses the network as `dry_run` does.
    #[serde(skip)]
    pub follow: bool,
    /// `--delete`: what the destination has and the source has not is removed there. Crosses the network as `dry_run` does.
    #[serde(skip)]
    pub delete: Option<Delete>,
    /// `-X`, `-A`: extended attributes and ACLs are kept. Crosses the network as `dry_run` does.
    #[serde(skip)]
    pub keep: Keep,
    /// `--dry-run`: nothing is written on either side; what would be done is told ([`Event::Would`](crate::Event::Would)). It crosses the network apart, in [`Term`](crate::protocol::Term).
    #[serde(skip)]
    pub dry_run: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            recursive: false,
            preserve: false,
            update: false,
            skip_same: false,
            changed: Changed::Take,
            verify: Verify::Arrival,
            resume: true,
            same: Same::Time,
            follow: false,
            delete: None,
            keep: Keep::NONE,
            dry_run: false,
        }
    }
}

/// What is checked against the BLAKE3 hashes that the sender computes over what it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Verify {
    /// Nothing is hashed.
    Off,
    /// What arrived, in memory, before it is written. What the disk then keeps is not looked at. The default: it costs no reading.
    #[default]
    Arrival,
    /// That, and what the destination's disk gives back after the sync, before the file gets its name.
    ReadBack,
}

impl Verify {
    /// Whether content is hashed.
    pub(crate) fn hashes(self) -> bool {
        self != Self::Off
    }
}

/// What becomes of a file that is written to while it is copied. One that changed between being found and being opened is simply found again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Changed {
    /// It is copied up to the length that it had at the start, as scp and rsync do, so that a log can be copied; a
    /// [`Note`](crate::Note) names it, and the blocks that were rewritten after they had been read. If it is cut short in the meantime, it
    /// is read again once; the second time it is a problem. The default.
    #[default]
    Take,
    /// It is a problem.
    Fail,
    /// It is read again once; the second time it is a problem.
    Retry,
}

impl Options {
    /// Whether what the destination has decides what is sent: then the sender waits for the receiver's word on each file.
    pub(crate) fn compares(self) -> bool {
        self.keeps_same() || self.dry_run
    }

    /// Whether modes are kept: an ACL without the mode that it goes with is another one.
    pub(crate) fn keeps_modes(self) -> bool {
        self.preserve || self.keep.acls
    }

    /// Whether times of modification are compared.
    pub(crate) fn compares_times(self) -> bool {
        self.update || self.skip_same
    }

    /// Whether files that are the same at the destination stay as they are.
    pub(crate) fn keeps_same(self) -> bool {
        self.compares_times() || self.same != Same::Time
    }
}

/// How much may be removed at the destination.
///
/// It is removed when all has arrived, in directories that were announced, and never where the source could not be read whole. What the filter of the copy leaves out stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Delete {
    /// `--max-delete`: where more names than this would go, none goes; none: any number.
    pub most: Option<u64>,
}

/// What makes two files the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Same {
    /// Size and modification time; looked at with [`Options::skip_same`] or [`Options::update`]. The default.
    #[default]
    Time,
    /// The size alone; rsync's `--size-only`.
    Size,
    /// Size and BLAKE3 of the content, which is read on both sides; rsync's `--checksum`.
    Content,
}

/// Something to send from this machine.
#[derive(Clone)]
pub enum SourceSpec {
    /// A file, or a directory with [`Options::recursive`]. A symbolic link named here is followed; those below a directory are copied as links.
    Path(PathBuf),
    /// A stream of unknown length, for instance standard input. It cannot be resumed.
    Stdin(Stream<dyn Read + Send>),
}

impl SourceSpec {
    /// A stream as a source.
    pub fn stream(read: impl Read + Send + 'static) -> Self {
        Self::Stdin(Stream(Arc::new(Mutex::new(read))))
    }

    /// As the user spelled it.
    pub(crate) fn spelled(&self) -> WirePath {
        match self {
            Self::Path(path) => path.as_path().into(),
            Self::Stdin(_) => WirePath(b"-".to_vec()),
        }
    }
}

impl From<PathBuf> for SourceSpec {
    fn from(path: PathBuf) -> Self {
        Self::Path(path)
    }
}

/// Where to put files on this machine.
#[derive(Clone)]
pub enum Destination {
    /// As with scp: inside, if it is a directory; else the new name of the one source.
    Path(PathBuf),
    /// The content of all files one after the other, for instance to standard output.
    Stdout(Stream<dyn Write + Send>),
}

impl Destination {
    /// A stream as a destination.
    pub fn stream(write: impl Write + Send + 'static) -> Self {
        Self::Stdout(Stream(Arc::new(Mutex::new(write))))
    }
}

/// A shared byte stream.
pub struct Stream<S: ?Sized>(Arc<Mutex<S>>);

impl<S: ?Sized> Clone for Stream<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S: ?Sized> Stream<S> {
    /// The stream itself; a panic of another user does not matter to a byte stream.
    pub(crate) fn lock(&self) -> std::sync::MutexGuard<'_, S> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SourceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.spelled())
    }
}

impl fmt::Debug for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => write!(f, "{}", path.display()),
            Self::Stdout(_) => f.write_str("-"),
        }
    }
}

/// From here to the server.
#[derive(Debug, Clone)]
pub struct PushJob {
    /// What to send; at least one.
    pub sources: Vec<SourceSpec>,
    /// Where to at the server: a path there, any bytes; empty means its home or root.
    pub destination: PathBuf,
    /// How.
    pub options: Options,
    /// What is left out of the sources.
    pub filter: Filter,
}

impl PushJob {
    /// All of these sources, directories with all that is in them, the rest as it is by default.
    pub fn new(sources: impl IntoIterator<Item = impl Into<SourceSpec>>, destination: impl Into<PathBuf>) -> Self {
        Self {
            sources: sources.into_iter().map(Into::into).collect(),
            destination: destination.into(),
            options: Options { recursive: true, ..Options::default() },
            filter: Filter::default(),
        }
    }
}

/// From the server to here.
#[derive(Debug, Clone)]
pub struct PullJob {
    /// Paths at the server; at least one. One that is not there is read as a pattern of a shell (`*`, `?`, `[..]`, `\` before what means
    /// itself), which the server expands.
    pub sources: Vec<PathBuf>,
    /// Where to.
    pub destination: Destination,
    /// How.
    pub options: Options,
    /// What is left out of the sources. A server that cannot is [`CopyError::PeerLacks`](crate::CopyError::PeerLacks).
    pub filter: Filter,
}

/// What a serving side lets a client do.
#[derive(Debug, Clone)]
pub enum Access {
    /// All that the account of this process may do (the client logged in to it). Relative paths and `~/` start at `home`.
    Account {
        /// The account's home.
        home: PathBuf,
    },
    /// Only what lies below exported roots; a path is `/NAME/rest`. Symbolic links in it are never followed, so nothing leads outside.
    Exports(Vec<Export>),
    /// Only what lies below one directory, as if it were the account's home and everything: `rest`, `~/rest` and `/rest` are the same, and symbolic links in it are never
    /// followed.
    Root(Export),
}

/// A directory that a daemon exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// The first component of a client's path.
    pub name: String,
    /// The directory here.
    pub path: PathBuf,
    /// Whether clients may write.
    pub writable: bool,
    /// Whether what they write may have owners and set-id bits of their choice.
    pub ownership: Ownership,
}

/// Whether a client that asks to keep metadata ([`Options::preserve`]) chooses owners, set-id bits and the sticky bit of files too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Ownership {
    /// It does not: a client that could would make programs that run as another user, up to root, where the server is root. The default.
    #[default]
    Mask,
    /// It does, as far as this process may.
    Allow,
}
