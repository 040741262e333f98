//! The stage: a hidden directory beside the destination where files are made before they get their names.
//!
//! `.haul-` and 8 hexadecimal digits of the job; it holds the journal and one part file `p<number>` for each file that is not finished. While a copy runs nobody else can open the journal:
//! that is the lock, and a process that is killed lets go of it. A copy that succeeds removes the stage, but nothing that it does not know.

mod read_back;

use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use haul_faults::Errno;
use haul_files::block::Hash;
use haul_files::journal::{self, Record};
use haul_files::store::{self, Attributes, Content as _, Identity, Placed, ReadHow, Spot, StoreError, Written};
use haul_files::{Cancel, Stop, Why, WirePath};
use haul_names::{is_reserved, stage_name};

use crate::at::{self, Directory, Failed, For, Make, What};
use crate::file::File;
use crate::handle::lock;
use crate::listing::each_name;
use crate::{metadata, names};

pub(crate) const JOURNAL: &[u8] = b"journal";
/// Names that a job's stage may have, one after the other.
const NAMES: u32 = 8;
/// How long a copy waits for another one of the same job: longer than a daemon takes to miss a client that was killed.
const LOCK_WAIT: Duration = Duration::from_secs(12);
/// How often it looks.
const POLL: Duration = Duration::from_millis(50);

/// The stage of one copy.
pub struct Stage {
    root: Arc<Directory>,
    name: String,
    identity: Identity,
    /// What it holds open; nothing, once it is removed.
    open: Mutex<Option<Open>>,
    resume: bool,
    first_part: u64,
    next_part: AtomicU64,
}

struct Open {
    dir: Arc<Directory>,
    journal: std::fs::File,
}

/// How an attempt on one name ended.
enum Opened {
    Stage(Box<Stage>, Vec<Record>),
    /// A copy of the same job has it.
    Busy,
    /// It is not this job's.
    Foreign,
}

impl Stage {
    /// Makes or takes over the stage of `job` in `root`.
    pub(crate) fn open(
        root: &Arc<Directory>,
        spelled: &WirePath,
        job: &[u8; 32],
        resume: bool,
        cancel: &Cancel,
    ) -> Result<(Self, Vec<Record>), Stop> {
        let fail = |error: StoreError| Stop::Destination { path: spelled.clone(), why: error.into() };
        for number in 0..NAMES {
            match Self::open_named(root, stage_name(job, number), job, resume, cancel).map_err(fail)? {
                Opened::Stage(stage, records) => return Ok((*stage, records)),
                Opened::Busy => return Err(Stop::Busy { path: spelled.clone() }),
                Opened::Foreign => {}
            }
        }
        let path = [&*spelled.0, b"/", stage_name(job, 0).as_bytes()].concat();
        Err(Stop::Destination { path: WirePath(path), why: Why::ForeignStage })
    }

    /// Whether there is one of this job, that an earlier run has left.
    pub(crate) fn is_there(root: &Directory, job: &[u8; 32]) -> bool {
        (0..NAMES).any(|number| {
            let found = Left::open(root, stage_name(job, number).as_bytes());
            found.ok().and_then(|left| left.head()).is_some_and(|records| is_of(&records, job))
        })
    }

