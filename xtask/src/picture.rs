//! The crates in ARCHITECTURE.md: a table and a picture of the arrows between them, made from what `Cargo.toml` files say.
//!
//! `cargo xtask arrows` writes them between two marks; the check fails where the document says something else. Line counts may be a tenth off, or every
//! commit would have to write them again.
//!
//! ```text
//! top     ●──┬──╮     a crate stands in the row and the column of its ●; from there a line runs to the right, and down to what it needs:
//! left       ●──│──╮  here `top` needs `left` and `right`, and `left` needs `bottom`. An arrow that others imply is left out,
//! right         ●──┤  such as that from `top` to `bottom`.
//! bottom           ●
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::finding::Finding;
use crate::workspace::{ARCHITECTURE, Package, Workspace};

const BEGIN: &str = "<!-- crates: written by `cargo xtask arrows` -->\n";
const END: &str = "<!-- end of crates -->\n";

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    let finding = |message: &str| vec![Finding { place: ARCHITECTURE.to_owned(), message: message.to_owned() }];
    match split(&workspace.architecture) {
        None => finding("the marks around the table of crates are missing"),
        Some((_, written, _)) if !is_close(written, &render(workspace)) => {
            finding("the table and the picture of the crates are not true any more: run cargo xtask arrows")
        }
        Some(_) => Vec::new(),
    }
}

/// The document with the table and the picture as they are; nothing where the marks are missing.
pub fn updated(workspace: &Workspace) -> Option<String> {
    let (before, written, after) = split(&workspace.architecture)?;
    let made = render(workspace);
    // Counts that are near enough stay, so that two who work at once seldom write the same line.
    let text = if is_close(written, &made) { written } else { &made };
    Some(format!("{before}{BEGIN}{text}{END}{after}"))
}

/// What stands before, between and after the marks.
fn split(document: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = document.split_once(BEGIN)?;
    let (written, after) = rest.split_once(END)?;
    Some((before, written, after))
}

/// Whether two texts are the same but for counts of lines, of which each may be off by a tenth and a hundred.
fn is_close(written: &str, made: &str) -> bool {
    let same = |(a, b): (&str, &str)| match (count(a), count(b)) {
        (Some(a), Some(b)) => a.abs_diff(b) <= b / 10 + 100,
        _ => a == b,
    };
    let cells = |text: &'_ str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
    let (written, made) = (cells(written), cells(made));
    written.len() == made.len() && written.iter().zip(&made).all(|(a, b)| same((a, b)))
}

fn count(cell: &str) -> Option<usize> {
    cell.trim().replace(',', "").parse().ok()
}

fn render(workspace: &Workspace) -> String {
    let crates = Crates::of(&workspace.packages);
    let mut text = "| crate | lines | what it is | needs | its tests besides |\n|---|---:|---|---|---|\n".to_owned();
    for package in crates.from_the_top.iter().rev() {
        let needs = |dev: bool| {
            let name = |need: &&str| need.strip_prefix("haul-").unwrap_or(need).to_owned();
            crates.needs(package, dev).iter().map(name).collect::<Vec<_>>().join(", ")
        };
        let lines = thousands(workspace.lines_of(package));
        let _ = writeln!(text, "| `{}` | {lines} | {} | {} | {} |", package.name, package.description, needs(false), needs(true));
    }
    let _ = write!(text, "\n```text\n{}```\n", crates.drawn());
    text
}

fn thousands(number: usize) -> String {
    if number < 1000 { number.to_string() } else { format!("{},{:03}", number / 1000, number % 1000) }
}

/// The members below `crates/`.
struct Crates<'a> {
    /// Each before all that it needs.
    from_the_top: Vec<&'a Package>,
}

impl<'a> Crates<'a> {
    fn of(packages: &'a [Package]) -> Self {
        let mut crates = Self { from_the_top: packages.iter().filter(|package| package.dir.starts_with("crates/")).collect() };
        let levels: BTreeMap<String, usize> = crates
            .from_the_top
            .iter()
            .map(|package| (package.name.clone(), crates.level(package, crates.from_the_top.len())))
            .collect();
        crates.from_the_top.sort_by_key(|package| (usize::MAX - levels[&package.name], package.name.clone()));
        crates
    }

    /// How many crates stand below this one, in the longest row; `most` ends a circle, which Cargo will not have.
    fn level(&self, package: &Package, most: usize) -> usize {
        let below = self.needs(package, false).into_iter().filter_map(|name| self.find(name));
        below.map(|package| if most == 0 { 0 } else { 1 + self.level(package, most - 1) }).max().unwrap_or(0)
    }

