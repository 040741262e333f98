//! One idea a file: a file that has grown past 600 lines, its tests not counted, holds several. What is aimed at is less, 150 to 400 (CONTRIBUTING.md).

use crate::finding::Finding;
use crate::workspace::Workspace;

const LIMIT_LINES: usize = 600;

/// Files that may be longer, each with its reason.
const LONG: &[(&str, &str)] = &[];

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    check_with(workspace, LONG)
}

fn check_with(workspace: &Workspace, long: &[(&str, &str)]) -> Vec<Finding> {
    let excused = |path: &str| long.iter().any(|(known, _)| *known == path);
    let lengths = workspace.sources.iter().map(|source| (source, source.length()));
    let mut findings = Vec::new();
    for (source, length) in lengths {
        let message = match (length > LIMIT_LINES, excused(&source.path)) {
            (true, false) => format!("{length} lines without tests, over {LIMIT_LINES}: split it by idea"),
            (false, true) => "no long file any more: take it out of the list in xtask/src/length.rs".to_owned(),
            _ => continue,
        };
        findings.push(Finding { place: source.path.clone(), message });
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    fn findings(path: &str, text: &str, long: &[(&str, &str)]) -> usize {
        check_with(&Workspace { sources: vec![Source::new(path, text)], ..Workspace::default() }, long).len()
    }

    #[test]
    fn a_long_file_needs_a_reason() {
        let long = "fn f() {}\n".repeat(LIMIT_LINES + 1);
        assert_eq!(findings("a.rs", &long, &[]), 1);
        assert_eq!(findings("a.rs", &long, &[("a.rs", "a table")]), 0);
        assert_eq!(findings("a.rs", "fn f() {}", &[("a.rs", "a table")]), 1);
    }

    #[test]
    fn tests_do_not_count() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "fn f() {}\n".repeat(LIMIT_LINES));
        assert_eq!(findings("a.rs", &tests, &[]), 0);
    }
}
