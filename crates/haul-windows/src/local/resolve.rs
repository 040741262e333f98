//! From paths that a user or a peer spells to open directories.
//!
//! In an exported root nothing that a client names leads outside: one component after the other is opened in the one before, and what leads elsewhere is refused. An account's paths are the
//! system's: `C:\x`, `C:/x`, `\\server\share\x`, `\\?\C:\x`, `x`. All of them are used in the long form, so no length but that of a name is bounded.

use std::io;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::OwnedHandle;
use std::path::{Component, Path, PathBuf, Prefix};
use std::sync::Arc;

use haul_faults::Errno;
use haul_files::store::{self, StoreError};
use haul_files::{Access, Export, Ownership, Stop, Why, WirePath};
use haul_names::{at_home, is_plain_name, is_reserved};
use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_BACKUP_SEMANTICS, FILE_GENERIC_READ, FILE_READ_ATTRIBUTES, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE,
    SYNCHRONIZE,
};

use super::Local;
use crate::at::{Directory, For, Make, What};
use crate::handle::lock;
use crate::names;

type Place = store::Place<Directory>;

/// Longest path that a peer may spell, in bytes.
const MAX_SPELLED: usize = 1 << 16;

/// Something a user named as a source.
pub struct Top(Opener);

enum Opener {
    /// With links followed.
    Free(PathBuf),
    Beneath {
        root: Arc<Directory>,
        path: Vec<Vec<u16>>,
    },
    Never(StoreError),
}

impl Top {
    pub(crate) fn open(&self, purpose: For) -> Result<OwnedHandle, StoreError> {
        match &self.0 {
            Opener::Free(path) => open_free(path, purpose),
            Opener::Beneath { root, path } => open_beneath(root, path, purpose, What::Anything),
            Opener::Never(error) => Err(*error),
        }
    }

    pub(crate) fn directory(&self) -> Result<Directory, StoreError> {
        match &self.0 {
            Opener::Free(path) => Directory::open(path).map_err(|error| StoreError::from_io(&error)),
            Opener::Beneath { root, path } => open_beneath(root, path, For::Below, What::Directory).map(Directory),
            Opener::Never(error) => Err(*error),
        }
    }
}

impl Local {
    /// A source of this process's own user, or one that a client names.
    pub(crate) fn named_source(&self, spelled: &WirePath) -> Result<Top, Stop> {
        let free =
            |path: &Path| Top(absolute(path).map_or_else(|error| Opener::Never(StoreError::from_io(&error)), Opener::Free));
        let Some(access) = &self.access else { return Ok(free(&spelled.to_path())) };
        Ok(match lead(access, spelled)? {
            Lead::Anywhere(path) => free(&path),
            Lead::Below(export, rest) => Top(match beneath_path(rest) {
                Ok(path) => Opener::Beneath { root: self.root(export)?, path },
                Err(error) => Opener::Never(error),
            }),
        })
    }

    /// A destination of this process's own user, or one that a client names.
    pub(crate) fn named_destination(&self, spelled: &WirePath, many: bool) -> Result<Place, Stop> {
        let Some(access) = &self.access else { return free_destination(&spelled.to_path(), spelled.clone(), many) };
        match lead(access, spelled)? {
            Lead::Anywhere(path) => free_destination(&path, spelled.clone(), many),
            Lead::Below(export, rest) => {
                writable(export)?;
                let place = beneath_destination(&self.root(export)?, rest, spelled, many)?;
                Ok(Place { ownership: export.ownership, ..place })
            }
        }
    }

    /// An error where who names this may only read there.
    pub(crate) fn may_write(&self, spelled: &WirePath) -> Result<(), Stop> {
        match self.access.as_ref().map(|access| lead(access, spelled)).transpose()? {
            Some(Lead::Below(export, _)) => writable(export),
            Some(Lead::Anywhere(_)) | None => Ok(()),
        }
    }

    /// An exported root; each is opened once.
    fn root(&self, export: &Export) -> Result<Arc<Directory>, Stop> {
        let mut roots = lock(&self.roots);
        if let Some(root) = roots.get(&export.name) {
            return Ok(root.clone());
        }
        let fail =
            |error: io::Error| Stop::Destination { path: WirePath(export.name.clone().into_bytes()), why: Why::from_io(&error) };
        let root = Arc::new(absolute(&export.path).and_then(|path| Directory::open(&path)).map_err(fail)?);
        roots.insert(export.name.clone(), root.clone());
        Ok(root)
    }
}

fn writable(export: &Export) -> Result<(), Stop> {
    if export.writable { Ok(()) } else { Err(Stop::ReadOnlyRoot { path: WirePath(export.name.clone().into_bytes()) }) }
}

