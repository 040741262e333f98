//! `haul lab list`: which experiments there are.

use std::fmt::Write as _;

use clap::Args;
use haul_bench::experiment::registry;

use super::print::print;
use crate::exit::{Exit, Failure};

#[derive(Debug, Args)]
pub struct ListArgs {
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &ListArgs) -> Result<Exit, Failure> {
    if args.json {
        let entry = |experiment: &haul_bench::experiment::Experiment| {
            serde_json::json!({
                "name": experiment.name, "about": experiment.about, "reproduces": experiment.reproduces,
            })
        };
        let all: Vec<_> = registry().iter().map(entry).collect();
        return print(&format!("{}\n", serde_json::Value::from(all)));
    }
    let mut text = String::new();
    for experiment in registry() {
        let _ = writeln!(text, "{:<9} {}", experiment.name, experiment.about);
        let _ = writeln!(text, "{:<9} after {}", "", experiment.reproduces);
    }
    text.push_str("\nRun some by `haul lab run NAME...`, to try them out with --quick.\n");
    print(&text)
}
