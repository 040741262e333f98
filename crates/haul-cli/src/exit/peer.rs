//! haul-peer's errors, for people: which of them have advice, and what it is.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;

use haul::Fingerprint;
use haul_peer::keys::KeysError;
use haul_peer::{
    Carriage, Connected, DaemonHost, FarSideError, Listener, ObstacleKind, ReachError, Refusal, SshEnded, SshError, StateError,
    Unanswered,
};
use haul_tunnel::{program, proxy};
use haul_units::PeerText;

use super::Failure;

/// Both sides are one program.
pub const SAME_VERSION: &str = "install the same version of haul on both hosts";

impl From<ReachError> for Failure {
    fn from(error: ReachError) -> Self {
        let failure = Self::new(&error);
        match error {
            ReachError::State(error) => error.into(),
            ReachError::Keys(error) => error.into(),
            ReachError::Ssh(error) => error.into(),
            ReachError::NoSuchHost { .. } => failure.hint("check the name; with -4 or -6 only addresses of that kind count"),
            ReachError::NoAddress { .. } => {
                failure.hint("it has none of the kind that -4 or -6 asks for, or none at all: check both")
            }
            ReachError::NoAnswer(unanswered) => failure.hint(listens(&unanswered)),
            ReachError::NoWay { carriage: Carriage::Tcp, .. } => {
                failure.hint("a firewall there may let no TCP in to this port; --transport ssh always passes")
            }
            ReachError::UnknownWay { .. } => failure.hint(SAME_VERSION),
            ReachError::SomebodyElse { .. } => failure.hint("does this address belong to another machine?"),
            ReachError::KeyRefused { key, .. } => {
                failure.hint(format!("on the other host, whoever runs haul there must say: haul key authorize {key}"))
            }
            ReachError::OtherKey { expected, .. } => failure.hint(format!("expected was {expected}")),
            ReachError::NotTheKeyGiven { .. } => {
                failure.hint("a server without a lasting key makes a new one at every start, and prints it")
            }
            ReachError::KeyChanged { host, now, state, .. } => {
                let command = trust(&host, now, state.as_deref());
                failure.hint(format!("only if its owner confirms the new key: {command} --replace"))
            }
            ReachError::KeyUnknown { host, key, state } => {
                let command = trust(&host, key, state.as_deref());
                failure.hint(format!("if `haul key show` prints the same on that host: {command}"))
            }
            ReachError::Connect { source, .. } if source.is_other_version() => {
                failure.hint(format!("{SAME_VERSION}; or what listens there is for something else"))
            }
            ReachError::Opening { .. }
            | ReachError::NoWay { .. }
            | ReachError::Interrupted
            | ReachError::Connect { .. }
            | ReachError::KeyNotTrusted { .. }
            | ReachError::KeyNotKept { .. } => failure,
        }
    }
}

/// The command that trusts a daemon's key.
fn trust(host: &DaemonHost, key: Fingerprint, state: Option<&Path>) -> String {
    let state = state.map(|dir| format!(" --state {}", dir.display())).unwrap_or_default();
    format!("haul key trust{state} {host} {key}")
}

/// What to do where nobody answers.
fn listens(unanswered: &Unanswered) -> String {
    let what = match unanswered.listener {
        Listener::FarSide { ports_named } => {
            let host = unanswered.host.rsplit_once(':').map_or(&*unanswered.host, |(host, _)| host);
            let then = if ports_named {
                "ask for it to be opened, or name others with --udp-port RANGE"
            } else {
                "if some ports are open there, name them with --udp-port RANGE"
            };
            return format!("the firewall at {host} lets no UDP in to this port, or the one here no answer back; {then}");
        }
        Listener::Open => "the server",
        Listener::Daemon(proxy::PROTOCOL) => "`haul proxy serve`",
        Listener::Daemon(program::PROTOCOL) => "`haul pipe -l`",
        Listener::Daemon(_) => "`haul serve`",
    };
    format!("is {what} running there? If it is, the firewall there lets no UDP in to this port, or the one here no answer back")
}

/// What to do where no ssh is found.
const NO_SSH: &str = if cfg!(windows) {
    "add OpenSSH Client, an optional feature of Windows, or name an ssh with -S PROGRAM"
} else {
    "install the ssh client, or name one with -S PROGRAM (`haul rsh`: --ssh PROGRAM)"
};

