//! The stage: a hidden directory beside the destination where files are made before they get their names.
//!
//! `.haul-` and 8 hexadecimal digits of the job; it holds the journal (locked while a copy runs), one part file `p<number>` for each file that is not
//! finished, and a note `n<number>` (a symbolic link) for each file that is being made outside. It belongs to this user alone (mode 0700): nobody
//! can exchange what is in it. A copy that succeeds removes it, but nothing that it does not know.
//!
//! Others may be able to write in the destination. A directory of that name that is not this user's alone, or that has something in it and no journal,
//! is left as it is, and the stage gets the next of [`NAMES`] names.

use std::collections::HashMap;
use std::ffi::CString;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use haul_units::Cancel;
use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::meta;
use super::private::{Directory, INSIDE, is_ours, open_directory};
use super::resolve::open_beneath;
use crate::clock::{self, POLL};
use crate::journal::{self, Record};
use crate::locks::lock;
use crate::store::Identity;
use haul_descriptors::{open_at, patiently};
use haul_faults::{Stop, Why, WirePath};
use haul_names::stage_name;

const JOURNAL: &str = "journal";
/// Names that a job's stage may have, one after the other: enough for accidents. Whoever takes them all on purpose may write in the destination.
const NAMES: u32 = 8;
/// How long a copy waits for another one of the same job: longer than a daemon takes to miss a client that was killed.
const LOCK_WAIT: Duration = Duration::from_secs(12);

/// The stage of one copy.
pub struct Stage {
    /// What it is in.
    pub(super) root: Arc<OwnedFd>,
    pub(super) dir: OwnedFd,
    pub(super) name: String,
    pub(super) identity: Identity,
    pub(super) journal: Option<File>,
    /// Bytes of it that are whole records.
    pub(super) journal_end: Mutex<u64>,
    pub(super) lock_file: File,
    pub(super) first_part: u64,
    pub(super) next_part: AtomicU64,
    /// A directory on each other file system that is mounted in the tree, by device.
    pub(super) foreign: Mutex<HashMap<u64, Arc<OwnedFd>>>,
}

impl Stage {
    /// Makes or takes over the stage of `job` in `root`. If another copy holds it, waits a while: a run that was killed a moment ago may not have been missed yet.
    pub(in crate::store) fn open(
        root: &Arc<OwnedFd>,
        spelled: &WirePath,
        job: &[u8; 32],
        resume: bool,
        cancel: &Cancel,
    ) -> Result<(Self, Vec<Record>), Stop> {
        let fail = |why: Why| Stop::Destination { path: spelled.clone(), why };
        for number in 0..NAMES {
            let name = stage_name(job, number);
            match Self::open_named(root, &name, job, resume, cancel).map_err(|errno| fail(errno.into()))? {
                Opened::Stage(stage, records) => return Ok((*stage, records)),
                Opened::Busy => return Err(Stop::Busy { path: spelled.clone() }),
                Opened::Foreign => tracing::debug!(name, "not a stage of this job"),
            }
        }
        let mut path = spelled.0.clone();
        path.extend([b"/", stage_name(job, 0).as_bytes()].concat());
        Err(Stop::Destination { path: WirePath(path), why: Why::ForeignStage })
    }

    /// Whether there is one of this job, that an earlier run has left.
    pub(super) fn is_there(root: &OwnedFd, job: &[u8; 32]) -> bool {
        (0..NAMES).any(|number| {
            let found = Opening::existing(root, stage_name(job, number).as_bytes());
            found.is_ok_and(|found| found.is_some_and(|stage| stage.is_of(job)))
        })
    }

