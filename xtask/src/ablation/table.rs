//! What a moved number changes in the golden tables.

use std::collections::BTreeMap;

/// The golden tables of a run: their text by their file's name.
pub type Tables = BTreeMap<String, String>;

/// How much of the tables a number moves.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Moved {
    /// Rows by table, where there are any.
    pub rows: BTreeMap<String, usize>,
    /// Rows in which a figure is off by more than a tenth of itself, and by more than what a table's last digits say.
    pub much: usize,
}

impl Moved {
    /// Rows of all tables.
    pub fn count(&self) -> usize {
        self.rows.values().sum()
    }

    /// `fair-grid 3, start 1`.
    pub fn by_table(&self) -> String {
        let parts: Vec<String> =
            self.rows.iter().map(|(table, count)| format!("{} {count}", table.trim_end_matches(".txt"))).collect();
        parts.join(" ")
    }
}

/// What differs between two runs.
pub fn moved(before: &Tables, after: &Tables) -> Moved {
    let mut moved = Moved::default();
    for (name, old) in before {
        let new = after.get(name).map_or("", String::as_str);
        let longest = old.lines().count().max(new.lines().count());
        let line = |text: &'_ str, index| text.lines().nth(index).unwrap_or_default().to_owned();
        let pairs = (0..longest).map(|index| (line(old, index), line(new, index)));
        let different: Vec<_> = pairs.filter(|(old, new)| old != new).collect();
        if !different.is_empty() {
            moved.much += different.iter().filter(|(old, new)| is_far(old, new)).count();
            moved.rows.insert(name.clone(), different.len());
        }
    }
    moved
}

/// Whether a figure of the row is far from what it was.
fn is_far(old: &str, new: &str) -> bool {
    let (old, new) = (figures(old), figures(new));
    let far = |(old, new): (&f64, &f64)| {
        let off = (old - new).abs();
        off > old.abs().max(new.abs()) * FAR && off > FINEST
    };
    old.len() != new.len() || old.iter().zip(&new).any(far)
}

fn figures(row: &str) -> Vec<f64> {
    row.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

/// Part of a figure.
const FAR: f64 = 0.1;
/// Tables round to a tenth or a hundredth: less is no difference.
const FINEST: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    fn tables(grid: &str, start: &str) -> Tables {
        [("grid.txt", grid), ("start.txt", start)].map(|(name, text)| (name.to_owned(), text.to_owned())).into()
    }

    #[test]
    fn rows_are_counted_by_table_and_by_how_far_they_moved() {
        let before = tables("# head\n1 Gbit/s | 99.4 2.0\n2 Gbit/s | 99.4 2.0\n", "a | 4.0\n");
        assert_eq!(moved(&before, &before), Moved::default());
        let after = tables("# head\n1 Gbit/s | 99.3 2.0\n2 Gbit/s | 60.0 2.0\n", "a | 4.0\nb | 1.0\n");
        let found = moved(&before, &after);
        assert_eq!((found.count(), found.much), (3, 2), "one by a tenth of a per cent, one by far, one is new: {found:?}");
        assert_eq!(found.by_table(), "grid 2 start 1");
    }
}
