//! What is left out of a copy: patterns as in a `.gitignore`, decided on the side that lists, so that what is left out is not walked.
//!
//! A pattern is compared with the path that a thing gets below the target: `tree/sub/a` of a source `tree`, `sub/a` of a source `tree/.`. Of several that match, the last decides;
//! one that begins with `!` takes back in what an earlier one left out, but nothing below a directory that is left out. The sources themselves can be left out too.
//! The language and its matching are those of the crate `ignore`, which turns all patterns into one automaton: a name costs time in proportion to its length and theirs, never more.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::chosen::Chosen;
use crate::system::os_str;

/// Most patterns of a copy: several times those of the longest `.gitignore` that is in use.
pub const MAX_PATTERNS: usize = 1024;
/// Longest pattern in bytes; a path that a system takes has 4096, but who spells one out needs no pattern.
pub const MAX_PATTERN: usize = 1024;
/// All patterns of a copy together, in bytes. It bounds what they cost where they are matched for somebody else.
pub const MAX_ALL_PATTERNS: usize = 32 << 10;

/// What is left out, by default nothing, and what alone is meant, by default all. Cheap to clone.
#[derive(Clone, Default)]
pub struct Filter {
    patterns: Option<Arc<Patterns>>,
    chosen: Option<Arc<Chosen>>,
}

struct Patterns {
    spelled: Vec<String>,
    matcher: Gitignore,
}

/// Patterns that cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// More than [`MAX_PATTERNS`].
    #[error("more than {MAX_PATTERNS} patterns")]
    TooMany,
    /// More than [`MAX_PATTERN`] in one, or than [`MAX_ALL_PATTERNS`] in all.
    #[error("patterns of more than {most} bytes: {pattern}")]
    TooLong {
        /// The bound.
        most: usize,
        /// The beginning of the one that passes it.
        pattern: String,
    },
    /// It is none, or would be too large an automaton.
    #[error("{pattern}: not a pattern")]
    Invalid {
        /// The pattern; empty if they cannot be used together.
        pattern: String,
        /// Why.
        #[source]
        source: ignore::Error,
    },
}

impl Filter {
    /// Of these lines of a `.gitignore`, the last one the strongest. Empty ones and comments (`#`) count for nothing.
    pub fn new(lines: impl IntoIterator<Item = String>) -> Result<Self, FilterError> {
        let mut builder = GitignoreBuilder::new("");
        let mut spelled = Vec::new();
        let mut bytes = 0;
        for line in lines.into_iter().filter(|line| !(line.starts_with('#') || line.trim().is_empty())) {
            bytes += line.len();
            let most = if line.len() > MAX_PATTERN { MAX_PATTERN } else { MAX_ALL_PATTERNS };
            if line.len() > MAX_PATTERN || bytes > MAX_ALL_PATTERNS {
                return Err(FilterError::TooLong { most, pattern: line.chars().take(40).collect() });
            }
            if spelled.len() == MAX_PATTERNS {
                return Err(FilterError::TooMany);
            }
            if let Err(source) = builder.add_line(None, &line) {
                return Err(FilterError::Invalid { pattern: line, source });
            }
            spelled.push(line);
        }
        if spelled.is_empty() {
            return Ok(Self::default());
        }
        let matcher = builder.build().map_err(|source| FilterError::Invalid { pattern: String::new(), source })?;
        Ok(Self { patterns: Some(Arc::new(Patterns { spelled, matcher })), chosen: None })
    }

    /// As this one, of nothing but what is chosen.
    #[must_use]
    pub fn of(self, chosen: Chosen) -> Self {
        Self { chosen: Some(Arc::new(chosen)), ..self }
    }

    /// What it leaves out, of all.
    #[must_use]
    pub fn patterns(&self) -> Self {
        Self { patterns: self.patterns.clone(), chosen: None }
    }

    /// What alone is meant; none: all.
    pub fn chosen(&self) -> Option<&Chosen> {
        self.chosen.as_deref()
    }

    /// The lines that count.
    pub fn lines(&self) -> &[String] {
        self.patterns.as_ref().map_or(&[], |patterns| &patterns.spelled)
    }

    /// Whether no pattern leaves anything out.
    pub fn is_empty(&self) -> bool {
        self.patterns.is_none()
    }

    /// Whether a thing is left out whose path below the target this is. What is in a directory that is left out is for the caller to leave out.
    pub fn leaves_out(&self, path: &[u8], is_directory: bool) -> bool {
        let Some(patterns) = self.patterns.as_ref().filter(|_| !path.is_empty()) else { return false };
        patterns.matcher.matched(Path::new(&os_str(path)), is_directory).is_ignore()
    }

