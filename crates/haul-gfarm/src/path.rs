//! Paths of Gfarm, which begin with one `/`: two would name a host.

use haul_files::store::is_plain_name;
use haul_files::{StoreError, WirePath};
use rustix::io::Errno;

/// Longest path that is taken, in bytes: more than Gfarm does.
const MAX_PATH: usize = 1 << 16;

/// A directory, by its path.
pub struct GfarmDir {
    pub(crate) path: Vec<u8>,
}

/// What a user means: from the root on, without `.`, and `..` taken at its word (links are not looked at). A name of the scheme may stand before it.
pub(crate) fn absolute(spelled: &WirePath) -> Result<Vec<u8>, StoreError> {
    let path = spelled.0.strip_prefix(crate::SCHEME.as_bytes()).unwrap_or(&spelled.0);
    if path.len() > MAX_PATH {
        return Err(Errno::NAMETOOLONG.into());
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|&b| b == b'/') {
        match part {
            b"" | b"." => {}
            b".." => drop(parts.pop()),
            _ if is_plain_name(part) => parts.push(part),
            _ => return Err(Errno::INVAL.into()),
        }
    }
    Ok([b"/", &*parts.join(&b'/')].concat())
}

/// The path of a name in a directory; `.` is the directory.
pub(crate) fn below(dir: &[u8], name: &[u8]) -> Result<Vec<u8>, StoreError> {
    if name == b"." {
        return Ok(dir.to_vec());
    }
    if !is_plain_name(name) {
        return Err(StoreError::OutsideRoot);
    }
    let dir = dir.strip_suffix(b"/").unwrap_or(dir);
    Ok([dir, b"/", name].concat())
}

/// The directory that a path is in, and its name there; none for the root.
pub(crate) fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    let cut = path.iter().rposition(|&b| b == b'/')?;
    let (dir, name) = (path.get(..cut)?, path.get(cut + 1..)?);
    (!name.is_empty()).then_some((if dir.is_empty() { b"/" } else { dir }, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_at_the_root() {
        for (spelled, path) in [
            ("gfarm:/a/b", "/a/b"),
            ("gfarm:a//b/", "/a/b"),
            ("gfarm:", "/"),
            ("gfarm://host:601/a", "/host:601/a"),
            ("/./x/../y", "/y"),
            ("../..", "/"),
        ] {
            assert_eq!(absolute(&WirePath(spelled.into())), Ok(path.into()), "{spelled}");
        }
        assert!(absolute(&WirePath(b"gfarm:/a\0b".into())).is_err());
        assert!(absolute(&WirePath(vec![b'/'; MAX_PATH + 1])).is_err());
        assert!(absolute(&WirePath([&b"/"[..], &[b'x'; 256]].concat())).is_err());
    }

    #[test]
    fn a_name_stays_in_its_directory() {
        assert_eq!(below(b"/", b"a"), Ok(b"/a".to_vec()));
        assert_eq!(below(b"/d", b"a:b"), Ok(b"/d/a:b".to_vec()));
        for name in [&b".."[..], b"", b"a/b", b"a\0"] {
            assert_eq!(below(b"/d", name), Err(StoreError::OutsideRoot));
        }
        assert_eq!(split(b"/d/a"), Some((&b"/d"[..], &b"a"[..])));
        assert_eq!(split(b"/a"), Some((&b"/"[..], &b"a"[..])));
        assert_eq!(split(b"/"), None);
    }
}
