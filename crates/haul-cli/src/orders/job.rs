//! Orders for a job with many servers: `haul fleet get` and `put`.

use std::ffi::OsString;
use std::sync::Arc;

use haul::BitRate;
use haul_control::{Controlled, Order, Status};
use haul_fleet::JobLimit;

use super::carried::{in_a_line, told};
use crate::output::{self, JobTally};
use crate::{clock, interrupt};

/// A job that runs.
pub struct Job {
    command: &'static str,
    what: String,
    began: u64,
    tally: Arc<JobTally>,
    limit: JobLimit,
    tells: bool,
}

impl Job {
    /// Of these operands; the limit is the job's own; `tells`: it says on standard error what it was told.
    pub fn new(command: &'static str, operands: &[OsString], tally: Arc<JobTally>, limit: JobLimit, tells: bool) -> Self {
        let what = in_a_line(operands);
        Self { command, what, began: clock::unix_seconds(), tally, limit, tells }
    }
}

impl Controlled for Job {
    fn handle(&self, order: Order) -> Status {
        let mut refused = None;
        match order {
            Order::Status => {}
            Order::Limit { bps } => {
                self.limit.set(bps.map(BitRate::from_bps));
                if self.tells {
                    output::print_line(&told(self.limit.get()));
                }
            }
            Order::Mode { .. } => refused = Some("a fleet's mode stays"),
            Order::Pause | Order::Resume => refused = Some("only copies wait: a job that is stopped goes on by the same command"),
            Order::Stop => interrupt::ask(),
        }
        let latest = self.tally.latest();
        Status {
            pid: std::process::id(),
            command: self.command.into(),
            what: self.what.as_str().into(),
            began: self.began,
            files: latest.files_done,
            bytes: latest.bytes_done.as_u64(),
            total: latest.bytes.as_u64(),
            limit_bps: self.limit.get().map(BitRate::as_bps),
            mode: None,
            paused: false,
            refused: refused.map(Into::into),
        }
    }
}
