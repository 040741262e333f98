//! `haul lab run`: experiments, one after the other.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use haul_bench::bench::{self, Emulators, Kind, Programs, Tool};
use haul_bench::experiment::{Experiment, Ground, Report, Scale, find, registry};

use super::bench::Progress;
use super::commands::COMMANDS;
use super::print::{keep, print};
use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

#[derive(Debug, Args)]
pub struct ExperimentArgs {
    /// Which; `haul lab list` tells what there is
    #[arg(value_name = "NAME", required_unless_present = "all")]
    pub names: Vec<String>,
    /// All of them
    #[arg(long, conflicts_with = "names")]
    pub all: bool,
    /// Small and short: to see that everything works, not for its figures
    #[arg(long)]
    pub quick: bool,
    /// In simulation only: without root, and with the same figures each time
    #[arg(long, conflicts_with = "real")]
    pub sim_only: bool,
    /// On real sockets over the emulated WAN only
    #[arg(long)]
    pub real: bool,
    /// Who is compared on real sockets, where an experiment compares tools; by default everybody
    #[arg(long, value_name = "TOOL,..", value_delimiter = ',')]
    pub tools: Vec<Tool>,
    /// Directory of the results [default: bench/results/DATE-NAME in a checkout of haul, haul-lab-DATE-NAME elsewhere]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
}

/// Runs, writes what came out, and prints it.
pub fn run(args: &ExperimentArgs) -> Result<Exit, Failure> {
    // A wrong name, a wrong tool or no root are known before hours of measuring.
    let wanted: Vec<&Experiment> = if args.all {
        registry().iter().collect()
    } else {
        args.names.iter().map(|name| find(name)).collect::<Result<_, _>>()?
    };
    if let Some(tool) = args.tools.iter().find(|tool| tool.kind() != Kind::Memory) {
        return Err(Failure::new(format!("{tool} only copies files: no experiment does that")));
    }
    if !args.sim_only && !rustix::process::geteuid().is_root() {
        let failure = Failure::new("experiments on real sockets need root: they make network namespaces and TUN devices");
        return Err(failure.hint("run it with sudo, or with --sim-only"));
    }
    interrupt::watch();
    let scale = if args.quick { Scale::Quick } else { Scale::Full };
    let programs = programs()?;
    let mut came = Came::default();
    for experiment in wanted {
        let asked = args.out.as_ref().map(|out| out.join(experiment.name));
        let out = bench::directory(asked, experiment.name, |date| format!("haul-lab-{date}-{}", experiment.name))?;
        output::print_line(&format!("{}: {}", experiment.name, experiment.about));
        match experiment.simulate.filter(|_| !args.real) {
            Some(simulate) => {
                let facts = facts(&programs);
                came.add(experiment.name, finish(Report { facts, ..simulate(scale) }, &out.join("simulated"))?);
            }
            None if args.sim_only => output::print_line(&format!("{}: only real sockets show it", experiment.name)),
            None => {}
        }
        if !args.sim_only && !interrupt::requested() {
            let facts = facts(&programs);
            let report = Report { facts, ..on_real_sockets(experiment.measure, scale, args, &programs) };
            came.add(experiment.name, finish(report, &out.join("real"))?);
        }
        if interrupt::requested() {
            return Ok(Exit::Interrupted);
        }
    }
    came.exit()
}

/// What came of all experiments.
#[derive(Default)]
struct Came {
    missed: usize,
    /// Those that measured nothing: the others are run all the same.
    empty: Vec<&'static str>,
}

impl Came {
    /// So many goals of an experiment were missed; none where nothing was measured.
    fn add(&mut self, name: &'static str, missed: Option<usize>) {
        match missed {
            Some(missed) => self.missed += missed,
            None => self.empty.push(name),
        }
    }

    fn exit(self) -> Result<Exit, Failure> {
        match (&*self.empty, self.missed) {
            ([], 0) => Ok(Exit::Done),
            ([], _) => Ok(Exit::Partial),
            (empty, _) => {
                Err(Failure::new(format!("nothing was measured of {}", empty.join(", "))).hint("the notes above say why"))
            }
        }
    }
}

fn programs() -> Result<Programs, Failure> {
    let haul = std::env::current_exe().map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
    Ok(Programs::beside(haul))
}

/// Those of the machine, and how to do it again.
fn facts(programs: &Programs) -> BTreeMap<String, String> {
    let mut facts = bench::facts(programs);
    let words: Vec<String> = std::env::args().skip(1).collect();
    facts.insert("command".to_owned(), format!("haul {}", words.join(" ")));
    facts
}

fn on_real_sockets(
    measure: fn(Scale, &Ground<'_>) -> Report,
    scale: Scale,
    args: &ExperimentArgs,
    programs: &Programs,
) -> Report {
    let (sites, mut observer) = (Emulators::new(COMMANDS), Progress::default());
    let ground = Ground {
        sites: &sites,
        programs,
        tools: if args.tools.is_empty() { Tool::usual(Kind::Memory).collect() } else { args.tools.clone() },
        observer: RefCell::new(&mut observer),
        progress: &|what| output::print_line(&format!("[{what}]")),
    };
    measure(scale, &ground)
}

/// Returns how many goals were missed; none where nothing was measured.
fn finish(mut report: Report, out: &Path) -> Result<Option<usize>, Failure> {
    report.facts.insert("load average at the end".to_owned(), bench::load());
    if report.tables.iter().all(|table| table.rows.is_empty()) {
        return print(&report.text()).map(|_| None);
    }
    keep(out, report.write(out), &report.text())?;
    Ok(Some(report.missed()))
}

pub const AFTER_HELP: &str = "\
For each experiment the directory gets simulated/ and real/ with report.txt, report.json, a CSV for each table, and each chart as SVG and PNG.
Exit status: 0 if all goals were met, 1 if some were missed, 2 for wrong usage or failure.

Examples:
  haul lab run --quick --sim-only sharing
  haul lab run loss rtt startup --out results";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_experiment_that_measures_nothing_is_told_at_the_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let empty = Report {
            heading: String::new(),
            verdicts: Vec::new(),
            tables: Vec::new(),
            charts: Vec::new(),
            notes: Vec::new(),
            facts: BTreeMap::new(),
            data: serde_json::Value::Null,
        };
        let mut came = Came::default();
        came.add("loss", finish(empty, dir.path()).expect("the next one is run"));
        came.add("rtt", Some(1));
        let failure = came.exit().expect_err("one measured nothing");
        assert_eq!(failure.message, "nothing was measured of loss");
        let mut missed = Came::default();
        missed.add("rtt", Some(1));
        assert!(matches!((missed.exit(), Came::default().exit()), (Ok(Exit::Partial), Ok(Exit::Done))));
    }
}