    fn open_named(root: &Arc<OwnedFd>, name: &str, job: &[u8; 32], resume: bool, cancel: &Cancel) -> Result<Opened, Errno> {
        let deadline = clock::now() + LOCK_WAIT;
        // A run that ends removes its stage: after losing that race, the next turn makes a new one.
        let mut turns = 0;
        while turns < 16 {
            turns += 1;
            let dir = match open_directory(root, name)? {
                Directory::Ours(dir) => dir,
                Directory::Gone => continue,
                Directory::Foreign => return Ok(Opened::Foreign),
            };
            let flags = OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::NONBLOCK;
            let file = match open_at(&dir, JOURNAL, flags, Mode::empty()) {
                Err(Errno::NOENT) if is_empty(&dir)? => {
                    match open_at(&dir, JOURNAL, flags | OFlags::CREATE, Mode::RUSR | Mode::WUSR) {
                        Err(Errno::NOENT) => continue,
                        result => result?,
                    }
                }
                // No journal: what is in it is somebody's own.
                Err(Errno::NOENT | Errno::LOOP | Errno::ISDIR | Errno::NXIO) => return Ok(Opened::Foreign),
                result => result?,
            };
            let stat = rustix::fs::fstat(&file)?;
            if !is_journal(&stat) {
                return Ok(Opened::Foreign);
            }
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) if clock::now() < deadline && !cancel.is_cancelled() => {
                    thread::park_timeout(POLL);
                    turns -= 1;
                    continue;
                }
                Err(Errno::WOULDBLOCK) => return Ok(Opened::Busy),
                result => result?,
            }
            if rustix::fs::statat(&dir, JOURNAL, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|there| there.st_ino == stat.st_ino) {
                return Self::take_over(root, dir, name, File::from(file), job, resume);
            }
        }
        Ok(Opened::Busy)
    }

    fn take_over(
        root: &Arc<OwnedFd>,
        dir: OwnedFd,
        name: &str,
        file: File,
        job: &[u8; 32],
        resume: bool,
    ) -> Result<Opened, Errno> {
        let io = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let mut bytes = vec![0; file.metadata().map_err(io)?.len() as usize];
        file.read_exact_at(&mut bytes, 0).map_err(io)?;
        let (mut records, valid) = journal::decode(&bytes);
        let mut end = valid as u64;
        let head = Record::Job { version: journal::VERSION, job: *job };
        // Another job of the same number.
        if matches!(records.first(), Some(Record::Job { job: other, .. }) if other != job) {
            return Ok(Opened::Foreign);
        }
        sweep(root, &dir, name)?;
        if !resume || records.first() != Some(&head) {
            (records, end) = (Vec::new(), 0);
            remove_parts(&dir)?;
        }
        rustix::fs::ftruncate(&file, end)?;
        if records.is_empty() {
            // Without resuming too: the next run is to know whose it is.
            append(&file, &mut end, &[head])?;
        }
        let lock_file = patiently(|| file.try_clone().map_err(io))?;
        let last = records.iter().map(part_of).chain([highest_number(&dir)?]).max().unwrap_or(0);
        let first_part = last.saturating_add(1);
        let stage = Box::new(Self {
            root: root.clone(),
            identity: meta::identity(&rustix::fs::fstat(&dir)?),
            dir,
            name: name.to_owned(),
            journal: resume.then_some(file),
            journal_end: Mutex::new(end),
            lock_file,
            first_part,
            next_part: AtomicU64::new(first_part),
            foreign: Mutex::default(),
        });
        Ok(Opened::Stage(stage, records))
    }

    /// A new part file.
    pub(super) fn create_part(&self, mode: u32) -> Result<(u64, File), Errno> {
        loop {
            let part = self.next_part.fetch_add(1, Ordering::Relaxed);
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match open_at(&self.dir, &*part_name(part), flags, Mode::from_raw_mode(mode & 0o777)) {
                // Left by a run whose journal lost its end.
                Err(Errno::EXIST) => {}
                result => return Ok((part, result?.into())),
            }
        }
    }

    /// A part file.
    pub(super) fn open_part(&self, part: u64, flags: OFlags) -> Result<File, Errno> {
        open_at(&self.dir, &*part_name(part), flags | OFlags::NOFOLLOW, Mode::empty()).map(File::from)
    }

    /// A name in the stage that no part file has yet.
    pub(super) fn fresh_name(&self) -> String {
        part_name(self.next_part.fetch_add(1, Ordering::Relaxed))
    }

    /// Notes that a file is being made at `path`, outside the stage: should this run be killed, the next one removes it. Gives the note's number.
    pub(super) fn note(&self, path: impl FnOnce(&str) -> Vec<u8>) -> (u64, String) {
        let number = self.next_part.fetch_add(1, Ordering::Relaxed);
        let beside = format!("{}.{number}", self.name);
        // Without a note (a path too long for one) a kill may leave that file; the copy itself is not harmed.
        let _ = rustix::fs::symlinkat(path(&beside), &self.dir, note_name(number));
        (number, beside)
    }

    /// What was noted is over.
    pub(super) fn forget_note(&self, number: u64) {
        let _ = rustix::fs::unlinkat(&self.dir, note_name(number), AtFlags::empty());
    }

    /// Names were made in a directory that is on another file system than the stage.
    pub(super) fn note_foreign(&self, device: u64, dir: &Arc<OwnedFd>) {
        lock(&self.foreign).insert(device, dir.clone());
    }
}

