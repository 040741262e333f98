//! The stage: a hidden directory beside the destination where files are made before they get their names.
//!
//! `.haul-` and 8 hexadecimal digits of the job; it holds the journal (locked while a copy runs), one part file `p<number>` for each file that is not
//! finished, and a note `n<number>` (a symbolic link) for each file that is being made outside. It belongs to this user alone (mode 0700): nobody
//! can exchange what is in it. A copy that succeeds removes it.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::block::Hash;
use crate::clock;
use crate::error::{Stop, Why, WirePath};
use crate::journal::{self, Made, PathKey, Record, Source};
use crate::resolve::open_beneath;
use crate::session::{POLL, lock};

const JOURNAL: &str = "journal";
/// How long a copy waits for another one of the same job: longer than a daemon takes to miss a client that was killed.
const LOCK_WAIT: Duration = Duration::from_secs(12);

pub(super) struct Stage {
    pub(super) dir: OwnedFd,
    pub(super) name: String,
    journal: Option<File>,
    lock_file: File,
    first_part: u64,
    next_part: AtomicU64,
    earlier: Mutex<HashMap<PathKey, Earlier>>,
}

/// What an earlier run left of a file.
pub(super) struct Earlier {
    pub(super) part: u64,
    pub(super) source: Source,
    /// Offset, length and hash of what was written.
    pub(super) ranges: Vec<(u64, u32, Hash)>,
    /// Set where the part file is complete, perhaps renamed already.
    pub(super) complete: Option<(Made, Option<Hash>)>,
}

impl Stage {
    /// Makes or takes over the stage of `job` in `root`. If another copy holds it, waits a while: a run that was killed a moment ago may not have been missed yet.
    pub(super) fn open(root: &OwnedFd, spelled: &WirePath, job: &[u8; 32], resume: bool) -> Result<Self, Stop> {
        let fail = |errno: Errno| Stop::Destination { path: spelled.clone(), why: Why::from(errno) };
        let name = stage_name(job);
        let deadline = clock::now() + LOCK_WAIT;
        // A run that ends removes its stage: after losing that race, the next turn makes a new one.
        let mut turns = 0;
        while turns < 16 {
            turns += 1;
            match rustix::fs::mkdirat(root, &*name, Mode::RWXU) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(fail(errno)),
            }
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let dir = match rustix::fs::openat(root, &*name, flags, Mode::empty()) {
                Err(Errno::NOENT) => continue,
                result => result.map_err(fail)?,
            };
            let stat = rustix::fs::fstat(&dir).map_err(fail)?;
            if stat.st_uid != rustix::process::geteuid().as_raw() || stat.st_mode & 0o077 != 0 {
                return Err(fail(Errno::PERM));
            }
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = match rustix::fs::openat(&dir, JOURNAL, flags, Mode::RUSR | Mode::WUSR) {
                Err(Errno::NOENT) => continue,
                result => result.map_err(fail)?,
            };
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) if clock::now() < deadline => {
                    thread::park_timeout(POLL);
                    turns -= 1;
                    continue;
                }
                Err(Errno::WOULDBLOCK) => break,
                result => result.map_err(fail)?,
            }
            let ours = rustix::fs::fstat(&file).map_err(fail)?.st_ino;
            if rustix::fs::statat(&dir, JOURNAL, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|stat| stat.st_ino == ours) {
                sweep(root, &dir, &name).map_err(fail)?;
                return Self::take_over(dir, name, File::from(file), job, resume).map_err(fail);
            }
        }
        Err(Stop::Busy { path: spelled.clone() })
    }

    fn take_over(dir: OwnedFd, name: String, file: File, job: &[u8; 32], resume: bool) -> Result<Self, Errno> {
        let io = |error: std::io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
        let mut bytes = Vec::new();
        if resume {
            bytes.resize(file.metadata().map_err(io)?.len() as usize, 0);
            file.read_exact_at(&mut bytes, 0).map_err(io)?;
        }
        let (mut records, mut valid) = journal::decode(&bytes);
        let head = Record::Job { version: journal::VERSION, job: *job };
        if records.first() != Some(&head) {
            (records, valid) = (Vec::new(), 0);
            remove_parts(&dir)?;
        }
        rustix::fs::ftruncate(&file, valid as u64)?;
        let lock_file = file.try_clone().map_err(io)?;
        let last = records.iter().map(part_of).chain([highest_number(&dir)?]).max().unwrap_or(0);
        let first_part = last.saturating_add(1);
        let stage = Self {
            dir,
            name,
            journal: resume.then_some(file),
            lock_file,
            first_part,
            next_part: AtomicU64::new(first_part),
            earlier: Mutex::new(earlier(&records)),
        };
        if records.is_empty() {
            stage.append(&[head])?;
        }
        Ok(stage)
    }

    /// Whether an earlier run left something.
    pub(super) fn has_earlier(&self) -> bool {
        !lock(&self.earlier).is_empty()
    }

    /// Whether this run has made nothing in it yet.
    pub(super) fn is_unused(&self) -> bool {
        self.next_part.load(Ordering::Relaxed) == self.first_part
    }

    /// What an earlier run left of a file; given once.
    pub(super) fn take_earlier(&self, path: &PathKey) -> Option<Earlier> {
        lock(&self.earlier).remove(path)
    }

    /// Appends to the journal in one write.
    pub(super) fn append(&self, records: &[Record]) -> Result<(), Errno> {
        let Some(mut journal) = self.journal.as_ref() else { return Ok(()) };
        if records.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::with_capacity(records.len() * 128);
        for record in records {
            journal::encode(record, &mut bytes);
        }
        journal.write_all(&bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
    }

    /// A new part file.
    pub(super) fn create(&self, mode: u32) -> Result<(u64, OwnedFd), Errno> {
        loop {
            let part = self.next_part.fetch_add(1, Ordering::Relaxed);
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            match rustix::fs::openat(&self.dir, &*part_name(part), flags, Mode::from_raw_mode(mode & 0o777)) {
                // Left by a run whose journal lost its end.
                Err(Errno::EXIST) => {}
                result => return Ok((part, result?)),
            }
        }
    }

    /// An earlier run's part file.
    pub(super) fn reopen(&self, part: u64, flags: OFlags) -> Result<File, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(&self.dir, &*part_name(part), flags, Mode::empty()).map(File::from)
    }

    /// A name in the stage that no part file has yet.
    pub(super) fn fresh_name(&self) -> String {
        part_name(self.next_part.fetch_add(1, Ordering::Relaxed))
    }

    /// Removes a part file.
    pub(super) fn discard(&self, part: u64) {
        let _ = rustix::fs::unlinkat(&self.dir, &*part_name(part), AtFlags::empty());
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

    /// Removes the stage with all that is in it.
    pub(super) fn remove(&self, root: &OwnedFd) -> Result<(), Errno> {
        remove_parts(&self.dir)?;
        rustix::fs::unlinkat(&self.dir, JOURNAL, AtFlags::empty())?;
        rustix::fs::unlinkat(root, &*self.name, AtFlags::REMOVEDIR)?;
        // A run that waits for the same job finds that its journal has no name.
        rustix::fs::flock(&self.lock_file, FlockOperation::Unlock)
    }

    /// Reads a range of a part file and compares its hash.
    pub(super) fn holds(file: &File, offset: u64, length: u32, hash: &Hash, buffer: &mut Vec<u8>) -> bool {
        buffer.resize(length as usize, 0);
        file.read_exact_at(buffer, offset).is_ok() && blake3::hash(buffer).as_bytes() == hash
    }
}

