//! Directories that are this user's alone: nobody else can exchange what is in them.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use haul_descriptors::open_at;

/// A directory that was to be made, or taken.
pub(super) enum Directory {
    /// Of this user alone.
    Ours(OwnedFd),
    Foreign,
    Gone,
}

/// Makes a directory of this user alone, or opens the one that is there. From here on it is the descriptor that counts, not the name.
pub(super) fn open_directory(root: &OwnedFd, name: &str) -> Result<Directory, Errno> {
    let made = match rustix::fs::mkdirat(root, name, Mode::RWXU) {
        Ok(()) => true,
        Err(Errno::EXIST) => false,
        Err(errno) => return Err(errno),
    };
    let dir = match open_at(root, name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(Directory::Gone),
        Err(Errno::LOOP | Errno::NOTDIR | Errno::ACCESS) => return Ok(Directory::Foreign),
        result => result?,
    };
    let stat = rustix::fs::fstat(&dir)?;
    match is_ours(&stat) {
        true => Ok(Directory::Ours(dir)),
        // The file system gives nobody a directory of his own, so the next name would be no better.
        false if made => {
            let _ = rustix::fs::unlinkat(root, name, AtFlags::REMOVEDIR);
            Err(Errno::PERM)
        }
        false => Ok(Directory::Foreign),
    }
}

/// A directory that holds one thing while it is made, outside the stage: nobody else can exchange it there.
pub(super) struct Private {
    dir: OwnedFd,
    name: String,
}

/// The name of what is in a [`Private`] directory.
pub(super) const INSIDE: &str = "f";

impl Private {
    /// Makes it; an error where the name is taken.
    pub(super) fn make(parent: &OwnedFd, name: String) -> Result<Self, Errno> {
        rustix::fs::mkdirat(parent, &*name, Mode::RWXU)?;
        match open_directory(parent, &name)? {
            Directory::Ours(dir) => Ok(Self { dir, name }),
            Directory::Foreign | Directory::Gone => Err(Errno::PERM),
        }
    }

    pub(super) fn dir(&self) -> &OwnedFd {
        &self.dir
    }

    /// Removes it and what is in it.
    pub(super) fn remove(self, parent: &OwnedFd) {
        let _ = rustix::fs::unlinkat(&self.dir, INSIDE, AtFlags::empty());
        let _ = rustix::fs::unlinkat(parent, &*self.name, AtFlags::REMOVEDIR);
    }
}

/// Whether nobody else (but root) can change what is in it.
pub(super) fn is_ours(stat: &Stat) -> bool {
    stat.st_uid == rustix::process::geteuid().as_raw() && stat.st_mode & 0o022 == 0
}
