//! Extended attributes and ACLs of files: which of them there are to copy, which a peer may give, and how they are read and set.
//!
//! What is copied is what rsync copies. `-X`: attributes of the namespace `user`, and where root reads and root writes those of `security` and `trusted` too; `-A`: POSIX ACLs,
//! which Linux keeps as two attributes of the namespace `system`. What the destination has besides goes, within the same bounds. Other attributes of `system` are
//! never touched, and neither are namespaces that some file system has for itself.
//!
//! Reading and setting is there on Unix; what may be said of it, everywhere.
//!
//! A peer is believed nothing: [`check`] bounds number, names and values, and the shape of an ACL, before anything is remembered of it.

mod acl;
mod ahead;
#[cfg(unix)]
mod apply;
#[cfg(unix)]
mod read;
mod wanted;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use ahead::{Ahead, Held};
#[cfg(unix)]
pub use apply::{apply, mirror};
#[cfg(unix)]
pub use read::read;
pub use wanted::{Outcome, Wanted};

/// Most attributes of one thing. Linux gives the names of 64 KiB, of which a useful one has a dozen bytes.
pub const MAX_COUNT: usize = 1024;
/// Longest name in bytes, namespace included (xattr(7)).
pub const MAX_NAME: usize = 255;
/// Longest value in bytes (xattr(7)).
pub const MAX_VALUE: usize = 64 << 10;
/// Most bytes of names and values of one thing: room for a dozen of the longest values; ext4 takes 4 KiB, btrfs 16 KiB.
pub const MAX_BYTES: usize = 1 << 20;

/// ACL of a thing.
pub const ACCESS: &[u8] = b"system.posix_acl_access";
/// ACL of a directory for what will be made in it.
pub const DEFAULT: &[u8] = b"system.posix_acl_default";

/// What of it is copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Keep {
    /// `-X`: attributes.
    pub xattrs: bool,
    /// `-A`: ACLs, and with them the modes, whose bits for the group they change.
    pub acls: bool,
}

impl Keep {
    /// Nothing; the default.
    pub const NONE: Self = Self { xattrs: false, acls: false };

    /// Whether it is anything.
    pub const fn any(self) -> bool {
        self.xattrs || self.acls
    }
}

/// One attribute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attribute {
    /// Its name, with its namespace.
    pub name: Vec<u8>,
    /// Any bytes.
    pub value: Vec<u8>,
}

/// Which namespaces somebody may read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// `user` alone.
    User,
    /// `security` and `trusted` too: root, on his own behalf or on that of who logged in as root.
    All,
}

/// What could not be done with an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// The attribute; empty where they could not be listed.
    pub name: Vec<u8>,
    /// The system's error number.
    pub number: i32,
}

/// A list that no honest peer sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misshapen;

impl fmt::Display for Misshapen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("attributes that cannot be")
    }
}

/// Bytes of names and values.
pub fn bytes(list: &[Attribute]) -> usize {
    list.iter().map(|one| one.name.len() + one.value.len()).sum()
}

/// Whether a peer may say this list of one thing, where so much is kept: few, short, each once, in the order of their names, and in no namespace that is not copied.
pub fn check(list: &[Attribute], keep: Keep) -> Result<(), Misshapen> {
    let rise = list.windows(2).all(|pair| matches!(pair, [one, next] if one.name < next.name));
    let fit = list.len() <= MAX_COUNT && bytes(list) <= MAX_BYTES && list.iter().all(|one| one.value.len() <= MAX_VALUE);
    let is_right = |one: &Attribute| match namespace(&one.name) {
        Some(Namespace::User | Namespace::Privileged) => keep.xattrs,
        Some(Namespace::Acl) => keep.acls && acl::is_one(&one.value),
        None => false,
    };
    if rise && fit && list.iter().all(is_right) { Ok(()) } else { Err(Misshapen) }
}

/// Which kind of attribute has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Namespace {
    User,
    /// `security` and `trusted`.
    Privileged,
    Acl,
}

/// None for what is never copied, and for what is no name.
fn namespace(name: &[u8]) -> Option<Namespace> {
    if name.len() > MAX_NAME || name.contains(&0) {
        return None;
    }
    if name == ACCESS || name == DEFAULT {
        return Some(Namespace::Acl);
    }
    let is_in = |space: &[u8]| name.strip_prefix(space).is_some_and(|rest| !rest.is_empty());
    if is_in(b"user.") {
        Some(Namespace::User)
    } else if is_in(b"security.") || is_in(b"trusted.") {
        Some(Namespace::Privileged)
    } else {
        None
    }
}

#[cfg(unix)]
impl Namespace {
    /// Whether it is copied by somebody with this reach.
    const fn is_kept(self, keep: Keep, reach: Reach) -> bool {
        match self {
            Self::User => keep.xattrs,
            Self::Privileged => keep.xattrs && matches!(reach, Reach::All),
            Self::Acl => keep.acls,
        }
    }
}

#[cfg(all(test, unix))]
mod tests;
