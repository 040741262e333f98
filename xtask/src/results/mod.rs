//! docs/results.md: every figure with a date, made from the runs in bench/results.
//!
//! The newest run of each kind is the one that counts, and the only one that is kept. All rows are shown as they came out, and what was missed stands first.

mod bench;
mod experiment;
mod section;
mod table;

use std::fmt::Write as _;
use std::path::Path;

use serde_json::Value;

use crate::finding::Finding;
use crate::runs::{RUNS, Run};
use crate::workspace::Workspace;
use crate::wrap::wrapped;
use section::Section;
use table::Table;

/// The document.
pub const PAGE: &str = "docs/results.md";
fn section(run: &Run) -> Section {
    if let (Some(csv), Some(text)) = (run.file("results.csv"), run.file("results.txt")) {
        let mut section = bench::section(csv, text);
        section.facts = run.file("results.json").and_then(facts).unwrap_or_default();
        return section;
    }
    let mut whole = Section::default();
    let mut reports = run.files.iter().filter(|(path, _)| path.ends_with("report.json")).peekable();
    if reports.peek().is_none() {
        whole.text = plain(run);
    }
    for (path, text) in reports {
        let part = serde_json::from_str(text).map(|report| experiment::section(&report)).unwrap_or_default();
        let how = path.split('/').next().filter(|dir| *dir != path).unwrap_or_default();
        if !how.is_empty() {
            let _ = write!(whole.text, "### {}\n\n", heading(how));
        }
        let _ = writeln!(whole.text, "{}", part.text);
        whole.met += part.met;
        whole.missed.extend(part.missed.into_iter().map(|line| labelled(how, line)));
        whole.unmeasured.extend(part.unmeasured.into_iter().map(|line| labelled(how, line)));
        whole.behind.extend(part.behind.into_iter().map(|line| labelled(how, line)));
        if part.facts.is_object() {
            whole.facts = part.facts;
        }
    }
    whole
}

/// Documents and tables as they lie there.
fn plain(run: &Run) -> String {
    let mut text = String::new();
    for (path, content) in &run.files {
        let kind = Path::new(path).extension().and_then(|kind| kind.to_str());
        if kind == Some("md") {
            let _ = writeln!(text, "{}\n", content.trim());
        } else if kind == Some("txt") && path != "machine.txt" {
            let _ = writeln!(text, "```text\n{}\n```\n", content.trim_end());
        } else if kind == Some("csv") {
            let _ = writeln!(text, "{}", Table::parse(content).markdown());
        }
    }
    text
}

fn facts(results: &str) -> Option<Value> {
    serde_json::from_str::<Value>(results).ok().map(|results| results["facts"].clone())
}

fn labelled(how: &str, line: String) -> String {
    if how.is_empty() { line } else { format!("{how}: {line}") }
}

/// The document and what is generated in it are what the runs say, and no older run is kept.
pub fn check(workspace: &Workspace) -> Vec<Finding> {
    let older = older(&workspace.runs).into_iter().map(|(old, new)| Finding {
        place: format!("{RUNS}/{old}"),
        message: format!("{new} is newer, and the newest run of a kind is the only one that is kept: git rm -r this one"),
    });
    let mut findings: Vec<Finding> = older.collect();
    let is_current = workspace.documents.iter().any(|document| document.path == PAGE && document.text == page(&workspace.runs));
    if !is_current {
        let message = format!("is not what the runs in {RUNS} say: cargo xtask docs");
        findings.push(Finding { place: PAGE.to_owned(), message });
    }
    findings
}

/// Runs that a newer one of their kind has replaced, with that one's name.
fn older(runs: &[Run]) -> Vec<(String, String)> {
    let newer = |run: &Run| runs.iter().filter(|other| other.kind() == run.kind()).max_by_key(|other| other.age().to_owned());
    let pairs = runs.iter().filter_map(|run| newer(run).filter(|new| new.name != run.name).map(|new| (run, new)));
    pairs.map(|(run, new)| (run.name.clone(), new.name.clone())).collect()
}

