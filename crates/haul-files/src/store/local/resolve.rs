//! From paths that a user or a peer spells to open directories.
//!
//! In an exported root nothing that a client names leads outside: `openat2` with `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`, or where the kernel
//! lacks it one component at a time without following links. An account's paths follow links as its shell would.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::Local;
use crate::job::{Access, Export, Ownership};
use crate::locks::lock;
use crate::store::{self, StoreError};
use haul_descriptors::{open_at, patiently};
use haul_faults::{Stop, Why, WirePath};
use haul_names::{at_home, is_plain_name, is_reserved};

type Place = store::Place<OwnedFd>;

/// Longest path that a peer may spell, in bytes.
const MAX_SPELLED: usize = 1 << 16;

/// Something a user named as a source.
pub struct Top(Opener);

enum Opener {
    /// With links followed.
    Free(PathBuf),
    Beneath {
        root: Arc<OwnedFd>,
        path: Vec<u8>,
    },
    Never(StoreError),
}

impl Top {
    /// Opens it.
    pub(super) fn open(&self, flags: OFlags) -> Result<OwnedFd, StoreError> {
        match &self.0 {
            Opener::Free(path) => Ok(patiently(|| rustix::fs::open(path, flags | OFlags::CLOEXEC, Mode::empty()))?),
            Opener::Beneath { root, path } => open_beneath(root, path, flags),
            Opener::Never(error) => Err(*error),
        }
    }
}

impl Local {
    /// A source of this process's own user, or one that a client names.
    pub(super) fn named_source(&self, spelled: &WirePath) -> Result<Top, Stop> {
        let Some(access) = &self.access else { return Ok(Top(Opener::Free(spelled.to_path()))) };
        Ok(Top(match self.lead(access, spelled)? {
            Lead::Anywhere(path) => Opener::Free(path),
            Lead::Below(export, rest) => match beneath_path(rest) {
                Ok(path) => Opener::Beneath { root: self.root(export)?, path },
                Err(error) => Opener::Never(error),
            },
        }))
    }

    /// A destination of this process's own user, or one that a client names.
    pub(super) fn named_destination(&self, spelled: &WirePath, many: bool) -> Result<Place, Stop> {
        let Some(access) = &self.access else { return free_destination(&spelled.to_path(), spelled.clone(), many) };
        match self.lead(access, spelled)? {
            Lead::Anywhere(path) => free_destination(&path, spelled.clone(), many),
            Lead::Below(export, rest) => {
                writable(export)?;
                let place = beneath_destination(&open_root(export)?, rest, spelled, many)?;
                Ok(Place { ownership: export.ownership, ..place })
            }
        }
    }

    /// An error where who names this may only read there.
    pub(super) fn may_write(&self, spelled: &WirePath) -> Result<(), Stop> {
        match self.access.as_ref().map(|access| self.lead(access, spelled)).transpose()? {
            Some(Lead::Below(export, _)) => writable(export),
            Some(Lead::Anywhere(_)) | None => Ok(()),
        }
    }

    fn lead<'a, 'p>(&self, access: &'a Access, spelled: &'p WirePath) -> Result<Lead<'a, 'p>, Stop> {
        match access {
            Access::Account { home } => Ok(Lead::Anywhere(at_home(home, &spelled.0))),
            Access::Exports(exports) => exported(exports, spelled).map(|(export, rest)| Lead::Below(export, rest)),
            Access::Root(export) => {
                let path = spelled.0.strip_prefix(self.scheme.prefix().as_bytes()).unwrap_or(&spelled.0);
                let below_home = if path == b"~" { Some(&b""[..]) } else { path.strip_prefix(b"~/") };
                Ok(Lead::Below(export, below_home.unwrap_or(path)))
            }
        }
    }

    /// An exported root; each is opened once.
    fn root(&self, export: &Export) -> Result<Arc<OwnedFd>, Stop> {
        let mut roots = lock(&self.roots);
        if let Some(root) = roots.get(&export.name) {
            return Ok(root.clone());
        }
        let root = open_root(export)?;
        roots.insert(export.name.clone(), root.clone());
        Ok(root)
    }
}

fn writable(export: &Export) -> Result<(), Stop> {
    if export.writable { Ok(()) } else { Err(Stop::ReadOnlyRoot { path: WirePath(export.name.clone().into_bytes()) }) }
}