/// A path in the long form, which the system takes as it is; an error for a device.
fn absolute(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let mut components = path.components();
    let Some(Component::Prefix(prefix)) = components.next() else { return Err(io::ErrorKind::InvalidInput.into()) };
    let rest = components.as_path();
    let long = match prefix.kind() {
        Prefix::Verbatim(_) | Prefix::VerbatimUNC(..) | Prefix::VerbatimDisk(_) => return Ok(path),
        // A serial line, the console, and whatever else is called so.
        Prefix::DeviceNS(_) => return Err(io::Error::from(io::ErrorKind::Unsupported)),
        Prefix::UNC(server, share) => {
            let mut long = std::ffi::OsString::from(r"\\?\UNC\");
            for part in [server, std::ffi::OsStr::new("\\"), share] {
                long.push(part);
            }
            long
        }
        Prefix::Disk(letter) => format!(r"\\?\{}:", char::from(letter)).into(),
    };
    let mut long = PathBuf::from(long);
    long.push(rest);
    Ok(long)
}

fn open_free(path: &Path, purpose: For) -> Result<OwnedHandle, StoreError> {
    let access = if purpose == For::Look { FILE_READ_ATTRIBUTES | SYNCHRONIZE } else { FILE_GENERIC_READ };
    let mut options = std::fs::OpenOptions::new();
    options.access_mode(access).share_mode(FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE);
    let file = options.custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path).map_err(|error| StoreError::from_io(&error))?;
    Ok(file.into())
}

fn free_destination(path: &Path, spelled: WirePath, many: bool) -> Result<Place, Stop> {
    let fail = |why: Why| Stop::Destination { path: spelled.clone(), why };
    let io = |error: io::Error| fail(Why::from_io(&error));
    let directory_only = spelled.0.ends_with(b"/");
    // As it was spelled: the long form of `x.` is `x`.
    let last = haul_names::base_name(&spelled.0);
    let path = absolute(path).map_err(io)?;
    let existing = path.metadata();
    let (parent, rename) = match &existing {
        Ok(there) if there.is_dir() => (path.clone(), None),
        _ if many => return Err(Stop::NeedsDirectory { path: spelled }),
        Ok(_) => split_name(&path, &last),
        Err(error) if error.kind() == io::ErrorKind::NotFound => split_name(&path, &last),
        Err(error) => return Err(fail(Why::from_io(error))),
    };
    if let Some(name) = &rename {
        named(name, &spelled)?;
    }
    let root = Directory::open(&parent).map_err(io)?;
    let directory_only = directory_only && rename.is_some();
    // Its own rights are all that an account has.
    Ok(Place { root: Arc::new(root), directory_only, spelled, rename, ownership: Ownership::Allow, confined: false })
}

fn split_name(path: &Path, last: &[u8]) -> (PathBuf, Option<Vec<u8>>) {
    match path.parent() {
        Some(parent) if !last.is_empty() => (parent.to_owned(), Some(last.to_vec())),
        _ => (path.to_owned(), None),
    }
}

/// An error where nothing can be made under this name.
fn named(name: &[u8], spelled: &WirePath) -> Result<(), Stop> {
    if is_reserved(name) {
        return Err(Stop::Destination { path: spelled.clone(), why: Why::Reserved });
    }
    if names::to_make(name).is_none() {
        // In words: the reason is younger than programs that may be told.
        return Err(Stop::Unavailable(format!("{spelled}: {}", Why::CannotBeNamed).into()));
    }
    Ok(())
}

fn beneath_destination(root: &Arc<Directory>, rest: &[u8], spelled: &WirePath, many: bool) -> Result<Place, Stop> {
    let fail = |error: StoreError| Stop::Destination { path: spelled.clone(), why: error.into() };
    let path = beneath_path(rest).map_err(fail)?;
    if rest.split(|&b| b == b'/').any(is_reserved) {
        return Err(fail(StoreError::Reserved));
    }
    let place = |directory, rename: Option<Vec<u8>>| Place {
        root: Arc::new(Directory(directory)),
        spelled: spelled.clone(),
        directory_only: rest.ends_with(b"/") && rename.is_some(),
        rename,
        ownership: Ownership::Mask,
        confined: true,
    };
    match open_beneath(root, &path, For::Below, What::Directory) {
        Ok(directory) => return Ok(place(directory, None)),
        Err(StoreError::Missing) => {}
        Err(error) if error == StoreError::from(Errno::NOTDIR) => {}
        Err(error) => return Err(fail(error)),
    }
    if many {
        return Err(Stop::NeedsDirectory { path: spelled.clone() });
    }
    let last = haul_names::base_name(rest);
    named(&last, spelled)?;
    let parent = path.get(..path.len().saturating_sub(1)).unwrap_or_default();
    let parent = open_beneath(root, parent, For::Below, What::Directory).map_err(fail)?;
    Ok(place(parent, Some(last)))
}

