//! Messages on the control stream.
//!
//! A frame is its length (u32, little endian, at most [`MAX_FRAME`]) and one [`Message`] in postcard. The client speaks first:
//!
//! ```text
//!   client            server
//!   Hello, Request -->
//!                 <-- Hello, Matched (for patterns)
//!   sender            receiver
//!                 <-- Start { wants }                (a client's, without patterns: right behind its request)
//!   Anew              -->                            (see below)
//!   Entries.., FileEnd.., Problem..      -->
//!                 <-- Want.. (only after Start { wants: true }), Unwanted.., Problem.., Progress..
//!   AllSent       -->
//!                 <-- Finished
//!   Bye           -->
//! ```
//!
//! No file waits for a round trip: without wants the data follows the entry at once; with wants they stream back while entries go on. Nor does the whole:
//! a client that sends (`What::Push { early: true }`) begins right behind its request, as if `Start { wants: false }` had come, or with
//! [`Options::update`] or [`Options::skip_same`] as if `Start { wants: true }` had. Where the receiver then has something of an earlier run and says `Start { wants: true }`, it drops all that
//! comes before `Anew`, and the sender, which has sent little so far, starts again.
//! A client that asks by [`What::Ordered`] says what of which file it needs while the copy runs, and in what order:
//!
//! ```text
//!   receiver               sender
//!   Hello, Request, Start -->
//!                      <-- Hello, Entries.., Problem.., ScanDone
//!   Orders.., Shorten.., Limit.., Room.. -->
//!                      <-- OrderEnds.., while the blocks come
//!   Enough             -->
//!                      <-- AllSent
//!   Finished           -->
//!                      <-- Bye
//! ```
//!
//! A client that receives can name what is to be left out ([`Message::LeaveOut`], between its hello and its request), and what alone is meant ([`Message::Choose`]); the server says how much that was before `ScanDone`.
//!
//! What an option asks of the server beyond its [`Request`] is said before that ([`Message::Terms`]). In a dry run the receiver wants nothing of any file, and a server says what it would have done ([`Message::Would`]).
//!
//! `Stop` may come from either side at any time and ends the copy. New fields go to the end of [`Hello`] and [`Request`] (a reader
//! ignores what follows the fields it knows); a new message is sent only to a peer whose `features` name it.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use crate::job::{Delete, Options, Same};
use crate::report::{ReadBack, Waits};
use haul_faults::{FileProblem, Note, Stop, Why, WirePath};
use haul_xattrs::{Attribute, Keep};

pub use crate::stamp::Stamp;
pub use haul_names::MAX_NAME;

/// Version of the protocol; a peer with another one is refused.
pub const VERSION: u16 = 3;
/// Feature: sources of a [`What::Pull`] may be patterns. If both sides have it and one is, the server says [`Message::Matched`] after its hello.
pub const PATTERNS: u64 = 1 << 0;
/// Feature: understands [`Message::UnderWay`].
pub const UNDER_WAY: u64 = 1 << 1;
/// Feature: answers a [`What::Ordered`].
pub const ORDERS: u64 = 1 << 2;
/// Feature: takes a [`Message::LeaveOut`]. The client says it at once, and goes no further with a server that lacks this.
pub const LEAVES_OUT: u64 = 1 << 3;
/// Feature: answers a [`Message::Digest`].
pub const DIGESTS: u64 = 1 << 4;
/// Feature: takes a [`Message::Limit`].
pub const LIMITS: u64 = 1 << 5;
/// Feature: takes [`Term::DryRun`].
pub const DRY_RUNS: u64 = 1 << 6;
/// Feature: takes [`Term::Same`], and hashes what it then announces.
pub const SAMENESS: u64 = 1 << 7;
/// Feature: takes [`Term::Delete`], and then a [`Message::LeaveOut`] before a request to send.
pub const DELETES: u64 = 1 << 8;
/// Feature: takes [`Term::Follow`].
pub const FOLLOWS: u64 = 1 << 9;
/// Feature: takes a [`Message::Choose`].
pub const CHOOSES: u64 = 1 << 10;
/// Feature: understands [`Note::Special`].
pub const SPECIALS: u64 = 1 << 11;
/// Feature: takes a [`Message::Limit`] in a [`What::Pull`] too.
pub const PACES: u64 = 1 << 12;
/// Feature: takes a [`Message::Room`].
pub const ROOMS: u64 = 1 << 13;
/// Feature: takes a [`Message::Elsewhere`].
pub const ELSEWHERE: u64 = 1 << 14;
/// Feature: takes [`Term::Keep`], and then a [`Message::Attributes`].
pub const ATTRIBUTES: u64 = 1 << 15;
/// Feature: understands [`Why::CannotBeNamed`] and [`Why::OtherSpelling`].
pub const SPELLINGS: u64 = 1 << 16;
/// Feature: understands [`Note::Placed`].
pub const PLACES: u64 = 1 << 17;
/// Features of this program, one bit each.
pub const FEATURES: u64 = PATTERNS
    | UNDER_WAY
    | ORDERS
    | LEAVES_OUT
    | DIGESTS
    | LIMITS
    | DRY_RUNS
    | SAMENESS
    | DELETES
    | FOLLOWS
    | CHOOSES
    | SPECIALS
    | PACES
    | ROOMS
    | ELSEWHERE
    | ATTRIBUTES
    | SPELLINGS
    | PLACES;
