//! Interrupted copies: the stages in a directory, what they hold and how long nobody has gone on with them.
//!
//! A copy finds its own stage by its sources and its place. One whose sources are not asked for again would stay for ever, so the next copy into the
//! directory tells of it, and its user can list and discard. Nothing is removed unasked.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

use haul_units::Bytes;
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::stage::{self, Opening};
use crate::descriptors::open_at;
use crate::journal::{self, Record};
use crate::paths::{STAGE_PREFIX, path_of};
use crate::store::Interrupted;

/// Names in a directory that are looked at on behalf of a copy: a listing of some milliseconds.
const MAX_LOOKED: usize = 10_000;
/// Bytes of a journal in which the names at the top are looked for: they are among its first records.
const HEAD_BYTES: usize = 64 << 10;
/// Names at the top that a journal tells.
pub(crate) const MAX_TOPS: usize = 4;

/// The copies of this user that are not complete in `directory`.
///
/// # Errors
/// The directory cannot be read.
pub fn interrupted(directory: &Path) -> io::Result<Vec<Interrupted>> {
    let dir = open_at(CWD, directory, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
    let mut found = look(&dir, usize::MAX)?;
    for one in &mut found {
        one.path = directory.join(&one.path);
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Removes what an interrupted copy has kept. False where it stays: it is running again, or it holds what haul did not put there.
///
/// # Errors
/// It cannot be removed.
pub fn discard(one: &Interrupted) -> io::Result<bool> {
    let (Some(parent), Some(name)) = (one.path.parent(), one.path.file_name()) else {
        return Err(Errno::INVAL.into());
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    let root = open_at(CWD, parent, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty())?;
    let Some(opening) = Opening::existing(&root, name.as_encoded_bytes())? else { return Err(Errno::NOENT.into()) };
    match rustix::fs::flock(&opening.journal, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => return Ok(false),
        result => result?,
    }
    stage::sweep(&root, &opening.dir, &name.to_string_lossy())?;
    Ok(!stage::remove_all(&opening.dir, &root, name.as_encoded_bytes())?)
}

/// The stages among the first names of a directory.
pub(super) fn look(dir: &OwnedFd, most: usize) -> Result<Vec<Interrupted>, Errno> {
    let mut found = Vec::new();
    for name in stage::names(dir, most)? {
        let digits = name.to_bytes().strip_prefix(STAGE_PREFIX.as_bytes());
        if !digits.is_some_and(|digits| digits.len() == 8 && digits.iter().all(u8::is_ascii_hexdigit)) {
            continue;
        }
        // One that cannot be looked into is not this user's business.
        if let Ok(Some(opening)) = Opening::existing(dir, name.to_bytes()) {
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
    for part in stage::names(&opening.dir, usize::MAX)? {
        let stat = rustix::fs::statat(&opening.dir, &part, AtFlags::SYMLINK_NOFOLLOW);
        blocks += stat.map_or(0, |stat| u64::try_from(stat.st_blocks).unwrap_or(0));
    }
    let written = opening.journal.metadata().and_then(|metadata| metadata.modified()).map_err(io)?;
    // A clock that was set back: it was written this moment.
    let idle = written.elapsed().unwrap_or_default();
    Ok(Interrupted { path: path_of(name.to_vec()), names, bytes: Bytes(blocks.saturating_mul(512)), idle, running })
}
