//! The engine's errors in words for the user, with what to do about them.

use std::error::Error as _;

use haul_faults::Errno;
use haul_files::{CopyError, FileProblem, Stop, Why};
use haul_peer::{Host, Refusal};

use crate::exit::{Failure, RESUME, chain, refused};

/// Explains why a whole copy failed.
pub fn explain(host: &Host, error: &CopyError, no_resume: bool) -> Failure {
    let resume = (!no_resume).then(|| RESUME.to_owned());
    match error {
        CopyError::Connection(source) => match source.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>()) {
            Some(refusal) => refused(host, refusal),
            None => resumable(format!("{host}: the connection failed: {}", chain(source)), no_resume),
        },
        CopyError::Refused(Stop::Interrupted) => resumable(format!("{host}: stopped at the other end"), no_resume),
        CopyError::Refused(stop) => Failure { message: format!("{host}: {stop}"), hint: stop_hint(stop, host, resume) },
        CopyError::Stopped(stop) => Failure { message: stop.to_string(), hint: stop_hint(stop, host, resume) },
        CopyError::PeerUnsupported { .. } => Failure {
            message: format!("{host}: {error}"),
            hint: Some("install the same version of haul on both hosts".to_owned()),
        },
        other => {
            let cause = other.source().map(|source| format!(": {}", chain(source))).unwrap_or_default();
            Failure { message: format!("{host}: {other}{cause}"), hint: resume }
        }
    }
}

/// Whether whoever reads standard output has closed it.
pub fn is_reader_gone(error: &CopyError) -> bool {
    matches!(error, CopyError::Stopped(Stop::Destination { path, why }) if path.0 == b"-" && *why == Why::from(Errno::PIPE))
}

/// A copy that broke, and that the next one goes on with, if it may.
pub fn resumable(message: String, no_resume: bool) -> Failure {
    Failure { message, hint: (!no_resume).then(|| RESUME.to_owned()) }
}

/// Advice that fits the problems of single files.
pub fn problems_hint(problems: &[FileProblem]) -> Option<&'static str> {
    let any = |wanted: fn(&Why) -> bool| problems.iter().any(|problem| wanted(&problem.why));
    if any(|why| *why == Why::DirectoryWithoutRecursive) {
        return Some("-r copies directories with all that is in them");
    }
    if any(|why| *why == Why::Changed) {
        return Some(
            "copy from a snapshot, or again when nobody writes to the files; --changed=take copies what was there at the start",
        );
    }
    if any(|why| *why == Why::ReadBackMismatch) {
        return Some("the target's disk or memory may be faulty; the same command copies the file again");
    }
    any(|why| *why == Why::HashMismatch).then_some("memory or disk of one of the hosts may be faulty")
}

fn stop_hint(stop: &Stop, host: &Host, resume: Option<String>) -> Option<String> {
    let hint = match stop {
        Stop::DestinationFull { .. } => "make room there; the same command then goes on from where this one stopped",
        Stop::Busy { .. } => "wait for the other one to end",
        Stop::UnknownRoot { .. } => {
            return Some(format!("write {host}/ROOT/path with a root that the daemon was given by --root"));
        }
        Stop::ReadOnlyRoot { .. } if matches!(host, Host::Ssh(_)) => {
            "the key of this login may only read there (haul remote --read-only)"
        }
        Stop::ReadOnlyRoot { .. } => "the daemon must export it with :rw at the end of --root NAME=PATH",
        Stop::NeedsDirectory { .. } => "make the directory first",
        Stop::NeedsFileName { .. } => "add a file name to the target",
        Stop::Destination { why, .. } if *why == Why::from(Errno::NOENT) => "make the directory first",
        Stop::Destination { why, .. } if *why == Why::from(Errno::ACCESS) => "choose a target that you may write to",
        Stop::Destination { .. } | Stop::Unavailable(_) => return None,
        _ => return resume,
    };
    Some(hint.to_owned())
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;
    use haul_files::WirePath;
    use haul_peer::DaemonHost;

    fn host() -> Host {
        Host::Daemon(DaemonHost { host: "far".into(), port: 7700 })
    }

    #[test]
    fn a_refusal_is_the_server_s_own_words() {
        let refusal = Refusal { error: "this key is not authorised".into(), hint: Some("ask".into()) };
        let error = CopyError::Connection(io::Error::other(refusal));
        let failure = explain(&host(), &error, false);
        assert_eq!(failure, Failure::new("haul://far:7700: this key is not authorised").hint("ask"));
    }

    #[test]
    fn a_lost_connection_can_be_resumed_unless_not_wanted() {
        let error = CopyError::Connection(io::Error::other("timed out"));
        assert_eq!(explain(&host(), &error, false).hint.as_deref(), Some(RESUME));
        let failure = explain(&host(), &error, true);
        assert_eq!(failure, Failure::new("haul://far:7700: the connection failed: timed out"));
    }

    #[test]
    fn a_read_only_root_says_how_to_change_that() {
        let error = CopyError::Refused(Stop::ReadOnlyRoot { path: WirePath(b"pub".to_vec()) });
        let failure = explain(&host(), &error, false);
        assert!(failure.message.contains("pub: this root is read-only") && failure.hint.unwrap().contains(":rw"));
    }
}
