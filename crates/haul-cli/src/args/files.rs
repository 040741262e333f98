//! How files are copied, whether by one copy or by a fleet.

use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use haul_files::{Changed, Filter, FilterError, Options, Verified, Verify, rules};

use crate::exit::{Failure, chain};

/// What becomes of files.
#[derive(Debug, Args)]
pub struct FileArgs {
    /// Copy directories with everything in them; symbolic links are copied as links
    #[arg(short, long)]
    pub recursive: bool,
    /// Keep modification times (to the nanosecond) and exact modes; owners too, where the target is written as root
    #[arg(short, long)]
    pub preserve: bool,
    /// Keep files that are newer at the target, as cp and rsync -u do; one of the same time is copied if its size differs. Sets times, as -p does
    #[arg(long)]
    pub update: bool,
    /// Skip files that the target already has with the same size and modification time, whichever is newer otherwise; rsync's quick check. Sets times, as -p does
    #[arg(long)]
    pub skip_same: bool,
    /// Leave out what matches PATTERN, a line of a .gitignore: '*.o', 'build/' (only directories), '/tree/tmp' (from the top of the source tree on). What is in a directory that is left
    /// out is not looked at; of several patterns the last that matches decides
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
    /// Leave out what matches a pattern in FILE, one a line as in a .gitignore; --exclude comes after them
    #[arg(long, value_name = "FILE")]
    pub exclude_from: Vec<PathBuf>,
    /// Leave out by the rules in FILE, `- PATTERN` or `+ PATTERN` a line, as a merge file of rsync's: the first that matches decides. Patterns given otherwise count more
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub filter_from: Vec<PathBuf>,
    /// Copy what matches PATTERN although it is excluded, unless its directory is; comes after all that excludes
    #[arg(long, value_name = "PATTERN")]
    pub include: Vec<String>,
    /// What becomes of a file that is written to while it is copied
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = ChangedArg::Take, hide_default_value = true)]
    pub changed: ChangedArg,
    /// What is checked against the BLAKE3 hashes of what was read at the source
    #[arg(long, value_enum, value_name = "HOW", default_value_t = VerifyArg::Arrival, hide_default_value = true)]
    pub verify: VerifyArg,
    /// Hash nothing and check nothing
    #[arg(long, conflicts_with = "verify")]
    pub no_verify: bool,
    /// Start over instead of going on with what an interrupted copy left behind
    #[arg(long)]
    pub no_resume: bool,
}

impl FileArgs {
    /// As the engine takes them.
    pub fn options(&self) -> Options {
        Options {
            recursive: self.recursive,
            preserve: self.preserve,
            update: self.update,
            skip_same: self.skip_same,
            changed: self.changed.into(),
            verify: self.verified_how(),
            resume: !self.no_resume,
            ..Options::default()
        }
    }

    /// What is left out. Later lines count more: files first, what is on the command line next, what is taken back in last.
    pub fn filter(&self) -> Result<Filter, Failure> {
        let mut lines = Vec::new();
        // Of several files the first has the first rule.
        for path in self.filter_from.iter().rev() {
            lines.extend(rules(&text_of(path)?).map_err(|error| Failure::new(format!("{}: {error}", path.display())))?);
        }
        for path in &self.exclude_from {
            lines.extend(text_of(path)?.trim_start_matches('\u{feff}').lines().map(str::to_owned));
        }
        // On the command line there are no comments.
        let literal = |pattern: &String| if pattern.starts_with('#') { format!("\\{pattern}") } else { pattern.clone() };
        lines.extend(self.exclude.iter().map(literal));
        lines.extend(self.include.iter().map(|pattern| format!("!{pattern}")));
        Filter::new(lines).map_err(|error| unusable(&error))
    }

    /// Whether all content that came was verified as far as was asked; none is no word on it.
    pub fn is_enough(&self, verified: Option<Verified>) -> bool {
        let asked = match self.verified_how() {
            Verify::Off => Verified::No,
            Verify::Arrival => Verified::OnArrival,
            Verify::ReadBack => Verified::ReadBack,
        };
        verified.is_none_or(|verified| verified >= asked)
    }

    fn verified_how(&self) -> Verify {
        match self.verify {
            _ if self.no_verify => Verify::Off,
            VerifyArg::Arrival => Verify::Arrival,
            VerifyArg::ReadBack => Verify::ReadBack,
        }
    }
}

fn text_of(path: &Path) -> Result<String, Failure> {
    let failed = |error: &dyn Display| Failure::new(format!("{}: {error}", path.display()));
    let text = fs::read(path).map_err(|error| failed(&error))?;
    String::from_utf8(text).map_err(|_| failed(&"patterns are UTF-8 text"))
}

/// What is wrong with patterns.
fn unusable(error: &FilterError) -> Failure {
    let failure = Failure::new(chain(error));
    match error {
        FilterError::Invalid { .. } => {
            failure.hint("patterns are those of .gitignore files; a backslash takes a character literally")
        }
        _ => failure.hint("fewer or shorter patterns, such as the name of a directory that has them all"),
    }
}

/// Values of the option `--verify`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum VerifyArg {
    /// What arrives, in memory, just before it is written; what the disk then keeps is not looked at. The default
    Arrival,
    /// That, and what the target's disk gives back after the sync, before the file gets its name: past the page cache (O_DIRECT), or where its
    /// file system cannot do that, through the cache after it was told to drop the file; the summary says which. A file that differs is named and
    /// does not get its name; exit status 1
    ReadBack,
}

/// Values of the option `--changed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ChangedArg {
    /// Copy it up to the length that it had at the start, as scp and rsync do, and say so, with the blocks that were rewritten after they had
    /// been read; the exit status is still 0. The default
    Take,
    /// Do not copy it; exit status 1
    Fail,
    /// Copy it again from its start, once; if it changes again, do not copy it
    Retry,
}

impl From<ChangedArg> for Changed {
    fn from(argument: ChangedArg) -> Self {
        match argument {
            ChangedArg::Take => Self::Take,
            ChangedArg::Fail => Self::Fail,
            ChangedArg::Retry => Self::Retry,
        }
    }
}
