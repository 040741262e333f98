//! Names that are chosen one by one: what `--files-from` lists, relative to the one source.
//!
//! A line is a path below the source; a leading `/` or `./`, doubled slashes and `.` in between count for nothing, as with rsync. `..` leads out of the source and is refused, wherever it stands.
//! What is chosen comes with the directories that lead to it, and a directory, where a copy is recursive, with all that is in it.

use crate::plain::is_plain_name;

/// Most names of one list, which both sides keep for as long as the copy runs.
pub const MAX_CHOSEN: usize = 1 << 20;
/// All names of one list together, in bytes.
pub const MAX_CHOSEN_BYTES: usize = 64 << 20;
/// Longest path of a list in bytes: a system takes no longer one.
pub const MAX_CHOSEN_PATH: usize = 4096;

/// Paths below a source, each once, a directory before what is in it.
///
/// Kept with a NUL for each slash, which is in no name and sorts before all: so what is below a directory stands right behind it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chosen(Vec<Box<[u8]>>);

/// A list that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChosenError {
    /// `..` in it.
    #[error("name {number} of the list leads out of the source: {name}")]
    Outside {
        /// Which, from 1.
        number: usize,
        /// It, in ASCII.
        name: String,
    },
    /// A component that no file system takes, or a path that is too long.
    #[error("name {number} of the list is too long for a file system, or has a NUL in it: {name}")]
    NotPlain {
        /// Which, from 1.
        number: usize,
        /// Its beginning, in ASCII.
        name: String,
    },
    /// More than [`MAX_CHOSEN`] names, or more than [`MAX_CHOSEN_BYTES`].
    #[error("more than {MAX_CHOSEN} names in the list, or more than {} MiB of them", MAX_CHOSEN_BYTES >> 20)]
    TooMany,
}

impl Chosen {
    /// Of these paths, in any order. An empty one counts for nothing; `.` is the source itself.
    pub fn new<'a>(paths: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, ChosenError> {
        let mut chosen: Vec<Box<[u8]>> = Vec::new();
        let mut bytes = 0;
        for (at, path) in paths.into_iter().enumerate() {
            if path.is_empty() {
                continue;
            }
            let kept = keyed(path).map_err(|outside| {
                let (number, name) = (at + 1, path.escape_ascii().take(80).map(char::from).collect());
                if outside { ChosenError::Outside { number, name } } else { ChosenError::NotPlain { number, name } }
            })?;
            bytes += kept.len();
            if chosen.len() == MAX_CHOSEN || bytes > MAX_CHOSEN_BYTES {
                return Err(ChosenError::TooMany);
            }
            chosen.push(kept);
        }
        chosen.sort_unstable();
        chosen.dedup();
        Ok(Self(chosen))
    }

    /// Of the content of a list: a path a line, the end of which may be that of DOS; or, `by_nul`, a path before each NUL, so that a name may have any byte. Empty lines count for nothing, and with rsync so do comments:
    /// lines that begin with `#` or `;`; who has such a name writes `./#name`, or divides by NUL.
    pub fn parse(list: &[u8], by_nul: bool) -> Result<Self, ChosenError> {
        if by_nul {
            return Self::new(list.split(|&byte| byte == 0));
        }
        let lines = list.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
        // A comment keeps its place, so that others are counted as an editor counts them.
        Self::new(lines.map(|line| if matches!(line.first(), Some(b'#' | b';')) { &b""[..] } else { line }))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nothing is chosen.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The paths, each below the source, a directory before what is in it; that of the source itself is empty.
    pub fn paths(&self) -> impl Iterator<Item = Vec<u8>> {
        self.0.iter().map(|path| slashed(path))
    }

    /// Whether this path below the source may come of it: it is the source itself, is chosen, leads to what is, or, `deep`, is below what is.
    pub fn takes(&self, path: &[u8], deep: bool) -> bool {
        let key: Vec<u8> = path.iter().map(|&byte| if byte == b'/' { 0 } else { byte }).collect();
        let at = self.0.partition_point(|kept| **kept < *key);
        let is_above = |above: &[u8], below: &[u8]| {
            above.is_empty() || below.strip_prefix(above).is_some_and(|rest| rest.first().is_none_or(|&byte| byte == 0))
        };
        if path.is_empty() || self.0.get(at).is_some_and(|kept| is_above(&key, kept)) {
            return true;
        }
        // Of what is above it each, the nearest first: there are no more of them than slashes.
        let ups = (0..key.len()).rev().filter(|&end| end == 0 || key.get(end) == Some(&0));
        deep && ups
            .into_iter()
            .any(|end| key.get(..end).is_some_and(|up| self.0.binary_search_by(|kept| (**kept).cmp(up)).is_ok()))
    }
}

