//! What sources and a destination mean together: which host, which way, what.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use haul_copy::Job;
use haul_files::{Destination, Filter, Options, PullJob, PushJob};
use haul_peer::{Host, Operand};

use crate::failure::{Failure, Outcome, invalid};

/// One copy: all of it is with one host.
pub struct Plan {
    pub host: Host,
    pub job: Job,
}

impl Plan {
    pub fn new(sources: &[PathBuf], destination: &Path, options: Options) -> Outcome<Self> {
        let parse = |text: &Path| Operand::parse(text.as_os_str()).map_err(Failure::from);
        let sources: Vec<_> = sources.iter().map(|source| parse(source)).collect::<Outcome<_>>()?;
        match parse(destination)? {
            Operand::Ssh(host, path) => Self::push(Host::Ssh(host), sources, path, options),
            Operand::Daemon(host, path) => Self::push(Host::Daemon(host), sources, absolute(&path), options),
            Operand::Local(path) => Self::pull(sources, path, options),
            Operand::Stdio => Err(stdio()),
        }
    }

    fn push(host: Host, sources: Vec<Operand>, destination: OsString, options: Options) -> Outcome<Self> {
        let local = |source| match source {
            Operand::Local(path) => Ok(path.into()),
            Operand::Stdio => Err(stdio()),
            remote => Err(invalid(format!("{remote}: source and destination are both on other hosts"))),
        };
        let sources = sources.into_iter().map(local).collect::<Outcome<_>>()?;
        let job = PushJob { sources, destination: destination.into(), options, filter: Filter::default() };
        Ok(Self { host, job: Job::Push(job) })
    }

    fn pull(sources: Vec<Operand>, destination: PathBuf, options: Options) -> Outcome<Self> {
        let (mut from, mut paths) = (None, Vec::new());
        for source in sources {
            let (host, path) = match source {
                Operand::Ssh(host, path) => (Host::Ssh(host), path),
                Operand::Daemon(host, path) => (Host::Daemon(host), absolute(&path)),
                Operand::Stdio => return Err(stdio()),
                Operand::Local(path) => {
                    let path = path.display();
                    return Err(invalid(format!("{path}: source and destination are both on this machine")));
                }
            };
            let first = from.get_or_insert_with(|| host.clone());
            if *first != host {
                return Err(invalid(format!("sources at {first} and at {host}: one job has one host, so start two")));
            }
            paths.push(path.into());
        }
        let host = from.ok_or_else(|| invalid("no sources"))?;
        let job = PullJob { sources: paths, destination: Destination::Path(destination), options, filter: Filter::default() };
        Ok(Self { host, job: Job::Pull(job) })
    }
}

fn stdio() -> Failure {
    invalid("- is no file: a program has its own streams")
}

/// A daemon's paths begin with the name of a root.
fn absolute(path: &OsStr) -> OsString {
    let bytes = path.as_bytes();
    let start = bytes.iter().position(|&byte| byte != b'/').unwrap_or(0);
    OsString::from_vec([b"/", bytes.get(start..).unwrap_or_default()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(sources: &[&str], destination: &str) -> Outcome<Plan> {
        let sources: Vec<_> = sources.iter().map(PathBuf::from).collect();
        Plan::new(&sources, Path::new(destination), Options::default())
    }

    #[test]
    fn which_way() {
        let Ok(Plan { host, job: Job::Push(job) }) = plan(&["a", "b"], "haul://far/pub/x") else { panic!("not a push") };
        assert_eq!((host.to_string(), job.sources.len(), job.destination), ("haul://far:7700".into(), 2, "/pub/x".into()));
        let Ok(Plan { job: Job::Pull(job), .. }) = plan(&["haul://far//pub/x", "haul://far/y"], ".") else {
            panic!("not a pull")
        };
        assert_eq!(job.sources, [PathBuf::from("/pub/x"), "/y".into()]);
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (sources, destination) in
            [(&["a"][..], "b"), (&["h:a"], "g:b"), (&["h:a", "g:b"], "."), (&["-"], "h:a"), (&["h:a"], "-"), (&[""], "h:a")]
        {
            assert!(plan(sources, destination).is_err(), "{sources:?} {destination}");
        }
    }
}
