//! What is seen of a job at one moment, and what is told of it once.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use haul_files::{FileProblem, Note};
use haul_plan::Why;
use haul_units::{BitRate, Bytes};

use crate::observe::Snapshot;

/// One look at a job.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// How far it is.
    pub job: Snapshot,
    /// Rate at which bytes have arrived of late.
    pub rate: BitRate,
    /// Since the command began, starting the servers included.
    pub since_command: Duration,
}

impl Look {
    /// Time until all has arrived, if that can be said.
    pub fn left(&self) -> Option<Duration> {
        let missing = self.job.bytes.saturating_sub(self.job.bytes_done);
        (self.job.bytes > Bytes::ZERO && self.rate > BitRate::ZERO).then(|| self.rate.time_for(missing))
    }
}

/// Something to be said once. `F`: what a program says of a server that does not come.
#[derive(Debug, Clone)]
pub enum Said<F = ()> {
    /// A server is up.
    Up {
        /// Its name.
        member: String,
        /// How far it is; zero where that is not known yet.
        rtt: Duration,
    },
    /// A server does not come.
    Absent {
        /// Its name.
        member: String,
        /// Why.
        why: String,
        /// What people are still to be told of that.
        untold: Option<F>,
    },
    /// A server is given up.
    Down {
        /// Its name.
        member: String,
        /// Why.
        why: String,
    },
    /// A server has said what it has.
    Listed {
        /// Its name.
        member: String,
        /// So many files.
        files: u64,
        /// In all.
        bytes: Bytes,
    },
    /// A server was told to send.
    Ordered {
        /// Its name.
        member: String,
        /// Of which file.
        path: PathBuf,
        /// What of it.
        range: Range<u64>,
        /// Why this one.
        why: Why,
    },
    /// A file is whole.
    File {
        /// Who sent or has it, where it is one server.
        member: Option<String>,
        /// Its name.
        path: PathBuf,
        /// Its size.
        size: Bytes,
    },
    /// A file that could not be copied.
    Problem(FileProblem),
    /// Something to know.
    Note {
        /// Who says it, where it is one server.
        member: Option<String>,
        /// What.
        note: Note,
    },
}
