//! What happens in a copy, appended to a file, a line each with its time in UTC.
//!
//! Whatever a peer has named is printable in it: names escape what is not text. A line that cannot be written ends no copy.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use haul_files::Event;
use haul_peer::Moment;
use thiserror::Error;

use crate::clock;

/// A file that lines are appended to.
pub struct CopyLog(File);

/// There is none.
#[derive(Debug, Error)]
#[error("{}", path.display())]
pub struct LogError {
    path: PathBuf,
    #[source]
    source: io::Error,
}

impl CopyLog {
    /// Opens it, and makes it, if it is not there.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let file = OpenOptions::new().append(true).create(true).open(path);
        file.map(Self).map_err(|source| LogError { path: path.to_owned(), source })
    }

    /// Appends a line, in one call: several copies may have one log.
    pub fn say(&self, text: &str) {
        let mut line = Moment::of_unix_seconds(clock::unix_seconds()).in_full();
        line.push(' ');
        haul_units::push_printable(&mut line, text.as_bytes(), usize::MAX);
        line.push('\n');
        let _ = (&self.0).write_all(line.as_bytes());
    }

    /// Hears of the copy.
    pub fn event(&self, event: &Event<'_>) {
        match event {
            Event::FileFinished { path, size } => self.say(&format!("file: {} ({} bytes)", path.display(), size.as_u64())),
            Event::Removed(path) => self.say(&format!("deleted: {path}")),
            Event::Would(would) => self.say(&format!("would: {:?} {}", would.change, would.path)),
            Event::Problem(problem) => self.say(&format!("problem: {problem}")),
            Event::Note(note) => self.say(&format!("note: {note}")),
            Event::Resumed => self.say("goes on with what an interrupted copy left"),
            _ => {}
        }
    }
}