/// Where a client's path leads.
enum Lead<'a, 'p> {
    /// Wherever the account may go.
    Anywhere(PathBuf),
    /// Into a root, and no further than this path below it.
    Below(&'a Export, &'p [u8]),
}

fn lead<'a, 'p>(access: &'a Access, spelled: &'p WirePath) -> Result<Lead<'a, 'p>, Stop> {
    match access {
        Access::Account { home } => Ok(Lead::Anywhere(at_home(home, &spelled.0))),
        Access::Exports(exports) => exported(exports, spelled).map(|(export, rest)| Lead::Below(export, rest)),
        Access::Root(export) => {
            let path = &*spelled.0;
            let below_home = if path == b"~" { Some(&b""[..]) } else { path.strip_prefix(b"~/") };
            Ok(Lead::Below(export, below_home.unwrap_or(path)))
        }
    }
}

fn exported<'a, 'p>(exports: &'a [Export], spelled: &'p WirePath) -> Result<(&'a Export, &'p [u8]), Stop> {
    let path = &*spelled.0;
    let start = path.iter().position(|&b| b != b'/').unwrap_or(path.len());
    let path = path.get(start..).unwrap_or_default();
    let cut = path.iter().position(|&b| b == b'/').unwrap_or(path.len());
    let (name, rest) = path.split_at_checked(cut).unwrap_or((path, b""));
    let found = exports.iter().find(|export| export.name.as_bytes() == name);
    found.map(|export| (export, rest)).ok_or_else(|| Stop::UnknownRoot { path: WirePath(name.to_vec()) })
}

/// A client's path below a root, as components.
fn beneath_path(spelled: &[u8]) -> Result<Vec<Vec<u16>>, StoreError> {
    if spelled.len() > MAX_SPELLED {
        return Err(Errno::NAMETOOLONG.into());
    }
    let parts = spelled.split(|&b| b == b'/').filter(|part| !matches!(*part, b"" | b"."));
    let component = |part: &[u8]| {
        if !is_plain_name(part) {
            return Err(StoreError::OutsideRoot);
        }
        names::to_open(part).ok_or(StoreError::CannotBeNamed)
    };
    parts.map(component).collect()
}

/// Opens a path of components without leaving `root` and without following what leads elsewhere.
fn open_beneath(root: &Directory, path: &[Vec<u16>], purpose: For, what: What) -> Result<OwnedHandle, StoreError> {
    let outside = |error| if error == StoreError::Link { StoreError::OutsideRoot } else { error };
    let Some((last, above)) = path.split_last() else { return Ok(root.again(purpose)?) };
    let mut at: Option<Directory> = None;
    for name in above {
        let dir = at.as_ref().unwrap_or(root);
        at = Some(Directory(dir.at(name, For::Below, What::Directory, Make::Open).map_err(outside)?.0));
    }
    let (handle, _) = at.as_ref().unwrap_or(root).at(last, purpose, what, Make::Open).map_err(outside)?;
    // A link can be looked at where it stands, but not as what a client named.
    match crate::metadata::tag(&handle)? {
        Some(tag) if crate::metadata::leads_elsewhere(tag) => Err(StoreError::OutsideRoot),
        _ => Ok(handle),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_used_in_the_long_form() {
        for (path, long) in [
            (r"C:\a\b", r"\\?\C:\a\b"),
            ("c:/a/../b", r"\\?\c:\b"),
            (r"\\server\share\x", r"\\?\UNC\server\share\x"),
            (r"\\?\C:\CON", r"\\?\C:\CON"),
        ] {
            assert_eq!(absolute(Path::new(path)).map_err(|error| error.kind()), Ok(PathBuf::from(long)), "{path}");
        }
        assert!(absolute(Path::new(r"\\.\COM1")).is_err());
    }

    #[test]
    fn no_component_leads_up_or_into_a_stream() {
        for path in [&b"../secret"[..], b"sub/../../secret", b"a\0b"] {
            assert_eq!(beneath_path(path), Err(StoreError::OutsideRoot));
        }
        for path in [&b"a:b"[..], b"x/..\\..\\secret", b"\xff"] {
            assert_eq!(beneath_path(path), Err(StoreError::CannotBeNamed));
        }
        assert_eq!(beneath_path(b"/./a//b/").map(|parts| parts.len()), Ok(2));
    }
}
