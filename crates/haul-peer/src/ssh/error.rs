//! Why ssh led to no far side.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::PathBuf;

use haul_units::PeerText;
use thiserror::Error;

use crate::bootstrap::Obstacle;

/// Why ssh led to no far side.
#[derive(Debug, Error)]
pub enum SshError {
    /// The program could not be started.
    #[error("{}: {source}", program.display())]
    NotStarted {
        /// As the user named it.
        program: OsString,
        /// Why.
        source: io::Error,
    },
    /// The user wants an end.
    #[error("interrupted")]
    Interrupted,
    /// This host lost the address that ssh had connected from before the far side said anything.
    #[error("{host}: this host's address changed while ssh logged in")]
    CutOff {
        /// The host.
        host: String,
    },
    /// ssh ended before the far side said anything.
    #[error("{host}: {ended}")]
    NoAnswer {
        /// The host.
        host: String,
        /// How ssh ended, and what was printed.
        ended: SshEnded,
        /// What a user types to log in there in the same way, by ssh alone.
        login: String,
    },
    /// The far side said that it cannot serve.
    #[error("{host}: {error}")]
    Failed {
        /// The host.
        host: String,
        /// Why, in its words.
        error: PeerText,
        /// What to do about it there, in its words.
        hint: Option<PeerText>,
    },
    /// What the far side said makes no sense to this version.
    #[error("{host}: the haul there speaks another version")]
    OtherVersion {
        /// The host.
        host: String,
    },
    /// The far side has no haul of this version, and there is no program for such a machine at hand.
    #[error("{host} has no haul of this version, and there is none here for {system} {machine} (there is: {at_hand})")]
    NoProgram {
        /// The host.
        host: String,
        /// As `uname -s` says it there.
        system: PeerText,
        /// As `uname -m` says it there.
        machine: PeerText,
        /// What there are programs for.
        at_hand: String,
    },
    /// A program could not be brought there.
    #[error("{host}: {obstacle}")]
    NotBrought {
        /// The host.
        host: String,
        /// Why.
        obstacle: Obstacle,
    },
    /// The program that was to be brought there cannot be read.
    #[error("{}: {source}", path.display())]
    ProgramUnreadable {
        /// The program.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Part of what the far side said is not what it should be.
    #[error("{host}: the far side's answer makes no sense")]
    Unclear {
        /// The host.
        host: String,
    },
    /// ssh's output could not be read.
    #[error("{host}: reading from ssh: {source}")]
    Io {
        /// The host.
        host: String,
        /// Why.
        source: io::Error,
    },
    /// The same, and why is not known.
    #[error("reading from ssh failed")]
    Lost,
}

/// How ssh ended without an answer: its exit status tells whose fault it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshEnded {
    /// With which status, unless it was killed.
    pub status: Option<i32>,
    /// What the far side's shell was to run.
    pub remote: OsString,
    /// What was printed there before.
    pub printed: Vec<PeerText>,
}

impl SshEnded {
    /// The shell over there did not find haul.
    pub const NOT_FOUND: i32 = 127;
    /// It found something that cannot be run.
    pub const NOT_EXECUTABLE: i32 = 126;
    /// ssh itself failed.
    pub const NO_LOGIN: i32 = 255;

    /// The program that was called there, as a shell there takes it; `haul` where a script called it.
    pub fn program(&self) -> &str {
        let called = self.remote.to_str().and_then(|remote| remote.strip_suffix(" remote"));
        called.filter(|program| !program.contains('\n')).unwrap_or("haul")
    }
}

impl SshError {
    /// Whether a haul of this version at the far side would mend it.
    pub const fn lacks_haul(&self) -> bool {
        match self {
            Self::NoAnswer { ended, .. } => matches!(ended.status, Some(SshEnded::NOT_FOUND | SshEnded::NOT_EXECUTABLE)),
            Self::OtherVersion { .. } => true,
            _ => false,
        }
    }
}

impl fmt::Display for SshEnded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remote = self.remote.display();
        match self.status {
            Some(Self::NOT_FOUND) => write!(f, "haul not found there")?,
            Some(Self::NOT_EXECUTABLE) => write!(f, "`{remote}` cannot be executed there")?,
            Some(Self::NO_LOGIN) => write!(f, "ssh could not log in")?,
            Some(0) | None => write!(f, "`{remote}` ended without an answer")?,
            Some(code) => write!(f, "`{remote}` ended with status {code} there")?,
        }
        if self.printed.is_empty() {
            return Ok(());
        }
        write!(f, " (it printed: {})", self.printed.iter().map(PeerText::as_str).collect::<Vec<_>>().join(" / "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(status: i32, printed: &[&str]) -> String {
        let printed = printed.iter().map(|&line| line.into()).collect();
        SshEnded { status: Some(status), remote: "haul remote".into(), printed }.to_string()
    }

    #[test]
    fn every_way_to_fail_has_its_words() {
        for (status, words) in [(127, "haul not found there"), (255, "could not log in"), (1, "status 1")] {
            assert!(said(status, &[]).contains(words), "{}", said(status, &[]));
        }
    }

    #[test]
    fn the_program_is_that_which_was_named() {
        let program = |remote: &str| {
            let ended = SshEnded { status: None, remote: remote.into(), printed: Vec::new() };
            ended.program().to_owned()
        };
        assert_eq!(program("~/'my bin/haul' remote"), "~/'my bin/haul'");
        assert_eq!(program("sh -c 'if true\nthen x; fi' remote"), "haul");
    }

    #[test]
    fn what_the_far_side_printed_is_shown() {
        assert!(said(1, &["This account is closed."]).ends_with("(it printed: This account is closed.)"));
    }
}
