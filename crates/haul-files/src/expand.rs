//! From the paths that a client asks for to what it is sent: patterns are expanded on this side.
//!
//! A name that exists as it is spelled wins over its reading as a pattern. Directories are opened like any path that a client names
//! ([`Store::source`]): in an exported root a pattern leads nowhere that a plain path would not. All sources of a request share
//! one bound on the entries that are looked at.

use std::ops::ControlFlow;

use crate::store::{Named, Store, StoreError};
use haul_faults::{CopyError, Errno, Fault, FileProblem, Why, WirePath};
use haul_names::{MAX_CHOSEN_PATH, MAX_NAME, Pattern, is_pattern};

/// Most sources in one request, and most matches.
pub(crate) const MAX_SOURCES: usize = 1 << 20;
/// Most directory entries that one request may have looked at: a listing of some seconds.
const MAX_LOOKED: usize = 1 << 24;
/// Most bytes of the paths that match: sixty for each of the most matches.
const MAX_FOUND_BYTES: usize = 64 << 20;

/// What a request comes to.
pub(crate) struct Expanded<S: Store> {
    pub(crate) tops: Vec<Named<S>>,
    pub(crate) problems: Vec<FileProblem>,
}

/// Finds what `sources` are; `check` ends it early.
pub(crate) fn expand<S: Store>(
    store: &S,
    sources: &[WirePath],
    check: impl Fn() -> Result<(), CopyError>,
) -> Result<Expanded<S>, CopyError> {
    let mut expanded = Expanded { tops: Vec::new(), problems: Vec::new() };
    let mut walk = Walk { store, looked: 0, taken: 0, bytes: 0, check: &check, refused: None };
    for spelled in sources {
        let top = Named::new(store, spelled).map_err(CopyError::Stopped)?;
        if !is_pattern(&spelled.0) || !is_missing(store, &top) {
            expanded.tops.push(top);
            continue;
        }
        let why = match walk.matches(&spelled.0)? {
            Ok(matches) if !matches.is_empty() && expanded.tops.len() + matches.len() <= MAX_SOURCES => {
                for name in matches {
                    walk.taken += name.len();
                    expanded.tops.push(Named::new(store, &WirePath(name)).map_err(CopyError::Stopped)?);
                }
                continue;
            }
            Ok(matches) if matches.is_empty() => walk.refused.take().unwrap_or(Why::NoMatch),
            Ok(_) => Errno::TOOBIG.into(),
            Err(why) => why,
        };
        expanded.problems.push(FileProblem { path: spelled.clone(), fault: Fault::Source, why });
    }
    Ok(expanded)
}

/// Nothing has this name; anything else that is wrong with it is told when it is copied.
fn is_missing<S: Store>(store: &S, top: &Named<S>) -> bool {
    let missing = [Errno::NOENT, Errno::NOTDIR, Errno::NAMETOOLONG];
    store.stat(top.at()).is_err_and(|error| missing.map(StoreError::from).contains(&error))
}

struct Walk<'w, S: Store> {
    store: &'w S,
    looked: usize,
    /// Bytes of all that earlier patterns matched, and with those that this one has found so far.
    taken: usize,
    bytes: usize,
    check: &'w dyn Fn() -> Result<(), CopyError>,
    /// The first directory that could not be looked into, and why.
    refused: Option<Why>,
}

impl<S: Store> Walk<'_, S> {
    /// What a pattern matches, as a user would spell it, in the order of the bytes. The inner error is the pattern's own.
    fn matches(&mut self, pattern: &[u8]) -> Result<Result<Vec<Vec<u8>>, Why>, CopyError> {
        (self.refused, self.bytes) = (None, self.taken);
        // No file has such a path, and each directory that is found would make a copy of what is plain in it.
        let is_too_long = |part: &[u8]| part.len() > MAX_NAME && !is_pattern(part);
        if pattern.len() > MAX_CHOSEN_PATH || pattern.split(|&b| b == b'/').any(is_too_long) {
            return Ok(Ok(Vec::new()));
        }
        // Each is empty or ends in a slash.
        let mut found = vec![Vec::new()];
        // Whether a plain component has followed the last pattern: it may not be there.
        let mut unsure = false;
        let mut parts = pattern.split(|&b| b == b'/').peekable();
        while let Some(part) = parts.next() {
            let last = parts.peek().is_none();
            if part.is_empty() && last {
                unsure = true;
            } else if is_pattern(part) {
                let part = Pattern::new(part);
                let mut next = Vec::new();
                self.bytes = self.taken;
                for prefix in found {
                    if let Err(why) = self.list(&prefix, &part, &mut next)? {
                        return Ok(Err(why));
                    }
                }
                (found, unsure) = (next, false);
            } else {
                self.bytes += found.len() * (part.len() + 1);
                if self.bytes > MAX_FOUND_BYTES {
                    return Ok(Err(Errno::TOOBIG.into()));
                }
                for prefix in &mut found {
                    prefix.extend_from_slice(part);
                    prefix.push(b'/');
                }
                unsure = true;
            }
        }
        let wants_directory = pattern.ends_with(b"/");
        if !wants_directory {
            for path in &mut found {
                path.pop();
            }
        }
        if unsure {
            let mut there = Vec::new();
            for path in found {
                (self.check)()?;
                let top = Named::new(self.store, &WirePath(path.clone())).map_err(CopyError::Stopped)?;
                let found = if wants_directory {
                    self.store.directory(top.at(), None).map(drop)
                } else {
                    self.store.stat(top.at()).map(drop)
                };
                match found {
                    Ok(()) => there.push(path),
                    Err(error) => self.refuse(error),
                }
            }
            found = there;
        }
        Ok(Ok(found))
    }

    /// Adds the entries of a directory that match.
    fn list(&mut self, prefix: &[u8], part: &Pattern, found: &mut Vec<Vec<u8>>) -> Result<Result<(), Why>, CopyError> {
        let top = Named::new(self.store, &WirePath(prefix.to_vec())).map_err(CopyError::Stopped)?;
        let start = found.len();
        let (mut looked, mut bytes, mut stopped) = (self.looked, self.bytes, Ok(()));
        let mut take = |name: &[u8]| {
            stopped = (self.check)();
            looked += 1;
            if part.matches(name) {
                bytes += prefix.len() + name.len() + 1;
                found.push([prefix, name, b"/"].concat());
            }
            let enough = looked > MAX_LOOKED || found.len() > MAX_SOURCES || bytes > MAX_FOUND_BYTES;
            if enough || stopped.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        // What was listed before an error counts.
        let listed = self.store.directory(top.at(), None);
        let listed = listed.and_then(|directory| self.store.list(&directory, &mut |entry| take(entry.name)));
        (self.looked, self.bytes) = (looked, bytes);
        stopped?;
        if looked > MAX_LOOKED || found.len() > MAX_SOURCES || bytes > MAX_FOUND_BYTES {
            return Ok(Err(Errno::TOOBIG.into()));
        }
        if let Err(error) = listed {
            self.refuse(error);
        }
        if let Some(new) = found.get_mut(start..) {
            new.sort_unstable();
        }
        Ok(Ok(()))
    }

    /// What is no directory or is not there just does not match.
    fn refuse(&mut self, error: StoreError) {
        if ![Errno::NOENT, Errno::NOTDIR].map(StoreError::from).contains(&error) {
            self.refused.get_or_insert(error.into());
        }
    }
}
