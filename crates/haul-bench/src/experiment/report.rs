//! What came out of an experiment, for people, programs and other programs' charts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::ExperimentError;
use crate::bench::report::facts_text;
use crate::plot::Figure;

/// What came out.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What was done, in a line or two.
    pub heading: String,
    /// Goals with their values.
    pub verdicts: Vec<Judged>,
    /// Figures to read.
    pub tables: Vec<Table>,
    /// Charts, by the name of their files.
    pub charts: Vec<(String, Figure)>,
    /// What was left out and why, and what to keep in mind.
    pub notes: Vec<String>,
    /// Of the machine and of the run, by name: without them, figures say nothing.
    pub facts: BTreeMap<String, String>,
    /// Everything measured, for programs.
    pub data: serde_json::Value,
}

/// A goal and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Judged {
    /// Who and where.
    pub who: String,
    /// What is wanted.
    pub goal: String,
    /// What was seen.
    pub value: String,
    /// Whether that is enough; none: not measured.
    pub met: Option<bool>,
}

/// Rows of cells.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// The name of its file.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Heads of the columns, with units.
    pub columns: Vec<String>,
    /// Cells by row.
    pub rows: Vec<Vec<String>>,
}

impl Report {
    /// How many goals were missed.
    pub fn missed(&self) -> usize {
        self.verdicts.iter().filter(|judged| judged.met == Some(false)).count()
    }

    /// For a terminal.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", self.heading);
        for table in self.all_tables() {
            let _ = write!(text, "\n{}\n{}", table.title, table.text());
        }
        if !self.notes.is_empty() {
            text.push('\n');
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        if self.facts.is_empty() { text } else { text + "\n" + &facts_text(&self.facts) }
    }

    /// Writes everything below a directory, which is made. Returns the files.
    pub fn write(&self, dir: &Path) -> Result<Vec<PathBuf>, ExperimentError> {
        fs::create_dir_all(dir).map_err(|error| ExperimentError::Write { path: dir.to_owned(), error })?;
        let mut files = Vec::new();
        let mut put = |name: String, content: &[u8]| {
            let path = dir.join(name);
            fs::write(&path, content).map_err(|error| ExperimentError::Write { path: path.clone(), error })?;
            files.push(path);
            Ok::<(), ExperimentError>(())
        };
        put("report.txt".to_owned(), self.text().as_bytes())?;
        put("report.json".to_owned(), (self.json().to_string() + "\n").as_bytes())?;
        for table in self.all_tables() {
            put(format!("{}.csv", table.name), table.csv().as_bytes())?;
        }
        for (name, figure) in &self.charts {
            put(format!("{name}.svg"), figure.svg()?.as_bytes())?;
            put(format!("{name}.png"), &figure.png()?)?;
        }
        Ok(files)
    }

    fn json(&self) -> serde_json::Value {
        serde_json::json!({
            "heading": self.heading,
            "verdicts": self.verdicts,
            "tables": self.tables,
            "notes": self.notes,
            "facts": self.facts,
            "data": self.data,
        })
    }

    fn all_tables(&self) -> Vec<Table> {
        let verdicts = (!self.verdicts.is_empty()).then(|| Table::of_verdicts(&self.verdicts));
        verdicts.into_iter().chain(self.tables.iter().cloned()).collect()
    }
}

impl Judged {
    /// A value that is to reach a bound.
    pub fn at_least(who: &str, what: &str, value: Option<f64>, bound: f64, print: impl Fn(f64) -> String) -> Self {
        Self::compare(who, Goal { what, word: "at least", bound, enough: f64::ge }, value, print)
    }

    /// A value that is to stay below a bound.
    pub fn at_most(who: &str, what: &str, value: Option<f64>, bound: f64, print: impl Fn(f64) -> String) -> Self {
        Self::compare(who, Goal { what, word: "at most", bound, enough: f64::le }, value, print)
    }

