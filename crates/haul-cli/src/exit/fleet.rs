//! haul-fleet's errors, for people.

use std::io::ErrorKind;

use haul_files::{CopyError, Stop};
use haul_fleet::{AbsentError, GetError, Here, HostsError, JoinError, LogError, PutError, ReportError, StartError};

use super::{Failure, RESUME, SAME_VERSION, chain};

impl From<HostsError> for Failure {
    fn from(error: HostsError) -> Self {
        let failure = Self::new(chain(&error));
        match error {
            HostsError::None => failure.hint("name the servers with -H, for instance -H 'node[01-13]' or -H @FILE"),
            HostsError::Range { .. } => {
                failure.hint("write ranges like node[01-13,20]; quote them, or the shell reads them as a pattern")
            }
            _ => failure,
        }
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let failure = Self::new(chain(&error));
        match error {
            StartError::NoHosts => failure.hint("name the servers with -H, or a fleet that is up with --name"),
            StartError::NoPort { ports_named: true, .. } => failure.hint("the ports of --udp-port are taken; name more of them"),
            StartError::NoAddress => {
                failure.hint("name one with --call-back ADDRESS, or have this side call the servers with --dial-out")
            }
            StartError::NotStarted { program, .. } => {
                failure.hint(format!("is {} installed here, and in PATH?", program.to_string_lossy()))
            }
            _ => failure,
        }
    }
}

impl From<AbsentError> for Failure {
    fn from(error: AbsentError) -> Self {
        match error {
            AbsentError::Reach(error) => error.into(),
            AbsentError::Failed { error, hint } => Self { message: error.to_string(), hint: hint.map(|hint| hint.to_string()) },
            AbsentError::OtherVersion => Self::new(error).hint(SAME_VERSION),
            AbsentError::NoCall { .. } => Self::new(error)
                .hint("a firewall may drop UDP to this machine: let the servers wait for it with --dial-out, or name ports with --udp-port"),
            AbsentError::NoAnswer { .. } => {
                Self::new(chain(&error)).hint("a firewall may drop UDP; if it lets some ports through, name them with --udp-port")
            }
            AbsentError::Silent { .. } => Self::new(error).hint("give it more time with --timeout"),
            AbsentError::NotStarted { .. } => Self::new(error).hint("`haul --version` must work there; name its path with --remote-haul"),
            _ => Self::new(chain(&error)),
        }
    }
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        let failure = Self::new(chain(&error));
        match &error {
            JoinError::NotUp { name } => failure
                .hint(format!("start it with `haul fleet up --name {name} -H HOSTS`; `haul fleet list` shows those that are up")),
            JoinError::BadName { .. } => {
                failure.hint("a name has letters, digits, `.`, `_` and `-`, 48 at most, and begins with no point")
            }
            JoinError::UpAlready { name } => {
                failure.hint(format!("end it with `haul fleet down --name {name}`, or choose another --name"))
            }
            JoinError::Place { .. } => failure.hint(
                "sockets lie in a directory of your own: set XDG_RUNTIME_DIR to one with mode 0700, or remove what is there",
            ),
            JoinError::Keeper(_) => failure.hint("see its log; `haul fleet list` shows what is up"),
            JoinError::NoPort { ports_named: true, .. } => failure.hint(
                "the fleet was started with too few ports in --udp-port: it needs one, and each job at the same time one more",
            ),
            JoinError::Empty { gone } => {
                let who: Vec<String> = gone.iter().map(|gone| format!("{}: {}", gone.name, gone.why)).collect();
                Self::new(format!("{}\n{}", failure.message, who.join("\n")))
                    .hint("the next command tries to start them again, at most once a minute")
            }
            _ => failure,
        }
    }
}

impl From<GetError> for Failure {
    fn from(error: GetError) -> Self {
        let failure = Self::new(chain(&error));
        match &error {
            GetError::Conflict { here: Here::Untouched, .. } => failure.hint("where only the times differ, --replicas-by hash compares the content; else fetch from one of them, or remove the wrong one"),
            GetError::Conflict { .. } => failure.hint("where only the times differ, --replicas-by hash compares the content; else fetch from one of them, or remove the wrong one; --wait-for-all finds it before anything is written"),
            GetError::Unsupported { .. } => failure.hint(SAME_VERSION),
            GetError::AllDown { members } | GetError::OutOfReach { members, .. } => {
                let who: Vec<String> = members.iter().map(|(name, why)| format!("{name}: {why}")).collect();
                Self::new(format!("{}\n{}", failure.message, who.join("\n"))).hint(RESUME)
            }
            GetError::Destination(CopyError::Stopped(stop)) => match stop {
                Stop::DestinationFull { .. } => {
                    failure.hint("make room there; the same command then goes on from where this one stopped")
                }
                Stop::NeedsDirectory { .. } | Stop::Destination { .. } => failure.hint("make the directory first"),
                Stop::Busy { .. } => failure.hint("wait for the other one to end"),
                _ => failure,
            },
            _ => failure,
        }
    }
}

impl From<PutError> for Failure {
    fn from(error: PutError) -> Self {
        let failure = Self::new(chain(&error));
        match &error {
            PutError::Replicas { .. } => {
                failure.hint("ask for at most as many --replicas as there are servers, and for at least one")
            }
            PutError::AllDown { members } => {
                let who: Vec<String> = members.iter().map(|(name, why)| format!("{name}: {}", chain(why))).collect();
                let failure = Self::new(format!("{}\n{}", failure.message, who.join("\n")));
                let nowhere =
                    |why: &CopyError| matches!(why, CopyError::Refused(Stop::Destination { .. } | Stop::NeedsDirectory { .. }));
                let is_nowhere = members.iter().all(|(_, why)| nowhere(why));
                // What all have refused they will refuse again.
                if !is_nowhere && members.iter().all(|(_, why)| matches!(why, CopyError::Refused(_))) {
                    return failure;
                }
                failure.hint(if is_nowhere { "make the directory above it there first" } else { RESUME })
            }
            _ => failure,
        }
    }
}

impl From<LogError> for Failure {
    fn from(error: LogError) -> Self {
        Self::new(format!("no log can be written: {}", chain(&error))).hint("name another directory with --log")
    }
}

impl From<ReportError> for Failure {
    fn from(error: ReportError) -> Self {
        const WHERE: &str = "name the directory that was given to --log, or one of the directories of jobs in it";
        match &error {
            ReportError::Io { source, .. } if source.kind() != ErrorKind::NotFound => Self::new(chain(&error)),
            ReportError::Io { .. } | ReportError::NoLog { .. } => Self::new(chain(&error)).hint(WHERE),
            _ => Self::new(chain(&error)),
        }
    }
}