/// How an attempt on one name ended.
enum Opened {
    Stage(Box<Stage>, Vec<Record>),
    /// A copy of the same job has it.
    Busy,
    /// It is not this job's.
    Foreign,
}

/// A stage that is there, with its journal, neither locked nor read.
pub(super) struct Opening {
    pub(super) dir: OwnedFd,
    pub(super) journal: File,
}

impl Opening {
    /// Whether its journal begins as one of this job does.
    fn is_of(&self, job: &[u8; 32]) -> bool {
        let mut begin = [0; 128];
        let read = self.journal.read_at(&mut begin, 0).unwrap_or(0);
        let (records, _) = journal::decode(begin.get(..read).unwrap_or_default());
        matches!(records.first(), Some(Record::Job { job: of, .. }) if of == job)
    }

    /// None where it is no stage, or not this user's.
    pub(super) fn existing(root: &OwnedFd, name: &[u8]) -> Result<Option<Self>, Errno> {
        let dir = open_at(root, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        if !is_ours(&rustix::fs::fstat(&dir)?) {
            return Ok(None);
        }
        let open = |how| open_at(&dir, JOURNAL, how | OFlags::NOFOLLOW | OFlags::NONBLOCK, Mode::empty());
        // Who may only read can look all the same; a network file system locks what is open for writing.
        let journal = open(OFlags::RDWR).or_else(|_| open(OFlags::RDONLY))?;
        Ok(is_journal(&rustix::fs::fstat(&journal)?).then(|| Self { dir, journal: journal.into() }))
    }
}

/// Whether it is a file of this user's alone.
fn is_journal(stat: &Stat) -> bool {
    is_ours(stat) && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile && stat.st_nlink == 1
}

/// Removes a stage with all that copies have put into it. True where something else is there: then it stays.
pub(super) fn remove_all(dir: &OwnedFd, root: &OwnedFd, name: &[u8]) -> Result<bool, Errno> {
    remove_parts(dir)?;
    rustix::fs::unlinkat(dir, JOURNAL, AtFlags::empty())?;
    match rustix::fs::unlinkat(root, name, AtFlags::REMOVEDIR) {
        // Unless it is the journal of a run that began a moment ago.
        Err(Errno::NOTEMPTY | Errno::EXIST) => is_empty(dir).map(|empty| !empty),
        // Renamed by somebody, and so not in the way; or another one has its name.
        Err(Errno::NOENT | Errno::NOTDIR) => Ok(false),
        result => result.map(|()| false),
    }
}

/// The names in a directory, but `.` and `..`.
pub(super) fn names(dir: &OwnedFd) -> Result<Vec<CString>, Errno> {
    each_name(dir)?.collect()
}

/// The same, as they are read.
pub(super) fn each_name(dir: &OwnedFd) -> Result<impl Iterator<Item = Result<CString, Errno>>, Errno> {
    let listed = Dir::new(open_at(dir, ".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?)?;
    let entries = listed.map(|entry| entry.map(|entry| entry.file_name().to_owned()));
    Ok(entries.filter(|name| !matches!(name, Ok(name) if matches!(name.to_bytes(), b"." | b".."))))
}

fn is_empty(dir: &OwnedFd) -> Result<bool, Errno> {
    // A journal is a run's that was a moment faster.
    Ok(names(dir)?.iter().all(|name| name.to_bytes() == JOURNAL.as_bytes()))
}

pub(super) fn part_name(part: u64) -> String {
    format!("p{part}")
}

fn note_name(number: u64) -> String {
    format!("n{number}")
}

/// The number in the name of a part file or a note.
fn number_of(name: &[u8], letters: &[u8]) -> Option<u64> {
    let (letter, digits) = name.split_first()?;
    let digits = letters.contains(letter).then_some(digits).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Removes what a killed run was making outside its stage, as its notes say.
pub(super) fn sweep(root: &OwnedFd, dir: &OwnedFd, stage: &str) -> Result<(), Errno> {
    for entry in names(dir)? {
        if number_of(entry.to_bytes(), b"n").is_none() {
            continue;
        }
        let Ok(path) = rustix::fs::readlinkat(dir, &entry, Vec::new()) else { continue };
        let path = path.as_bytes();
        let cut = path.iter().rposition(|&b| b == b'/');
        let (parent, name) = cut.and_then(|at| path.split_at_checked(at)).unwrap_or((b".", path));
        let name = name.strip_prefix(b"/").unwrap_or(name);
        let number = name.strip_prefix(stage.as_bytes()).and_then(|rest| number_of(rest, b"."));
        if let Ok(parent) = open_beneath(root, parent, OFlags::PATH | OFlags::DIRECTORY)
            && number.is_some()
        {
            sweep_one(&parent, name);
        }
        rustix::fs::unlinkat(dir, &entry, AtFlags::empty())?;
    }
    Ok(())
}

/// Removes a [`Private`] directory of this user's.
fn sweep_one(parent: &OwnedFd, name: &[u8]) {
    let Ok(dir) = open_at(parent, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) else { return };
    if rustix::fs::fstat(&dir).is_ok_and(|stat| is_ours(&stat)) {
        let _ = rustix::fs::unlinkat(&dir, INSIDE, AtFlags::empty());
        let _ = rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR);
    }
}

/// Appends to a journal, which ends at `end`. What was written of records that have no room goes again: nothing behind a torn one would be read.
pub(super) fn append(mut journal: &File, end: &mut u64, records: &[Record]) -> Result<(), Errno> {
    if records.is_empty() {
        return Ok(());
    }
    let mut bytes = Vec::with_capacity(records.len() * 128);
    for record in records {
        journal::encode(record, &mut bytes);
    }
    if let Err(error) = journal.write_all(&bytes) {
        rustix::fs::ftruncate(journal, *end)?;
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    }
    *end += bytes.len() as u64;
    Ok(())
}

fn part_of(record: &Record) -> u64 {
    match record {
        Record::Job { .. } | Record::Top { .. } => 0,
        Record::Part { part, .. } | Record::Range { part, .. } | Record::Complete { part, .. } => *part,
    }
}

/// The highest number among the names in the stage. A killed run leaves some that its journal does not tell of: a link that had no place yet, a part file
/// whose record was not written.
fn highest_number(dir: &OwnedFd) -> Result<u64, Errno> {
    Ok(names(dir)?.iter().filter_map(|name| number_of(name.to_bytes(), b"pn")).max().unwrap_or(0))
}

/// Removes part files and notes.
pub(super) fn remove_parts(dir: &OwnedFd) -> Result<(), Errno> {
    for name in names(dir)? {
        if number_of(name.to_bytes(), b"pn").is_none() {
            continue;
        }
        match rustix::fs::unlinkat(dir, &name, AtFlags::empty()) {
            // A directory is nothing that a copy makes here.
            Ok(()) | Err(Errno::NOENT | Errno::ISDIR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use haul_names::is_reserved;

    #[test]
    fn names_of_stages_are_reserved_however_they_are_written() {
        for name in
            [".haul-07070707", ".HAUL-0707070A", ".haul-07070707.12", ".haul-", ".ha\u{200d}ul-07070707", ".haul-070707\u{fb00}"]
        {
            assert!(is_reserved(name.as_bytes()), "{name:?}");
        }
        for name in ["haul-07070707", ".haul", ".haulage-0707", ".haul-notes", "x.haul-07070707", ".hauſl-0.txt"] {
            assert!(!is_reserved(name.as_bytes()), "{name:?}");
        }
        let names: std::collections::HashSet<String> = (0..NAMES).map(|number| stage_name(&[7; 32], number)).collect();
        assert_eq!(names.len(), NAMES as usize);
        assert!(names.iter().all(|name| is_reserved(name.as_bytes())));
    }

    #[test]
    fn only_numbers_are_names_of_parts() {
        assert_eq!(number_of(b"p17", b"pn"), Some(17));
        for name in [&b"p"[..], b"photos", b"p1x", b"p+1", b"p-1", b"q1", b"", b"p99999999999999999999999"] {
            assert_eq!(number_of(name, b"pn"), None, "{}", String::from_utf8_lossy(name));
        }
    }
}