    /// A bound that is not finite (the other's mean, of which a flow never ended) is none: whatever came is within it, so nothing is judged.
    fn compare(who: &str, goal: Goal<'_>, value: Option<f64>, print: impl Fn(f64) -> String) -> Self {
        let Goal { what, word, bound, enough } = goal;
        let goal = if bound.is_finite() { print(bound) } else { "a bound that there is not".to_owned() };
        let text = value.map_or_else(|| "not measured".to_owned(), &print);
        let met = value.filter(|_| bound.is_finite()).map(|value| enough(&value, &bound));
        Self { who: who.to_owned(), goal: format!("{what} {word} {goal}"), value: text, met }
    }
}

/// What a value is held against.
#[derive(Clone, Copy)]
struct Goal<'a> {
    what: &'a str,
    word: &'a str,
    bound: f64,
    enough: fn(&f64, &f64) -> bool,
}

impl Table {
    /// A table without rows.
    pub fn new(name: &str, title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|&column| column.to_owned()).collect();
        Self { name: name.to_owned(), title: title.to_owned(), columns, rows: Vec::new() }
    }

    fn of_verdicts(verdicts: &[Judged]) -> Self {
        let verdict = |met: Option<bool>| match met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "-",
        };
        let row =
            |judged: &Judged| vec![judged.who.clone(), judged.goal.clone(), judged.value.clone(), verdict(judged.met).to_owned()];
        Self { rows: verdicts.iter().map(row).collect(), ..Self::new("verdicts", "Goals", &["who", "goal", "value", "verdict"]) }
    }

    /// Aligned; what begins with a digit stands to the right.
    fn text(&self) -> String {
        let cells = |column: usize| self.rows.iter().filter_map(move |row| row.get(column));
        let width = |column: usize| {
            cells(column).chain(self.columns.get(column)).map(|cell| cell.chars().count()).max().unwrap_or_default()
        };
        let is_number = |column: usize| {
            let plain =
                |cell: &String| cell.is_empty() || cell == "-" || cell.trim_end_matches([' ', '%']).parse::<f64>().is_ok();
            cells(column).next().is_some() && cells(column).all(plain)
        };
        let form: Vec<(usize, bool)> = (0..self.columns.len()).map(|column| (width(column), is_number(column))).collect();
        let mut text = String::new();
        for row in std::iter::once(&self.columns).chain(&self.rows) {
            let cells: Vec<String> = row
                .iter()
                .zip(&form)
                .map(|(cell, &(width, right))| if right { format!("{cell:>width$}") } else { format!("{cell:<width$}") })
                .collect();
            let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
        }
        text
    }

    /// As RFC 4180 has it.
    fn csv(&self) -> String {
        let quoted = |cell: &String| {
            if cell.contains([',', '"', '\n']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.clone() }
        };
        let line = |row: &Vec<String>| row.iter().map(quoted).collect::<Vec<_>>().join(",") + "\n";
        std::iter::once(&self.columns).chain(&self.rows).map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_against_no_bound_is_not_judged() {
        let print = |value: f64| format!("{value:.1} ms");
        let met = |value, bound| {
            let most = Judged::at_most("TCP", "mean", value, bound, print);
            [most.met, Judged::at_least("TCP", "mean", value, bound, print).met]
        };
        assert_eq!(met(Some(2.0), 3.0), [Some(true), Some(false)]);
        assert_eq!(met(Some(3.0), 2.0), [Some(false), Some(true)]);
        assert_eq!(met(None, 3.0), [None, None]);
        for none in [f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
            assert_eq!(met(Some(2.0), none), [None, None], "{none}");
        }
        assert_eq!(met(Some(f64::INFINITY), 3.0), [Some(false), Some(true)], "what never ended is late");
        let judged = Judged::at_most("TCP", "mean", Some(2.0), f64::INFINITY, print);
        assert_eq!((judged.goal.as_str(), judged.value.as_str()), ("mean at most a bound that there is not", "2.0 ms"));
        assert_eq!(Judged::at_least("TCP", "rate", Some(2.0), 1.0, print).goal, "rate at least 1.0 ms");
    }
}
