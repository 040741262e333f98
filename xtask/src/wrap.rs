//! Lines of documents end before column 101.
//!
//! A paragraph or an item of a list that has a longer line is filled again; what keeps to the width stays as its writer broke it. Tables, code, headings and
//! comments are left alone.

use std::fmt::Write as _;

/// Columns of a line.
pub const WIDTH: usize = 100;

/// Documents that are read as pages; the log of changes is none.
pub fn is_wrapped(path: &str) -> bool {
    path.starts_with("docs/")
        || matches!(path, "README.md" | "ARCHITECTURE.md" | "CONTRIBUTING.md" | "SECURITY.md" | "python/README.md")
}

pub fn wrapped(text: &str) -> String {
    let mut out = String::new();
    let mut block: Vec<&str> = Vec::new();
    let (mut fenced, mut comment, mut before_is_text) = (false, false, false);
    for line in text.lines() {
        let trimmed = line.trim_start();
        let fence = trimmed.starts_with("```") || trimmed.starts_with("~~~");
        comment |= trimmed.starts_with("<!--");
        let is_code = line.starts_with("    ") && !before_is_text;
        let is_text = !(fenced || fence || comment || is_code || is_alone(trimmed));
        if !is_text || is_item(trimmed) {
            fill(&mut block, &mut out);
        }
        if is_text {
            block.push(line);
        } else {
            out.push_str(line);
            out.push('\n');
        }
        fenced ^= fence;
        comment &= !trimmed.contains("-->");
        before_is_text = is_text;
    }
    fill(&mut block, &mut out);
    out
}

/// Lines that are no part of a paragraph.
fn is_alone(line: &str) -> bool {
    line.is_empty() || line.starts_with(['|', '#', '>', '[']) && !line.contains("](") || line.starts_with(['|', '#', '>'])
}

/// Beginnings of items of a list.
fn is_item(line: &str) -> bool {
    marker(line) > 0
}

/// The length of `- ` or `1. ` at the beginning.
fn marker(line: &str) -> usize {
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    if line.starts_with("- ") || line.starts_with("* ") {
        2
    } else if digits > 0 && line[digits..].starts_with(". ") {
        digits + 2
    } else {
        0
    }
}

fn fill(block: &mut Vec<&str>, out: &mut String) {
    let lines = std::mem::take(block);
    let Some(first) = lines.first() else { return };
    if lines.iter().all(|line| line.chars().count() <= WIDTH) {
        for line in lines {
            let _ = writeln!(out, "{line}");
        }
        return;
    }
    let indent = first.len() - first.trim_start().len();
    let hanging = indent + marker(first.trim_start());
    let joined: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    let mut line = " ".repeat(indent);
    let mut empty = true;
    for word in words(&joined.join(" ")) {
        let wide = line.chars().count() + usize::from(!empty) + word.chars().count() > WIDTH;
        if wide && !empty && !begins_something(&word) {
            let _ = writeln!(out, "{line}");
            line = " ".repeat(hanging);
            empty = true;
        }
        if !empty {
            line.push(' ');
        }
        line.push_str(&word);
        empty = false;
    }
    let _ = writeln!(out, "{line}");
}

/// Words that would become a list, a heading or a table at the beginning of a line.
fn begins_something(word: &str) -> bool {
    marker(&format!("{word} ")) > 0 || matches!(word, "+" | "=" | "-") || word.starts_with(['#', '>', '|'])
}

/// Words, of which short code is one, whatever blanks it has.
fn words(text: &str) -> Vec<String> {
    const KEPT: usize = 60;
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for part in text.split(' ').filter(|part| !part.is_empty()) {
        let ticks = part.matches('`').count();
        match words.last_mut() {
            Some(word) if open && word.chars().count() + part.chars().count() < KEPT => {
                word.push(' ');
                word.push_str(part);
            }
            _ => words.push(part.to_owned()),
        }
        open ^= ticks % 2 == 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_paragraph_is_filled_and_stays_as_it_is_then() {
        let once = wrapped(&format!("{}\n", "word ".repeat(60).trim()));
        assert!(once.lines().count() == 3 && once.lines().all(|line| line.chars().count() <= WIDTH), "{once}");
        assert_eq!(wrapped(&once), once);
    }

    #[test]
    fn items_hang_and_do_not_run_together() {
        let text = format!("- {}\n- short\n", "word ".repeat(30).trim());
        let lines: Vec<String> = wrapped(&text).lines().map(str::to_owned).collect();
        assert!(lines[1].starts_with("  word") && lines[2] == "- short", "{lines:?}");
    }

    #[test]
    fn tables_code_and_headings_are_left_alone() {
        let long = "x ".repeat(80);
        let long = long.trim_end();
        for text in
            [format!("| {long} |\n"), format!("```sh\n{long}\n```\n"), format!("# {long}\n"), format!("text:\n\n    {long}\n")]
        {
            assert_eq!(wrapped(&text), text);
        }
    }

    #[test]
    fn code_in_a_line_is_not_broken() {
        let text = format!("{} `haul cp -r a b` {}\n", "x".repeat(90), "y ".repeat(20).trim_end());
        assert!(wrapped(&text).contains("\n`haul cp -r a b` y"), "{}", wrapped(&text));
    }
}
