//! Tables: read from CSV, written as Markdown.

/// Heads and rows of cells.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Table {
    pub heads: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(heads: &[&str]) -> Self {
        Self { heads: heads.iter().map(|&head| head.to_owned()).collect(), rows: Vec::new() }
    }

    /// The first line of a CSV has the heads.
    pub fn parse(csv: &str) -> Self {
        let mut lines = csv.lines().filter(|line| !line.is_empty()).map(cells);
        let heads = lines.next().unwrap_or_default();
        Self { heads, rows: lines.collect() }
    }

    /// The cell of a row below a head; empty where there is none.
    pub fn cell<'a>(&self, row: &'a [String], head: &str) -> &'a str {
        let at = self.heads.iter().position(|known| known == head);
        at.and_then(|at| row.get(at)).map_or("", String::as_str)
    }

    pub fn markdown(&self) -> String {
        let line = |cells: &[String]| {
            let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
            format!("| {} |\n", cells.join(" | "))
        };
        let rule: Vec<&str> = (0..self.heads.len()).map(|at| if self.is_figures(at) { "---:" } else { "---" }).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}|{}|\n{rows}", line(&self.heads), rule.join("|"))
    }

    /// Whether a column has figures, which stand to the right.
    fn is_figures(&self, at: usize) -> bool {
        let is_figure = |cell: &str| cell.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '>' | '~'));
        let mut cells = self.rows.iter().filter_map(|row| row.get(at)).filter(|cell| !cell.is_empty());
        cells.by_ref().all(|cell| is_figure(cell)) && self.rows.iter().any(|row| row.get(at).is_some_and(|cell| !cell.is_empty()))
    }
}

/// Cells of a line, in which quotes keep commas and are doubled.
fn cells(line: &str) -> Vec<String> {
    let (mut cells, mut cell, mut quoted) = (Vec::new(), String::new(), false);
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => {
                rest.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(std::mem::take(&mut cell)),
            c => cell.push(c),
        }
    }
    cells.push(cell);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_cells_keep_commas_and_quotes() {
        let table = Table::parse("who,what\n\"a, b\",\"say \"\"x\"\"\"\n");
        assert_eq!(table.rows, [["a, b", "say \"x\""]]);
        assert_eq!(table.cell(&table.rows[0], "what"), "say \"x\"");
        assert_eq!(table.cell(&table.rows[0], "where"), "");
    }

    #[test]
    fn figures_stand_to_the_right_and_bars_are_escaped() {
        let table = Table::parse("who,s\na|b,1.2\nc,>60.0\n");
        assert_eq!(table.markdown(), "| who | s |\n|---|---:|\n| a\\|b | 1.2 |\n| c | >60.0 |\n");
    }
}