/// Largest frame in bytes, the length left out: the longest command line that a system takes fits into a [`Request`].
pub const MAX_FRAME: usize = 4 << 20;
/// Longest target of a symbolic link in bytes.
pub const MAX_TARGET: usize = 4096;
/// The parent of what stands at the top of the copy.
pub const ROOT: u64 = 0;

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs, reason = "the fields are those of the types they hold")]
pub enum Message {
    Hello(Hello),
    Request(Request),
    /// Receiver: ready. With `wants` the sender waits for a [`Want`] before it sends the content of a file.
    Start {
        wants: bool,
    },
    /// Sender: what there is, parents before children, ids rising.
    Entries(Vec<Entry>),
    /// Sender: how a file of more than one piece ended.
    FileEnd(FileEnd),
    /// Either: something was not copied.
    Problem(FileProblem),
    /// Sender: every entry was announced. The totals, for progress.
    ScanDone,
    /// Sender: every block has left, though it may still be on its way; nothing follows but `Bye`.
    AllSent(Waits),
    /// Receiver: what it needs of files, in any order.
    Wants(Vec<Want>),
    /// Receiver: a file failed here; no more of it is needed.
    Unwanted(u64),
    /// Receiver: totals of this run, about 5 times a second.
    Progress(Progress),
    /// Receiver: all has its final name and is durable.
    Finished(Finished),
    /// Sender: understood. Nobody waits for it.
    Bye,
    /// Either: the copy ends here, and why.
    Stop(Stop),
    /// Server, see [`PATTERNS`]: how many sources the patterns and plain names of the request come to.
    Matched(u32),
    /// Receiver, to a peer with [`UNDER_WAY`]: the files of several pieces that have arrived in part, a few of them, about 5 times a second.
    UnderWay(Vec<Part>),
    /// Sender, early: what it has sent so far, entries up to this id and their content, counts for nothing.
    Anew {
        after: u64,
    },
    /// Either: something to know, no problem.
    Note(Note),
    /// Receiver, see [`What::Ordered`]: parts of files to send, in this order, after those of earlier orders.
    Orders(Vec<Order>),
    /// Receiver, see [`What::Ordered`]: of an order, nothing from `end` on is needed any more; one that is over already is left as it is.
    Shorten {
        number: u64,
        end: u64,
    },
    /// Receiver, see [`What::Ordered`]: nothing more will be ordered.
    Enough,
    /// Sender, see [`What::Ordered`]: orders that are over. What was sent for them may still be on its way.
    OrderEnds(Vec<OrderEnd>),
    /// Client, before a request: lines of a [`Filter`](crate::Filter); what it leaves out is not to be announced, and not to be removed ([`Term::Delete`]).
    LeaveOut {
        lines: Vec<String>,
    },
    /// Server, to a client that has said `LeaveOut`: how many names were left out; those in a directory that was are not counted.
    LeftOut(u64),
    /// Receiver, see [`What::Ordered`], to a peer with [`DIGESTS`]: the hashes of these files are wanted.
    Digest(Vec<u64>),
    /// Sender: hashes that were asked for, in any order; or, where content decides what is the same ([`Same::Content`]), those of files that the next entries announce.
    Digests(Vec<Digest>),
    /// Receiver, see [`What::Ordered`], to a peer with [`LIMITS`], and of a [`What::Pull`] to one with [`PACES`]: send no faster than this, in bits per second of what is on the wire; 0: as fast as it goes. A limit of the
    /// sender's own, or one that was agreed on before, holds besides.
    Limit {
        bps: u64,
    },
    /// Client, before a request: more of how. The client goes no further with a server that lacks the feature of one of them.
    Terms(Vec<Term>),
    /// Receiver, in a dry run: what it would have done; and in a copy that deletes, what it has removed.
    Would(Vec<Would>),
    /// Client, before a request to receive: paths below the sources ([`Filter::chosen`](crate::Filter::chosen)), of which alone it is; several times where they are many.
    Choose(Vec<WirePath>),
    /// Receiver, in a copy that deletes, before `Finished`: how many names it has removed.
    Removed(u64),
    /// Receiver, see [`What::Ordered`], to a peer with [`ROOMS`]: the receiver's link has room for so much, in bits per second of what is on the wire, for others have been told to be slower. No bound.
    Room {
        bps: u64,
    },
    /// Sender, see [`What::Ordered`], to a peer with [`ELSEWHERE`]: of the files that the next entries announce, those that the sender itself would have to fetch from another machine.
    Elsewhere(Vec<u64>),
    /// Sender, after [`Term::Keep`]: extended attributes and ACLs of what the next [`Entries`](Self::Entries) announce. What it could not read of has none here, and keeps what it has.
    Attributes(Vec<Extended>),
}