/// The whole document.
pub fn page(runs: &[Run]) -> String {
    let old = older(runs);
    let newest = runs.iter().filter(|run| !old.iter().any(|(name, _)| *name == run.name));
    let mut sections: Vec<(&Run, Section)> = newest.map(|run| (run, section(run))).collect();
    sections.sort_by_key(|(run, _)| run.kind());
    let mut text = INTRODUCTION.to_owned();
    text.push_str("\n## In short\n\n");
    let mut short = Table::new(&["kind", "date", "goals met", "missed", "not measured", "rows in which another tool was faster"]);
    for (run, section) in &sections {
        let count = |count: usize| count.to_string();
        short.rows.push(vec![
            format!("[{kind}](#{kind})", kind = run.kind()),
            run.age().0.to_owned(),
            count(section.met),
            count(section.missed.len()),
            count(section.unmeasured.len()),
            count(section.behind.len()),
        ]);
    }
    let total = |of: fn(&Section) -> usize| sections.iter().map(|(_, section)| of(section)).sum::<usize>().to_string();
    short.rows.push(vec![
        "all".to_owned(),
        String::new(),
        total(|section| section.met),
        total(|section| section.missed.len()),
        total(|section| section.unmeasured.len()),
        total(|section| section.behind.len()),
    ]);
    text.push_str(&short.markdown());
    lines(&mut text, "Goals that were missed", &sections, |section| &section.missed);
    lines(&mut text, "Goals that were not measured", &sections, |section| &section.unmeasured);
    lines(&mut text, "Rows in which another tool was faster", &sections, |section| &section.behind);
    for (run, section) in &sections {
        let _ = write!(text, "\n## {}\n\n{}\n{}", run.kind(), about(run, section), section.text.trim_end());
        text.push('\n');
    }
    wrapped(&text)
}

const INTRODUCTION: &str = "# Results

<!-- made by `cargo xtask docs` from bench/results: change nothing here by hand -->

Every figure with a date that this project states, from the newest run of each kind that lies in
[bench/results](../bench/results), as it came out. Figures of different runs cannot be compared:
machines and hours differ. A figure counts beside another one of its own run. [bench](use/bench.md)
and [experiments](use/experiments.md) say how to measure again, and how each tool is set up.
";

fn lines(text: &mut String, title: &str, sections: &[(&Run, Section)], of: impl Fn(&Section) -> &Vec<String>) {
    if sections.iter().all(|(_, section)| of(section).is_empty()) {
        return;
    }
    let _ = write!(text, "\n## {title}\n\n");
    let mut table = Table::new(&["kind", "what"]);
    for (run, section) in sections {
        table.rows.extend(of(section).iter().map(|line| vec![run.kind(), line.clone()]));
    }
    text.push_str(&table.markdown());
}

/// Where it was measured, and beside what.
fn about(run: &Run, section: &Section) -> String {
    let fact = |name: &str| section.facts[name].as_str().map(|value| format!("{name} {value}"));
    let names = [
        "date",
        "cpu",
        "cores",
        "memory",
        "memory for TCP",
        "kernel",
        "load average at the start",
        "load average at the end",
        "command",
    ];
    let facts: Vec<String> = names.iter().filter_map(|name| fact(name)).collect();
    let mut text = format!("[{}](../{RUNS}/{})", run.name, run.name);
    if !facts.is_empty() {
        let _ = write!(text, ": {}", facts.join("; "));
    }
    text.push_str(".\n");
    if let Some(machine) = run.file("machine.txt") {
        let _ = write!(text, "\n```text\n{}\n```\n", machine.trim_end());
    }
    text
}

fn heading(how: &str) -> &str {
    match how {
        "real" => "On real sockets",
        "simulated" => "In simulation",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(name: &str, files: &[(&str, &str)]) -> Run {
        let files = files.iter().map(|&(path, text)| (path.to_owned(), text.to_owned())).collect();
        Run { name: name.to_owned(), files }
    }

    #[test]
    fn an_older_run_of_a_kind_is_a_finding_and_not_on_the_page() {
        let runs = [
            run("2026-11-22-0814-sharing", &[("a.csv", "x\nold\n")]),
            run("2026-11-22-0941-sharing", &[("a.csv", "x\nnew\n")]),
            run("2026-11-21-loss", &[("a.csv", "x\nalone\n")]),
        ];
        assert_eq!(older(&runs), [("2026-11-22-0814-sharing".to_owned(), "2026-11-22-0941-sharing".to_owned())]);
        let page = page(&runs);
        assert!(page.contains("| new |") && page.contains("| alone |") && !page.contains("| old |"), "{page}");
    }

    #[test]
    fn a_page_that_is_not_what_the_runs_say_is_a_finding() {
        use crate::workspace::Document;
        let runs = vec![run("2026-11-21-loss", &[("a.csv", "x\n1\n")])];
        let with = |text: String| {
            let documents = vec![Document { path: PAGE.to_owned(), text }];
            check(&Workspace { runs: runs.clone(), documents, ..Workspace::default() })
        };
        assert_eq!(with(page(&runs)), []);
        assert_eq!(with(page(&runs).replace("| 1 |", "| 2 |")).len(), 1);
    }

    #[test]
    fn misses_stand_before_everything() {
        let report = r#"{"heading": "h", "verdicts": [{"who": "2 fair", "goal": "Jain", "value": "0.7", "met": false}]}"#;
        let page = page(&[run("2026-11-21-sharing", &[("real/report.json", report)])]);
        assert!(
            page.contains("## Goals that were missed\n\n| kind | what |\n|---|---|\n| sharing | real: 2 fair: Jain: 0.7 |\n"),
            "{page}"
        );
    }
}
