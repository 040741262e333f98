//! The files of a crate need each other in one direction only: a circle of them can only be read as a whole, and none of it can be taken out.
//!
//! An arrow goes from the file that names an item, by `use` or by a path, to the file that has it, whatever re-exports lie between. No arrows are:
//! - the re-export of what is below, `mod x; pub use x::Y;`: a parent that only declares and re-exports needs nothing;
//! - the name of a type above in a file that has an `impl` of it: the methods of one type may stand in several files, which are parts of it;
//! - what tests name.
//!
//! Circles are sought among files, and, in each folder, among its modules with all that is below them: `a/x.rs` that needs `b/y.rs` and `b/z.rs` that
//! needs `a/w.rs` are no circle of files, but `a` and `b` are one thing.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::source::{Named, Source};
use crate::workspace::{Package, Workspace};

/// Circles that may be, each with its reason: the crate, and the modules as the finding names them; `*` for all circles of a crate.
const KNOWN: &[(&str, &str, &str)] = &[("quinn-bulk", "*", "a program of three files that measures another transport")];

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    check_with(workspace, KNOWN)
}

fn check_with(workspace: &Workspace, known: &[(&str, &str, &str)]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &workspace.packages {
        let circles = circles(&Modules::of(workspace, package));
        let excuses: Vec<&str> =
            known.iter().filter(|(name, ..)| *name == package.name).map(|(_, modules, _)| *modules).collect();
        let finding = |message| Finding { place: package.name.clone(), message };
        for circle in circles.iter().filter(|circle| !excuses.iter().any(|excuse| circle.is(excuse))) {
            let arrows = circle.arrows.join(", ");
            let message = format!(
                "{} need each other: {arrows}; move what they share below them, or give the reason in xtask/src/circles.rs",
                circle.modules
            );
            findings.push(finding(message));
        }
        for idle in excuses.iter().filter(|excuse| !circles.iter().any(|circle| circle.is(excuse))) {
            findings.push(finding(format!("{idle} are no circle any more: take it out of the list in xtask/src/circles.rs")));
        }
    }
    let gone = known.iter().filter(|(name, ..)| !workspace.packages.iter().any(|package| package.name == *name));
    findings.extend(gone.map(|(name, ..)| Finding { place: (*name).to_owned(), message: "no such crate".to_owned() }));
    findings
}

/// Modules that need each other.
struct Circle {
    /// Their names in order, with commas.
    modules: String,
    /// Arrows of the circle, each with the path that makes it.
    arrows: Vec<String>,
}

impl Circle {
    fn is(&self, excuse: &str) -> bool {
        excuse == "*" || self.modules == excuse
    }
}

/// The name of a module from the root of its crate, such as `["wire", "frame"]`.
pub type Name = Vec<String>;

/// The files of a crate.
pub struct Modules<'a> {
    files: BTreeMap<Name, File<'a>>,
}

struct File<'a> {
    source: &'a Source,
    /// Every path that code outside of tests names.
    named: Vec<Named>,
}

