//! Every test that SECURITY.md names exists: a promise whose test was renamed or removed is a promise that nothing keeps. And every file and folder that it or
//! ARCHITECTURE.md names: a map with a place that has moved leads nowhere.
//!
//! A name in backquotes of three words or more, in snake case, is a test's; a path that ends in `.rs` is a file's, from the root, below `crates`, or the end of
//! one, one that ends in `/` a folder's; `{a,b}` stands for both.

use std::path::Path;

use crate::finding::Finding;
use crate::source::Source;
use crate::workspace::{Document, Workspace};

/// The page of promises.
const PAGE: &str = "SECURITY.md";
/// The map of the code.
const MAP: &str = "ARCHITECTURE.md";
/// Words of a name from which on it is a test's: `authorized_keys` and `known_hosts` are files.
const WORDS: usize = 3;

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    workspace
        .documents
        .iter()
        .filter(|document| [PAGE, MAP].contains(&document.path.as_str()))
        .flat_map(|page| names(page, workspace))
        .collect()
}

fn names(page: &Document, workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        // The odd parts are inside of backquotes.
        for name in line.split('`').skip(1).step_by(2) {
            let missing =
                if page.path == PAGE && is_test_name(name) && !workspace.sources.iter().any(|source| has_test(source, name)) {
                    vec![format!("there is no test {name}")]
                } else if is_path(name) {
                    let gone =
                        spelled_out(name).into_iter().filter(|path| !workspace.sources.iter().any(|source| is_at(source, path)));
                    gone.map(|path| format!("there is no {} {path}", if path.ends_with('/') { "folder" } else { "file" }))
                        .collect()
                } else {
                    Vec::new()
                };
            findings
                .extend(missing.into_iter().map(|message| Finding { place: format!("{}:{}", page.path, index + 1), message }));
        }
    }
    findings
}

/// Whether this is the path of a file of Rust, or of a folder with some.
fn is_path(name: &str) -> bool {
    let is_plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "_-./{},".contains(c));
    is_plain && (Path::new(name).extension().is_some_and(|extension| extension == "rs") || name.ends_with('/'))
}

fn is_test_name(name: &str) -> bool {
    let is_snake = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    is_snake && name.split('_').filter(|word| !word.is_empty()).count() >= WORDS
}

/// Whether a file has a function of this name with `#[test]` among its attributes.
fn has_test(source: &Source, name: &str) -> bool {
    let head = format!("fn {name}(");
    let is_attribute = |code: &str| code.trim().is_empty() || code.trim().starts_with("#[");
    source.lines.iter().enumerate().filter(|(_, line)| line.code.trim_start().starts_with(&head)).any(|(at, _)| {
        let before = source.lines[..at].iter().rev().map(|line| line.code.as_str());
        before.take_while(|code| is_attribute(code)).any(|code| code.contains("#[test]"))
    })
}

/// Both paths of `a/{b,c}.rs`.
fn spelled_out(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    choices.split(',').map(|choice| format!("{before}{choice}{after}")).collect()
}

fn is_at(source: &Source, path: &str) -> bool {
    if path.ends_with('/') {
        return source.path.starts_with(path) || source.path.contains(&format!("/{path}"));
    }
    source.path.strip_suffix(path).is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(page: &str) -> Vec<String> {
        messages_of(PAGE, page)
    }

    fn messages_of(path: &str, page: &str) -> Vec<String> {
        let sources = [
            (
                "crates/a/src/keys/rights.rs",
                "fn not_a_test_at_all() {}\n#[cfg(test)]\nmod tests {\n    /// Why.\n    #[test]\n    #[expect(x)]\n    fn who_is_named_is_there() {}\n}",
            ),
            ("crates/a/src/keys/strict.rs", ""),
            ("tests/hostile/tests/lies.rs", "#[test]\nfn one_that_is_longer_still() {}\nfn helper_of_the_test() {}"),
        ];
        let document = Document { path: path.to_owned(), text: page.to_owned() };
        let sources = sources.map(|(path, text)| Source::new(path, text)).into();
        let findings = check(&Workspace { sources, documents: vec![document], ..Workspace::default() });
        findings.into_iter().map(|finding| format!("{}: {}", finding.place, finding.message)).collect()
    }

    #[test]
    fn a_test_that_is_not_there_is_found_with_its_line() {
        let page = "| promise | test |\n| a | `who_is_named_is_there`, `who_was_renamed_is_not` |\n";
        assert_eq!(messages(page), ["SECURITY.md:2: there is no test who_was_renamed_is_not"]);
        // A part of a name is another name, and a function without the attribute runs nowhere.
        let page = "`one_that_is_longer` `not_a_test_at_all` `helper_of_the_test`";
        assert_eq!(messages(page).len(), 3, "{:?}", messages(page));
    }

    #[test]
    fn a_file_that_is_not_there_is_found_each_of_a_pair() {
        let page = "`tests/hostile/tests/lies.rs`, `a/src/keys/{rights,strict}.rs`, `strict.rs`";
        assert_eq!(messages(page), Vec::<String>::new());
        let page = "`tests/hostile/lies.rs`, `a/src/keys/{rights,wrong}.rs`, `ict.rs`";
        assert_eq!(
            messages(page),
            ["tests/hostile/lies.rs", "a/src/keys/wrong.rs", "ict.rs"]
                .map(|path| format!("SECURITY.md:1: there is no file {path}"))
        );
    }

    #[test]
    fn a_place_of_the_map_that_has_moved_is_found_and_a_test_there_is_not_looked_for() {
        let page = "`keys/` holds `a/src/keys/strict.rs`, `tests/hostile/`, `Plan`, `.haul-<8 hex>/`, `no_test_of_this_name`";
        assert_eq!(messages_of(MAP, page), Vec::<String>::new());
        let page = "a\n`plot/`, `key/`: `store/objects.rs`";
        assert_eq!(
            messages_of(MAP, page),
            ["folder plot/", "folder key/", "file store/objects.rs"].map(|what| format!("ARCHITECTURE.md:2: there is no {what}"))
        );
        assert_eq!(messages_of("docs/developing.md", page), Vec::<String>::new());
    }

    #[test]
    fn other_names_are_left_alone() {
        let page = "`authorized_keys` `known_hosts` `command=\"haul remote --only ..\"` `PeerText` `strangers::tests` one_that_is_not_quoted";
        assert_eq!(messages(page), Vec::<String>::new());
    }
}
