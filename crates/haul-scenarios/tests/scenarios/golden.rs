//! Tables in git: a change of behaviour is a difference that a person can read.
//!
//! `HAUL_GOLDEN=write cargo test -p haul-scenarios --test scenarios` writes them anew.

use std::fmt::Write as _;
use std::path::Path;

/// Compares with the table in git, or writes it; says all rows that differ.
pub fn compare(name: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("HAUL_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(&path, table).expect("the table can be written");
        return;
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    let (old, new): (Vec<&str>, Vec<&str>) = (golden.lines().collect(), table.lines().collect());
    let mut difference = String::new();
    for index in 0..old.len().max(new.len()) {
        let (old, new) = (old.get(index), new.get(index));
        if old != new {
            for (sign, row) in [('-', old), ('+', new)] {
                if let Some(row) = row {
                    writeln!(difference, "{sign} {row}").expect("a string takes anything");
                }
            }
        }
    }
    let header: Vec<&&str> = new.iter().filter(|row| row.starts_with('#')).collect();
    assert!(
        difference.is_empty(),
        "{} differs:\n{}\n{difference}rewrite it by HAUL_GOLDEN=write cargo test -p haul-scenarios --test scenarios",
        path.display(),
        header.last().map_or("", |row| **row)
    );
}

/// The seed of a plan, unless a failure is being replayed.
pub fn seed(of_plan: u64) -> u64 {
    std::env::var("HAUL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(of_plan)
}