impl<'a> Modules<'a> {
    pub fn of(workspace: &'a Workspace, package: &Package) -> Self {
        let dir = format!("{}/src/", package.dir);
        let file = |source: &'a Source| {
            let stem = source.path.strip_prefix(&dir)?.strip_suffix(".rs")?;
            let mut name: Name = stem.split('/').map(str::to_owned).collect();
            if matches!(name.last().map(String::as_str), Some("lib" | "main" | "mod")) {
                name.pop();
            }
            let named = source.paths().into_iter().filter(|named| !named.test).collect();
            Some((name, File { source, named }))
        };
        Self { files: workspace.sources_of(package).filter_map(file).collect() }
    }

    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.files.keys()
    }

    /// Which file needs which, and by what path.
    pub fn arrows(&self) -> Arrows {
        let mut arrows = Arrows::new();
        for (from, file) in &self.files {
            for named in &file.named {
                let Some(item) = self.absolute(from, &named.path) else { continue };
                let Some((to, rest)) = self.resolve(&item, MOST_REEXPORTS) else { continue };
                let re_exports = named.import.as_ref().is_some_and(|import| import.public) && to.starts_with(from);
                // `pub(in crate::x)` names a module and nothing in it.
                if named.import.is_none() && rest.is_empty() {
                    continue;
                }
                let is_part = from.starts_with(&to) && rest.first().is_some_and(|name| implements(file.source, name));
                if to != *from && !re_exports && !is_part {
                    arrows.entry(from.clone()).or_default().entry(to).or_insert_with(|| named.path.clone());
                }
            }
        }
        arrows
    }

    /// The path from the root of the crate; nothing for one that leaves it, or is too short to tell.
    fn absolute(&self, from: &[String], path: &str) -> Option<Name> {
        let words: Vec<String> = path.split("::").map(str::to_owned).collect();
        let (first, rest) = words.split_first()?;
        let ups = words.iter().take_while(|word| *word == "super").count();
        // `pub(super)`, `pub(crate)`
        if words.len() == ups.max(1) {
            return None;
        }
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([from, rest].concat()),
            "super" => Some([from.get(..from.len().checked_sub(ups)?)?, &words[ups..]].concat()),
            _ => {
                let child = [from, &words[..1]].concat();
                self.files.contains_key(&child).then(|| [from, &words[..]].concat())
            }
        }
    }

    /// The module that has the item, and the item's name in it; nothing where it comes from another crate.
    fn resolve(&self, item: &[String], most: usize) -> Option<(Name, Name)> {
        let depth = (0..=item.len()).rev().find(|depth| self.files.contains_key(&item[..*depth]))?;
        let (module, rest) = item.split_at(depth);
        let here = Some((module.to_vec(), rest.to_vec()));
        let Some((first, below)) = rest.split_first() else { return here };
        let is_import = |named: &&Named| named.import.as_ref().is_some_and(|import| import.name == *first);
        let Some(import) = self.files[module].named.iter().find(is_import) else { return here };
        // What another crate has is no arrow of this one.
        let meant = self.absolute(module, &import.path).filter(|_| most > 0)?;
        self.resolve(&[&meant, below].concat(), most - 1)
    }
}

/// Longer chains of re-exports are circles of their own, which the compiler will not have.
const MOST_REEXPORTS: usize = 8;

/// Whether the file has an `impl` of this type.
fn implements(source: &Source, name: &str) -> bool {
    let code: Vec<&str> = source.lines.iter().filter(|line| !line.test).map(|line| line.code.as_str()).collect();
    let is_boundary = |c: Option<char>| c.is_none_or(|c| !(c.is_alphanumeric() || c == '_'));
    code.join("\n").split("\nimpl").skip(1).filter(|rest| is_boundary(rest.chars().next())).any(|rest| {
        let head = rest.split('{').next().unwrap_or_default();
        let head = head.rsplit_once(" for ").map_or(head, |(_, of)| of);
        head.match_indices(name)
            .any(|(at, _)| is_boundary(head[..at].chars().last()) && is_boundary(head[at + name.len()..].chars().next()))
    })
}

/// From a module to those that it needs, each with a path that it names.
pub type Arrows = BTreeMap<Name, BTreeMap<Name, String>>;

fn circles(modules: &Modules<'_>) -> Vec<Circle> {
    let arrows = modules.arrows();
    let mut found: Vec<(BTreeSet<Name>, Circle)> =
        groups(&arrows).into_iter().map(|group| (group.clone(), circle(&group, &arrows))).collect();
    let folders: BTreeSet<&[String]> =
        modules.files.keys().flat_map(|name| (0..name.len()).map(|depth| &name[..depth])).collect();
    for folder in folders {
        let contracted = contract(&arrows, folder);
        for group in groups(&contracted) {
            // A circle of files that stand side by side has been told.
            if !found.iter().any(|(files, _)| group.is_subset(files)) {
                found.push((group.clone(), circle(&group, &contracted)));
            }
        }
    }
    found.into_iter().map(|(_, circle)| circle).collect()
}