impl From<SshError> for Failure {
    fn from(error: SshError) -> Self {
        let failure = Self::new(&error);
        match error {
            SshError::NotStarted { source, .. } if source.kind() == ErrorKind::NotFound => {
                failure.hint(NO_SSH)
            }
            SshError::NoAnswer { ended, login, .. } => failure.hint(match ended.status {
                Some(SshEnded::NOT_FOUND) => {
                    "install haul on the far side, say where it is with --remote-haul PATH, or give `haul cp` or `haul rsh` --bootstrap, which brings it along"
                        .to_owned()
                }
                Some(SshEnded::NOT_EXECUTABLE) => "name another with --remote-haul PATH".to_owned(),
                Some(SshEnded::NO_LOGIN) => format!("`{login} true` must work first"),
                _ => format!("`{login} {} --version` must print haul's version", ended.program()),
            }),
            SshError::Failed { host, hint: Some(hint), .. } => failure.hint(format!("on {host}: {hint}")),
            SshError::OtherVersion { .. } => failure.hint(format!("{SAME_VERSION}, or give --bootstrap")),
            SshError::NoProgram { .. } => failure.hint("name one for it with --bootstrap-from PATH, or install haul there"),
            SshError::NotBrought { obstacle, .. } => match remedy(obstacle.kind) {
                Some(remedy) => failure.hint(remedy),
                None => failure,
            },
            _ => failure,
        }
    }
}

/// What to do where haul cannot be brought.
const fn remedy(obstacle: ObstacleKind) -> Option<&'static str> {
    match obstacle {
        ObstacleKind::Directory | ObstacleKind::Owner => Some(
            "it goes below ~/.cache, or XDG_CACHE_HOME where that is set there; install haul elsewhere and name it with --remote-haul PATH",
        ),
        ObstacleKind::Room => Some("make room there, or set XDG_CACHE_HOME there to a directory that has some"),
        ObstacleKind::Run => Some(
            "may programs be run there (mount option noexec)? Set XDG_CACHE_HOME there to a directory where they may, or install haul",
        ),
        ObstacleKind::Hash | ObstacleKind::NoHash => None,
    }
}

impl From<KeysError> for Failure {
    fn from(error: KeysError) -> Self {
        let failure = Self::new(&error);
        match (&error, error.remedy()) {
            (_, Some(command)) => {
                failure.hint(format!("{command}, or --no-strict-modes where the file system has no owners and modes"))
            }
            (KeysError::NotMade { .. }, None) => failure.hint("name a directory that can be written to with --state DIR"),
            (KeysError::NotAKey { .. }, None) => failure.hint("remove it to get a new one"),
            _ => failure,
        }
    }
}

impl From<FarSideError> for Failure {
    fn from(error: FarSideError) -> Self {
        let failure = Self::new(&error);
        match error {
            FarSideError::OtherVersion { .. } | FarSideError::UnclearKey => failure.hint(SAME_VERSION),
            FarSideError::NoPort { ports_named: true, .. } => {
                failure.hint("the ports of --udp-port are taken; name more of them")
            }
            FarSideError::NoPort { ports_named: false, .. } | FarSideError::UnknownControl { .. } | FarSideError::NoSuchPorts => {
                failure
            }
        }
    }
}

impl From<StateError> for Failure {
    fn from(error: StateError) -> Self {
        Self::new(error).hint("name a directory with --state DIR")
    }
}

/// What becomes of a client here, told to it.
impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { error: failure.message.into(), hint: failure.hint.map(PeerText::from) }
    }
}

/// A refusal as the failure of what was asked of `host`.
pub fn refused(host: &dyn fmt::Display, refusal: &Refusal) -> Failure {
    Failure { message: format!("{host}: {refusal}"), hint: refusal.hint.clone().map(String::from) }
}

/// Why something failed over a connection: for this reason, unless the connection itself has a better one.
pub fn explained(connected: &Connected, failure: Failure) -> Failure {
    connected.cause().map_or(failure, Failure::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(status: i32) -> Failure {
        let ended = SshEnded { status: Some(status), remote: "haul remote".into(), printed: Vec::new() };
        SshError::NoAnswer { host: "far".to_owned(), ended, login: "ssh -p 2222 far".to_owned() }.into()
    }

    #[test]
    fn every_way_of_ssh_to_fail_has_its_advice() {
        for (status, message, hint) in [
            (127, "haul not found there", "--remote-haul"),
            (255, "could not log in", "`ssh -p 2222 far true`"),
            (1, "status 1", "haul --version"),
        ] {
            let failure = explained(status);
            assert!(failure.message.starts_with("far: ") && failure.message.contains(message), "{failure}");
            assert!(failure.hint.as_deref().is_some_and(|text| text.contains(hint)), "{failure}");
        }
    }
}
