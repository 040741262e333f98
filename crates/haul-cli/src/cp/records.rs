//! Files beside a copy: the list of names that it is of, the manifest, the log.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use haul_copy::told::Outcome;
use haul_copy::{CopyLog, Manifest, Parts, Sum};
use haul_files::{Chosen, Event};

use crate::args::CpArgs;
use crate::exit::{Exit, Failure, chain};

/// What is kept of a copy.
pub struct Records {
    pub manifest: Option<Manifest>,
    pub log: Option<CopyLog>,
}

impl Records {
    /// As the arguments have it; what cannot be written to is known before anything is copied.
    pub fn open(args: &CpArgs) -> Result<Self, Failure> {
        let manifest = args.manifest.as_deref().map(Manifest::create).transpose();
        let log = args.log_file.as_deref().map(CopyLog::open).transpose();
        let manifest = manifest.map_err(|error| Failure::new(chain(&error)))?;
        let records = Self { manifest, log: log.map_err(|error| Failure::new(chain(&error)))? };
        if let Some(log) = &records.log {
            let words: Vec<_> = args.operands.iter().map(|operand| operand.to_string_lossy()).collect();
            log.say(&format!("start: {}", words.join(" ")));
        }
        Ok(records)
    }

    pub fn event(&self, event: &Event<'_>) {
        if let Some(manifest) = &self.manifest {
            manifest.event(event);
        }
        if let Some(log) = &self.log {
            log.event(event);
        }
    }

    /// Writes the rest.
    pub fn close(&self, outcome: &Outcome, sum: Sum, exit: Exit) -> Result<(), Failure> {
        let report = &outcome.report;
        let written = match &self.manifest {
            Some(manifest) if !matches!(exit, Exit::Failed | Exit::Interrupted) => manifest.write(sum, &report.problems),
            _ => Ok(()),
        };
        if let Some(log) = &self.log {
            outcome.parts.iter().flat_map(Parts::lines).for_each(|line| log.say(&line));
            log.say(&format!(
                "end: exit status {}; {} files, {} bytes, {} skipped, {} deleted, {} problems",
                exit.code(),
                report.files,
                report.bytes.as_u64(),
                report.skipped_files,
                report.removed,
                report.problem_count
            ));
        }
        written.map_err(|error| Failure::new(chain(&error)))
    }
}

/// The names that a file lists, or standard input.
pub fn chosen(list: &Path, by_nul: bool) -> Result<Chosen, Failure> {
    let failed = |error: io::Error| Failure::new(format!("{}: {error}", list.display()));
    let mut names = Vec::new();
    if list == Path::new("-") {
        io::stdin().read_to_end(&mut names).map_err(failed)?;
    } else {
        names = fs::read(list).map_err(failed)?;
    }
    let chosen = Chosen::parse(&names, by_nul).map_err(|error| {
        Failure::new(format!("{}: {error}", list.display())).hint("names in a list are below the source, without ..")
    })?;
    if chosen.is_empty() {
        return Err(Failure::new(format!("{}: lists no name", list.display())));
    }
    Ok(chosen)
}