    fn open_named(
        root: &Arc<Directory>,
        name: String,
        job: &[u8; 32],
        resume: bool,
        cancel: &Cancel,
    ) -> Result<Opened, StoreError> {
        let deadline = now() + LOCK_WAIT;
        let wide = wide(name.as_bytes());
        loop {
            let busy = now() >= deadline || cancel.is_cancelled();
            let dir = match root.at(&wide, For::Below, What::Directory, Make::OpenOrHidden) {
                Ok((handle, _)) => Directory(handle),
                Err(StoreError::Link | StoreError::InTheWay) => return Ok(Opened::Foreign),
                // The one before goes at this moment.
                Err(StoreError::Missing) if !busy => {
                    std::thread::park_timeout(POLL);
                    continue;
                }
                Err(error) if error == Errno::NOTDIR.into() => return Ok(Opened::Foreign),
                Err(error) => return Err(error),
            };
            let journal = match dir.alone(&wide_journal(), Make::Open) {
                Err(failed) if failed.is_missing() => {
                    if !is_empty(&dir)? {
                        // No journal: what is in it is somebody's own.
                        return Ok(Opened::Foreign);
                    }
                    dir.alone(&wide_journal(), Make::OpenOrNew)
                }
                opened => opened,
            };
            match journal {
                Ok(journal) => return Self::take_over(root, dir, name, journal.into(), job, resume),
                Err(failed) if failed.is_busy() && busy => return Ok(Opened::Busy),
                // Somebody has it, or the stage goes at this moment.
                Err(failed) if !busy && (failed.is_busy() || failed.is_going() || failed.is_missing()) => {
                    std::thread::park_timeout(POLL)
                }
                Err(failed) => return Err(failed.into()),
            }
        }
    }

    fn take_over(
        root: &Arc<Directory>,
        dir: Directory,
        name: String,
        mut journal: std::fs::File,
        job: &[u8; 32],
        resume: bool,
    ) -> Result<Opened, StoreError> {
        let io = |error: std::io::Error| StoreError::from_io(&error);
        let mut bytes = Vec::new();
        journal.read_to_end(&mut bytes).map_err(io)?;
        let (mut records, mut valid) = journal::decode(&bytes);
        let head = Record::Job { version: journal::VERSION, job: *job };
        // Another job of the same number.
        if matches!(records.first(), Some(Record::Job { job: other, .. }) if other != job) {
            return Ok(Opened::Foreign);
        }
        if !resume || records.first() != Some(&head) {
            (records, valid) = (Vec::new(), 0);
            remove_parts(&dir)?;
        }
        journal.set_len(valid as u64).map_err(io)?;
        journal.seek(SeekFrom::End(0)).map_err(io)?;
        if records.is_empty() {
            // Without resuming too: the next run is to know whose it is.
            append(&journal, &[head])?;
        }
        let last = records.iter().map(part_of).chain([highest_number(&dir)?]).max().unwrap_or(0);
        let first_part = last.saturating_add(1);
        let identity = metadata::identity(&dir.0)?;
        let stage = Self {
            root: root.clone(),
            name,
            identity,
            open: Mutex::new(Some(Open { dir: Arc::new(dir), journal })),
            resume,
            first_part,
            next_part: AtomicU64::new(first_part),
        };
        Ok(Opened::Stage(Box::new(stage), records))
    }

    fn dir(&self) -> Result<Arc<Directory>, StoreError> {
        lock(&self.open).as_ref().map(|open| open.dir.clone()).ok_or(StoreError::Missing)
    }

    pub(crate) fn open_part(&self, part: u64, purpose: For) -> Result<File, StoreError> {
        let (handle, _) = self.dir()?.at(&part_name(part), purpose, What::File, Make::Open)?;
        File::new(handle)
    }
}

impl store::Stage for Stage {
    type Dir = Directory;
    type Part = File;

    fn name(&self) -> &str {
        &self.name
    }

    fn identity(&self) -> Option<Identity> {
        Some(self.identity)
    }

    fn is_unused(&self) -> bool {
        self.next_part.load(Ordering::Relaxed) == self.first_part
    }

    fn append(&self, records: &[Record]) -> Result<(), StoreError> {
        match &*lock(&self.open) {
            Some(open) if self.resume => append(&open.journal, records),
            _ => Ok(()),
        }
    }

    fn create(&self, _mode: u32) -> Result<(u64, File), StoreError> {
        let dir = self.dir()?;
        loop {
            let part = self.next_part.fetch_add(1, Ordering::Relaxed);
            match dir.at(&part_name(part), For::Write, What::File, Make::New) {
                // Left by a run whose journal lost its end.
                Err(StoreError::InTheWay) => {}
                made => return Ok((part, File::new(made?.0)?)),
            }
        }
    }

    fn reopen(&self, part: u64) -> Result<File, StoreError> {
        self.open_part(part, For::Write)
    }

