//! Tables of documents that are golden files of tests.
//!
//! A document has `<!-- golden: FILE -->` and `<!-- end of golden -->`; between the two stands what the file says, as Markdown. `<!-- golden: named -->` is the
//! table of the named algorithms, a row for each file `named-NAME.txt`.

use std::fmt::Write as _;

/// Golden files by their name: what the simulated tests are compared with.
pub type Golden = Vec<(String, String)>;

const BEGIN: &str = "<!-- golden: ";
const END: &str = "<!-- end of golden -->";

/// The document with its tables as the golden files have them. A mark without an end, or of a file that is not there, is left alone.
pub fn filled(text: &str, golden: &Golden) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        let Some((name, _)) = rest[at + BEGIN.len()..].split_once(" -->") else { break };
        let head = at + BEGIN.len() + name.len() + " -->".len();
        let Some(end) = rest[head..].find(END) else { break };
        let made = match golden.iter().find(|(known, _)| known == name) {
            Some((_, file)) => tables(file),
            None if name == "named" => named(golden),
            None => rest[head..head + end].to_owned(),
        };
        let made = made.trim();
        let _ = write!(out, "{}\n\n{made}\n\n{END}", &rest[..head]);
        rest = &rest[head + end + END.len()..];
    }
    out + rest
}

/// A golden file: comments, then rows `what | figures`. A comment with a bar has the heads and begins a table, one above rows without heads names these rows.
fn tables(file: &str) -> String {
    let mut out = String::new();
    let mut said: Vec<&str> = Vec::new();
    let mut columns = 0;
    let mut lines = file.lines().peekable();
    while let Some(line) = lines.next() {
        let bar = line.split_once('|');
        match (line.strip_prefix('#'), bar) {
            (Some(comment), None) => said.push(comment.trim()),
            (Some(_), Some((_, heads))) => {
                let first = lines.clone().find_map(|line| line.split_once('|'));
                let heads = named_columns(heads, first.map_or("", |(_, figures)| figures));
                columns = heads.len();
                let heads = heads.join(" | ");
                let _ = write!(out, "\n{}\n\n| | {heads} |\n|---|{}\n", said.join(" "), "---:|".repeat(columns));
                said.clear();
            }
            (None, Some((what, figures))) => {
                if !said.is_empty() {
                    let _ = writeln!(out, "| *{}* |{}", said.join(" "), " |".repeat(columns));
                    said.clear();
                }
                let what: Vec<&str> = what.split_whitespace().collect();
                let _ = writeln!(out, "| {} | {} |", what.join(" "), split(figures, columns).join(" | "));
            }
            (None, None) => said.push(line.trim()),
        }
    }
    out
}

/// Heads, one a word where the first row has as many figures, else what stands two blanks apart.
fn named_columns(heads: &str, figures: &str) -> Vec<String> {
    let heads = heads.replace('|', "  ");
    let words: Vec<String> = heads.split_whitespace().map(str::to_owned).collect();
    let figures = figures.split_whitespace().filter(|figure| *figure != "|").count();
    if words.len() == figures {
        return words;
    }
    heads.split("  ").map(str::trim).filter(|head| !head.is_empty()).map(str::to_owned).collect()
}

/// Figures of a row; the last of the columns has all that is left.
fn split(figures: &str, columns: usize) -> Vec<String> {
    let words: Vec<&str> = figures.split_whitespace().filter(|word| *word != "|").collect();
    let single = columns.saturating_sub(1).min(words.len());
    let mut cells: Vec<String> = words[..single].iter().map(|&word| word.to_owned()).collect();
    cells.push(words[single..].join(" "));
    cells
}

/// What is compared between the named algorithms: where they use how much of the link, and whom they leave what.
fn named(golden: &Golden) -> String {
    let mut out = "| name | 0 % | 0.1 % | 1 % | Jain | CUBIC keeps |\n|---|---:|---:|---:|---:|---:|\n".to_owned();
    for (file, text) in golden {
        let Some(name) = file.strip_prefix("named-").and_then(|name| name.strip_suffix(".txt")) else { continue };
        let figure = |row: &str, column: usize| {
            let line = text.lines().find_map(|line| line.split_once('|').filter(|(what, _)| what.trim() == row));
            line.and_then(|(_, figures)| figures.split_whitespace().nth(column)).unwrap_or("-")
        };
        let used = |row: &str| figure(row, 1);
        let _ = writeln!(
            out,
            "| [`{name}`]({name}.md) | {} % | {} % | {} % | {} | {} % |",
            used("100 ms, 0 % lost"),
            used("100 ms, 0.1 % lost"),
            used("100 ms, 1 % lost"),
            figure("two, 5 s apart", 0),
            figure("TCP cubic, then it", 4),
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# One flow,\n# alone.\n#        |  whole   half\n  20 ms |   96.8   95.0\n# Two.\n#  |  jain  each\n a, b | 0.960  60 40\n";

    #[test]
    fn a_golden_file_becomes_tables_with_their_captions() {
        let golden = vec![("x.txt".to_owned(), FILE.to_owned())];
        let text = filled("before\n<!-- golden: x.txt -->\nstale\n<!-- end of golden -->\nafter\n", &golden);
        assert!(text.contains("One flow, alone.\n\n| | whole | half |\n|---|---:|---:|\n| 20 ms | 96.8 | 95.0 |\n"), "{text}");
        assert!(text.contains("| a, b | 0.960 | 60 40 |"), "{text}");
        assert!(text.starts_with("before\n") && text.ends_with("after\n") && !text.contains("stale"), "{text}");
        assert_eq!(filled(&text, &golden), text);
    }

    #[test]
    fn comments_between_rows_name_them() {
        let golden =
            vec![("x.txt".to_owned(), "# All.\n#  flows  rtt | used back\n# calm\n fair 2  1 ms |  99.0  - |\n".to_owned())];
        let text = filled("<!-- golden: x.txt -->\n<!-- end of golden -->\n", &golden);
        assert!(text.contains("| | used | back |\n|---|---:|---:|\n| *calm* | | |\n| fair 2 1 ms | 99.0 | - |\n"), "{text}");
    }

    #[test]
    fn a_mark_of_an_unknown_file_is_left_alone() {
        let text = "<!-- golden: y.txt -->\n\nold\n\n<!-- end of golden -->\n";
        assert_eq!(filled(text, &Vec::new()), text);
    }
}
