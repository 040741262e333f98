//! What the operands of a copy mean together: which hosts, which way, what. As `haul cp` understands them.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use haul::Fingerprint;
use haul_copy::Job;
use haul_files::{Destination, Options, PullJob, PushJob, SourceSpec};
use haul_peer::{Host, Operand};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{Failure, OrRaise};
use crate::reach::pinned;
use crate::settings::given;

use super::choices::{filter, options};

/// A source as Python gives it.
#[derive(FromPyObject)]
pub enum Source {
    /// The number of a descriptor that is read to its end, and closed.
    Descriptor(i32),
    /// A name.
    Name(Vec<u8>),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Descriptor(_) => f.write_str("(a file object)"),
            Self::Name(name) => f.write_str(&lossy(name)),
        }
    }
}

/// A name for a log.
pub fn lossy(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// Everything of one call.
pub enum Operands {
    /// From here to a host.
    Push { host: Host, sources: Vec<SourceSpec>, destination: OsString },
    /// From hosts to here.
    Pull { parts: Vec<(Host, Vec<PathBuf>)>, destination: PathBuf },
}

impl Operands {
    /// Makes sense of them.
    pub fn new(sources: Vec<Source>, target: &[u8]) -> Result<Self, Failure> {
        if sources.is_empty() {
            return Err(Failure::usage("nothing to copy"));
        }
        match parsed(target)? {
            Operand::Ssh(host, path) => Self::push(Host::Ssh(host), sources, path),
            Operand::Daemon(host, path) => Self::push(Host::Daemon(host), sources, absolute(&path)),
            Operand::Local(destination) => Self::pull(sources, destination),
            Operand::Stdio => Err(Failure::usage("-: not a target here").hint("haul.open, or a name")),
        }
    }

    fn push(host: Host, sources: Vec<Source>, destination: OsString) -> Result<Self, Failure> {
        let sources = sources.into_iter().map(|source| match source {
            Source::Descriptor(number) => {
                // SAFETY: the package opens the descriptor for this copy and passes it on.
                Ok(SourceSpec::stream(File::from(unsafe { OwnedFd::from_raw_fd(number) })))
            }
            Source::Name(name) => match parsed(&name)? {
                Operand::Local(path) => Ok(SourceSpec::Path(path)),
                Operand::Stdio => Err(Failure::usage("-: not a source here").hint("give a file object")),
                far => Err(Failure::usage(format_args!("{far}: source and target are both on other hosts"))
                    .hint("run haul on one of the two, or copy to this machine first")),
            },
        });
        Ok(Self::Push { host, sources: sources.collect::<Result<_, _>>()?, destination })
    }

    fn pull(sources: Vec<Source>, destination: PathBuf) -> Result<Self, Failure> {
        let mut parts: Vec<(Host, Vec<PathBuf>)> = Vec::new();
        for source in sources {
            let operand = match source {
                Source::Name(name) => parsed(&name)?,
                Source::Descriptor(_) => return Err(here("a file object")),
            };
            let (host, path) = match operand {
                Operand::Ssh(host, path) => (Host::Ssh(host), path),
                Operand::Daemon(host, path) => (Host::Daemon(host), absolute(&path)),
                local => return Err(here(&local.to_string())),
            };
            match parts.iter_mut().find(|(known, _)| *known == host) {
                Some((_, paths)) => paths.push(path.into()),
                None => parts.push((host, vec![path.into()])),
            }
        }
        Ok(Self::Pull { parts, destination })
    }

    /// The same of what is in its one source, a directory: as if it were named `DIRECTORY/.`. For a list of names.
    fn of_content(self) -> Result<Self, Failure> {
        let not_one = || Failure::usage("files_from needs one source, a directory, and no file object");
        match self {
            Self::Push { host, sources, destination } => match <[SourceSpec; 1]>::try_from(sources) {
                Ok([SourceSpec::Path(path)]) => {
                    Ok(Self::Push { host, sources: vec![SourceSpec::Path(path.join("."))], destination })
                }
                _ => Err(not_one()),
            },
            Self::Pull { mut parts, destination } => match parts.as_mut_slice() {
                [(_, paths)] if paths.len() == 1 => {
                    for path in paths.iter_mut() {
                        path.push(".");
                    }
                    Ok(Self::Pull { parts, destination })
                }
                _ => Err(not_one()),
            },
        }
    }

    /// What is wanted of them, if it is possible.
    fn checked(&self, options: &Options) -> Result<(), Failure> {
        match self {
            Self::Pull { parts, .. } if options.delete.is_some() && parts.len() > 1 => {
                Err(Failure::usage("delete takes sources of one host: what the first brought would go with the next")
                    .hint("a directory of its own for each host, and a call each"))
            }
            Self::Push { sources, .. }
                if options.dry_run && sources.iter().any(|source| matches!(source, SourceSpec::Stdin(_))) =>
            {
                Err(Failure::usage("what comes from a file object has no dry run"))
            }
            _ => Ok(()),
        }
    }

    /// One job a host; a daemon of which the key is said is known by it.
    pub fn jobs(self, kwargs: &Bound<'_, PyDict>, key: Option<Fingerprint>) -> PyResult<Vec<(Host, Job)>> {
        let (options, filter) = (options(kwargs)?, filter(kwargs)?);
        let listed = given::<Vec<Vec<u8>>>(kwargs, "files_from")?.is_some();
        let this = if listed { self.of_content().or_raise(kwargs.py())? } else { self };
        this.checked(&options).or_raise(kwargs.py())?;
        let pinned = |host| pinned(host, key);
        Ok(match this {
            Self::Push { host, sources, destination } => {
                vec![(pinned(host), Job::Push(PushJob { sources, destination: destination.into(), options, filter }))]
            }
            Self::Pull { parts, destination } => parts
                .into_iter()
                .map(|(host, sources)| {
                    let destination = Destination::Path(destination.clone());
                    (pinned(host), Job::Pull(PullJob { sources, destination, options, filter: filter.clone() }))
                })
                .collect(),
        })
    }
}

fn parsed(name: &[u8]) -> Result<Operand, Failure> {
    Ok(Operand::parse(OsStr::from_bytes(name))?)
}

fn here(what: &str) -> Failure {
    Failure::usage(format_args!("{what}: source and target are both on this machine"))
        .hint("use shutil for that; another host is written host:path or haul://host/root/path")
}

/// A daemon's paths begin with the name of a root.
fn absolute(path: &OsStr) -> OsString {
    let path = path.as_bytes();
    let start = path.iter().position(|&byte| byte != b'/').unwrap_or(path.len());
    let mut bytes = vec![b'/'];
    bytes.extend(path.get(start..).unwrap_or_default());
    OsString::from_vec(bytes)
}
