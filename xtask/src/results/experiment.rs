//! A report of `haul lab run`: goals, tables and notes of an experiment.

use std::fmt::Write as _;

use serde_json::Value;

use super::section::Section;
use super::table::Table;

pub fn section(report: &Value) -> Section {
    let mut section = Section::default();
    let _ = writeln!(section.text, "{}", text(&report["heading"]));
    for table in list(&report["tables"]) {
        let cells = |value: &Value| list(value).iter().map(text).collect::<Vec<_>>();
        let shown = Table { heads: cells(&table["columns"]), rows: list(&table["rows"]).iter().map(cells).collect() };
        section.behind.extend(shown.rows.iter().filter_map(|row| slower(&shown.heads, row)));
        let _ = write!(section.text, "\n{}\n\n{}", text(&table["title"]), shown.markdown());
    }
    let notes = list(&report["notes"]);
    if !notes.is_empty() {
        section.text.push('\n');
    }
    for note in notes {
        let _ = writeln!(section.text, "- {}", text(note));
    }
    for judged in list(&report["verdicts"]) {
        match judged["met"].as_bool().filter(|_| has_bound(&text(&judged["goal"]))) {
            Some(true) => section.met += 1,
            Some(false) => {
                section.missed.push(format!("{}: {}: {}", text(&judged["who"]), text(&judged["goal"]), text(&judged["value"])));
            }
            None => section.unmeasured.push(format!("{}: {}", text(&judged["who"]), bound_in_words(&text(&judged["goal"])))),
        }
    }
    section.facts = report["facts"].clone();
    section
}

/// A row of a table that ends with how many times as fast haul was, where that is less than once.
fn slower(heads: &[String], row: &[String]) -> Option<String> {
    let times: f64 = row.last().filter(|_| heads.last().is_some_and(|head| head == "times as fast"))?.parse().ok()?;
    (times < 1.0).then(|| format!("{}: {times} times as fast", row[0]))
}

/// Records of November 2026 and before have goals met by whatever was held against the mean of flows one of which never ended: that is none.
fn has_bound(goal: &str) -> bool {
    goal.split(' ').all(|word| word != "inf")
}

/// The same goal, with the bound that there was not in words.
fn bound_in_words(goal: &str) -> String {
    goal.replace(" inf ms", " that of flows some of which never ended")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_which_haul_was_slower_are_counted() {
        let section = section(&serde_json::json!({
            "tables": [{"columns": ["what", "times as fast"], "rows": [["git clone", "1.87"], ["docker ps", "0.86"]]}],
        }));
        assert_eq!(section.behind, ["docker ps: 0.86 times as fast"]);
    }

    #[test]
    fn tables_notes_and_misses_are_there() {
        let section = section(&serde_json::json!({
            "heading": "Shares: 100 Mbit/s",
            "tables": [{"title": "Who has what", "columns": ["who", "Mbit/s"], "rows": [["fair", "48.4"]]}],
            "notes": ["two runs were made again"],
            "verdicts": [
                {"who": "2 fair", "goal": "Jain at least 0.95", "value": "0.7", "met": false},
                {"who": "2 fair", "goal": "used at least 95 %", "value": "99 %", "met": true},
                {"who": "TCP among TCP", "goal": "mean at most inf ms", "value": "24.3 ms", "met": true},
            ],
        }));
        assert!(section.text.contains("Who has what\n\n| who | Mbit/s |\n|---|---:|\n| fair | 48.4 |\n"), "{}", section.text);
        assert!(section.text.ends_with("- two runs were made again\n"), "{}", section.text);
        assert_eq!((section.met, section.missed), (1, vec!["2 fair: Jain at least 0.95: 0.7".to_owned()]));
        assert_eq!(section.unmeasured, ["TCP among TCP: mean at most that of flows some of which never ended"]);
    }
}
