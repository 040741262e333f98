//! Names and paths as bytes: what one is called, and which a peer may give.

use std::path::PathBuf;

use crate::system::os_string;

/// Longest name of one directory entry in bytes.
pub const MAX_NAME: usize = 255;
/// What the names of stages begin with.
pub const STAGE_PREFIX: &str = ".haul-";

/// Which store a path is in, where files of several can be named: one that says nothing is a path of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// Directories of this machine. One whose name begins like another scheme is written with `./` before it.
    Local,
    /// `ram:`, this user's directory in the memory of the machine.
    Ram,
    /// `gfarm:`, the Gfarm file system, which is a crate of its own (haul-gfarm).
    Gfarm,
    /// `any:`, no store but the word for whichever place a machine chooses (haul-copy).
    Any,
}

impl Scheme {
    /// What a path begins with, and what follows.
    pub fn split(path: &[u8]) -> (Self, &[u8]) {
        let mut named = [Self::Ram, Self::Gfarm, Self::Any].into_iter();
        let found = named.find_map(|scheme| Some((scheme, path.strip_prefix(scheme.prefix().as_bytes())?)));
        found.unwrap_or((Self::Local, path))
    }

    /// Its name with the colon; empty for paths of this machine.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Local => "",
            Self::Ram => "ram:",
            Self::Gfarm => "gfarm:",
            Self::Any => "any:",
        }
    }
}

/// What a source is called at the destination.
pub fn base_name(path: &[u8]) -> Vec<u8> {
    let (_, path) = Scheme::split(path);
    let name = path.rsplit(|&b| b == b'/').find(|part| !part.is_empty()).unwrap_or_default();
    if matches!(name, b"." | b"..") { Vec::new() } else { name.to_vec() }
}

/// Whether a peer's name is one component that a file system takes.
pub fn is_plain_name(name: &[u8]) -> bool {
    !name.is_empty() && name.len() <= MAX_NAME && !matches!(name, b"." | b"..") && !name.contains(&b'/') && !name.contains(&0)
}

/// Whether a file system could take this name for a stage's, or for what is made beside a place: in upper case too, and with characters in it that
/// file systems without a difference of case leave out or fold. Nothing that a peer names may be called so, for the next run would trust it.
pub fn is_reserved(name: &[u8]) -> bool {
    let ascii: Vec<u8> = name.iter().filter(|byte| byte.is_ascii()).map(u8::to_ascii_lowercase).collect();
    let rest = ascii.strip_prefix(STAGE_PREFIX.as_bytes());
    rest.is_some_and(|rest| rest.iter().all(|byte| byte.is_ascii_hexdigit() || *byte == b'.'))
}

/// A path from bytes.
pub fn path_of(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(os_string(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_as_scp_has_them() {
        for (path, name) in [
            ("a", "a"),
            ("/x/a/", "a"),
            ("a//", "a"),
            (".", ""),
            ("x/..", ""),
            ("/", ""),
            ("x/.", ""),
            ("gfarm:/", ""),
            ("ram:x", "x"),
            ("gfarm:/d/x/", "x"),
            ("any:x", "x"),
            ("./ram:", "ram:"),
        ] {
            assert_eq!(base_name(path.as_bytes()), name.as_bytes(), "{path}");
        }
    }

    #[test]
    fn hostile_names_are_not_plain() {
        for name in [&b""[..], b".", b"..", b"a/b", b"/", b"a\0b", &[b'x'; 256]] {
            assert!(!is_plain_name(name));
        }
        assert!(is_plain_name(b"...") && is_plain_name(b"\xff\n") && is_plain_name(&[b'x'; 255]));
    }
}
