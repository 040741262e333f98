//! How a command ends: its exit status, and the two lines that say why.
//!
//! `error:` names what failed, with the path or the host; `hint:` says what to do about it. The status is part of the interface: scripts
//! branch on it. What a library's errors mean for a user of these commands, and which option helps, is in a file for each library.

mod config;
mod copy;
#[cfg(unix)]
mod fleet;
#[cfg(unix)]
mod lab;
mod peer;
mod perf;
mod serve;
#[cfg(unix)]
mod tcp;
mod tunnel;

use std::fmt;
use std::process::{ExitCode, ExitStatus};

pub use copy::by_command;
pub use haul_peer::chain;
use haul_peer::without_numbers;

use crate::system;

pub use peer::{SAME_VERSION, explained, refused};

/// Advice after anything that leaves a resumable state.
pub const RESUME: &str = "the same command goes on from where this one stopped";

/// The status that a command ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Everything asked for was done, and verified as far as was asked.
    Done,
    /// Some of it was not; each case has been reported.
    Partial,
    /// Wrong usage, or nothing could be done.
    Failed,
    /// The user stopped it.
    Interrupted,
    /// As a program that was run elsewhere ended.
    Code(u8),
}

impl Exit {
    /// The number that the shell sees.
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::Partial => 1,
            Self::Failed => 2,
            Self::Interrupted => 130,
            Self::Code(code) => code,
        }
    }
}

/// As a shell has it: the program's own, or 128 and the signal that ended it.
impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        Self::Code(u8::try_from(system::status_of(status)).unwrap_or(u8::MAX))
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command could not do its work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What failed: printed after `error:`.
    pub message: String,
    /// What to do about it: printed after `hint:`.
    pub hint: Option<String>,
}

impl Failure {
    /// A failure that has no advice to give.
    pub fn new(message: impl fmt::Display) -> Self {
        Self { message: without_numbers(message.to_string()), hint: None }
    }

    /// The same failure, with advice.
    pub fn hint(self, hint: impl fmt::Display) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_those_promised() {
        let codes = [Exit::Done, Exit::Partial, Exit::Failed, Exit::Interrupted].map(Exit::code);
        assert_eq!(codes, [0, 1, 2, 130]);
    }

    #[test]
    fn prints_error_then_hint() {
        let failure = Failure::new("no such host: x");
        assert_eq!(failure.to_string(), "error: no such host: x");
        assert_eq!(failure.hint("check the name").to_string(), "error: no such host: x\nhint: check the name");
    }
}
