//! Names are UTF-8; of another user's home nothing is known.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// A name, or a path, of the system. What is not UTF-8 gets a character that says so, and names nothing.
pub fn os_str(bytes: &[u8]) -> Cow<'_, OsStr> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(OsStr::new(text)),
        Cow::Owned(text) => Cow::Owned(OsString::from(text)),
    }
}

/// The same from bytes of one's own.
pub(crate) fn os_string(bytes: Vec<u8>) -> OsString {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()).into()
}

pub(crate) fn home_of(_user: &[u8]) -> Option<PathBuf> {
    None
}
