//! Which crate may need which.
//!
//! The table is the architecture: an arrow that is not in it fails the build. A crate that is missing from the table fails too, so that a new crate
//! is placed on purpose.

use crate::Finding;
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

const ALL: &[&str] =
    &["haul", "haul-files", "haul-bench", "haul-lab", "haul-scenarios", "haul-proto", "haul-sim", "haul-cc", "haul-units"];

const RULES: &[Rule] = &[
    rule("haul-units", &[], &[]),
    rule("haul-cc", &["haul-units"], &["haul-sim"]),
    rule("haul-sim", &["haul-units"], &[]),
    rule("haul-proto", &["haul-cc", "haul-units"], &["haul-sim"]),
    rule("haul-scenarios", &["haul-proto", "haul-sim", "haul-cc", "haul-units"], &[]),
    rule("haul", &["haul-proto", "haul-cc", "haul-units"], &[]),
    rule("haul-files", &["haul-units"], &[]),
    rule("haul-lab", &["haul-sim", "haul-units"], &[]),
    rule("haul-bench", &["haul-lab", "haul-scenarios", "haul-proto", "haul-sim", "haul-cc", "haul-units"], &[]),
    rule("haul-cli", ALL, ALL),
    rule("e2e", ALL, ALL),
    rule("fuzz-harness", ALL, ALL),
    rule("torture", &["e2e", "haul-lab", "haul-units", "hostile"], &[]),
    rule("hostile", &["e2e", "haul", "haul-proto", "haul-units"], &[]),
    rule("quinn-bulk", &[], &[]),
    rule("xtask", &[], &[]),
];

pub fn check(workspace: &Workspace) -> Vec<Finding> {
    let members: Vec<&str> = workspace.packages.iter().map(|package| package.name.as_str()).collect();
    workspace.packages.iter().flat_map(|package| check_package(package, &members)).collect()
}

fn check_package(package: &Package, members: &[&str]) -> Vec<Finding> {
    let finding = |message| Finding { place: package.name.clone(), message };
    let Some(rule) = RULES.iter().find(|rule| rule.package == package.name) else {
        return vec![finding("this crate is not in the table of arrows in xtask/src/arrows.rs".to_owned())];
    };
    let forbidden = package.needs.iter().filter(|need| members.contains(&need.name.as_str())).filter(|need| {
        let name = need.name.as_str();
        !(rule.may_need.contains(&name) || need.dev && rule.tests_may_need.contains(&name))
    });
    let kind = |dev| if dev { "tests of this crate" } else { "this crate" };
    forbidden.map(|need| finding(format!("{} must not need {}", kind(need.dev), need.name))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::Need;

    fn package(name: &str, needs: &[(&str, bool)]) -> Package {
        let needs = needs.iter().map(|&(name, dev)| Need { name: name.to_owned(), dev }).collect();
        Package { name: name.to_owned(), needs }
    }

    fn places(packages: &[Package]) -> Vec<String> {
        let workspace = Workspace { packages: packages.to_vec(), ..Workspace::default() };
        check(&workspace).into_iter().map(|finding| finding.place).collect()
    }

    #[test]
    fn an_arrow_upwards_is_found() {
        let driver = package("haul", &[("haul-proto", false)]);
        assert_eq!(places(&[driver.clone(), package("haul-proto", &[("haul", false)])]), ["haul-proto"]);
        assert_eq!(places(&[driver, package("haul-proto", &[])]), Vec::<String>::new());
    }

    #[test]
    fn the_simulator_is_for_tests_only() {
        let sim = package("haul-sim", &[]);
        assert_eq!(places(&[sim.clone(), package("haul-cc", &[("haul-sim", true)])]), Vec::<String>::new());
        assert_eq!(places(&[sim, package("haul-cc", &[("haul-sim", false)])]), ["haul-cc"]);
    }

    #[test]
    fn a_crate_that_nobody_placed_is_found() {
        assert_eq!(places(&[package("haul-new", &[])]), ["haul-new"]);
    }

    #[test]
    fn crates_from_elsewhere_are_no_arrows() {
        assert_eq!(places(&[package("haul-units", &[("serde", false)])]), Vec::<String>::new());
    }
}
