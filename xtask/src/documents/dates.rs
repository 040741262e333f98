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

/// `2026-11-21`, `25 November 2026`, `26 November`, `November 26`, `November 2026`.
fn has_date(text: &str) -> bool {
    let shape =
        |part: &[u8]| part.iter().enumerate().all(|(at, c)| if at == 4 || at == 7 { *c == b'-' } else { c.is_ascii_digit() });
    let is_number = |word: &str| (1..=4).contains(&word.len()) && word.bytes().all(|c| c.is_ascii_digit());
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let in_words = words
        .windows(2)
        .any(|pair| MONTHS.contains(&pair[1]) && is_number(pair[0]) || MONTHS.contains(&pair[0]) && is_number(pair[1]));
    in_words || text.as_bytes().windows(10).any(|part| part.starts_with(b"20") && shape(part))
}

const MONTHS: [&str; 12] =
    ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_in_prose_is_found_and_one_in_code_is_not() {
        let text =
            "Measured on 2026-11-21.\nUntil `2026-12-31`.\n\n    expires=2026-12-31\n\n```text\n2026-11-21\n```\nRFC 9743-2000\n";
        assert_eq!(dated(text), [1]);
    }

    #[test]
    fn a_date_with_the_name_of_a_month_is_found() {
        for text in ["On 25 November 2026 each ran.", "On 26 November more.", "Until May 3, 2026.", "Since March 2026."] {
            assert_eq!(dated(text), [1], "{text}");
        }
        for text in ["It may 2 times.", "The march of 10 packets.", "RFC 9000, 2021", "20 Mbit/s", "Novembers 3"] {
            assert_eq!(dated(text), [0; 0], "{text}");
        }
    }
}
