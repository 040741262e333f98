//! What the operands of a copy mean together: which host, which way, what.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use haul_files::store::Scheme;
use haul_files::{Destination, Filter, Options, PullJob, PushJob, SourceSpec};
use haul_peer::{Host, Operand, OperandError, os_str};
use thiserror::Error;

use crate::client::Job;
use crate::direct::Direct;

/// All that one command has to do.
#[derive(Debug)]
pub enum Plan {
    /// From here to a host.
    Push {
        /// Where to.
        host: Host,
        /// What.
        sources: Vec<Operand>,
        /// Path there.
        destination: OsString,
    },
    /// From hosts to here.
    Pull {
        /// Paths at each host, in the order in which the hosts are named first.
        parts: Vec<(Host, Vec<OsString>)>,
        /// A local path or standard output.
        destination: Operand,
    },
}

/// Standard input and output.
#[derive(Debug)]
pub struct Standard {
    /// What is read.
    pub input: SourceSpec,
    /// Where to.
    pub output: Destination,
}

/// Operands that make no copy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// One cannot be understood.
    #[error(transparent)]
    Operand(#[from] OperandError),
    /// There is none.
    #[error("no target")]
    NoTarget,
    /// There is one standard input.
    #[error("standard input can be copied only once")]
    StdinTwice,
    /// Source and target are both elsewhere.
    #[error("{source_name}: source and target are both on other hosts")]
    BothRemote {
        /// The source.
        source_name: String,
        /// A file here has this name.
        is_here: bool,
        /// The copy from host to host, where one of them can make it.
        direct: Option<Direct>,
    },
    /// Source and target are both here.
    #[error("{source_name}: source and target are both on this machine")]
    BothLocal {
        /// The source.
        source_name: String,
        /// One of them is in a store that is no directory of this machine.
        in_store: bool,
    },
    /// A list of names is of what is in one directory.
    #[error("a list of names needs one source, a directory, and a target that is no stream")]
    NotOneDirectory,
    /// What comes from several hosts goes into a directory.
    #[error("{}: is not a directory, and several sources need one", .0.display())]
    NotADirectory(PathBuf),
}

impl Plan {
    /// Makes sense of the operands, the target last.
    pub fn new(operands: &[OsString]) -> Result<Self, PlanError> {
        let parsed: Result<Vec<Operand>, OperandError> = operands.iter().map(|text| Operand::parse(text)).collect();
        let mut sources = parsed?;
        let target = sources.pop().ok_or(PlanError::NoTarget)?;
        if sources.iter().filter(|source| **source == Operand::Stdio).count() > 1 {
            return Err(PlanError::StdinTwice);
        }
        match target {
            Operand::Ssh(host, path) => Self::push(Host::Ssh(host), sources, path),
            Operand::Daemon(host, path) => Self::push(Host::Daemon(host), sources, at_daemon(&path)),
            local => Self::pull(sources, local),
        }
    }

    /// The host, or the one that is named first.
    pub fn first_host(&self) -> Option<&Host> {
        match self {
            Self::Push { host, .. } => Some(host),
            Self::Pull { parts, .. } => parts.first().map(|(host, _)| host),
        }
    }

    /// The same of what is in its one source, which is a directory: as if it were named `DIRECTORY/.`.
    pub fn of_content(self) -> Result<Self, PlanError> {
        match self {
            Self::Push { host, sources, destination } => match <[Operand; 1]>::try_from(sources) {
                Ok([Operand::Local(path)]) => Ok(Self::Push { host, sources: vec![Operand::Local(path.join("."))], destination }),
                _ => Err(PlanError::NotOneDirectory),
            },
            Self::Pull { mut parts, destination } => match parts.as_mut_slice() {
                [(_, paths)] if paths.len() == 1 && destination != Operand::Stdio => {
                    for path in paths {
                        *path = Path::new(&*path).join(".").into();
                    }
                    Ok(Self::Pull { parts, destination })
                }
                _ => Err(PlanError::NotOneDirectory),
            },
        }
    }

    /// How many hosts it is with.
    pub const fn hosts(&self) -> usize {
        match self {
            Self::Push { .. } => 1,
            Self::Pull { parts, .. } => parts.len(),
        }
    }

    /// Whether standard output is taken.
    pub fn writes_stdout(&self) -> bool {
        matches!(self, Self::Pull { destination: Operand::Stdio, .. })
    }

    /// Whether standard input is taken.
    pub fn reads_stdin(&self) -> bool {
        matches!(self, Self::Push { sources, .. } if sources.contains(&Operand::Stdio))
    }

    /// One job a host; `-` is what `standard` has.
    pub fn jobs(self, options: Options, filter: &Filter, standard: &Standard) -> Vec<(Host, Job)> {
        match self {
            Self::Push { host, sources, destination } => {
                let sources = sources.into_iter().map(|operand| source(operand, standard)).collect();
                vec![(host, Job::Push(PushJob { sources, destination: destination.into(), options, filter: filter.clone() }))]
            }
            Self::Pull { parts, destination } => parts
                .into_iter()
                .map(|(host, paths)| {
                    let sources = paths.into_iter().map(PathBuf::from).collect();
                    let destination = match &destination {
                        Operand::Local(path) => Destination::Path(path.clone()),
                        _ => standard.output.clone(),
                    };
                    (host, Job::Pull(PullJob { sources, destination, options, filter: filter.clone() }))
                })
                .collect(),
        }
    }

