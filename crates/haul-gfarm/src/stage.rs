//! The stage: a directory in Gfarm where files are made before they get their names.
//!
//! It has the journal, open for writing as long as a copy runs, and a file `p<number>` for each that is not finished. Who wants a journal that nobody writes to renames it to a name of its own
//! (`t` and a random number), which only one can do, looks once more whether somebody writes to it, for another may have had it in between, opens it and renames it back.

use std::collections::hash_map::RandomState;
use std::ffi::CString;
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use haul_files::journal::{self, Record};
use haul_files::store::{Attributes, Identity, Placed, ReadHow, Spot, Stage, Written, stage_name};
use haul_files::{Stop, StoreError, Why, WirePath};
use haul_units::Cancel;

use crate::error::GfarmError;
use crate::files::{GfarmPart, Sizes, look, metadata};
use crate::library::{Library, Mode, c_string};
use crate::path::{GfarmDir, below};
use crate::service::{Open, Service, lock};

const JOURNAL: &[u8] = b"journal";
/// Names that a job's stage may have, as in a local directory.
const NAMES: u32 = 8;
/// How often one looks whether the run before has ended, and how often at most: 12 s, longer than a server takes to miss a process that was killed.
const TURN: Duration = Duration::from_millis(100);
const TURNS: u32 = 120;
/// Longest journal that is read, in bytes: of millions of files.
const MAX_JOURNAL: u64 = 4 << 30;
/// A journal is read in pieces.
const PIECE: usize = 1 << 20;

/// The stage of one copy.
pub struct GfarmStage {
    service: Service,
    path: Vec<u8>,
    name: String,
    identity: Identity,
    journal: Mutex<Journal>,
    resume: bool,
    first_part: u64,
    next_part: AtomicU64,
    sizes: Sizes,
}

struct Journal {
    open: Option<Open>,
    /// Where the next record goes.
    end: u64,
}

/// How an attempt on one name ended.
enum Opened {
    Stage(Box<GfarmStage>, Vec<Record>),
    /// A copy of the same job has it.
    Busy,
    /// It is not this job's.
    Foreign,
}

/// What one look at a stage's directory led to.
enum Turn {
    /// The journal, open, and its length.
    Taken(Open, u64),
    New(Open),
    /// Something has just changed.
    Again,
    /// Somebody writes to it.
    Wait,
    Foreign,
}

impl GfarmStage {
    /// Makes the stage of `job` in a directory, or takes it over.
    pub(crate) fn open(
        service: &Service,
        root: &[u8],
        spelled: &WirePath,
        job: &[u8; 32],
        resume: bool,
        cancel: &Cancel,
    ) -> Result<(Self, Vec<Record>), Stop> {
        let fail = |why: Why| Stop::Destination { path: spelled.clone(), why };
        for number in 0..NAMES {
            let name = stage_name(job, number);
            let opened = Self::open_named(service, root, &name, job, resume, cancel);
            let opened = opened.map_err(|error| match error {
                StoreError::Full(_) => Stop::DestinationFull { path: spelled.clone() },
                error => fail(error.into()),
            });
            match opened? {
                Opened::Stage(stage, records) => return Ok((*stage, records)),
                Opened::Busy => return Err(Stop::Busy { path: spelled.clone() }),
                Opened::Foreign => tracing::debug!(name, "not a stage of this job"),
            }
        }
        Err(fail(Why::ForeignStage))
    }

    /// Whether there is one of this job, that an earlier run has left.
    pub(crate) fn is_there(service: &Service, root: &[u8], job: &[u8; 32]) -> bool {
        (0..NAMES).any(|number| {
            let names = below(root, stage_name(job, number).as_bytes()).and_then(|path| names(service, &path));
            names.is_ok_and(|names| names.iter().any(|name| name == JOURNAL || is_taking(name)))
        })
    }

    fn open_named(
        service: &Service,
        root: &[u8],
        name: &str,
        job: &[u8; 32],
        resume: bool,
        cancel: &Cancel,
    ) -> Result<Opened, StoreError> {
        let path = below(root, name.as_bytes())?;
        for _ in 0..TURNS {
            let dir = c_string(&path)?;
            let made = service.call(move |library| library.make_directory(&dir, 0o700))?;
            match made {
                Ok(()) => {}
                Err(error) if error.is_taken() => {}
                Err(error) => return Err(error.into()),
            }
            match Self::turn(service, &path) {
                // A run that ends removes its stage.
                Ok(Turn::Again) | Err(StoreError::Missing) => {}
                Ok(Turn::Wait) if cancel.is_cancelled() => return Err(StoreError::Cancelled),
                Ok(Turn::Wait) => thread::park_timeout(TURN),
                Ok(Turn::Foreign) => return Ok(Opened::Foreign),
                Ok(Turn::New(open)) => return Self::begin(service, path, name, open, job, resume),
                Ok(Turn::Taken(open, size)) => return Self::go_on(service, path, name, (open, size), job, resume),
                Err(error) => return Err(error),
            }
        }
        Ok(Opened::Busy)
    }

