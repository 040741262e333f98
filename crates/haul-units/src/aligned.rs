//! Tables for people: columns as wide as their widest cell, two spaces between them, nothing behind the last cell of a line.

/// The lines of rows that have as many cells each; numbers stand to the right, the columns in `left` to the left.
pub fn aligned(rows: &[Vec<String>], left: &[usize]) -> Vec<String> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..columns).map(|column| width(column).unwrap_or(0)).collect();
    let line = |row: &Vec<String>| {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            if left.contains(&column) { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stand_to_the_right_and_names_to_the_left() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let rows = [row(["NAME", "RATE", "WHERE"]), row(["\u{fc}ber", "100", ""]), row(["a", "5", "here"])];
        assert_eq!(aligned(&rows, &[0, 2]), ["NAME  RATE  WHERE", "\u{fc}ber   100", "a        5  here"]);
        assert!(aligned(&[], &[]).is_empty());
    }
}