    fn push(host: Host, sources: Vec<Operand>, destination: OsString) -> Result<Self, PlanError> {
        match sources.iter().find(|source| source.is_remote()) {
            None => Ok(Self::Push { host, sources, destination }),
            Some(source) => {
                let source_name = source.to_string();
                let is_here = Path::new(&source_name).exists();
                let direct = Direct::of(&sources, &host, &destination);
                Err(PlanError::BothRemote { source_name, is_here, direct })
            }
        }
    }

    fn pull(sources: Vec<Operand>, destination: Operand) -> Result<Self, PlanError> {
        let mut parts: Vec<(Host, Vec<OsString>)> = Vec::new();
        for source in sources {
            let (host, path) = match source {
                Operand::Ssh(host, path) => (Host::Ssh(host), path),
                Operand::Daemon(host, path) => (Host::Daemon(host), at_daemon(&path)),
                local => {
                    let in_store = is_in_store(&local) || is_in_store(&destination);
                    return Err(PlanError::BothLocal { source_name: local.to_string(), in_store });
                }
            };
            match parts.iter_mut().find(|(known, _)| *known == host) {
                Some((_, paths)) => paths.push(path),
                None => parts.push((host, vec![path])),
            }
        }
        if let (Operand::Local(path), true) = (&destination, parts.len() > 1)
            && !is_in_store(&destination)
            && !path.is_dir()
        {
            return Err(PlanError::NotADirectory(path.clone()));
        }
        Ok(Self::Pull { parts, destination })
    }
}

/// Whether it is in a store that is no directory of this machine.
fn is_in_store(operand: &Operand) -> bool {
    matches!(operand, Operand::Local(path) if Scheme::split(path.as_os_str().as_encoded_bytes()).0 != Scheme::Local)
}

fn source(operand: Operand, standard: &Standard) -> SourceSpec {
    match operand {
        Operand::Local(path) => SourceSpec::Path(path),
        _ => standard.input.clone(),
    }
}

/// A path at a daemon as it takes it: it begins with the name of a root.
pub fn at_daemon(path: &OsStr) -> OsString {
    let mut bytes = vec![b'/'];
    let start = path.as_encoded_bytes().iter().position(|&b| b != b'/').unwrap_or(0);
    bytes.extend(&path.as_encoded_bytes()[start..]);
    os_str(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(line: &str) -> Result<Plan, PlanError> {
        Plan::new(&line.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn up() {
        let Ok(Plan::Push { host, sources, destination }) = plan("a - me@far:dir") else { panic!("not a push") };
        assert_eq!((host.to_string(), sources.len(), destination), ("me@far".to_owned(), 2, "dir".into()));
        let Ok(Plan::Push { host, destination, .. }) = plan("a haul://far//pub/x") else { panic!("not a push") };
        assert_eq!((host.to_string(), destination), ("haul://far:7700".to_owned(), "/pub/x".into()));
    }

    #[test]
    fn down_from_several_hosts() {
        let Ok(Plan::Pull { parts, destination }) = plan("one:a haul://two/b one:c .") else { panic!("not a pull") };
        assert_eq!(destination, Operand::Local(".".into()));
        let paths: Vec<_> = parts.iter().map(|(host, paths)| (host.to_string(), paths.len())).collect();
        assert_eq!(paths, [("one".to_owned(), 2), ("haul://two:7700".to_owned(), 1)]);
    }

    #[test]
    fn the_same_host_as_another_user_is_another_login() {
        let Ok(Plan::Pull { parts, .. }) = plan("a@one:x b@one:y /") else { panic!("not a pull") };
        assert_eq!(parts.len(), 2);
    }

    #[test]
    fn what_cannot_be_done_is_said() {
        for (line, message) in [
            ("a b", "both on this machine"),
            ("far:a other:b", "both on other hosts"),
            ("far:a b /tmp", "both on this machine"),
            ("a -", "both on this machine"),
            ("a gfarm:/b", "both on this machine"),
            ("gfarm:/a ram:b", "both on this machine"),
            ("any:x .", "write HOST:any:NAME"),
            ("a any:x", "write HOST:any:NAME"),
            ("far:a any:x", "write HOST:any:NAME"),
            ("- - far:x", "only once"),
            ("one:a two:b /no/such/dir", "is not a directory"),
            ("sftp://far/a b", "only scp:// and haul://"),
        ] {
            let error = plan(line).expect_err(line).to_string();
            assert!(error.contains(message), "{line}: {error}");
        }
    }

    #[test]
    fn stores_are_of_this_machine_or_of_a_host() {
        let Ok(Plan::Push { host, sources, destination }) = plan("gfarm:/a far:ram:/b") else { panic!("not a push") };
        assert_eq!((host.to_string(), destination), ("far".to_owned(), "ram:/b".into()));
        assert_eq!(sources, [Operand::Local("gfarm:/a".into())]);
        let Ok(Plan::Pull { parts, destination }) = plan("far:gfarm:/a other:b ram:") else { panic!("not a pull") };
        assert_eq!((parts.len(), destination), (2, Operand::Local("ram:".into())));
        // Both crates that know their names know the same ones.
        for store in haul_peer::STORES {
            assert_ne!(Scheme::split(store.as_bytes()), (Scheme::Local, store.as_bytes()), "{store}");
        }
    }

    #[test]
    fn standard_output_is_taken_or_not() {
        assert!(plan("far:a -").is_ok_and(|plan| plan.writes_stdout()));
        assert!(plan("far:a -").is_ok() && !plan("far:a ./-").is_ok_and(|plan| plan.writes_stdout()));
    }
}