    fn discard(&self, part: u64) {
        if let Ok(dir) = self.dir() {
            let _ = dir.remove(&part_name(part), What::File);
        }
    }

    fn sync(&self, parts: &[u64]) -> Result<(), StoreError> {
        parts.iter().try_for_each(|&part| self.open_part(part, For::Write)?.sync())
    }

    fn read_back(
        &self,
        what: &Written<'_, Directory>,
        pieces: &[(u64, u32, Hash)],
        buffer: &mut Vec<u8>,
    ) -> Result<ReadHow, StoreError> {
        self.read_back_written(what, pieces, buffer)
    }

    fn commit(&self, part: u64, to: &Spot<'_, Directory>, _attributes: &Attributes) -> Result<Placed, StoreError> {
        let name = room_for(to)?;
        let (handle, _) = self.dir()?.at(&part_name(part), For::Rename, What::File, Make::Open)?;
        at::rename(&handle, to.dir, &name, true).map_err(in_the_way)?;
        Ok(Placed::Renamed)
    }

    fn symlink(&self, _to: &Spot<'_, Directory>, _target: &[u8], _attributes: &Attributes) -> Result<(), StoreError> {
        Err(StoreError::UNSUPPORTED)
    }

    fn link(&self, dir: &Directory, from: &[u8], to: &Spot<'_, Directory>) -> Result<(), StoreError> {
        let name = room_for(to)?;
        let from = dir.spelled(&names::to_open(from).ok_or(StoreError::CannotBeNamed)?, For::Attributes, What::File)?;
        if let Ok((there, _)) = to.dir.at(&name, For::Look, What::Anything, Make::Open)
            && metadata::identity(&there)? == metadata::identity(&from)?
        {
            return Ok(());
        }
        at::link(&from, to.dir, &name).map_err(in_the_way)
    }

    fn sync_names(&self, changed: Option<&[Arc<Directory>]>) -> Result<(), StoreError> {
        // The system writes names to its own journal; this asks it to do so now, which not every file system does for who may ask.
        match changed {
            Some(changed) => changed.iter().for_each(|dir| dir.flush()),
            None => self.root.flush(),
        }
        Ok(())
    }

    fn remove(&self) -> Result<bool, StoreError> {
        let Some(Open { dir, journal }) = lock(&self.open).take() else { return Ok(false) };
        remove_all(&self.root, &self.name, &dir, journal.into())
    }
}

/// A stage that an earlier run has left, or that somebody works on.
pub(crate) struct Left {
    pub(crate) dir: Directory,
    /// None: a copy works on it.
    pub(crate) journal: Option<std::fs::File>,
}

impl Left {
    pub(crate) fn open(root: &Directory, name: &[u8]) -> Result<Self, StoreError> {
        let (handle, _) = root.at(&wide(name), For::Below, What::Directory, Make::Open)?;
        let dir = Directory(handle);
        let journal = match dir.alone(&wide_journal(), Make::Open) {
            Ok(journal) => Some(journal.into()),
            Err(failed) if failed.is_busy() => None,
            Err(failed) => return Err(failed.into()),
        };
        Ok(Self { dir, journal })
    }

    /// The first records of its journal.
    pub(crate) fn head(&self) -> Option<Vec<Record>> {
        /// Bytes in which the names at the top are looked for: they are among the first records.
        const HEAD_BYTES: u64 = 64 << 10;
        let mut head = Vec::new();
        self.journal.as_ref()?.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
        Some(journal::decode(&head).0)
    }
}

/// Removes a stage with all that copies have put into it. True where something else is there: then it stays.
pub(crate) fn remove_all(
    root: &Directory,
    name: &str,
    dir: &Directory,
    journal: std::os::windows::io::OwnedHandle,
) -> Result<bool, StoreError> {
    remove_parts(dir)?;
    at::remove(&journal)?;
    // Its name is gone at the latest now.
    drop(journal);
    match root.remove(&wide(name.as_bytes()), What::Directory) {
        Ok(()) => Ok(false),
        // Unless it is the journal of a run that began a moment ago.
        Err(failed) => match is_empty(dir) {
            Ok(false) => Ok(true),
            _ if failed.is_missing() || failed.is_going() => Ok(false),
            _ => Err(failed.into()),
        },
    }
}

