//! What is seen of a job at one moment, and what is told of it once.

use std::path::PathBuf;
use std::time::Duration;

use haul_files::{FileProblem, Note};
use haul_fleet::Snapshot;
use haul_units::{BitRate, Bytes};

use crate::exit::Failure;

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

/// Something to be said once.
#[derive(Debug, Clone)]
pub enum Said {
    Up { member: String, rtt: Duration },
    Absent { member: String, why: String, failure: Option<Failure> },
    Down { member: String, why: String },
    Listed { member: String, files: u64, bytes: Bytes },
    Ordered { member: String, path: PathBuf, range: std::ops::Range<u64>, why: haul_fleet::Why },
    File { member: Option<String>, path: PathBuf, size: Bytes },
    Problem(FileProblem),
    Note(Note),
}
