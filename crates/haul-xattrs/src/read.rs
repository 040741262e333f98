//! What a thing has.
//!
//! A thing is given by any descriptor of it, also one that only names it (`O_PATH`): calls for attributes take none of these, so they go by the descriptor's name in /proc, which leads
//! to the thing itself, a symbolic link too, and to nothing else.

use std::os::fd::{AsFd, AsRawFd};

use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, getxattr, listxattr};
use rustix::io::Errno;

use crate::{ACCESS, Attribute, DEFAULT, Failed, Keep, MAX_BYTES, MAX_COUNT, MAX_VALUE, Namespace, Reach, bytes, namespace};

/// All names together are no longer (xattr(7)).
const MAX_LIST: usize = 64 << 10;

/// What is to be copied of a thing, by the names. More than a peer takes is an error.
pub fn read(on: impl AsFd, keep: Keep, reach: Reach) -> Result<Vec<Attribute>, Failed> {
    let list = there(&path_of(&on), kept_of(&on, keep)?, reach)?;
    let too_much = list.len() > MAX_COUNT || bytes(&list) > MAX_BYTES;
    if too_much { Err(Failed::listing(Errno::TOOBIG)) } else { Ok(list) }
}

impl Failed {
    pub(crate) fn listing(errno: Errno) -> Self {
        Self::of(b"", errno)
    }

    pub(crate) fn of(name: &[u8], errno: Errno) -> Self {
        Self { name: name.to_vec(), number: errno.raw_os_error() }
    }
}

/// The name of what is open.
pub(crate) fn path_of(on: impl AsFd) -> String {
    format!("/proc/self/fd/{}", on.as_fd().as_raw_fd())
}

/// A symbolic link has no ACL.
pub(crate) fn kept_of(on: impl AsFd, keep: Keep) -> Result<Keep, Failed> {
    let stat = rustix::fs::fstat(on).map_err(Failed::listing)?;
    let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
    Ok(Keep { acls: keep.acls && !is_link, ..keep })
}

/// What is there, by the names, however much it is.
pub(crate) fn there(path: &str, keep: Keep, reach: Reach) -> Result<Vec<Attribute>, Failed> {
    let mut list = Vec::new();
    for name in names(path).map_err(Failed::listing)? {
        if !namespace(&name).is_some_and(|space| space.is_kept(keep, reach)) {
            continue;
        }
        let mut value = Vec::with_capacity(MAX_VALUE);
        match getxattr(path, &*name, spare_capacity(&mut value)) {
            Ok(_) => list.push(Attribute { value: value.as_slice().to_vec(), name }),
            // Somebody has removed it meanwhile; or it is listed and not given, as the system has it with some of its own.
            Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(Failed::of(&name, errno)),
        }
    }
    list.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    Ok(list)
}

/// The names that are there; none where the file system knows of none. Some do not list ACLs that they have.
fn names(path: &str) -> Result<Vec<Vec<u8>>, Errno> {
    let mut list: Vec<u8> = Vec::with_capacity(MAX_LIST);
    match listxattr(path, spare_capacity(&mut list)) {
        Ok(_) => {}
        Err(Errno::OPNOTSUPP) => return Ok(Vec::new()),
        Err(errno) => return Err(errno),
    }
    let mut names: Vec<Vec<u8>> = list.split(|&byte| byte == 0).filter(|name| !name.is_empty()).map(<[u8]>::to_vec).collect();
    for acl in [ACCESS, DEFAULT] {
        if !names.iter().any(|name| name == acl) {
            names.push(acl.to_vec());
        }
    }
    Ok(names)
}

impl Attribute {
    pub(crate) fn space(&self) -> Option<Namespace> {
        namespace(&self.name)
    }
}
