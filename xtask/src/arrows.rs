//! Which crate may need which.
//!
//! The table is the architecture: an arrow that is not in it fails the build. A crate that is missing from the table fails too, so that a new crate
//! is placed on purpose; and so does an arrow that is allowed and not drawn, or drawn and not used, so that the table says no more than is true.

use crate::finding::Finding;
use crate::workspace::{Package, Workspace};

struct Rule {
    package: &'static str,
    /// Members that the crate may need.
    may_need: &'static [&'static str],
    /// Members that its tests may need besides.
    tests_may_need: &'static [&'static str],
}

const fn rule(package: &'static str, may_need: &'static [&'static str], tests_may_need: &'static [&'static str]) -> Rule {
    Rule { package, may_need, tests_may_need }
}

/// At the edge: every member, whether it is needed or not.
const ALL: &[&str] = &["*"];

const RULES: &[Rule] = &[
    rule("haul-units", &[], &[]),
    rule("haul-cc", &["haul-units"], &["haul-sim"]),
    rule("haul-control", &["haul-units"], &[]),
    rule("haul-names", &[], &[]),
    rule("haul-paths", &["haul-units"], &[]),
    rule("haul-sim", &["haul-units"], &[]),
    rule("haul-plot", &[], &[]),
    rule("haul-trace", &["haul-plot", "haul-units"], &[]),
    rule("haul-clib", &[], &[]),
    rule("haul-netdev", &["haul-units"], &[]),
    rule("haul-pace", &["haul-netdev", "haul-sim", "haul-units"], &["haul-lab", "skip"]),
    rule("haul-proto", &["haul-cc", "haul-paths", "haul-strangers", "haul-units"], &["haul-scenarios", "haul-sim"]),
    rule("haul-scenarios", &["haul-proto", "haul-sim", "haul-cc", "haul-units"], &[]),
    rule("haul-udp", &["haul-units"], &[]),
    rule("haul-carrier", &["haul-strangers"], &[]),
    rule("haul-relay", &["haul-units"], &[]),
    rule("haul-inspect", &["haul-proto"], &[]),
    rule("haul", &["haul-carrier", "haul-inspect", "haul-paths", "haul-udp", "haul-proto", "haul-cc", "haul-units"], &[]),
    rule("haul-pieces", &["haul-faults", "haul-units"], &[]),
    rule("haul-descriptors", &[], &[]),
    rule("haul-strangers", &["haul-units"], &[]),
    rule("haul-faults", &["haul-units"], &[]),
    rule("haul-squeeze", &[], &[]),
    rule("haul-xattrs", &[], &["skip"]),
    rule(
        "haul-files",
        &["haul-descriptors", "haul-faults", "haul-names", "haul-pieces", "haul-units", "haul-xattrs"],
        &["haul-objects", "haul-ramstore", "skip"],
    ),
    rule("haul-objects", &["haul-files", "haul-names", "haul-units"], &[]),
    rule("haul-ramstore", &["haul-files", "haul-units"], &[]),
    rule("haul-gfarm", &["haul-clib", "haul-files", "haul-units"], &["haul-ramstore", "skip"]),
    rule("haul-windows", &["haul-faults", "haul-files", "haul-names", "haul-units"], &["haul-ramstore"]),
    rule("haul-tcp", &["haul-clib", "haul-netdev", "haul-units"], &["skip"]),
    rule("haul-peer", &["haul", "haul-descriptors", "haul-relay", "haul-strangers", "haul-units"], &["skip"]),
    rule("haul-config", &["haul-peer"], &[]),
    rule(
        "haul-copy",
        &[
            "haul-control",
            "haul-peer",
            "haul",
            "haul-faults",
            "haul-gfarm",
            "haul-files",
            "haul-names",
            "haul-squeeze",
            "haul-units",
            "haul-windows",
        ],
        &["haul-scenarios", "haul-sim"],
    ),
    rule("haul-plan", &["haul-units"], &[]),
    rule("haul-fleet", &["haul-plan", "haul-plot", "haul-copy", "haul-peer", "haul", "haul-files", "haul-units"], &[]),
    rule("haul-perf", &["haul-peer", "haul", "haul-cc", "haul-units"], &[]),
    rule("haul-lab", &["haul-netdev", "haul-udp", "haul-sim", "haul-units"], &[]),
    rule("haul-tunnel", &["haul-peer", "haul", "haul-units"], &[]),
    rule(
        "haul-bench",
        &[
            "haul",
            "haul-plan",
            "haul-tcp",
            "haul-netdev",
            "haul-pace",
            "haul-plot",
            "haul-lab",
            "haul-scenarios",
            "haul-proto",
            "haul-sim",
            "haul-cc",
            "haul-units",
        ],
        &["skip"],
    ),
    rule(
        "haul-serve",
        &["haul-copy", "haul-files", "haul-perf", "haul-relay", "haul-tunnel", "haul-peer", "haul", "haul-units"],
        &["skip"],
    ),
    rule(
        "haul-python",
        &["haul-copy", "haul-files", "haul-fleet", "haul-peer", "haul-perf", "haul-tunnel", "haul", "haul-units"],
        &[],
    ),
    rule(
        "haul-ffi",
        &["haul-copy", "haul-files", "haul-fleet", "haul-perf", "haul-peer", "haul", "haul-units"],
        &["haul-lab", "skip"],
    ),
    rule("haul-cli", ALL, ALL),
    rule("e2e", ALL, ALL),
    rule("fuzz-harness", ALL, ALL),
    rule("skip", &[], &[]),
    rule("torture", &["e2e", "haul-lab", "haul-units", "hostile"], &[]),
    rule("hostile", &["e2e", "haul-proto", "haul-units"], &[]),
    rule("quinn-bulk", &[], &[]),
    rule("xtask", &[], &[]),
];

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    check_with(workspace, RULES)
}

fn check_with(workspace: &Workspace, rules: &[Rule]) -> Vec<Finding> {
    let members: Vec<&str> = workspace.packages.iter().map(|package| package.name.as_str()).collect();
    let mut findings = Vec::new();
    for package in &workspace.packages {
        match rules.iter().find(|rule| rule.package == package.name) {
            Some(rule) => {
                findings.extend(forbidden(package, rule, &members));
                findings.extend(unused(package, rule));
            }
            None => findings.push(finding(package, "this crate is not in the table of arrows in xtask/src/arrows.rs")),
        }
        findings.extend(unnamed(workspace, package, &members));
    }
    findings
}

fn finding(package: &Package, message: &str) -> Finding {
    Finding { place: package.name.clone(), message: message.to_owned() }
}

/// What the crate needs and must not.
fn forbidden(package: &Package, rule: &Rule, members: &[&str]) -> Vec<Finding> {
    let allows = |list: &[&str], name: &str| list == ALL || list.contains(&name);
    let forbidden = package.needs.iter().filter(|need| members.contains(&need.name.as_str())).filter(|need| {
        let name = need.name.as_str();
        !(allows(rule.may_need, name) || need.dev && allows(rule.tests_may_need, name))
    });
    forbidden.map(|need| finding(package, &format!("{} must not need {}", kind(need.dev), need.name))).collect()
}

/// What the table allows and the crate's `Cargo.toml` does not ask for.
fn unused(package: &Package, rule: &Rule) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (list, dev) in [(rule.may_need, false), (rule.tests_may_need, true)].into_iter().filter(|(list, _)| *list != ALL) {
        let idle = list.iter().filter(|name| !package.needs.iter().any(|need| need.name == **name && need.dev == dev));
        let message = |name| format!("{} may need {name} and does not: take it out of the table of arrows", kind(dev));
        findings.extend(idle.map(|name| finding(package, &message(*name))));
    }
    findings
}

