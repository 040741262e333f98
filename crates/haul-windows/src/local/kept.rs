//! Interrupted copies: the stages in a directory, what they hold and how long nobody has gone on with them.

use std::ops::ControlFlow;
use std::path::PathBuf;

use haul_files::journal::Record;
use haul_files::store::{Discarded, Interrupted, MAX_TOPS, StoreError};
use haul_files::{Stop, WirePath};
use haul_names::{directory_and_name, is_stage_name, os_str};
use haul_units::Bytes;

use super::Local;
use crate::at::{self, Directory};
use crate::listing::each_name;
use crate::stage::{Left, bytes_of_stage, remove_all};

/// Names in a directory that are looked at on behalf of a copy: a listing of some milliseconds.
const MAX_LOOKED: usize = 10_000;

impl Local {
    /// The copies that are not complete in a directory, by name; of a hidden directory that a copy has made, that copy alone.
    pub fn interrupted_in(&self, spelled: &WirePath) -> Result<Vec<Interrupted>, Stop> {
        self.kept(spelled).map(|(_, found)| found)
    }

    /// Removes what they have kept. Who may not write there may not do this.
    pub fn discard_in(&self, spelled: &WirePath) -> Result<Vec<(Interrupted, Discarded)>, Stop> {
        self.may_write(spelled)?;
        let (dir, found) = self.kept(spelled)?;
        let discarded = |one: &Interrupted| {
            let name = one.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            discard(&dir, &name).unwrap_or_else(|error| Discarded::Failed(error.into()))
        };
        Ok(found.into_iter().map(|one| (discarded(&one), one)).map(|(became, one)| (one, became)).collect())
    }

    /// The directory, and what is in it.
    fn kept(&self, spelled: &WirePath) -> Result<(Directory, Vec<Interrupted>), Stop> {
        let (place, only) = match directory_and_name(&spelled.0) {
            Some((parent, name)) if is_stage_name(&name) => (WirePath(parent), Some(name)),
            _ => (spelled.clone(), None),
        };
        let fail = |error: StoreError| Stop::Destination { path: place.clone(), why: error.into() };
        let dir = self.named_source(&place)?.directory().map_err(fail)?;
        let mut found = look(&dir, usize::MAX).map_err(fail)?;
        found.retain(|one| only.as_ref().is_none_or(|only| WirePath::from(&*one.path).0 == *only));
        for one in &mut found {
            one.path = place.to_path().join(&one.path);
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok((dir, found))
    }
}

/// Those in the place of a copy that are not its own; none where the directory cannot be read.
pub(crate) fn others(root: &Directory, own: &str) -> Vec<Interrupted> {
    let found = look(root, MAX_LOOKED).unwrap_or_default();
    found.into_iter().filter(|one| !one.running && one.path != std::path::Path::new(own)).collect()
}

/// The stages among the first names of a directory.
fn look(dir: &Directory, most: usize) -> Result<Vec<Interrupted>, StoreError> {
    let (mut found, mut looked) = (Vec::new(), 0);
    each_name(dir, &mut |name| {
        looked += 1;
        let name = at::bytes_of(name);
        // One that cannot be looked into is not this user's business.
        if is_stage_name(&name)
            && let Ok(left) = Left::open(dir, &name)
        {
            found.push(describe(&left, &name));
        }
        if looked < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}

fn describe(left: &Left, name: &[u8]) -> Interrupted {
    let mut names = Vec::new();
    for record in left.head().unwrap_or_default() {
        match record {
            Record::Top { name } if names.len() < MAX_TOPS && !names.contains(&name) => names.push(name),
            _ => {}
        }
    }
    let written = left.journal.as_ref().and_then(|journal| journal.metadata().and_then(|metadata| metadata.modified()).ok());
    // A clock that was set back: it was written this moment.
    let idle = written.and_then(|written| written.elapsed().ok()).unwrap_or_default();
    let bytes = Bytes(bytes_of_stage(&left.dir));
    Interrupted { path: PathBuf::from(os_str(name).into_owned()), names, bytes, idle, running: left.journal.is_none() }
}

/// Removes what an interrupted copy has kept.
fn discard(root: &Directory, name: &str) -> Result<Discarded, StoreError> {
    let Left { dir, journal } = Left::open(root, name.as_bytes())?;
    let Some(journal) = journal else { return Ok(Discarded::Running) };
    Ok(if remove_all(root, name, &dir, journal.into())? { Discarded::Foreign } else { Discarded::Removed })
}