    /// Looks at the directory once, and takes what it can.
    fn turn(service: &Service, path: &[u8]) -> Result<Turn, StoreError> {
        let there = look(service, path, false)?;
        let found = metadata(&there);
        if found.kind != haul_files::store::FileKind::Directory || !there.own || found.mode & 0o022 != 0 {
            return Ok(Turn::Foreign);
        }
        let names = names(service, path)?;
        if names.iter().any(|name| name == JOURNAL) {
            return Self::take(service, path, JOURNAL);
        }
        // One that is being taken over at this moment, or was when its run was killed.
        if let Some(left) = names.iter().find(|name| is_taking(name)) {
            return Self::take(service, path, left);
        }
        if !names.is_empty() {
            return Ok(Turn::Foreign);
        }
        match Open::create(service, &below(path, JOURNAL)?, 0o600)? {
            Ok(open) => Ok(Turn::New(open)),
            Err(error) if error.is_taken() || error.is_missing() => Ok(Turn::Again),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a journal that nobody writes to.
    fn take(service: &Service, path: &[u8], name: &[u8]) -> Result<Turn, StoreError> {
        let from = c_string(&below(path, name)?)?;
        let own = below(path, format!("t{:016x}", RandomState::new().build_hasher().finish()).as_bytes())?;
        let to = c_string(&own)?;
        let taken = service.call(move |library| {
            let seen = library.stat(&from, false)?;
            if library.checksum(&from)?.being_written {
                return Ok(None);
            }
            library.rename(&from, &to)?;
            let got = library.stat(&to, false)?;
            // Another one was faster: he has put his there, or has this one and has renamed it back. He opens it before that, so it shows.
            if got.inode != seen.inode || library.checksum(&to)?.being_written {
                library.rename(&to, &from)?;
                return Ok(None);
            }
            Ok(Some(got))
        })?;
        let got = match taken {
            Ok(Some(got)) => got,
            Ok(None) => return Ok(Turn::Wait),
            Err(error) if error.is_missing() => return Ok(Turn::Again),
            Err(error) => return Err(error.into()),
        };
        let open = Open::file(service, &own, Mode::Write)?;
        let (from, to) = (c_string(&own)?, c_string(&below(path, JOURNAL)?)?);
        service.run(move |library| library.rename(&from, &to))?;
        Ok(Turn::Taken(open, got.size))
    }

    /// Goes on with a journal that an earlier run left.
    fn go_on(
        service: &Service,
        path: Vec<u8>,
        name: &str,
        (open, size): (Open, u64),
        job: &[u8; 32],
        resume: bool,
    ) -> Result<Opened, StoreError> {
        let bytes = match read_all(&open, size)? {
            Ok(bytes) => bytes,
            // It is on a server that is gone: as if it were not there, and so are the parts, of which nothing else tells.
            Err(error) if error.is_of_one_server() => {
                tracing::warn!("the journal of an earlier copy cannot be read: it begins anew");
                drop(open);
                let journal = c_string(&below(&path, JOURNAL)?)?;
                service.run(move |library| library.unlink(&journal))?;
                remove_parts(service, &path)?;
                let open = Open::create(service, &below(&path, JOURNAL)?, 0o600)??;
                return Self::begin(service, path, name, open, job, resume);
            }
            Err(error) => return Err(error.into()),
        };
        let (mut records, mut valid) = journal::decode(&bytes);
        // Another job of the same number.
        if matches!(records.first(), Some(Record::Job { job: other, .. }) if other != job) {
            return Ok(Opened::Foreign);
        }
        if !resume || records.first() != Some(&head(job)) {
            (records, valid) = (Vec::new(), 0);
            remove_parts(service, &path)?;
        }
        let valid = valid as u64;
        open.with(move |library, file| library.truncate(file, valid))??;
        let stage = Self::new(service, path, name, Journal { open: Some(open), end: valid }, &records, resume)?;
        if records.is_empty() {
            stage.write(&[head(job)])?;
        }
        Ok(Opened::Stage(Box::new(stage), records))
    }

    /// Begins a journal.
    fn begin(
        service: &Service,
        path: Vec<u8>,
        name: &str,
        open: Open,
        job: &[u8; 32],
        resume: bool,
    ) -> Result<Opened, StoreError> {
        let stage = Self::new(service, path, name, Journal { open: Some(open), end: 0 }, &[], resume)?;
        stage.write(&[head(job)])?;
        Ok(Opened::Stage(Box::new(stage), Vec::new()))
    }

    fn new(
        service: &Service,
        path: Vec<u8>,
        name: &str,
        journal: Journal,
        records: &[Record],
        resume: bool,
    ) -> Result<Self, StoreError> {
        let identity = metadata(&look(service, &path, false)?).identity;
        let named = names(service, &path)?.iter().filter_map(|name| part_number(name)).max();
        let first_part = records.iter().map(part_of).chain(named).max().unwrap_or(0).saturating_add(1);
        Ok(Self {
            service: service.clone(),
            path,
            name: name.to_owned(),
            identity,
            journal: Mutex::new(journal),
            resume,
            first_part,
            next_part: AtomicU64::new(first_part),
            sizes: Sizes::default(),
        })
    }

    /// Appends to the journal.
    fn write(&self, records: &[Record]) -> Result<(), StoreError> {
        let mut bytes = Vec::new();
        for record in records {
            journal::encode(record, &mut bytes);
        }
        let mut journal = lock(&self.journal);
        let Some(open) = &journal.open else { return Err(StoreError::FAILED) };
        if bytes.is_empty() {
            return Ok(());
        }
        open.write(&bytes, journal.end)?;
        journal.end += bytes.len() as u64;
        Ok(())
    }

    fn part_path(&self, part: u64) -> Result<Vec<u8>, StoreError> {
        below(&self.path, format!("p{part}").as_bytes())
    }

    /// Makes something under a name of its own in the stage, and renames it to its place; what has failed is removed.
    fn make_and_rename(
        &self,
        to: &Spot<'_, GfarmDir>,
        make: impl FnOnce(&mut Library, &CString) -> Result<(), GfarmError> + Send + 'static,
    ) -> Result<(), StoreError> {
        let fresh = c_string(&self.part_path(self.next_part.fetch_add(1, Ordering::Relaxed))?)?;
        let to = c_string(&below(&to.dir.path, to.name)?)?;
        self.service.run(move |library| {
            make(library, &fresh)?;
            library.rename(&fresh, &to).inspect_err(|_| {
                let _ = library.unlink(&fresh);
            })
        })
    }
}

impl Stage for GfarmStage {
    type Dir = GfarmDir;
    type Part = GfarmPart;

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
        if self.resume { self.write(records) } else { Ok(()) }
    }

    fn create(&self, mode: u32) -> Result<(u64, GfarmPart), StoreError> {
        loop {
            let number = self.next_part.fetch_add(1, Ordering::Relaxed);
            let path = self.part_path(number)?;
            match Open::create(&self.service, &path, mode & 0o777)? {
                Ok(open) => return Ok((number, GfarmPart::new(&self.service, path, number, &self.sizes, open))),
                // Left by a run whose journal lost its end.
                Err(error) if error.is_taken() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn reopen(&self, part: u64) -> Result<GfarmPart, StoreError> {
        GfarmPart::existing(&self.service, self.part_path(part)?, part, &self.sizes)
    }

    fn discard(&self, part: u64) {
        lock(&self.sizes).remove(&part);
        if let Ok(path) = self.part_path(part).and_then(|path| Ok(c_string(&path)?)) {
            let _ = self.service.run(move |library| library.unlink(&path));
        }
    }

    /// Each was synced when it was finished.
    fn sync(&self, _parts: &[u64]) -> Result<(), StoreError> {
        Ok(())
    }

    /// There is no way past the caches of a storage server.
    fn read_back(
        &self,
        _what: &Written<'_, GfarmDir>,
        _pieces: &[(u64, u32, [u8; 32])],
        _buffer: &mut Vec<u8>,
    ) -> Result<ReadHow, StoreError> {
        Err(StoreError::UNSUPPORTED)
    }

    fn commit(&self, part: u64, to: &Spot<'_, GfarmDir>, _attributes: &Attributes) -> Result<Placed, StoreError> {
        let (from, to) = (c_string(&self.part_path(part)?)?, c_string(&below(&to.dir.path, to.name)?)?);
        self.service.run(move |library| library.rename(&from, &to))?;
        lock(&self.sizes).remove(&part);
        Ok(Placed::Renamed)
    }

    fn symlink(&self, to: &Spot<'_, GfarmDir>, target: &[u8], attributes: &Attributes) -> Result<(), StoreError> {
        let (target, mtime) = (c_string(target)?, attributes.mtime);
        self.make_and_rename(to, move |library, fresh| {
            library.symlink(&target, fresh)?;
            mtime.map_or(Ok(()), |mtime| library.set_times(fresh, (mtime.secs, mtime.nanos)))
        })
    }

    fn link(&self, dir: &GfarmDir, name: &[u8], to: &Spot<'_, GfarmDir>) -> Result<(), StoreError> {
        let (from, there) = (below(&dir.path, name)?, below(&to.dir.path, to.name)?);
        // A rename of one name of a file to another name of it does nothing.
        match look(&self.service, &there, false) {
            Ok(existing) if existing.inode == look(&self.service, &from, false)?.inode => return Ok(()),
            Ok(_) | Err(StoreError::Missing) => {}
            Err(error) => return Err(error),
        }
        let from = c_string(&from)?;
        self.make_and_rename(to, move |library, fresh| library.link(&from, fresh))
    }

    /// The metadata server has answered for each: it keeps them as well as it can.
    fn sync_names(&self, _changed: Option<&[Arc<GfarmDir>]>) -> Result<(), StoreError> {
        Ok(())
    }

    fn remove(&self) -> Result<bool, StoreError> {
        lock(&self.journal).open = None;
        remove_parts(&self.service, &self.path)?;
        let (journal, dir) = (c_string(&below(&self.path, JOURNAL)?)?, c_string(&self.path)?);
        self.service.run(move |library| library.unlink(&journal))?;
        let path = dir.clone();
        match self.service.call(move |library| library.remove_directory(&path))? {
            Ok(()) => Ok(false),
            Err(error) if error.is_missing() => Ok(false),
            Err(error) => match StoreError::from(error) {
                // Unless it is the journal of a run that began a moment ago.
                StoreError::InTheWay => Ok(names(&self.service, &self.path)?.iter().any(|name| name != JOURNAL)),
                error => Err(error),
            },
        }
    }
}

fn head(job: &[u8; 32]) -> Record {
    Record::Job { version: journal::VERSION, job: *job }
}

fn part_of(record: &Record) -> u64 {
    match record {
        Record::Job { .. } | Record::Top { .. } => 0,
        Record::Part { part, .. } | Record::Range { part, .. } | Record::Complete { part, .. } => *part,
    }
}

/// The number in the name of a part.
fn part_number(name: &[u8]) -> Option<u64> {
    let digits = name.strip_prefix(b"p").filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
    std::str::from_utf8(digits).ok()?.parse().ok()
}

/// Whether it is what a journal is called while it is taken over.
fn is_taking(name: &[u8]) -> bool {
    name.strip_prefix(b"t").is_some_and(|digits| digits.len() == 16 && digits.iter().all(u8::is_ascii_hexdigit))
}

/// The names in a directory, but `.` and `..`.
fn names(service: &Service, path: &[u8]) -> Result<Vec<Vec<u8>>, StoreError> {
    let dir = c_string(path)?;
    service.run(move |library| {
        let listing = library.open_list(&dir)?;
        let mut names = Vec::new();
        loop {
            let found = library.list(listing, PIECE).inspect_err(|_| library.close_list(listing))?;
            if found.is_empty() {
                return Ok(names);
            }
            names.extend(found.into_iter().map(|(name, _)| name).filter(|name| !matches!(&**name, b"." | b"..")));
        }
    })
}

/// Removes parts, and journals that were being taken over.
fn remove_parts(service: &Service, path: &[u8]) -> Result<(), StoreError> {
    for name in names(service, path)? {
        if part_number(&name).is_none() && !is_taking(&name) {
            continue;
        }
        let path = c_string(&below(path, &name)?)?;
        match service.run(move |library| library.unlink(&path)) {
            // A directory is nothing that a copy makes here.
            Ok(()) | Err(StoreError::Missing | StoreError::InTheWay) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read_all(open: &Open, size: u64) -> Result<Result<Vec<u8>, GfarmError>, StoreError> {
    let size = size.min(MAX_JOURNAL);
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < size {
        let at = bytes.len() as u64;
        match open.read(&mut bytes, at, PIECE)? {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return Ok(Err(error)),
        }
    }
    Ok(Ok(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_stage_are_its_own() {
        assert_eq!(part_number(b"p17"), Some(17));
        for name in [&b"p"[..], b"photos", b"p+1", b"q1", b"p99999999999999999999999"] {
            assert_eq!(part_number(name), None);
        }
        assert!(is_taking(b"t0123456789abcdef"));
        assert!(!is_taking(b"t0123456789abcde") && !is_taking(b"target") && !is_taking(b"t0123456789abcdeg"));
    }
}
