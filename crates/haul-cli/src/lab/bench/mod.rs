//! `haul lab bench`: haul beside other tools, over the emulated WAN.
//!
//! Every program that is measured runs among the processes of an emulator that ends with this process, and files lie on a disk in its memory
//! that only it has mounted: whatever ends the bench, nothing is left but the results that were written.

pub mod args;

use haul_bench::bench::{self, Cell, Emulators, FileSet, Measurement, Observer, Outcome, Programs, report};

use haul_units::Bytes;

use self::args::{BenchArgs, FilesArgs, FilesCommand, grid};
use super::commands::COMMANDS;
use super::print::keep;
use crate::exit::{Exit, Failure};
use crate::{interrupt, output};

/// Measures, writes the results, and prints them.
pub fn run(args: &BenchArgs) -> Result<Exit, Failure> {
    let grid = grid(args).map_err(Failure::new)?;
    if !rustix::process::geteuid().is_root() {
        return Err(Failure::new("the bench needs root: it makes network namespaces and TUN devices").hint("run it with sudo"));
    }
    let haul = std::env::current_exe().map_err(|error| Failure::new(format!("cannot find this program: {error}")))?;
    // Before hours of measuring, a wrong one is known.
    let out = bench::directory(args.out.clone(), &grid.name, |date| format!("haul-bench-{date}"))?;
    if let Some(hint) = bench::tcp_hint(&grid) {
        output::print_line(&format!("note: {hint}"));
    }
    interrupt::watch();
    let mut progress = Progress { done: 0, all: grid.cells().count() };
    let results = bench::run(&grid, &Emulators::new(COMMANDS), &Programs::beside(haul), &mut progress);
    clear();
    let written = results.write(&out);
    let text = if args.json { results.json()? } else { report::text(&results) };
    keep(&out, written, &text)?;
    let failed = results.rows.iter().flat_map(|row| &row.measurements).any(|turn| matches!(turn.outcome, Outcome::Failed(_)));
    Ok(match failed {
        _ if interrupt::requested() => Exit::Interrupted,
        true => Exit::Partial,
        false => Exit::Done,
    })
}

/// Makes or checks files.
pub fn files(args: &FilesArgs) -> Result<Exit, Failure> {
    let files = FileSet { count: args.count, size: Bytes(args.size) };
    let done = match args.what {
        FilesCommand::Make => bench::files::make(&args.root, files, args.seed),
        FilesCommand::Check => bench::files::check(&args.root, files, args.seed),
    };
    done.map(|()| Exit::Done).map_err(Failure::new)
}

/// Tells on standard error what is going on.
#[derive(Default)]
pub(super) struct Progress {
    done: usize,
    /// How many turns there will be; 0: not known.
    all: usize,
}

impl Progress {
    /// Which turn of how many.
    fn place(&self) -> String {
        if self.all == 0 { self.done.to_string() } else { format!("{}/{}", self.done, self.all) }
    }
}

/// Takes the line of what is going on away again.
fn clear() {
    output::err_in_place("");
}

impl Observer for Progress {
    fn begins(&mut self, cell: &Cell) {
        self.done += 1;
        output::err_in_place(&format!("[{}] {}, {}: {}", self.place(), cell.path, cell.work, cell.tool.title()));
    }

    fn measured(&mut self, cell: &Cell, measurement: &Measurement) {
        clear();
        let what = match &measurement.outcome {
            Outcome::Skipped(why) => format!("skipped: {why}"),
            Outcome::Failed(why) => format!("failed: {why}"),
            Outcome::Done => format!("{} in {:.2} s", measurement.mean, measurement.time.as_secs_f64()),
            Outcome::GaveUp => format!("given up after {:.2} s, {} until then", measurement.time.as_secs_f64(), measurement.mean),
        };
        output::print_line(&format!("[{}] {}, {}: {}: {what}", self.place(), cell.path, cell.work, cell.tool.title()));
    }

    fn go_on(&self) -> bool {
        !interrupt::requested()
    }
}
