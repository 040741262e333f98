//! A name is its bytes; homes are in the database of users.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

/// A name, or a path, of the system.
pub fn os_str(bytes: &[u8]) -> Cow<'_, OsStr> {
    Cow::Borrowed(OsStr::from_bytes(bytes))
}

/// The same from bytes of one's own.
pub(crate) fn os_string(bytes: Vec<u8>) -> OsString {
    OsString::from_vec(bytes)
}

pub(crate) fn home_of(user: &[u8]) -> Option<PathBuf> {
    let user = std::str::from_utf8(user).ok()?;
    nix::unistd::User::from_name(user).ok().flatten().map(|user| user.dir)
}
