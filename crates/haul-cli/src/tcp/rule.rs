//! A rule in words.

use haul_tcp::{Rule, Way};

/// What a rule gives, to whom, and how.
pub fn words(rule: &Rule) -> String {
    let way = match &rule.way {
        Way::Default => "its default".to_owned(),
        Way::Routes(1) => "by its route".to_owned(),
        Way::Routes(number) => format!("by its {number} routes"),
        Way::Cgroup(dir) => format!("by a program at {}", dir.display()),
    };
    format!("{}: {}, {way}", rule.law, rule.whose)
}
