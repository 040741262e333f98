//! The matrix for people at a terminal.

use std::fmt::Write as _;

use haul_units::aligned;

use super::matrix::Matrix;
use super::page::megabits;

/// For people: the ratio, below it the two rates, haul's first; why there is an `x` below the table.
pub fn table(matrix: &Matrix) -> String {
    let names = || matrix.names.iter().cloned();
    let mut rows = vec![std::iter::once("from \\ to".to_owned()).chain(names()).collect::<Vec<_>>()];
    for (from, name) in names().enumerate() {
        let cells = (0..matrix.names.len()).map(|to| cell_text(matrix, from, to));
        let (ratios, rates): (Vec<_>, Vec<_>) = cells.map(|[ratio, rates]| (ratio, rates)).unzip();
        rows.push([vec![name], ratios].concat());
        rows.push([vec![String::new()], rates].concat());
    }
    let mut text = format!("{} over TCP ({}): ratio, and Mbit/s of each\n\n", matrix.measured, matrix.congestion);
    for line in aligned(&rows, &[0]) {
        let _ = writeln!(text, "{line}");
    }
    for (from, to, cell) in matrix.pairs() {
        if let Some(Err(why)) = cell {
            let _ = write!(text, "\nx  {} to {}: {why}", matrix.names[from], matrix.names[to]);
        }
    }
    text
}

fn cell_text(matrix: &Matrix, from: usize, to: usize) -> [String; 2] {
    match &matrix.cells[from][to] {
        None => ["-".to_owned(), String::new()],
        Some(Err(_)) => ["x".to_owned(), String::new()],
        Some(Ok(pair)) => [format!("{:.2}", pair.ratio()), format!("{} / {}", megabits(pair.haul.rate), megabits(pair.tcp.rate))],
    }
}

#[cfg(test)]
mod tests {
    use super::super::matrix::tests::example;
    use super::*;

    #[test]
    fn the_table_has_ratio_and_rates_and_says_why_there_is_an_x() {
        let text = table(&example());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "haul (fair) over TCP (cubic): ratio, and Mbit/s of each");
        assert_eq!(lines[2].split_whitespace().collect::<Vec<_>>(), ["from", "\\", "to", "nict", "kyushu", "far", "<away>"]);
        assert_eq!(lines[3].split_whitespace().collect::<Vec<_>>(), ["nict", "-", "10.21", "x"]);
        assert_eq!(lines[4].trim(), "786 / 77");
        assert_eq!(lines[5].split_whitespace().collect::<Vec<_>>(), ["kyushu", "0.29", "-", "-"]);
        assert_eq!(lines[6].trim(), "2747 / 9431");
        assert_eq!(*lines.last().unwrap(), "x  nict to far <away>: haul: no answer, \"really\"");
    }
}
