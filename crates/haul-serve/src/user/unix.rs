//! Numbers of users and groups.

use std::ffi::CString;

use nix::errno::Errno;
use nix::unistd::{Gid, Uid, User as Account, getgrouplist, setgid, setgroups, setuid};

use super::UserError;

/// A user of the system, looked up while its files can still be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    name: String,
    uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

impl User {
    /// The user of this name.
    pub fn find(name: &str) -> Result<Self, UserError> {
        let unknown = || UserError::NoSuchUser { name: name.to_owned() };
        let c_name = CString::new(name).map_err(|_| unknown())?;
        let failed = |errno: Errno| UserError::NotLookedUp { name: name.to_owned(), source: errno.into() };
        let Account { uid, gid, .. } = Account::from_name(name).map_err(failed)?.ok_or_else(unknown)?;
        let groups = getgrouplist(&c_name, gid).map_err(|_| UserError::TooManyGroups { name: name.to_owned() })?;
        Ok(Self { name: name.to_owned(), uid, gid, groups })
    }

    /// Its number.
    pub const fn id(&self) -> u32 {
        self.uid.as_raw()
    }

    /// Becomes this user; every thread of the process does (the C library sees to that), and none can go back.
    pub fn become_for_good(&self) -> Result<(), UserError> {
        let check = |result: nix::Result<()>, step| {
            result.map_err(|errno| UserError::NotBecome { name: self.name.clone(), step, source: errno.into() })
        };
        check(setgroups(&self.groups), "setgroups")?;
        check(setgid(self.gid), "setgid")?;
        check(setuid(self.uid), "setuid")
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
        assert_eq!((root.uid.as_raw(), root.gid.as_raw(), root.name()), (0, 0, "root"));
        assert!(root.groups.contains(&Gid::from_raw(0)));
        assert!(User::find("no such user").is_err() && User::find("a\0b").is_err());
    }
}