/// The stage's name for a job.
pub(super) fn stage_name(job: &[u8; 32]) -> String {
    let number = job.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    format!(".haul-{number:08x}")
}

pub(super) fn part_name(part: u64) -> String {
    format!("p{part}")
}

fn note_name(number: u64) -> String {
    format!("n{number}")
}

/// Removes what a killed run was making outside its stage, as its notes say.
fn sweep(root: &OwnedFd, dir: &OwnedFd, stage: &str) -> Result<(), Errno> {
    for entry in Dir::read_from(dir.as_fd())? {
        let entry = entry?;
        if !entry.file_name().to_bytes().starts_with(b"n") {
            continue;
        }
        if let Ok(path) = rustix::fs::readlinkat(dir, entry.file_name(), Vec::new()) {
            let path = path.as_bytes();
            let cut = path.iter().rposition(|&b| b == b'/');
            let (parent, name) = cut.and_then(|at| path.split_at_checked(at)).unwrap_or((b".", path));
            let name = name.strip_prefix(b"/").unwrap_or(name);
            let ours = name.strip_prefix(stage.as_bytes()).is_some_and(|rest| rest.starts_with(b"."));
            if let Ok(parent) = open_beneath(root, parent, OFlags::PATH | OFlags::DIRECTORY)
                && ours
            {
                let _ = rustix::fs::unlinkat(parent, name, AtFlags::empty());
            }
        }
        rustix::fs::unlinkat(dir, entry.file_name(), AtFlags::empty())?;
    }
    Ok(())
}

fn part_of(record: &Record) -> u64 {
    match record {
        Record::Job { .. } => 0,
        Record::Part { part, .. } | Record::Range { part, .. } | Record::Complete { part, .. } => *part,
    }
}

fn earlier(records: &[Record]) -> HashMap<PathKey, Earlier> {
    let mut parts: HashMap<u64, PathKey> = HashMap::new();
    let mut files: HashMap<PathKey, Earlier> = HashMap::new();
    for record in records {
        match *record {
            Record::Job { .. } => {}
            Record::Part { part, path, source } => {
                parts.insert(part, path);
                files.insert(path, Earlier { part, source, ranges: Vec::new(), complete: None });
            }
            Record::Range { part, offset, length, hash } => {
                let file = parts.get(&part).and_then(|path| files.get_mut(path)).filter(|file| file.part == part);
                if let Some(file) = file {
                    file.ranges.push((offset, length, hash));
                }
            }
            Record::Complete { part, path, source, made, hash } => {
                let file = files.entry(path).or_insert(Earlier { part, source, ranges: Vec::new(), complete: None });
                if file.part != part {
                    file.ranges.clear();
                }
                (file.part, file.source, file.complete) = (part, source, Some((made, hash)));
            }
        }
    }
    files
}

/// The highest number among the names in the stage. A killed run leaves some that its journal does not tell of: a link that had no place yet, a part file
/// whose record was not written.
fn highest_number(dir: &OwnedFd) -> Result<u64, Errno> {
    let mut highest = 0;
    for entry in Dir::read_from(dir.as_fd())? {
        let entry = entry?;
        let digits = entry.file_name().to_bytes().get(1..).and_then(|rest| std::str::from_utf8(rest).ok());
        highest = highest.max(digits.and_then(|digits| digits.parse().ok()).unwrap_or(0));
    }
    Ok(highest)
}

fn remove_parts(dir: &OwnedFd) -> Result<(), Errno> {
    for entry in Dir::read_from(dir.as_fd())? {
        let entry = entry?;
        let name = entry.file_name();
        if name.to_bytes().starts_with(b"p") || name.to_bytes().starts_with(b"n") {
            rustix::fs::unlinkat(dir, name, AtFlags::empty())?;
        }
    }
    Ok(())
}
