//! What interrupted copies have kept: listed and discarded, on this machine or at a server.
//!
//! ```text
//!   client                          server
//!   --- opening line (kept) ------>
//!   --- request line ------------->
//!                 <-- reply line ---
//!                 <-- answer line --
//! ```
//!
//! A server lists what a client may see and removes what it may write to. Whatever a server answers is bounded here: its names are names of stages, and no more than are
//! asked for.

use std::io::{self, Read, Write};
use std::thread;
use std::time::Duration;

use haul::Connection;
use haul_files::store::{Scheme, is_reserved};
use haul_files::{Access, Asked, CopyError, Discarded, Event, Interrupted, Observer, Stop, WirePath};
use haul_peer::{RepliedStream, Reply, from_bounded_line, to_line};
use haul_units::{Bytes, Cancel, PeerText};
use serde::{Deserialize, Serialize};

use crate::deadline::Deadline;
use crate::here::Local;
use crate::opening::{Opening, Purpose};
use crate::{CLOSE_ABORTED, CLOSE_DONE};

/// Copies that one answer tells of; there are seldom more than a few.
const MAX_COPIES: usize = 256;
/// Names of one copy that an answer tells: as many as a journal has.
const MAX_NAMES: usize = 4;
/// Longest name in bytes; each takes up to four in JSON.
const MAX_NAME: usize = 255;
/// Longest request in bytes: the longest path that a system takes, in JSON.
const MAX_REQUEST: usize = 32 << 10;
/// Longest answer in bytes.
const MAX_ANSWER: usize = MAX_COPIES * (MAX_NAMES * (4 * MAX_NAME + 16) + 1024) + MAX_REQUEST;
/// How long a server may take: it reads a directory, or removes files.
const PATIENCE: Duration = Duration::from_secs(120);
/// How often a client that waits looks whether it is still to.
const LOOK: Duration = Duration::from_millis(20);

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptRequest {
    /// A directory; or the hidden directory of one interrupted copy, which is then the only one that is meant.
    pub directory: WirePath,
    /// Whether what is found is to be removed.
    #[serde(default)]
    pub discard: bool,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Interrupted copies, by name.
    pub copies: Vec<KeptCopy>,
    /// How many there are besides, of which nothing was told, and with which nothing was done.
    #[serde(default)]
    pub more: u64,
}

/// An interrupted copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptCopy {
    /// The name of its hidden directory.
    pub name: WirePath,
    /// The first names that it was to make.
    #[serde(default)]
    pub names: Vec<WirePath>,
    /// What it takes on the disk.
    pub bytes: u64,
    /// Since something was last written to it, in seconds.
    pub idle_s: u64,
    /// It is not interrupted: a copy works on it.
    pub running: bool,
    /// What became of it, if it was to be removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub discarded: Option<Discarded>,
}

impl KeptCopy {
    /// What it takes on the disk.
    pub const fn bytes(&self) -> Bytes {
        Bytes(self.bytes)
    }
}

/// The server's line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Answer {
    Found(Kept),
    Stopped(Stop),
}

impl KeptRequest {
    /// Does it on this machine, for its own user.
    pub fn here(&self) -> Result<Kept, Stop> {
        match Scheme::split(&self.directory.0).0 {
            Scheme::Local => self.of(&Local::own()),
            Scheme::Ram => self.of(&Local::ram_disk()?),
            Scheme::Gfarm | Scheme::Any => Err(in_no_directory()),
        }
    }

    /// Does it for who may do this.
    fn for_client(&self, access: &Access) -> Result<Kept, Stop> {
        match (access, Scheme::split(&self.directory.0).0) {
            (Access::Account { .. }, Scheme::Ram) => self.of(&Local::ram_disk()?),
            (Access::Account { .. }, Scheme::Gfarm | Scheme::Any) => Err(in_no_directory()),
            _ => self.of(&Local::of(access.clone())),
        }
    }

    fn of(&self, store: &Local) -> Result<Kept, Stop> {
        let mut copies: Vec<KeptCopy> = if self.discard {
            store.discard_in(&self.directory)?.into_iter().map(|(one, became)| KeptCopy::new(&one, Some(became))).collect()
        } else {
            store.interrupted_in(&self.directory)?.iter().map(|one| KeptCopy::new(one, None)).collect()
        };
        let more = copies.len().saturating_sub(MAX_COPIES) as u64;
        copies.truncate(MAX_COPIES);
        Ok(Kept { copies, more })
    }

