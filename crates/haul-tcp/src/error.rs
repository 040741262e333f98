//! What can go wrong, sorted by whose it is.

use std::io;
use std::path::{Path, PathBuf};

/// Why the laws could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// This program: it was built where clang was not.
    #[error("this haul was built without clang and has no programs for the kernel")]
    NotBuilt,
    /// This system: libbpf is not there, or does not load.
    #[error("needs {library}, which cannot be loaded")]
    NoLibrary {
        /// Its name.
        library: &'static str,
        /// What the loader says.
        source: haul_clib::Error,
    },
    /// This system: the kernel does not describe its types.
    #[error("this kernel does not describe its types (/sys/kernel/btf/vmlinux): it was built without CONFIG_DEBUG_INFO_BTF")]
    NoTypes,
    /// This system: the kernel's interface is an older one.
    #[error("kernel {release} is too old: congestion control by eBPF as it is used here needs 6.10")]
    OldKernel {
        /// Of the running kernel.
        release: String,
    },
    /// This process: it lacks a right.
    #[error("needs the rights {}, which this process has not", missing.join(", "))]
    Rights {
        /// As capabilities(7) calls them.
        missing: Vec<&'static str>,
    },
    /// This system: the kernel, or its verifier, said no.
    #[error("the kernel does not take the programs: {source}{}{}", shown(log), where_it_is(kept.as_deref()))]
    Refused {
        /// The number it gave.
        source: io::Error,
        /// What libbpf and the verifier said, at most the last MiB.
        log: String,
        /// The file that has it, where the verifier said something and root has asked.
        kept: Option<PathBuf>,
    },
    /// This system: the place for what outlives the process.
    #[error("{}: {source}", path.display())]
    Place {
        /// A directory below /run.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// This process: what it mounts is seen by nobody else.
    #[error("this process has mounts of its own, as `ip netns exec` makes them: what it keeps for later would be gone with it")]
    OwnMounts,
}

/// The last lines of a log.
fn shown(log: &str) -> String {
    let lines: Vec<&str> = log.trim_end().lines().collect();
    let last = lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n");
    if last.is_empty() { last } else { format!("\n{last}") }
}

fn where_it_is(kept: Option<&Path>) -> String {
    kept.map_or_else(String::new, |kept| format!("\nthese are its last lines: all of it is in {}", kept.display()))
}

/// Why a command on the kernel's TCP failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TcpError {
    /// The laws are not in the kernel.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The user: nothing is called that.
    #[error("no congestion control is called {name:?}; there are {}", known.join(", "))]
    NoSuchLaw {
        /// What was asked for.
        name: String,
        /// What this system has.
        known: Vec<String>,
    },
    /// The user: no such value.
    #[error("{0}")]
    NoSuchSetting(String),
    /// A network namespace cannot be found, or entered.
    #[error("network namespace {name}: {source}")]
    Namespace {
        /// As it was given.
        name: String,
        /// Why not.
        source: io::Error,
    },
    /// This system: no second hierarchy.
    #[error("no cgroup2 file system is mounted")]
    NoCgroups,
    /// The user: that is no cgroup.
    #[error("{}: not a directory of the cgroup2 file system", .0.display())]
    NotACgroup(PathBuf),
    /// The default of a namespace cannot be read or set.
    #[error("default congestion control of {namespace}: {source}")]
    Default {
        /// Which.
        namespace: String,
        /// Why not.
        source: io::Error,
    },
    /// A route cannot be read or set.
    #[error("route to {network}: {source}")]
    Route {
        /// Which.
        network: String,
        /// Why not.
        source: io::Error,
    },
    /// A call of the kernel failed.
    #[error("{doing}: {source}")]
    System {
        /// What was to be done.
        doing: &'static str,
        /// Why not.
        source: io::Error,
    },
    /// The user: no such interface.
    #[error("no network interface is called {name:?}: {source}")]
    NoInterface {
        /// As it was given.
        name: String,
        /// What the kernel says.
        source: io::Error,
    },
    /// The user: a queueing discipline is there that somebody has chosen.
    #[error("{interface} has a queueing discipline that somebody has chosen ({kind}), whose place haul pace does not take")]
    QueueTaken {
        /// Where.
        interface: String,
        /// What it is.
        kind: String,
    },
    /// The user: rates are held there already.
    #[error("{interface} has a queue of another `haul pace` already")]
    QueueInUse {
        /// Where.
        interface: String,
    },
    /// This system: the kernel lacks something for it.
    #[error("this kernel cannot hold packets until their departure times: {0}")]
    NoDepartures(&'static str),
    /// A queueing discipline cannot be made.
    #[error("a queueing discipline: {0}")]
    Queue(#[from] haul_netdev::iproute::IprouteError),
    /// What was changed cannot be written down, so nothing is changed.
    #[error("{}: {source}", path.display())]
    Journal {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The journal is not one.
    #[error("{}: is not a journal of haul tcp: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A host does not answer.
    #[error("{host}: {source}")]
    Unreached {
        /// As it was given.
        host: String,
        /// Why not.
        source: io::Error,
    },
    /// The laws are not loaded.
    #[error("no congestion control of haul is loaded")]
    NothingOn,
}

impl TcpError {
    /// For `map_err`.
    pub(crate) fn doing(doing: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::System { doing, source }
    }
}

/// What an error shows of a log.
const SHOWN_LINES: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_log_are_shown() {
        let lines: Vec<String> = (0..50).map(|line| line.to_string()).collect();
        let shown = shown(&lines.join("\n"));
        assert!(shown.starts_with("\n38\n") && shown.ends_with("\n49"), "{shown}");
        assert_eq!(super::shown("\n"), "");
    }
}
