//! haul-serve's errors, for people.

use haul_serve::{AuditError, ConfinedError, RootsError, ServeError, UserError};

use super::{Failure, chain};

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Roots(error) => error.into(),
            ServeError::State(error) => error.into(),
            ServeError::Keys(error) => error.into(),
            ServeError::User(error) => error.into(),
            ServeError::Audit(error) => error.into(),
            ServeError::NotReadable { ref keys, ref state, .. } => {
                let opened = format!("chmod go+x {}; chmod go+r {}", state.display(), keys.display());
                let message = format!("--user {error}");
                let ServeError::NotReadable { source, .. } = error else { return Self::new(message) };
                Self::new(message).hint(Self::from(source).hint.unwrap_or(opened))
            }
            ServeError::NotOpened { source, .. } => Self::new(chain(&source)).hint(
                "is another daemon running, or is the port below 1024, which takes root? Name another address or port with --listen ADDR:PORT",
            ),
            ServeError::NoRelay(_) => Self::new(error).hint("its UDP port is the one after the daemon's; name another one with --relay-port PORT"),
            ServeError::Socket(_) => Self::new(error),
        }
    }
}

impl From<ConfinedError> for Failure {
    fn from(error: ConfinedError) -> Self {
        match error {
            ConfinedError::Tunnel => Self::new(format!("haul remote: {error}")).hint("leave out --root, or `tunnel` in --only"),
            ConfinedError::Root { .. } => Self::new(format!("haul remote {error}")),
        }
    }
}

impl From<RootsError> for Failure {
    fn from(error: RootsError) -> Self {
        let failure = Self::new(&error);
        match error {
            RootsError::NamedTwice { .. } => failure.hint("give each root its own name"),
            RootsError::NotADirectory { .. } => failure.hint("a root is a directory: export the one that holds the file"),
            RootsError::Io { .. } => {
                failure.hint("is the directory there? What stands behind it is nothing, :ro, :rw or :rw,owners")
            }
            RootsError::File { .. } => {
                failure.hint("--roots-file names a file with a root in each line, NAME=PATH[:rw[,owners]]")
            }
            RootsError::Line { .. } => failure,
        }
    }
}

impl From<UserError> for Failure {
    fn from(error: UserError) -> Self {
        let failure = Self::new(format!("--user {error}"));
        match error {
            UserError::NotBecome { .. } => failure.hint("only root can become another user"),
            UserError::NoSuchUser { .. } | UserError::NotLookedUp { .. } | UserError::TooManyGroups { .. } => failure,
        }
    }
}

impl From<AuditError> for Failure {
    fn from(error: AuditError) -> Self {
        let failure = Self::new(&error);
        match error {
            AuditError::Foreign { .. } | AuditError::Writable { .. } => {
                failure.hint("others could change what is said about them; --no-strict-modes has it used all the same")
            }
            AuditError::Exported { .. } => failure.hint("name a file in a directory that clients do not see"),
            AuditError::NoJournal { .. } => failure.hint("the journal is systemd's; without it name a file: --audit FILE"),
            AuditError::Io { .. }
            | AuditError::NotAName { .. }
            | AuditError::NotAFile { .. }
            | AuditError::SeveralNames { .. } => failure,
        }
    }
}
