//! Interrupted copies: the stages in a directory, what they hold and how long nobody has gone on with them.
//!
//! A copy finds its own stage by its sources and its place. One whose sources are not asked for again would stay for ever, so the next copy into the
//! directory tells of it, and its user can list and discard: here, or as a client, within what that may do. Nothing is removed unasked.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use haul_units::Bytes;
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::Local;
use super::stage::{self, Opening};
use crate::journal::{self, Record};
use crate::store::{Discarded, Interrupted, MAX_TOPS, StoreError};
use haul_descriptors::open_at;
use haul_faults::{Stop, WirePath};
use haul_names::{directory_and_name, is_stage_name, path_of};

/// Names in a directory that are looked at on behalf of a copy: a listing of some milliseconds.
const MAX_LOOKED: usize = 10_000;
/// Bytes of a journal in which the names at the top are looked for: they are among its first records.
const HEAD_BYTES: usize = 64 << 10;

impl Local {
    /// The copies of this process's user that are not complete in a directory, by name; of a hidden directory that a copy has made, that copy alone.
    pub fn interrupted_in(&self, spelled: &WirePath) -> Result<Vec<Interrupted>, Stop> {
        self.kept(spelled).map(|(_, found)| found)
    }

    /// Removes what they have kept. Who may not write there may not do this.
    pub fn discard_in(&self, spelled: &WirePath) -> Result<Vec<(Interrupted, Discarded)>, Stop> {
        self.may_write(spelled)?;
        let (dir, found) = self.kept(spelled)?;
        let discarded = |one: &Interrupted| {
            let name = one.path.file_name().map(OsStrExt::as_bytes).unwrap_or_default();
            discard(&dir, name).unwrap_or_else(|errno| Discarded::Failed(errno.into()))
        };
        Ok(found.into_iter().map(|one| (discarded(&one), one)).map(|(became, one)| (one, became)).collect())
    }

    /// The directory, and what is in it.
    fn kept(&self, spelled: &WirePath) -> Result<(OwnedFd, Vec<Interrupted>), Stop> {
        let (place, only) = place_of(spelled);
        let fail = |error: StoreError| Stop::Destination { path: place.clone(), why: error.into() };
        let dir = self.named_source(&place)?.open(OFlags::RDONLY | OFlags::DIRECTORY).map_err(fail)?;
        let mut found = look(&dir, usize::MAX).map_err(|errno| fail(errno.into()))?;
        found.retain(|one| only.as_ref().is_none_or(|only| one.path.as_os_str().as_bytes() == only));
        for one in &mut found {
            one.path = place.to_path().join(&one.path);
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((dir, found))
    }
}

/// The directory that is meant, and of a hidden directory in it its name.
fn place_of(spelled: &WirePath) -> (WirePath, Option<Vec<u8>>) {
    match directory_and_name(&spelled.0) {
        Some((parent, name)) if is_stage_name(&name) => (WirePath(parent), Some(name)),
        _ => (spelled.clone(), None),
    }
}

/// Removes what an interrupted copy has kept.
fn discard(root: &OwnedFd, name: &[u8]) -> Result<Discarded, Errno> {
    let Some(opening) = Opening::existing(root, name)? else { return Err(Errno::NOENT) };
    match rustix::fs::flock(&opening.journal, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(Discarded::Running),
        result => result?,
    }
    stage::sweep(root, &opening.dir, &String::from_utf8_lossy(name))?;
    Ok(if stage::remove_all(&opening.dir, root, name)? { Discarded::Foreign } else { Discarded::Removed })
}

/// The stages among the first names of a directory.
pub(super) fn look(dir: &OwnedFd, most: usize) -> Result<Vec<Interrupted>, Errno> {
    let mut found = Vec::new();
    for name in stage::each_name(dir)?.take(most) {
        let name = name?;
        // One that cannot be looked into is not this user's business.
        if is_stage_name(name.to_bytes())
            && let Ok(Some(opening)) = Opening::existing(dir, name.to_bytes())
        {
            found.extend(describe(&opening, name.to_bytes()));
        }
    }
    Ok(found)
}

/// Those in the place of a copy that are not its own; none where the directory cannot be read.
pub(super) fn others(root: &OwnedFd, own: &str) -> Vec<Interrupted> {
    let dir = open_at(root, c".", OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
    let found = dir.and_then(|dir| look(&dir, MAX_LOOKED)).unwrap_or_default();
    found.into_iter().filter(|one| !one.running && one.path != Path::new(own)).collect()
}

fn describe(opening: &Opening, name: &[u8]) -> Result<Interrupted, Errno> {
    let io = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let running = match rustix::fs::flock(&opening.journal, FlockOperation::NonBlockingLockShared) {
        Ok(()) => false,
        Err(Errno::WOULDBLOCK) => true,
        Err(errno) => return Err(errno),
    };
    let mut head = vec![0; HEAD_BYTES];
    let length = rustix::io::pread(&opening.journal, &mut head, 0)?;
    head.truncate(length);
    let mut names = Vec::new();
    for record in journal::decode(&head).0 {
        match record {
            Record::Top { name } if names.len() < MAX_TOPS && !names.contains(&name) => names.push(name),
            _ => {}
        }
    }
    let mut blocks = 0_u64;
    for part in stage::names(&opening.dir)? {
        let stat = rustix::fs::statat(&opening.dir, &part, AtFlags::SYMLINK_NOFOLLOW);
        blocks += stat.map_or(0, |stat| u64::try_from(stat.st_blocks).unwrap_or(0));
    }
    let written = opening.journal.metadata().and_then(|metadata| metadata.modified()).map_err(io)?;
    // A clock that was set back: it was written this moment.
    let idle = written.elapsed().unwrap_or_default();
    Ok(Interrupted { path: path_of(name.to_vec()), names, bytes: Bytes(blocks.saturating_mul(512)), idle, running })
}
