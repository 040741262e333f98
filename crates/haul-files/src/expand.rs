//! From the paths that a client asks for to what it is sent: patterns are expanded on this side.
//!
//! A name that exists as it is spelled wins over its reading as a pattern. Directories are opened like any path that a client names
//! (see [`crate::resolve`]): in an exported root a pattern leads nowhere that a plain path would not. All sources of a request share
//! one bound on the entries that are looked at.

use rustix::fs::{OFlags, RawDir};
use rustix::io::Errno;

use crate::error::{CopyError, Fault, FileProblem, Stop, Why, WirePath};
use crate::pattern::{Pattern, is_pattern};
use crate::resolve::{Requests, Top};

/// Most sources in one request, and most matches.
pub(crate) const MAX_SOURCES: usize = 1 << 20;
/// Most directory entries that one request may have looked at: a listing of some seconds.
const MAX_LOOKED: usize = 1 << 24;
const LISTING_BYTES: usize = 64 << 10;

/// What a request comes to.
#[derive(Default)]
pub(crate) struct Expanded {
    pub(crate) tops: Vec<Top>,
    pub(crate) problems: Vec<FileProblem>,
}

/// Finds what `sources` are; `check` ends it early.
pub(crate) fn expand(
    requests: &mut Requests<'_>,
    sources: &[WirePath],
    check: impl Fn() -> Result<(), CopyError>,
) -> Result<Expanded, CopyError> {
    let mut expanded = Expanded::default();
    let mut walk = Walk { requests, looked: 0, check: &check, refused: None };
    for spelled in sources {
        let top = walk.requests.source(spelled).map_err(CopyError::Stopped)?;
        if !is_pattern(&spelled.0) || !is_missing(&top) {
            expanded.tops.push(top);
            continue;
        }
        let why = match walk.matches(&spelled.0)? {
            Ok(matches) if !matches.is_empty() && expanded.tops.len() + matches.len() <= MAX_SOURCES => {
                for name in matches {
                    expanded.tops.push(walk.requests.source(&WirePath(name)).map_err(CopyError::Stopped)?);
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
fn is_missing(top: &Top) -> bool {
    let missing = [Errno::NOENT, Errno::NOTDIR, Errno::NAMETOOLONG];
    top.open(OFlags::PATH).is_err_and(|why| missing.iter().any(|&errno| why == errno.into()))
}

struct Walk<'w, 'a> {
    requests: &'w mut Requests<'a>,
    looked: usize,
    check: &'w dyn Fn() -> Result<(), CopyError>,
    /// The first directory that could not be looked into, and why.
    refused: Option<Why>,
}

impl Walk<'_, '_> {
    /// What a pattern matches, as a user would spell it, in the order of the bytes. The inner error is the pattern's own.
    fn matches(&mut self, pattern: &[u8]) -> Result<Result<Vec<Vec<u8>>, Why>, CopyError> {
        self.refused = None;
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
                for prefix in found {
                    if let Err(why) = self.list(&prefix, &part, &mut next)? {
                        return Ok(Err(why));
                    }
                }
                (found, unsure) = (next, false);
            } else {
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
            let flags = if wants_directory { OFlags::PATH | OFlags::DIRECTORY } else { OFlags::PATH };
            let mut there = Vec::new();
            for path in found {
                (self.check)()?;
                match self.open(&path, flags)? {
                    Ok(_) => there.push(path),
                    Err(why) => self.refuse(why),
                }
            }
            found = there;
        }
        Ok(Ok(found))
    }

    /// Adds the entries of a directory that match.
    fn list(&mut self, prefix: &[u8], part: &Pattern, found: &mut Vec<Vec<u8>>) -> Result<Result<(), Why>, CopyError> {
        let directory = match self.open(prefix, OFlags::RDONLY | OFlags::DIRECTORY)? {
            Ok(directory) => directory,
            Err(why) => {
                self.refuse(why);
                return Ok(Ok(()));
            }
        };
        let start = found.len();
        let mut buffer = Vec::with_capacity(LISTING_BYTES);
        let mut entries = RawDir::new(&directory, buffer.spare_capacity_mut());
        while let Some(entry) = entries.next() {
            (self.check)()?;
            let Ok(entry) = entry else { break };
            self.looked += 1;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") && part.matches(name) {
                found.push([prefix, name, b"/"].concat());
            }
            if self.looked > MAX_LOOKED || found.len() > MAX_SOURCES {
                return Ok(Err(Errno::TOOBIG.into()));
            }
        }
        if let Some(new) = found.get_mut(start..) {
            new.sort_unstable();
        }
        Ok(Ok(()))
    }

    fn open(&mut self, path: &[u8], flags: OFlags) -> Result<Result<std::os::fd::OwnedFd, Why>, CopyError> {
        let top: Result<Top, Stop> = self.requests.source(&WirePath(path.to_vec()));
        Ok(top.map_err(CopyError::Stopped)?.open(flags))
    }

    /// What is no directory or is not there just does not match.
    fn refuse(&mut self, why: Why) {
        if ![Errno::NOENT, Errno::NOTDIR].iter().any(|&errno| why == errno.into()) {
            self.refused.get_or_insert(why);
        }
    }
}