    /// Has the server at the other end of a connection do it, and ends the connection.
    pub fn ask(&self, connection: &Connection, cancel: &Cancel) -> Result<Kept, CopyError> {
        let (asking, request) = (connection.clone(), self.clone());
        let asked = thread::spawn(move || {
            let (send, receive) = asking.open_bi()?;
            let deadline = Deadline::start(&asking, PATIENCE, "no answer");
            let answer = request.exchange(send, receive);
            if deadline.has_passed() {
                let why = "it does not answer: haul there may be too old for this";
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
            answer
        });
        while !asked.is_finished() && !cancel.is_cancelled() {
            thread::park_timeout(LOOK);
        }
        let is_heard = asked.is_finished();
        connection.close(if is_heard { CLOSE_DONE } else { CLOSE_ABORTED }, "done");
        let failed = || Err(io::Error::other("the thread that asks has failed"));
        match asked.join().unwrap_or_else(|_| failed()) {
            _ if !is_heard => Err(CopyError::Cancelled),
            Ok(Answer::Found(kept)) => kept.checked(self),
            Ok(Answer::Stopped(stop)) => Err(CopyError::Refused(stop)),
            Err(error) => Err(CopyError::Connection(error)),
        }
    }

    fn exchange(&self, mut send: impl Write, receive: impl Read) -> io::Result<Answer> {
        let opening = Opening::new(Purpose::Kept);
        send.write_all(&[to_line(&opening), to_line(self)].concat())?;
        send.flush()?;
        from_bounded_line(&mut RepliedStream::new(receive), MAX_ANSWER)
    }
}

impl Kept {
    /// As an honest server says it; an error for what it cannot have found.
    fn checked(self, request: &KeptRequest) -> Result<Self, CopyError> {
        let sound = |copy: &KeptCopy| {
            let is_name = |name: &WirePath| !name.0.contains(&b'/') && name.0.len() <= MAX_NAME;
            is_reserved(&copy.name.0)
                && is_name(&copy.name)
                && copy.names.len() <= MAX_NAMES
                && copy.names.iter().all(is_name)
                && copy.discarded.is_some() == request.discard
        };
        if self.copies.len() > MAX_COPIES || !self.copies.iter().all(sound) {
            return Err(CopyError::PeerMisbehaved("interrupted copies that there cannot be"));
        }
        Ok(self)
    }
}

impl KeptCopy {
    fn new(one: &Interrupted, discarded: Option<Discarded>) -> Self {
        let name = one.path.file_name().map(|name| WirePath::from(name.as_ref())).unwrap_or_default();
        let names = one.names.iter().take(MAX_NAMES).cloned().collect();
        Self { name, names, bytes: one.bytes.as_u64(), idle_s: one.idle.as_secs(), running: one.running, discarded }
    }
}

/// The server's part, behind the opening. A client that is refused has been told why.
pub(crate) fn answer(
    mut control_in: impl Read,
    mut control_out: impl Write,
    access: &Access,
    observer: &dyn Observer,
) -> Result<(), CopyError> {
    let request: KeptRequest = from_bounded_line(&mut control_in, MAX_REQUEST).map_err(CopyError::Connection)?;
    let spelled = &request.directory;
    observer.event(Event::Asked(if request.discard {
        Asked::Write(spelled)
    } else {
        Asked::Read(std::slice::from_ref(spelled))
    }));
    let found = request.for_client(access);
    let answer = found.clone().map_or_else(Answer::Stopped, Answer::Found);
    let reply = Reply::Served { version: env!("CARGO_PKG_VERSION").into(), unpacks: false };
    let told = control_out.write_all(&[to_line(&reply), to_line(&answer)].concat()).and_then(|()| control_out.flush());
    told.map_err(CopyError::Connection)?;
    found.map(drop).map_err(CopyError::Stopped)
}

fn in_no_directory() -> Stop {
    Stop::Unavailable(PeerText::from("interrupted copies can be listed in directories only"))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use haul_files::{Export, Ownership, Silent};

    use super::*;

    const STAGE: &str = ".haul-0123abcd";

    /// A directory with what an interrupted copy of this user leaves.
    fn left() -> tempfile::TempDir {
        use std::os::unix::fs::DirBuilderExt as _;
        let dir = tempfile::tempdir().expect("a directory");
        let stage = dir.path().join("in").join(STAGE);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&stage).expect("made");
        std::fs::write(stage.join("journal"), "").expect("written");
        std::fs::write(stage.join("p1"), [7; 9000]).expect("written");
        dir
    }

    /// What a client of this access hears, over the lines of both sides.
    fn asked(access: &Access, directory: &str, discard: bool) -> Result<Kept, CopyError> {
        let request = KeptRequest { directory: WirePath(directory.into()), discard };
        let mut said = Vec::new();
        let _ = request.exchange(&mut said, io::empty());
        let opening = haul_peer::from_line::<Opening>(&mut &said[..]).expect("an opening");
        assert_eq!(opening.purpose, Purpose::Kept);
        let rest = said.split_inclusive(|&b| b == b'\n').nth(1).expect("a request");
        let mut heard = Vec::new();
        let done = answer(rest, &mut heard, access, &Silent);
        match request.exchange(io::sink(), &heard[..]).expect("an answer") {
            Answer::Found(kept) => done.and_then(|()| kept.checked(&request)),
            Answer::Stopped(stop) => {
                assert!(matches!(done, Err(CopyError::Stopped(same)) if same == stop));
                Err(CopyError::Refused(stop))
            }
        }
    }

