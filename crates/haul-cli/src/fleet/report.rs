//! `haul fleet report`: tables, charts and a page of the logs of jobs.

use std::path::{Path, PathBuf};

use haul_fleet::LogReport;

use crate::args::FleetReportArgs;
use crate::exit::{Exit, Failure};
use crate::output;

/// Runs the command.
pub fn run(args: &FleetReportArgs) -> Result<Exit, Failure> {
    let report = LogReport::read_all(&args.dirs)?;
    let out =
        args.out.as_deref().or_else(|| place(&args.dirs)).ok_or_else(|| {
            Failure::new("the logs are not in one directory").hint("say with --out DIR where the report is to go")
        })?;
    output::out_lines(&report.tables());
    for file in report.write(out)? {
        output::print_line(&format!("wrote {}", file.display()));
    }
    Ok(Exit::Done)
}

/// The one directory, or what all of them are in.
fn place(dirs: &[PathBuf]) -> Option<&Path> {
    let [first, others @ ..] = dirs else { return None };
    if others.is_empty() {
        return Some(first);
    }
    let parent = first.parent().filter(|parent| others.iter().all(|dir| dir.parent() == Some(*parent)))?;
    Some(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_goes_to_where_the_logs_are() {
        let of = |dirs: &[&str]| place(&dirs.iter().map(PathBuf::from).collect::<Vec<_>>()).map(Path::to_owned);
        for (dirs, expected) in [
            (&["logs"][..], Some("logs")),
            (&["logs/job-00001", "logs/job-00002/"], Some("logs")),
            (&["job-00001", "job-00002"], Some(".")),
            (&["a/job-00001", "b/job-00001"], None),
        ] {
            assert_eq!(of(dirs), expected.map(PathBuf::from), "{dirs:?}");
        }
    }
}
