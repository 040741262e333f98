//! A RAM disk: a directory of this user's in the memory of the machine.
//!
//! `/dev/shm/haul-UID`, of mode 0700; a link or a directory of somebody else's under that name is refused. It is a root as a daemon exports one: nothing leads out of it. What a copy announces beyond the room that is
//! free is refused before it is written, for what fills the memory of a machine harms more than the copy.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, FileType, Mode};
use rustix::io::Errno;

use super::Local;
use crate::job::{Access, Export, Ownership};
use haul_faults::{Stop, WirePath};
use haul_names::Scheme;

/// Memory that is a file system, on every Linux.
const MEMORY: &str = "/dev/shm";
const ROOT: &str = "haul";

impl Local {
    /// This user's directory in the memory of the machine, made where it is missing. Paths in it may begin with `ram:`.
    pub fn ram_disk() -> Result<Self, Stop> {
        Self::ram_disk_in(Path::new(MEMORY))
    }

    fn ram_disk_in(memory: &Path) -> Result<Self, Stop> {
        let user = rustix::process::geteuid().as_raw();
        let path = memory.join(format!("{ROOT}-{user}"));
        let fail = |errno: Errno| Stop::Destination { path: WirePath::from(&*path), why: errno.into() };
        match rustix::fs::mkdirat(CWD, &path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(fail(errno)),
        }
        let stat = rustix::fs::statat(CWD, &path, AtFlags::SYMLINK_NOFOLLOW).map_err(fail)?;
        let own =
            FileType::from_raw_mode(stat.st_mode) == FileType::Directory && stat.st_uid == user && stat.st_mode & 0o777 == 0o700;
        if !own {
            return Err(fail(Errno::PERM));
        }
        let root = Export { name: ROOT.into(), path, writable: true, ownership: Ownership::Allow };
        Ok(Self { scheme: Scheme::Ram, ..Self::of(Access::Root(root)) })
    }

    /// Where a path of a root leads, links not looked at.
    pub(super) fn below_root(&self, spelled: &[u8]) -> PathBuf {
        let rest = spelled.strip_prefix(self.scheme.prefix().as_bytes()).unwrap_or(spelled);
        let rest = rest.iter().position(|&b| b != b'/').and_then(|start| rest.get(start..)).unwrap_or_default();
        match &self.access {
            Some(Access::Root(root)) => root.path.join(OsStr::from_bytes(rest)),
            _ => PathBuf::from(OsStr::from_bytes(rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{At, Store, StoreError};

    #[test]
    fn it_is_this_users_alone() {
        let memory = tempfile::tempdir().unwrap();
        let there = memory.path().join(format!("haul-{}", rustix::process::geteuid().as_raw()));
        let store = Local::ram_disk_in(memory.path()).unwrap();
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&there.metadata().unwrap()) & 0o777, 0o700);
        std::fs::write(there.join("a"), "content").unwrap();
        std::os::unix::fs::symlink("/etc", there.join("etc")).unwrap();
        let stat = |spelled: &str| store.stat(At::Top(&store.source(&WirePath(spelled.into())).unwrap()));
        for spelled in ["ram:a", "ram:/a", "/a", "ram://a"] {
            assert_eq!(stat(spelled).map(|there| there.size), Ok(7), "{spelled}");
        }
        assert_eq!(stat("ram:/../a"), Err(StoreError::OutsideRoot));
        assert_eq!(stat("ram:/etc/passwd"), Err(StoreError::OutsideRoot));
        assert_eq!(store.identify(&WirePath(b"ram:a".into())), store.identify(&WirePath(b"ram:/a".into())));
        assert!(store.must_fit() && !Local::own().must_fit());

        std::fs::remove_dir_all(&there).unwrap();
        std::os::unix::fs::symlink("/tmp", &there).unwrap();
        assert!(matches!(Local::ram_disk_in(memory.path()), Err(Stop::Destination { .. })));
        std::fs::remove_file(&there).unwrap();
        std::fs::create_dir(&there).unwrap();
        std::fs::set_permissions(&there, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        assert!(Local::ram_disk_in(memory.path()).is_err(), "others can read it");
    }
}