    fn exports(path: &std::path::Path, writable: bool) -> Access {
        Access::Exports(vec![Export { name: "pub".into(), path: path.to_owned(), writable, ownership: Ownership::Mask }])
    }

    #[test]
    fn an_account_lists_and_discards_what_it_has() {
        let dir = left();
        let access = Access::Account { home: dir.path().to_owned() };
        for spelled in ["in", "~/in/", &format!("in/{STAGE}")] {
            let kept = asked(&access, spelled, false).expect("a list");
            let [one] = &kept.copies[..] else { panic!("{spelled}: {kept:?}") };
            assert_eq!((&*one.name.0, one.bytes >= 9000, one.running, &one.discarded), (STAGE.as_bytes(), true, false, &None));
        }
        assert_eq!(asked(&access, "in/.haul-00000000", true).expect("nothing"), Kept::default());
        let kept = asked(&access, "in", true).expect("discards");
        assert_eq!(kept.copies[0].discarded, Some(Discarded::Removed));
        assert!(!dir.path().join("in").join(STAGE).exists());
        assert!(matches!(asked(&access, "nowhere", false), Err(CopyError::Refused(Stop::Destination { .. }))));
    }

    #[test]
    fn rights_hold_and_a_root_is_not_left() {
        let dir = left();
        let (read_only, writable) = (exports(dir.path(), false), exports(dir.path(), true));
        assert_eq!(asked(&read_only, "/pub/in", false).expect("a list").copies.len(), 1);
        for spelled in ["/pub/in".to_owned(), format!("/pub/in/{STAGE}")] {
            let refused = asked(&read_only, &spelled, true).expect_err("read-only");
            assert!(matches!(refused, CopyError::Refused(Stop::ReadOnlyRoot { .. })), "{refused:?}");
        }
        assert!(dir.path().join("in").join(STAGE).exists());
        let inner = exports(&dir.path().join("in"), true);
        for outside in ["/pub/..", "/pub/../in", "/pub/in/../..", "/other", "/"] {
            assert!(asked(&inner, outside, true).is_err(), "{outside}");
        }
        std::os::unix::fs::symlink(dir.path().join("in"), dir.path().join("link")).expect("a link");
        assert!(asked(&writable, "/pub/link", true).is_err(), "links are not followed");
        assert!(dir.path().join("in").join(STAGE).exists());
        assert_eq!(asked(&writable, "/pub/in", true).expect("discards").copies[0].discarded, Some(Discarded::Removed));
    }

    #[test]
    fn a_lying_server_is_not_believed() {
        let request = KeptRequest { directory: WirePath(b"d".into()), discard: false };
        let copy = |name: &str| KeptCopy {
            name: WirePath(name.into()),
            names: vec![WirePath(b"a\x1b[2J".into())],
            bytes: u64::MAX,
            idle_s: u64::MAX,
            running: false,
            discarded: None,
        };
        let kept = |copies| Kept { copies, more: u64::MAX };
        assert!(kept(vec![copy(STAGE)]).checked(&request).is_ok());
        let long = KeptCopy { names: vec![WirePath(vec![b'x'; MAX_NAME + 1])], ..copy(STAGE) };
        let many = KeptCopy { names: vec![WirePath::default(); MAX_NAMES + 1], ..copy(STAGE) };
        let done = KeptCopy { discarded: Some(Discarded::Removed), ..copy(STAGE) };
        for lie in [copy("passwd"), copy("../.haul-0123abcd"), copy(""), long, many, done] {
            assert!(kept(vec![lie.clone()]).checked(&request).is_err(), "{lie:?}");
        }
        assert!(kept(vec![copy(STAGE); MAX_COPIES + 1]).checked(&request).is_err());
        let endless = io::repeat(b'x');
        let mut said = to_line(&Reply::Served { version: "1".into(), unpacks: false });
        said.extend(b"{\"found\":");
        let error = request.exchange(io::sink(), said.chain(endless)).expect_err("no end");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn the_longest_honest_answer_fits() {
        let name = WirePath(vec![0xff; MAX_NAME]);
        let copy = KeptCopy {
            name: WirePath(STAGE.into()),
            names: vec![name; MAX_NAMES],
            bytes: u64::MAX,
            idle_s: u64::MAX,
            running: true,
            discarded: Some(Discarded::Failed(haul_files::Why::Reserved)),
        };
        let line = to_line(&Answer::Found(Kept { copies: vec![copy; MAX_COPIES], more: u64::MAX }));
        assert!(line.len() <= MAX_ANSWER, "{} bytes", line.len());
    }
}