/// What came to [`Options`] after version 3 of the protocol; a new one goes to the end, with a feature of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Term {
    /// Nothing is to be written. See [`DRY_RUNS`].
    DryRun,
    /// By what files are the same. See [`SAMENESS`].
    Same(Same),
    /// What the destination has besides is to be removed. See [`DELETES`].
    Delete(Delete),
    /// Links below the sources are followed. See [`FOLLOWS`].
    Follow,
    /// Extended attributes and ACLs are kept. See [`ATTRIBUTES`].
    Keep(Keep),
}

/// Something that a copy would do at the destination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Would {
    /// As the user would name it.
    pub path: WirePath,
    /// What.
    pub change: Change,
}

/// What would become of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Change {
    /// A file of this many bytes, where nothing is.
    New(u64),
    /// A file of this many bytes in the place of what is there.
    Replaced(u64),
    /// A directory that is not there.
    Directory,
    /// A symbolic or hard link, where there is none like it.
    Link,
    /// Nothing: it is removed. Only told where that was asked for.
    Removed,
    /// What is there, with other extended attributes or ACLs. Only told where they are kept.
    Attributes,
}

/// The extended attributes and ACLs of an entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extended {
    /// The entry.
    pub id: u64,
    /// All that is kept, by the names; see [`check`](haul_xattrs::check) for what may be in it.
    pub list: Vec<Attribute>,
}

/// The first frame of each side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`VERSION`] of the program.
    pub version: u16,
    /// [`FEATURES`] of the program.
    pub features: u64,
}

impl Hello {
    /// This program's.
    pub fn ours() -> Self {
        Self { version: VERSION, features: FEATURES }
    }
}

/// What the client wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Which way and what.
    pub what: What,
    /// How.
    pub options: Options,
    /// Hash over what the sources are: a later copy of them to the same place finds what an earlier one left.
    pub job: [u8; 32],
}