/// As it is kept; the error is whether it leads outside.
fn keyed(path: &[u8]) -> Result<Box<[u8]>, bool> {
    let parts: Vec<&[u8]> = path.split(|&byte| byte == b'/').filter(|part| !matches!(*part, b"" | b".")).collect();
    if parts.contains(&&b".."[..]) {
        return Err(true);
    }
    if path.len() > MAX_CHOSEN_PATH || !parts.iter().all(|part| is_plain_name(part)) {
        return Err(false);
    }
    Ok(parts.join(&0).into())
}

fn slashed(key: &[u8]) -> Vec<u8> {
    key.iter().map(|&byte| if byte == 0 { b'/' } else { byte }).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn listed(text: &str) -> Vec<String> {
        Chosen::parse(text.as_bytes(), false).unwrap().paths().map(|path| String::from_utf8(path).unwrap()).collect()
    }

    #[test]
    fn a_list_is_read_as_rsync_reads_it() {
        assert_eq!(listed("b\r\n/a//x/./y\n\n# no\n; no\n./#yes\na/x/y\na\n"), ["#yes", "a", "a/x/y", "b"]);
        assert_eq!(listed("a.b\na/b\na"), ["a", "a/b", "a.b"], "what is in a directory stands right behind it");
        let by_nul = Chosen::parse(b"a\nb\0#c\0\0", true).unwrap();
        assert_eq!(by_nul.paths().collect::<Vec<_>>(), [&b"#c"[..], b"a\nb"]);
        assert!(Chosen::parse(b"", false).unwrap().is_empty());
    }

    #[test]
    fn what_leads_out_is_refused_by_its_number() {
        for text in ["..", "a\n../b", "a/../b", "/../etc/passwd", "a/.."] {
            let Err(ChosenError::Outside { number, .. }) = Chosen::parse(text.as_bytes(), false) else { panic!("{text}") };
            assert_eq!(number, text.lines().count(), "{text}");
        }
        let escape = Chosen::parse(b"../\x1b[2J\x07", false).unwrap_err().to_string();
        assert!(escape.ends_with("source: ../\\x1b[2J\\x07"), "{escape}");
        for bad in [vec![b'x'; 256], b"a\0b".to_vec(), [&b"x/".repeat(3000)[..], b"y"].concat()] {
            assert!(matches!(Chosen::parse(&bad, false), Err(ChosenError::NotPlain { .. })));
        }
        assert!(Chosen::parse("...\n..a\na..".as_bytes(), false).is_ok());
    }

    #[test]
    fn what_may_come_of_it() {
        let chosen = Chosen::new([&b"a/b"[..], b"a.b", b"d/e/f"]).unwrap();
        for path in ["", "a", "a/b", "a.b", "d", "d/e", "d/e/f"] {
            assert!(chosen.takes(path.as_bytes(), false), "{path}");
        }
        for path in ["a/c", "a.", "b", "d/f", "d/e/f/g", "a/b/c", "a.b/x", "a/bc"] {
            assert!(!chosen.takes(path.as_bytes(), false), "{path}");
        }
        for (path, deep) in [("a/b/c", true), ("a/b/c/d", true), ("a.b/x", true), ("a/c", false), ("ab", false), ("d/ef", false)]
        {
            assert_eq!(chosen.takes(path.as_bytes(), true), deep, "{path}");
        }
        assert!(Chosen::new([&b"."[..]]).unwrap().takes(b"any/thing", true));
        assert!(!Chosen::default().takes(b"x", true));
    }

    proptest! {
        #[test]
        fn agrees_with_looking_at_each(list in prop::collection::vec("[ab.]{0,2}(/[ab]{1,2}){0,2}", 0..8), path in "[ab]{1,2}(/[ab]{1,2}){0,3}", deep: bool) {
            let Ok(chosen) = Chosen::new(list.iter().map(String::as_bytes)) else { return Ok(()) };
            let below = |below: &[u8], above: &[u8]| {
                above.is_empty() || below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
            };
            let path = path.as_bytes();
            let takes = chosen.paths().any(|kept| below(&kept, path) || deep && below(path, &kept));
            prop_assert_eq!(chosen.takes(path, deep), takes);
        }

        #[test]
        fn any_bytes_are_a_list_or_refused(list in prop::collection::vec(any::<u8>(), 0..200), by_nul: bool) {
            if let Ok(chosen) = Chosen::parse(&list, by_nul) {
                for path in chosen.paths() {
                    prop_assert!(path.split(|&byte| byte == b'/').all(|part| path.is_empty() || is_plain_name(part)));
                }
            }
        }
    }
}
