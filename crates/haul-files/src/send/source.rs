//! What is sent: sources, and the files that were found in them.

use std::collections::VecDeque;

use crate::job::Stream;
use crate::journal::Source;
use crate::protocol::Entry;
use crate::store::{Named, Store};
use haul_xattrs::Attribute;

/// One source.
pub(crate) enum Origin<S: Store> {
    Named(Named<S>),
    Stream(Stream<dyn std::io::Read + Send>),
}

/// A file that was announced.
pub(super) struct SourceFile {
    pub(super) entry: Entry,
    /// Its state when it was scanned.
    pub(super) state: Source,
    /// The directory that it is in, on this side.
    pub(super) dir: u64,
    /// The index of the source that it is itself, if it is one.
    pub(super) top: Option<usize>,
    /// It is what a link leads to that is followed: the index of that in [`Sender::followed`](super::Sender::followed).
    pub(super) link: Option<usize>,
    /// It replaces one that changed while it was read.
    pub(super) retried: bool,
}

/// Ranges of a file to send; none: all of it.
pub(super) type Wanted = Option<VecDeque<(u64, u64)>>;

/// What is said of an entry in front of it.
#[derive(Default)]
pub(super) struct Said {
    /// The hash of a file's content.
    pub(super) hash: Option<[u8; 32]>,
    /// Extended attributes and ACLs.
    pub(super) extended: Option<Vec<Attribute>>,
}
