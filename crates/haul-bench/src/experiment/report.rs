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
        Self::compare(who, format!("{what} at least {}", print(bound)), value, |value| value >= bound, print)
    }

    /// A value that is to stay below a bound.
    pub fn at_most(who: &str, what: &str, value: Option<f64>, bound: f64, print: impl Fn(f64) -> String) -> Self {
        Self::compare(who, format!("{what} at most {}", print(bound)), value, |value| value <= bound, print)
    }

    fn compare(who: &str, goal: String, value: Option<f64>, enough: impl Fn(f64) -> bool, print: impl Fn(f64) -> String) -> Self {
        let text = value.map_or_else(|| "not measured".to_owned(), &print);
        Self { who: who.to_owned(), goal, value: text, met: value.map(enough) }
    }
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
