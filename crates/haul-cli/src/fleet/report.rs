//! `haul fleet report`: tables, charts and a page of the logs of jobs.

use haul_fleet::LogReport;

use crate::args::FleetReportArgs;
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the command.
pub fn run(args: &FleetReportArgs) -> Result<Exit, Failure> {
    let report = LogReport::read(&args.dir)?;
    output::out_lines(&report.tables());
    for file in report.write(args.out.as_ref().unwrap_or(&args.dir))? {
        output::print_line(&format!("wrote {}", file.display()));
    }
    Ok(Exit::Done)
}