/// The arrows between modules that stand in a folder, each with all that is below it.
fn contract(arrows: &Arrows, folder: &[String]) -> Arrows {
    let child = |name: &Name| (name.len() > folder.len() && name.starts_with(folder)).then(|| name[..=folder.len()].to_vec());
    let mut contracted = Arrows::new();
    for (from, to, path) in arrows.iter().flat_map(|(from, targets)| targets.iter().map(move |(to, path)| (from, to, path))) {
        if let (Some(below), Some(other)) = (child(from), child(to))
            && below != other
        {
            contracted.entry(below).or_default().entry(other).or_insert_with(|| path.clone());
        }
    }
    contracted
}

/// Modules that reach each other, in groups.
fn groups(arrows: &Arrows) -> Vec<BTreeSet<Name>> {
    let reached: BTreeMap<&Name, BTreeSet<&Name>> = arrows.keys().map(|from| (from, reach(arrows, from))).collect();
    let mut found: Vec<BTreeSet<Name>> = Vec::new();
    for from in arrows.keys().filter(|from| reached[from].contains(from)) {
        if !found.iter().any(|group| group.contains(from)) {
            let back = |to: &&&Name| reached.get(**to).is_some_and(|targets| targets.contains(from));
            found.push(reached[from].iter().filter(back).map(|to| (*to).clone()).collect());
        }
    }
    found
}

/// All that a module needs, directly or not.
fn reach<'a>(arrows: &'a Arrows, from: &'a Name) -> BTreeSet<&'a Name> {
    let mut reached = BTreeSet::new();
    let mut ahead = vec![from];
    while let Some(module) = ahead.pop() {
        ahead.extend(arrows.get(module).into_iter().flat_map(BTreeMap::keys).filter(|to| reached.insert(*to)));
    }
    reached
}