/// What the crate's `Cargo.toml` asks for and no file of it names.
fn unnamed(workspace: &Workspace, package: &Package, members: &[&str]) -> Vec<Finding> {
    let dir = format!("{}/", package.dir);
    let files: Vec<_> = workspace.sources.iter().filter(|source| source.path.starts_with(&dir)).collect();
    let needs = package.needs.iter().filter(|need| members.contains(&need.name.as_str()));
    let idle = needs.filter(|need| !files.iter().any(|source| source.has_word(&need.name.replace('-', "_"))));
    idle.map(|need| finding(package, &format!("{} needs {} and names it nowhere: take it out", kind(need.dev), need.name)))
        .collect()
}

fn kind(dev: bool) -> &'static str {
    if dev { "tests of this crate" } else { "this crate" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;
    use crate::workspace::Need;

    /// A crate that uses what it needs.
    fn package(name: &str, needs: &[(&str, bool)]) -> Package {
        let needs = needs.iter().map(|&(name, dev)| Need { name: name.to_owned(), dev }).collect();
        Package { name: name.to_owned(), dir: format!("crates/{name}"), needs, ..Package::default() }
    }

    fn places_with(packages: &[Package], rules: &[Rule]) -> Vec<String> {
        let uses = |package: &Package| {
            let lines: Vec<String> =
                package.needs.iter().map(|need| format!("use {}::A;", need.name.replace('-', "_"))).collect();
            Source::new(&format!("{}/src/lib.rs", package.dir), &lines.join("\n"))
        };
        let workspace =
            Workspace { packages: packages.to_vec(), sources: packages.iter().map(uses).collect(), ..Workspace::default() };
        check_with(&workspace, rules).into_iter().map(|finding| finding.place).collect()
    }

    const TOWER: &[Rule] =
        &[rule("bottom", &[], &[]), rule("middle", &["bottom"], &["sim"]), rule("sim", &[], &[]), rule("top", ALL, ALL)];

    fn places(packages: &[Package]) -> Vec<String> {
        places_with(packages, TOWER)
    }

    #[test]
    fn an_arrow_upwards_is_found() {
        let middle = package("middle", &[("bottom", false), ("sim", true)]);
        assert_eq!(places(&[middle.clone(), package("bottom", &[("middle", false)])]), ["bottom"]);
        assert_eq!(places(&[middle, package("bottom", &[])]), Vec::<String>::new());
    }

    #[test]
    fn the_simulator_is_for_tests_only() {
        let sim = package("sim", &[]);
        let middle = |dev| package("middle", &[("bottom", false), ("sim", true), ("sim", dev)]);
        assert_eq!(places(&[sim.clone(), middle(true)]), Vec::<String>::new());
        assert_eq!(places(&[sim, middle(false)]), ["middle"]);
    }

    #[test]
    fn a_crate_that_nobody_placed_is_found() {
        assert_eq!(places(&[package("new", &[])]), ["new"]);
    }

    #[test]
    fn an_arrow_that_nobody_draws_is_found() {
        assert_eq!(places(&[package("middle", &[("sim", true)])]), ["middle"]);
        assert_eq!(places(&[package("middle", &[("bottom", false)])]), ["middle"]);
        assert_eq!(places(&[package("top", &[])]), Vec::<String>::new());
    }

    #[test]
    fn a_need_that_no_file_names_is_found() {
        let top = package("top", &[("bottom", false)]);
        let idle = Source::new("crates/top/src/lib.rs", "// bottom\nfn f() {}");
        let workspace = Workspace { packages: vec![top, package("bottom", &[])], sources: vec![idle], ..Workspace::default() };
        assert_eq!(check_with(&workspace, TOWER).len(), 1);
    }

    #[test]
    fn crates_from_elsewhere_are_no_arrows() {
        assert_eq!(places(&[package("bottom", &[("serde", false)])]), Vec::<String>::new());
    }
}