    /// The path of `name` in the directory at `parent`, if it matters.
    pub fn path(&self, parent: &[u8], name: &[u8]) -> Vec<u8> {
        if self.is_empty() {
            return Vec::new();
        }
        let between: &[u8] = if parent.is_empty() || name.is_empty() { b"" } else { b"/" };
        [parent, between, name].concat()
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.lines()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn filter(lines: &[&str]) -> Filter {
        Filter::new(lines.iter().map(|&line| line.to_owned())).unwrap()
    }

    #[test]
    fn as_git_reads_its_files() {
        for (lines, out, kept) in [
            (&["*.log"][..], &["a.log", "d/a.log", ".log"][..], &["log", "a.log2", "d/log"][..]),
            (&["/a"], &["a", "a/"], &["d/a", "ab"]),
            (&["d/a"], &["d/a"], &["x/d/a", "a"]),
            (&["**/d/a"], &["d/a", "x/d/a", "x/y/d/a"], &["d/b"]),
            (&["d/**"], &["d/a", "d/x/a"], &["d/", "e/d/a"]),
            (&["build/"], &["build/", "x/build/"], &["build", "x/build"]),
            (&["*", "!*.c"], &["a", "a.h"], &["a.c", "d/a.c"]),
            (&["*.c", "!keep.c", "x/keep.c"], &["a.c", "x/keep.c"], &["keep.c", "y/keep.c"]),
            (&["[ab]?"], &["ax", "b1"], &["a", "cx", "axx"]),
            (&["\\#a", "\\!b", "#c"], &["#a", "!b"], &["a", "b", "c", "#c"]),
            (&["*.{o,a}"], &["x.o", "x.a"], &["x.oa"]),
            (&["d/*"], &["d/a"], &["d/x/a"]),
        ] {
            let filter = filter(lines);
            let leaves_out = |path: &&&str| filter.leaves_out(path.trim_end_matches('/').as_bytes(), path.ends_with('/'));
            assert_eq!(out.iter().filter(|path| !leaves_out(path)).collect::<Vec<_>>(), [&""; 0], "{lines:?} leave these out");
            assert_eq!(kept.iter().filter(leaves_out).collect::<Vec<_>>(), [&""; 0], "{lines:?} keep these");
        }
        assert!(filter(&["*x"]).leaves_out(b"\xff\xfex", false), "names are bytes");
        assert!(!filter(&["*"]).leaves_out(b"", true), "the target itself is not left out");
    }

    #[test]
    fn what_is_too_much_is_refused() {
        let many = vec!["a".to_owned(); MAX_PATTERNS + 1];
        assert!(matches!(Filter::new(many), Err(FilterError::TooMany)));
        assert!(matches!(Filter::new(["a".repeat(MAX_PATTERN + 1)]), Err(FilterError::TooLong { most: MAX_PATTERN, .. })));
        let long = vec!["*a".repeat(MAX_PATTERN / 2); MAX_ALL_PATTERNS / MAX_PATTERN + 1];
        assert!(matches!(Filter::new(long), Err(FilterError::TooLong { most: MAX_ALL_PATTERNS, .. })));
        let broken = Filter::new(["a".to_owned(), "[z-a]".to_owned()]).unwrap_err();
        assert_eq!(broken.to_string(), "[z-a]: not a pattern");
        assert!(filter(&["", "  ", "# nothing"]).is_empty());
    }

    /// What would take a matcher that tries every way until the end of time.
    #[test]
    fn hostile_patterns_end() {
        let name = ["a".repeat(255).as_str(); 16].join("/");
        for pattern in
            ["*a".repeat(MAX_PATTERN / 2 - 1) + "b", "**/a/".repeat(MAX_PATTERN / 5), "{a*,*a}".repeat(MAX_PATTERN / 7)]
        {
            let patterns = vec![pattern; MAX_ALL_PATTERNS / MAX_PATTERN];
            match Filter::new(patterns) {
                Ok(filter) => drop(filter.leaves_out(name.as_bytes(), false)),
                Err(error) => assert!(matches!(error, FilterError::Invalid { .. }), "{error}"),
            }
        }
        let nested = "{".repeat(MAX_PATTERN / 2) + &"}".repeat(MAX_PATTERN / 2);
        drop(Filter::new([nested]));
    }

    proptest! {
        #[test]
        fn any_line_is_a_pattern_or_refused(lines in prop::collection::vec("\\PC{0,20}", 0..8), path in prop::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(filter) = Filter::new(lines) {
                filter.leaves_out(&path, true);
            }
        }

        #[test]
        fn a_name_that_is_spelled_out_is_left_out(name in "[a-z]{1,8}") {
            prop_assert!(filter(&[&name]).leaves_out(name.as_bytes(), false));
        }
    }
}
