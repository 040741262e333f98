//! What was measured on some day stands in docs/results.md and nowhere else: no other document has a date outside of code.

use crate::finding::Finding;
use crate::results;
use crate::workspace::Workspace;
use crate::wrap::is_wrapped;

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    let pages = workspace.documents.iter().filter(|document| is_wrapped(&document.path) && document.path != results::PAGE);
    let dated = pages.flat_map(|document| dated(&document.text).into_iter().map(move |line| format!("{}:{line}", document.path)));
    let message = "a date: figures that were measured on some day are in docs/results.md, made from bench/results";
    dated.map(|place| Finding { place, message: message.to_owned() }).collect()
}

/// Lines with a date in their prose.
fn dated(text: &str) -> Vec<usize> {
    let mut fenced = false;
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        let prose = line.split('`').step_by(2);
        if !fenced && !line.starts_with("    ") && prose.into_iter().any(has_date) {
            found.push(index + 1);
        }
    }
    found
}

/// `2026-11-21` or the like.
fn has_date(text: &str) -> bool {
    let shape =
        |part: &[u8]| part.iter().enumerate().all(|(at, c)| if at == 4 || at == 7 { *c == b'-' } else { c.is_ascii_digit() });
    text.as_bytes().windows(10).any(|part| part.starts_with(b"20") && shape(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_in_prose_is_found_and_one_in_code_is_not() {
        let text =
            "Measured on 2026-11-21.\nUntil `2026-12-31`.\n\n    expires=2026-12-31\n\n```text\n2026-11-21\n```\nRFC 9743-2000\n";
        assert_eq!(dated(text), [1]);
    }
}