fn append(mut journal: &std::fs::File, records: &[Record]) -> Result<(), StoreError> {
    let mut bytes = Vec::with_capacity(records.len() * 128);
    for record in records {
        journal::encode(record, &mut bytes);
    }
    journal.write_all(&bytes).map_err(|error| StoreError::from_io(&error))
}

/// The name that something is to get, in the system's form. An error where no file can have it, where another spelling of it is there, and where a directory has it.
fn room_for(to: &Spot<'_, Directory>) -> Result<Vec<u16>, StoreError> {
    let name = names::to_make(to.name).ok_or(StoreError::CannotBeNamed)?;
    match to.dir.spelled(&name, For::Look, What::Anything) {
        Err(StoreError::Missing) => Ok(name),
        there => match metadata::metadata(&there?)?.kind {
            store::FileKind::Directory => Err(StoreError::InTheWay),
            _ => Ok(name),
        },
    }
}

/// What stands where something else is to be renamed to.
fn in_the_way(failed: Failed) -> StoreError {
    if failed.is_taken() { StoreError::InTheWay } else { failed.into() }
}

/// Removes part files.
fn remove_parts(dir: &Directory) -> Result<(), StoreError> {
    for name in names_in(dir)? {
        if number_of(&name).is_some() {
            match dir.remove(&wide(&name), What::File) {
                Err(failed) if failed.is_missing() || failed.is_going() => {}
                // A directory is nothing that a copy makes here.
                Err(failed) if StoreError::from(failed) == StoreError::InTheWay => {}
                result => result?,
            }
        }
    }
    Ok(())
}

fn names_in(dir: &Directory) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut names = Vec::new();
    each_name(dir, &mut |name| {
        names.push(at::bytes_of(name));
        std::ops::ControlFlow::Continue(())
    })?;
    Ok(names)
}

fn is_empty(dir: &Directory) -> Result<bool, StoreError> {
    // A journal is a run's that was a moment faster.
    Ok(names_in(dir)?.iter().all(|name| name == JOURNAL))
}

fn is_of(records: &[Record], job: &[u8; 32]) -> bool {
    matches!(records.first(), Some(Record::Job { job: of, .. }) if of == job)
}

fn part_of(record: &Record) -> u64 {
    match record {
        Record::Job { .. } | Record::Top { .. } => 0,
        Record::Part { part, .. } | Record::Range { part, .. } | Record::Complete { part, .. } => *part,
    }
}

/// The highest number among the names in the stage: a killed run leaves some that its journal does not tell of.
fn highest_number(dir: &Directory) -> Result<u64, StoreError> {
    Ok(names_in(dir)?.iter().filter_map(|name| number_of(name)).max().unwrap_or(0))
}

/// The number in the name of a part file.
fn number_of(name: &[u8]) -> Option<u64> {
    let digits = name.strip_prefix(b"p").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Names of this program's own, which are ASCII.
fn wide(name: &[u8]) -> Vec<u16> {
    name.iter().map(|&byte| byte.into()).collect()
}

fn wide_journal() -> Vec<u16> {
    wide(JOURNAL)
}

fn part_name(part: u64) -> Vec<u16> {
    wide(format!("p{part}").as_bytes())
}

#[expect(clippy::disallowed_methods, reason = "how long it waits is real time")]
fn now() -> Instant {
    Instant::now()
}

/// What it takes on the disk, for those who are told of it.
pub(crate) fn bytes_of_stage(dir: &Directory) -> u64 {
    let size = |name: &Vec<u8>| {
        let (handle, _) = dir.at(&wide(name), For::Look, What::File, Make::Open).ok()?;
        File::new(handle).ok()?.metadata().ok().map(|metadata| metadata.data)
    };
    names_in(dir).unwrap_or_default().iter().filter(|name| !is_reserved(name)).filter_map(size).sum()
}