/// Which way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// The client sends.
    Push {
        /// Where to, as the user spelled it.
        destination: WirePath,
        /// How many sources there are; 0: any number, and the destination is the directory that they go into, which is made if it is not there. Then a file that there is no room
        /// for is a problem of that file; else the whole copy ends.
        sources: u32,
        /// Whether one of them is a stream without a name.
        stream: bool,
        /// Whether it sends before it has heard `Start`.
        early: bool,
    },
    /// The client receives.
    Pull {
        /// From where, as the user spelled it: names, or patterns where nothing has that name.
        sources: Vec<WirePath>,
        /// Blocks in the order of the files and their content, holes filled: for standard output.
        in_order: bool,
    },
    /// The client receives what it orders, see [`Message::Orders`]; only asked of a server with [`ORDERS`]. A file with several names is
    /// announced as several.
    Ordered {
        /// As for [`Pull`](Self::Pull).
        sources: Vec<WirePath>,
    },
}

/// A part of a file to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Order {
    /// By which the order is told from others; rising within a copy, from 1.
    pub number: u64,
    /// The file.
    pub file: u64,
    /// First byte.
    pub start: u64,
    /// Behind the last byte; after the start, and not behind the end of the file.
    pub end: u64,
}

/// How an order ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OrderEnd {
    /// All was sent that is not a hole.
    Sent {
        /// Which.
        number: u64,
        /// Behind its last byte: less than was ordered, where it was shortened.
        end: u64,
        /// Sum of the lengths of the pieces sent for it.
        bytes: u64,
    },
    /// The file could not be read, or is not what was announced. What was sent of it was read while it was.
    Failed {
        /// Which.
        number: u64,
        /// What happened.
        why: Why,
    },
}

impl OrderEnd {
    /// The order that ended.
    pub const fn number(&self) -> u64 {
        match self {
            Self::Sent { number, .. } | Self::Failed { number, .. } => *number,
        }
    }
}

/// What the content of an announced file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    /// The file.
    pub file: u64,
    /// BLAKE3 of all of it; none where it cannot be read, or is not what was announced.
    pub hash: Option<[u8; 32]>,
}

/// A thing in a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Unique and rising within a copy, from 1.
    pub id: u64,
    /// The directory it is in, or [`ROOT`].
    pub parent: u64,
    /// One component: no `/`, no NUL, not `.` or `..`. Empty only for a directory at the top: the destination itself.
    pub name: WirePath,
    /// Permission bits, 0..=0o7777.
    pub mode: u32,
    /// Modification time.
    pub mtime: Stamp,
    /// Owner at the source.
    pub uid: u32,
    /// Group at the source.
    pub gid: u32,
    /// What it is.
    pub kind: Kind,
}

impl Entry {
    /// Bytes in the target of a symbolic link; zero for anything else.
    pub(crate) fn target_len(&self) -> usize {
        if let Kind::Symlink { target } = &self.kind { target.0.len() } else { 0 }
    }
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// A regular file.
    File {
        /// Its length in bytes.
        size: u64,
        /// Bytes of it that are data, an estimate: the rest is holes.
        data: u64,
        /// Changes when the content may have changed: a hash over inode number and change time.
        version: u64,
        /// Other entries may be hard links to it.
        linked: bool,
        /// The earlier entry that this one replaces, because it changed before or while it was read.
        replaces: Option<u64>,
    },
    /// A stream, or a file that does not say how long it is; the length is in its [`FileEnd`].
    Stream {
        /// Other entries may be hard links to it.
        linked: bool,
        /// The earlier entry that this one replaces, because it was shorter than it had said.
        replaces: Option<u64>,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink {
        /// What it says, any bytes but NUL.
        target: WirePath,
    },
    /// Another name of a file.
    HardLink {
        /// The entry of that file.
        to: u64,
    },
}

/// How a file of more than one piece ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileEnd {
    /// All was sent.
    Sent {
        /// The file.
        id: u64,
        /// Its length; what no piece covers is a hole.
        size: u64,
        /// Sum of the lengths of the pieces sent in this run.
        bytes: u64,
        /// Sum over the pieces sent in this run, see [`PieceSum`](crate::block::PieceSum).
        sum: [u8; 32],
    },
    /// It could not be read, or it changed; a `Problem` or an entry that replaces it says more. The receiver forgets it.
    Failed {
        /// The file.
        id: u64,
    },
}