/// Whether all that is to be made is a file of an account that is there and may be written to.
pub(super) fn is_written_over(place: &Place) -> bool {
    let Some(name) = place.rename.as_deref().filter(|_| !place.confined) else { return false };
    let writable = rustix::fs::accessat(&*place.root, name, rustix::fs::Access::WRITE_OK, AtFlags::EACCESS);
    let stat = rustix::fs::statat(&*place.root, name, AtFlags::SYMLINK_NOFOLLOW);
    writable.is_ok() && stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
}

fn free_destination(path: &Path, spelled: WirePath, many: bool) -> Result<Place, Stop> {
    let fail = |why: Why| Stop::Destination { path: spelled.clone(), why };
    let directory_only = path.as_os_str().as_bytes().ends_with(b"/");
    let existing = rustix::fs::stat(path).map(|stat| FileType::from_raw_mode(stat.st_mode));
    let flags = OFlags::DIRECTORY | OFlags::PATH | OFlags::CLOEXEC;
    let (parent, rename) = match existing {
        Ok(FileType::Directory) => (path.to_owned(), None),
        _ if many => return Err(Stop::NeedsDirectory { path: spelled }),
        Ok(FileType::RegularFile) => {
            // Through a link, as scp writes: the link stays.
            let real = path.canonicalize().map_err(|error| fail(Why::from_io(&error)))?;
            split_name(&real).ok_or_else(|| fail(Why::InTheWay))?
        }
        Ok(_) => return Err(fail(Why::Special)),
        Err(Errno::NOENT) => split_name(path).ok_or_else(|| fail(Errno::NOENT.into()))?,
        Err(errno) => return Err(fail(errno.into())),
    };
    if rename.as_deref().is_some_and(is_reserved) {
        return Err(fail(Why::Reserved));
    }
    let root = patiently(|| rustix::fs::open(&parent, flags, Mode::empty())).map_err(|errno| fail(errno.into()))?;
    let directory_only = directory_only && rename.is_some();
    // Its own rights are all that an account has.
    Ok(Place { root: Arc::new(root), directory_only, spelled, rename, ownership: Ownership::Allow, confined: false })
}

fn beneath_destination(root: &Arc<OwnedFd>, rest: &[u8], spelled: &WirePath, many: bool) -> Result<Place, Stop> {
    let fail = |why: Why| Stop::Destination { path: spelled.clone(), why };
    let path = beneath_path(rest).map_err(|error| fail(error.into()))?;
    if path.split(|&b| b == b'/').any(is_reserved) {
        return Err(fail(Why::Reserved));
    }
    let place = |fd, rename: Option<Vec<u8>>| Place {
        root: Arc::new(fd),
        spelled: spelled.clone(),
        directory_only: rest.ends_with(b"/") && rename.is_some(),
        rename,
        ownership: Ownership::Mask,
        confined: true,
    };
    match open_beneath(root, &path, OFlags::DIRECTORY | OFlags::PATH) {
        Ok(fd) => return Ok(place(fd, None)),
        Err(error) if [Errno::NOENT, Errno::NOTDIR].map(StoreError::from).contains(&error) => {}
        Err(error) => return Err(fail(error.into())),
    }
    if many {
        return Err(Stop::NeedsDirectory { path: spelled.clone() });
    }
    let cut = path.iter().rposition(|&b| b == b'/');
    let (parent, name) = match cut {
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at + 1..).unwrap_or_default()),
        None => (&b"."[..], &*path),
    };
    let parent = open_beneath(root, parent, OFlags::DIRECTORY | OFlags::PATH).map_err(|error| fail(error.into()))?;
    Ok(place(parent, Some(name.to_vec())))
}

fn split_name(path: &Path) -> Option<(PathBuf, Option<Vec<u8>>)> {
    let name = path.file_name()?.as_bytes().to_vec();
    let parent = path.parent()?;
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    Some((parent.to_owned(), Some(name)))
}

/// Where a client's path leads.
enum Lead<'a, 'p> {
    /// Wherever the account may go.
    Anywhere(PathBuf),
    /// Into a root, and no further than this path below it.
    Below(&'a Export, &'p [u8]),
}

