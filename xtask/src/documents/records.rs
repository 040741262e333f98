//! Parts of documents that are what a recorded run printed.
//!
//! Between `<!-- record: KIND FILE -->` and `<!-- end of record -->` stands that file of the newest run of the kind, as it is.

use std::fmt::Write as _;

use crate::runs::Run;

const BEGIN: &str = "<!-- record: ";
const END: &str = "<!-- end of record -->";

/// The document with what the runs printed. A mark without an end, or of a run that is not there, is left alone.
pub fn filled(text: &str, runs: &[Run]) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        let Some((mark, _)) = rest[at + BEGIN.len()..].split_once(" -->") else { break };
        let head = at + BEGIN.len() + mark.len() + " -->".len();
        let Some(end) = rest[head..].find(END) else { break };
        let printed = mark.split_once(' ').and_then(|(kind, file)| newest(runs, kind)?.file(file));
        let made =
            printed.map_or_else(|| rest[head..head + end].trim().to_owned(), |text| format!("```text\n{}\n```", text.trim_end()));
        let _ = write!(out, "{}\n\n{made}\n\n{END}", &rest[..head]);
        rest = &rest[head + end + END.len()..];
    }
    out + rest
}

fn newest<'a>(runs: &'a [Run], kind: &str) -> Option<&'a Run> {
    runs.iter().filter(|run| run.kind() == kind).max_by_key(|run| run.age())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_what_the_newest_run_printed() {
        let run = |name: &str, text: &str| Run { name: name.to_owned(), files: vec![("out.txt".to_owned(), text.to_owned())] };
        let runs = [run("2026-11-21-demo", "first\n"), run("2026-11-22-demo", "second\n")];
        let text = "a\n<!-- record: demo out.txt -->\n<!-- end of record -->\nb\n";
        let made = filled(text, &runs);
        assert_eq!(made, "a\n<!-- record: demo out.txt -->\n\n```text\nsecond\n```\n\n<!-- end of record -->\nb\n");
        assert_eq!(filled(&made, &runs), made);
    }
}