/// What the receiver needs of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Want {
    /// The file.
    pub id: u64,
    /// How much.
    pub needs: Needs,
}

/// How much of a file is needed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Needs {
    /// All.
    All,
    /// Nothing; it is not to be sent.
    Nothing,
    /// These ranges (start, end), rising, apart.
    Ranges(Vec<(u64, u64)>),
}

/// Most ranges in one [`Needs`]; beyond it small gaps are joined.
pub const MAX_RANGES: usize = 4096;

/// Totals of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Files that have their final name.
    pub files: u64,
    /// Bytes written and not dropped again.
    pub bytes: u64,
    /// Files that needed nothing.
    pub kept_files: u64,
    /// Bytes that were there already.
    pub kept_bytes: u64,
}

/// How much of a file has arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// The file.
    pub id: u64,
    /// Bytes of it that are written, those of an earlier run included.
    pub arrived: u64,
}

/// The receiver's part of the report.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Finished {
    /// Totals.
    pub progress: Progress,
    /// Bytes of `kept_bytes` that are in partly copied files.
    pub resumed: u64,
    /// Files of `kept_files` that are newer at the destination than at the source.
    pub newer_files: u64,
    /// Bytes written in this run and dropped again.
    pub discarded: u64,
    /// Files that were read back from the disk.
    pub read_back: ReadBack,
    /// Directories made or updated.
    pub directories: u64,
    /// Symbolic links made.
    pub symlinks: u64,
    /// Hard links made.
    pub hard_links: u64,
    /// Where the receiver's threads spent their time.
    pub waits: Waits,
}

/// A frame that is not one.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// Longer than allowed.
    #[error("a frame of {0} bytes, more than allowed")]
    TooLong(usize),
    /// Not a message.
    #[error("not a message")]
    Malformed(#[from] postcard::Error),
}

/// Appends the frame of `message`.
pub fn encode(message: &Message, frames: &mut Vec<u8>) -> Result<(), DecodeError> {
    let start = frames.len();
    frames.extend_from_slice(&[0; 4]);
    let body = postcard::to_extend(message, Counted(frames))?.0.len() - start - 4;
    if body > MAX_FRAME {
        frames.truncate(start);
        return Err(DecodeError::TooLong(body));
    }
    let length = (body as u32).to_le_bytes();
    frames.splice(start..start + 4, length);
    Ok(())
}

/// The message in a frame whose length was taken off.
pub fn decode(body: &[u8]) -> Result<Message, DecodeError> {
    if body.len() > MAX_FRAME {
        return Err(DecodeError::TooLong(body.len()));
    }
    // What follows the known fields belongs to a later version.
    Ok(postcard::take_from_bytes(body)?.0)
}

/// Reads one frame into `body` (which is reused); `None` where the stream ends between frames.
pub fn read_frame(stream: &mut dyn Read, body: &mut Vec<u8>) -> io::Result<Option<Message>> {
    let mut length = [0; 4];
    let first = loop {
        match stream.read(&mut length) {
            Ok(n) => break n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    if first == 0 {
        return Ok(None);
    }
    stream.read_exact(length.get_mut(first..).unwrap_or_default())?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidData, DecodeError::TooLong(length)));
    }
    body.clear();
    stream.take(length as u64).read_to_end(body)?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    decode(body).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Lets postcard append to a borrowed vector.
struct Counted<'a>(&'a mut Vec<u8>);

impl Extend<u8> for Counted<'_> {
    fn extend<I: IntoIterator<Item = u8>>(&mut self, bytes: I) {
        self.0.extend(bytes);
    }
}