    fn find(&self, name: &str) -> Option<&'a Package> {
        self.from_the_top.iter().find(|package| package.name == name).copied()
    }

    /// Names of the members below `crates/` that the crate needs, or its tests besides.
    fn needs(&self, package: &'a Package, dev: bool) -> BTreeSet<&'a str> {
        let of = |dev: bool| package.needs.iter().filter(move |need| need.dev == dev).map(|need| need.name.as_str());
        let besides = |name: &&str| !dev || !of(false).any(|other| other == *name);
        of(dev).filter(|name| self.find(name).is_some()).filter(besides).collect()
    }

    /// What the crate needs directly and through none of the others.
    fn arrows(&self, package: &'a Package) -> BTreeSet<&'a str> {
        let direct = self.needs(package, false);
        let implied = |name: &str| {
            let others = direct.iter().filter(|other| **other != name);
            others.filter_map(|other| self.find(other)).any(|other| self.reaches(other, name))
        };
        direct.iter().filter(|name| !implied(name)).copied().collect()
    }

    fn reaches(&self, from: &'a Package, name: &str) -> bool {
        let needs = self.needs(from, false);
        needs.contains(name) || needs.into_iter().filter_map(|other| self.find(other)).any(|other| self.reaches(other, name))
    }

    fn drawn(&self) -> String {
        let names: Vec<&str> = self.from_the_top.iter().map(|package| package.name.as_str()).collect();
        let width = names.iter().map(|name| name.len()).max().unwrap_or(0);
        let mut text = String::new();
        // Columns into which a line from above runs.
        let mut open = vec![false; names.len()];
        for (row, package) in self.from_the_top.iter().enumerate() {
            let arrows = self.arrows(package);
            let is_target: Vec<bool> = names.iter().map(|name| arrows.contains(name)).collect();
            let last = is_target.iter().rposition(|target| *target).unwrap_or(row);
            let mut line = format!("{:width$}  ", package.name);
            for column in 0..names.len() {
                let crosses = (row..last).contains(&column);
                line.push(match (is_target[column], open[column], crosses) {
                    _ if column == row => '●',
                    _ if column < row => ' ',
                    (true, true, true) => '┼',
                    (true, true, false) => '┤',
                    (true, false, true) => '┬',
                    (true, false, false) => '╮',
                    (false, true, _) => '│',
                    (false, false, true) => '─',
                    (false, false, false) => ' ',
                });
                line.push_str(if crosses { "──" } else { "  " });
                open[column] |= is_target[column];
            }
            let _ = writeln!(text, "{}", line.trim_end());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use crate::workspace::Need;

    fn package(name: &str, needs: &[(&str, bool)]) -> Package {
        let needs = needs.iter().map(|&(name, dev)| Need { name: name.to_owned(), dev }).collect();
        Package { name: name.to_owned(), description: format!("the {name}"), dir: format!("crates/{name}"), needs }
    }

    fn house() -> Workspace {
        let packages = vec![
            package("bottom", &[("serde", false)]),
            package("right", &[("bottom", false)]),
            package("left", &[("bottom", false), ("right", true)]),
            package("top", &[("left", false), ("right", false), ("bottom", false), ("left", true)]),
        ];
        let sources = vec![Source::new("crates/left/src/lib.rs", &"fn f() {}\n".repeat(1_234))];
        let architecture = format!("# House\n\n{BEGIN}{END}\nMore.\n");
        Workspace { packages, sources, architecture, ..Workspace::default() }
    }

    const DRAWN: &str = "\
top     ●──┬──╮
left       ●──│──╮
right         ●──┤
bottom           ●
";

    #[test]
    fn lines_run_down_to_what_is_needed_and_the_implied_ones_are_left_out() {
        assert_eq!(Crates::of(&house().packages).drawn(), DRAWN);
    }

    #[test]
    fn a_row_says_lines_needs_and_what_only_tests_need() {
        let text = render(&house());
        assert!(text.contains("| `left` | 1,234 | the left | bottom | right |\n"), "{text}");
        assert!(text.contains("| `top` | 0 | the top | bottom, left, right |  |\n"), "{text}");
    }

    #[test]
    fn a_document_that_says_something_else_is_found() {
        let mut house = house();
        assert_eq!(check(&house).len(), 1);
        house.architecture = updated(&house).expect("marks");
        assert_eq!(check(&house), []);
        assert!(house.architecture.starts_with("# House\n") && house.architecture.ends_with("\nMore.\n"));
        house.packages.push(package("new", &[]));
        assert_eq!(check(&house).len(), 1);
        house.packages.pop();
        house.packages[1].needs.clear();
        assert_eq!(check(&house).len(), 1);
        house.architecture.clear();
        assert_eq!(check(&house).len(), 1);
        assert_eq!(updated(&house), None);
    }

    #[test]
    fn lines_may_be_a_tenth_off() {
        let mut house = house();
        house.architecture = updated(&house).expect("marks");
        for (lines, findings) in [(1_234 + 200, 0), (1_234 + 400, 1)] {
            house.sources = vec![Source::new("crates/left/src/lib.rs", &"fn f() {}\n".repeat(lines))];
            assert_eq!(check(&house).len(), findings, "{lines}");
            assert_eq!(updated(&house).as_ref() == Some(&house.architecture), findings == 0, "{lines}");
        }
    }
}
