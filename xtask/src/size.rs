//! A crate is something that one person can hold: beyond 12,000 lines, test code not counted, it holds several things.

use crate::finding::Finding;
use crate::workspace::Workspace;

/// haul-proto, the largest crate that is one thing, fits in.
const LIMIT_LINES: usize = 12_000;

/// Crates that may be larger, each with its reason.
const LARGE: &[(&str, &str)] = &[];

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    check_with(workspace, LARGE)
}

fn check_with(workspace: &Workspace, large: &[(&str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let lines = workspace.lines_of(package);
        let message = match (lines > LIMIT_LINES, large.iter().any(|(name, _)| *name == package.name)) {
            (true, false) => format!("{lines} lines without tests, over {LIMIT_LINES}: take a library out of it"),
            (false, true) => "no large crate any more: take it out of the list in xtask/src/size.rs".to_owned(),
            _ => continue,
        };
        findings.push(Finding { place: package.name.clone(), message });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use crate::workspace::Package;

    fn findings(files: &[(&str, usize)], large: &[(&str, &str)]) -> usize {
        let package = Package { name: "a".to_owned(), dir: "crates/a".to_owned(), ..Package::default() };
        let sources = files.iter().map(|(path, lines)| Source::new(path, &"fn f() {}\n".repeat(*lines)));
        check_with(&Workspace { sources: sources.collect(), packages: vec![package], ..Workspace::default() }, large).len()
    }

    #[test]
    fn a_large_crate_needs_a_reason() {
        let large = [("crates/a/src/lib.rs", LIMIT_LINES), ("crates/a/src/b.rs", 1)];
        assert_eq!(findings(&large, &[]), 1);
        assert_eq!(findings(&large, &[("a", "a table")]), 0);
        assert_eq!(findings(&large[..1], &[]), 0);
        assert_eq!(findings(&large[..1], &[("a", "a table")]), 1);
    }

    #[test]
    fn tests_and_neighbours_do_not_count() {
        let elsewhere = [("crates/a/tests/b.rs", LIMIT_LINES), ("crates/ab/src/lib.rs", LIMIT_LINES), ("crates/a/src/lib.rs", 1)];
        assert_eq!(findings(&elsewhere, &[]), 0);
    }
}