fn circle(group: &BTreeSet<Name>, arrows: &Arrows) -> Circle {
    let said = |name: &Name| if name.is_empty() { "the root".to_owned() } else { name.join("::") };
    let inner = group.iter().flat_map(|from| {
        let targets = arrows[from].iter().filter(|(to, _)| group.contains(*to));
        targets.map(move |(to, path)| format!("{} -> {} ({path})", said(from), said(to)))
    });
    Circle { modules: group.iter().map(said).collect::<Vec<_>>().join(", "), arrows: inner.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings_with(files: &[(&str, &str)], known: &[(&str, &str, &str)]) -> Vec<String> {
        let package = Package { name: "a".to_owned(), dir: "crates/a".to_owned(), ..Package::default() };
        let mut sources: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(&format!("crates/a/src/{path}"), text)).collect();
        Source::mark_test_modules(&mut sources);
        let workspace = Workspace { packages: vec![package], sources, ..Workspace::default() };
        check_with(&workspace, known).into_iter().map(|finding| finding.message).collect()
    }

    fn circles_of(files: &[(&str, &str)]) -> Vec<String> {
        let said = findings_with(files, &[]).into_iter();
        said.map(|message| message.split(" need each other").next().unwrap_or_default().to_owned()).collect()
    }

    const NONE: [&str; 0] = [];

    #[test]
    fn files_that_name_each_other_are_found() {
        let guilty = [
            [("lib.rs", "mod x;\nmod y;"), ("x.rs", "use crate::y::Y;"), ("y.rs", "use crate::x::X;")],
            [("lib.rs", "mod x;\nmod y;"), ("x.rs", "fn f() { super::y::g() }"), ("y.rs", "use super::x::{self, X};")],
            [("lib.rs", "mod x;\nmod y;\npub use x::X;"), ("x.rs", "use crate::y::Y;"), ("y.rs", "use crate::X;")],
        ];
        for files in guilty {
            assert_eq!(circles_of(&files), ["x, y"], "{files:?}");
        }
    }

    #[test]
    fn the_arrows_are_told() {
        let files = [("lib.rs", ""), ("x.rs", "use crate::y::Y;"), ("y.rs", "use crate::x::X;")];
        assert_eq!(
            findings_with(&files, &[]),
            [
                "x, y need each other: x -> y (crate::y::Y), y -> x (crate::x::X); move what they share below them, or give the reason in xtask/src/circles.rs"
            ]
        );
    }

    #[test]
    fn a_long_circle_is_found_and_a_row_is_none() {
        let row = [("lib.rs", ""), ("x.rs", "use crate::y::Y;"), ("y.rs", "use crate::z::Z;"), ("z.rs", "")];
        assert_eq!(circles_of(&row), NONE);
        assert_eq!(circles_of(&[row[0], row[1], row[2], ("z.rs", "use crate::x::X;")]), ["x, y, z"]);
    }

    #[test]
    fn a_parent_that_only_declares_and_re_exports_needs_nothing() {
        let child = ("x.rs", "use crate::Y;");
        assert_eq!(circles_of(&[("lib.rs", "mod x;\npub use x::X;\npub struct Y;"), child]), NONE);
        assert_eq!(circles_of(&[("lib.rs", "mod x;\nuse x::X;\npub struct Y;"), child]), ["the root, x"]);
        assert_eq!(circles_of(&[("lib.rs", "mod x;\npub struct Y(x::X);"), child]), ["the root, x"]);
    }

    #[test]
    fn methods_of_one_type_may_stand_in_several_files() {
        let parent = ("lib.rs", "mod x;\npub struct Y(x::X);\nconst Z: u8 = 0;");
        assert_eq!(circles_of(&[parent, ("x.rs", "use super::Y;\nimpl Y {}")]), NONE);
        assert_eq!(circles_of(&[parent, ("x.rs", "use super::Y;\nimpl<T> From<T> for Y {}")]), NONE);
        assert_eq!(circles_of(&[parent, ("x.rs", "use super::Y;\nimpl From<Y> for X {}")]), ["the root, x"]);
        assert_eq!(circles_of(&[parent, ("x.rs", "use super::{Y, Z};\nimpl Y {}")]), ["the root, x"]);
        assert_eq!(circles_of(&[parent, ("x.rs", "pub(super) struct X;\npub(crate) struct W;")]), NONE);
    }

    #[test]
    fn folders_that_need_each_other_are_one() {
        let files = [
            ("lib.rs", "mod a;\nmod b;"),
            ("a/mod.rs", "pub mod x;\npub mod w;"),
            ("a/x.rs", "use crate::b::y::Y;"),
            ("a/w.rs", ""),
            ("b/mod.rs", "pub mod y;\npub mod z;"),
            ("b/y.rs", ""),
            ("b/z.rs", "use crate::a::w::W;"),
        ];
        assert_eq!(circles_of(&files), ["a, b"]);
        assert_eq!(circles_of(&files[..6]), NONE);
    }

    #[test]
    fn what_tests_name_is_no_arrow() {
        let tests = ("y.rs", "#[cfg(test)]\nmod tests {\n use crate::x::X;\n}");
        assert_eq!(circles_of(&[("lib.rs", ""), ("x.rs", "use crate::y::Y;"), tests]), NONE);
    }

    #[test]
    fn an_excuse_must_be_needed() {
        let files = [("lib.rs", ""), ("x.rs", "use crate::y::Y;"), ("y.rs", "use crate::x::X;")];
        assert_eq!(findings_with(&files, &[("a", "x, y", "one idea")]), NONE);
        assert_eq!(findings_with(&files, &[("a", "*", "being taken apart")]), NONE);
        assert_eq!(findings_with(&files, &[("a", "x, z", "one idea")]).len(), 2);
        assert_eq!(findings_with(&files[..2], &[("a", "*", "being taken apart")]).len(), 1);
        assert_eq!(findings_with(&[], &[("b", "*", "being taken apart")]).len(), 1);
    }
}
