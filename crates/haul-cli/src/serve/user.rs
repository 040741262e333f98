//! Becoming another user, for good: `--user`.

use std::ffi::CString;
use std::io;

use crate::exit::Failure;

/// A user of the system, looked up while its files can still be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    name: String,
    uid: libc::uid_t,
    gid: libc::gid_t,
    groups: Vec<libc::gid_t>,
}

/// Bytes that a line of the user database may take.
const LINE: usize = 64 << 10;
/// Groups that a user may be in: the kernel's NGROUPS_MAX.
const MOST_GROUPS: usize = 65_536;

impl User {
    /// The user of this name.
    pub fn find(name: &str) -> Result<Self, Failure> {
        let unknown = || Failure::new(format!("--user {name}: there is no such user here"));
        let c_name = CString::new(name).map_err(|_| unknown())?;
        let mut buffer = vec![0; LINE];
        let mut found = std::ptr::null_mut();
        // SAFETY: zeroed is a valid passwd (null pointers and numbers); all pointers outlive the call, and the buffer's length is its own.
        let (status, entry) = unsafe {
            let mut entry: libc::passwd = std::mem::zeroed();
            let status =
                libc::getpwnam_r(c_name.as_ptr(), &raw mut entry, buffer.as_mut_ptr().cast(), buffer.len(), &raw mut found);
            (status, entry)
        };
        if status != 0 {
            return Err(Failure::new(format!("--user {name}: {}", io::Error::from_raw_os_error(status))));
        }
        if found.is_null() {
            return Err(unknown());
        }
        let (uid, gid) = (entry.pw_uid, entry.pw_gid);
        let mut groups: Vec<libc::gid_t> = vec![0; MOST_GROUPS];
        let mut count = MOST_GROUPS as libc::c_int;
        // SAFETY: the buffer has room for `count` groups, and the name ends in a zero.
        let filled = unsafe { libc::getgrouplist(c_name.as_ptr(), gid, groups.as_mut_ptr(), &raw mut count) };
        if filled < 0 {
            return Err(Failure::new(format!("--user {name}: it is in too many groups")));
        }
        groups.truncate(usize::try_from(count).unwrap_or_default());
        Ok(Self { name: name.to_owned(), uid, gid, groups })
    }

    /// Its number.
    pub const fn id(&self) -> libc::uid_t {
        self.uid
    }

    /// Becomes this user; every thread of the process does, and none can go back.
    pub fn become_for_good(&self) -> Result<(), Failure> {
        let check = |result: libc::c_int, what: &str| {
            let error = io::Error::last_os_error();
            if result == 0 {
                Ok(())
            } else {
                Err(Failure::new(format!("--user {}: {what}: {error}", self.name)).hint("only root can become another user"))
            }
        };
        // SAFETY: the pointer and the length are those of one vector; the three calls change no memory of this process. The C library has them done in every
        // thread, which the bare system calls would not.
        unsafe {
            check(libc::setgroups(self.groups.len(), self.groups.as_ptr()), "setgroups")?;
            check(libc::setgid(self.gid), "setgid")?;
            check(libc::setuid(self.uid), "setuid")
        }
    }

    /// What it is called.
    pub fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_looked_up() {
        let root = User::find("root").unwrap();
        assert_eq!((root.uid, root.gid, root.name()), (0, 0, "root"));
        assert!(root.groups.contains(&0));
        assert!(User::find("no such user").is_err() && User::find("a\0b").is_err());
    }
}