fn exported<'a, 'p>(exports: &'a [Export], spelled: &'p WirePath) -> Result<(&'a Export, &'p [u8]), Stop> {
    let path = spelled.0.as_slice();
    let path = path.strip_prefix(b"/").unwrap_or(path);
    let (name, rest) = match path.iter().position(|&b| b == b'/') {
        Some(at) => (path.get(..at).unwrap_or_default(), path.get(at..).unwrap_or_default()),
        None => (path, &b""[..]),
    };
    let found = exports.iter().find(|export| export.name.as_bytes() == name);
    found.map(|export| (export, rest)).ok_or_else(|| Stop::UnknownRoot { path: WirePath(name.to_vec()) })
}

fn open_root(export: &Export) -> Result<Arc<OwnedFd>, Stop> {
    open_at(CWD, &export.path, OFlags::DIRECTORY | OFlags::PATH, Mode::empty())
        .map(Arc::new)
        .map_err(|errno| Stop::Destination { path: WirePath(export.name.clone().into_bytes()), why: errno.into() })
}

/// A client's path below a root as plain components; `.` where there is none.
fn beneath_path(spelled: &[u8]) -> Result<Vec<u8>, StoreError> {
    if spelled.len() > MAX_SPELLED {
        return Err(Errno::NAMETOOLONG.into());
    }
    let parts: Vec<&[u8]> = spelled.split(|&b| b == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    if parts.iter().any(|part| !is_plain_name(part)) {
        return Err(StoreError::OutsideRoot);
    }
    Ok(if parts.is_empty() { b".".to_vec() } else { parts.join(&b'/') })
}

/// Opens a path of plain components without leaving `root` and without following a link.
pub(super) fn open_beneath(root: &OwnedFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, StoreError> {
    let flags = flags | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    // EAGAIN: a rename elsewhere raced with the look-up.
    for _ in 0..16 {
        return match patiently(|| rustix::fs::openat2(root, path, flags, Mode::empty(), resolve)) {
            Err(Errno::AGAIN) => continue,
            Err(Errno::NOSYS | Errno::PERM) => open_by_components(root, path, flags),
            Err(Errno::LOOP | Errno::XDEV) => Err(StoreError::OutsideRoot),
            result => Ok(result?),
        };
    }
    Err(Errno::AGAIN.into())
}

/// The same without `openat2`: no component may be a link.
fn open_by_components(root: &OwnedFd, path: &[u8], flags: OFlags) -> Result<OwnedFd, StoreError> {
    let mut parts = path.split(|&b| b == b'/').peekable();
    let mut fd: Option<OwnedFd> = None;
    while let Some(part) = parts.next() {
        let flags = if parts.peek().is_some() { OFlags::PATH | OFlags::DIRECTORY } else { flags };
        let at = fd.as_ref().map_or(root.as_fd(), AsFd::as_fd);
        let next = match open_at(at, part, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Err(Errno::LOOP) => return Err(StoreError::OutsideRoot),
            // With O_DIRECTORY a link is just no directory.
            Err(Errno::NOTDIR) if is_link(at, part) => return Err(StoreError::OutsideRoot),
            result => result?,
        };
        // With O_PATH a link itself is opened rather than refused.
        if FileType::from_raw_mode(rustix::fs::fstat(&next)?.st_mode) == FileType::Symlink {
            return Err(StoreError::OutsideRoot);
        }
        fd = Some(next);
    }
    fd.ok_or(StoreError::OutsideRoot)
}

fn is_link(at: BorrowedFd<'_>, name: &[u8]) -> bool {
    let stat = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW);
    stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_opening_stay_beneath() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("root");
        std::fs::create_dir_all(inside.join("sub")).unwrap();
        std::fs::write(inside.join("sub/file"), "x").unwrap();
        std::fs::write(dir.path().join("secret"), "x").unwrap();
        std::os::unix::fs::symlink("..", inside.join("up")).unwrap();
        std::os::unix::fs::symlink("../secret", inside.join("leak")).unwrap();
        let root = rustix::fs::open(&inside, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap();
        for open in [open_beneath, open_by_components] {
            assert!(open(&root, b"sub/file", OFlags::RDONLY).is_ok());
            assert!(open(&root, b".", OFlags::PATH | OFlags::DIRECTORY).is_ok());
            for path in [&b"up/secret"[..], b"leak", b"up"] {
                assert_eq!(open(&root, path, OFlags::RDONLY).unwrap_err(), StoreError::OutsideRoot);
            }
        }
        for path in [&b"../secret"[..], b"sub/../../secret", b"a\0b"] {
            assert_eq!(beneath_path(path), Err(StoreError::OutsideRoot));
        }
    }
}
