//! The libraries' errors as Python's exceptions.
//!
//! The classes are Python's (`haul.errors`), sorted by who is at fault; here is decided which error is which. A message has the whole chain of causes, and no advice: that is `hint`.

use std::error::Error;
use std::fmt::{self, Display};
use std::io::ErrorKind;
use std::path::Path;

use haul::{AcceptError, BindError, ConnectError, ConnectionError, StreamError};
use haul_files::{CopyError, Fault, Stop, Why};
use haul_peer::{OperandError, ReachError, Refusal, SshEnded, SshError, chain};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// What becomes an exception.
#[derive(Debug, Clone)]
pub struct Failure {
    class: &'static str,
    message: String,
    hint: Option<String>,
    /// Of an error of the system.
    errno: Option<i32>,
    /// ssh has ended without an answer: why, it has said itself.
    is_of_ssh: bool,
}

impl Failure {
    /// An exception of this class of `haul.errors`.
    pub fn new(class: &'static str, message: impl Display) -> Self {
        Self { class, message: message.to_string(), hint: None, errno: None, is_of_ssh: false }
    }

    /// What the user wrote cannot be used.
    pub fn usage(message: impl Display) -> Self {
        Self::new("UsageError", message)
    }

    /// With advice.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// With what the other side advises.
    pub fn hint_of(self, hint: Option<haul_units::PeerText>) -> Self {
        Self { hint: hint.map(String::from), ..self }
    }

    /// With the number of the system's error.
    pub fn errno(self, errno: Option<i32>) -> Self {
        Self { errno, ..self }
    }

    /// With what it is about before it.
    pub fn about(self, what: &dyn Display) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    /// With ssh's own words, if it is ssh that has ended.
    pub fn said_by_ssh(self, words: &str) -> Self {
        if !self.is_of_ssh || words.is_empty() {
            return self;
        }
        Self { message: format!("{}: {words}", self.message), ..self }
    }

    /// The exception.
    pub fn into_py_err(self, py: Python<'_>) -> PyErr {
        let made = py.import("haul.errors").and_then(|errors| errors.getattr(self.class)).and_then(|class| {
            let kwargs = PyDict::new(py);
            kwargs.set_item("hint", self.hint)?;
            kwargs.set_item("errno", self.errno)?;
            class.call((&self.message,), Some(&kwargs))
        });
        match made {
            Ok(exception) => PyErr::from_value(exception),
            // An interpreter that ends imports nothing. A cause would be attached by attaching to it anew, which panics then.
            Err(_) => PyRuntimeError::new_err(self.message),
        }
    }
}

impl Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

fn of(class: &'static str, error: &(dyn Error + 'static)) -> Failure {
    Failure::new(class, chain(error))
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        of("LocalError", &error)
    }
}

impl From<AcceptError> for Failure {
    fn from(error: AcceptError) -> Self {
        match error {
            AcceptError::Closed => Self::new("Closed", error),
            AcceptError::NotListening => {
                Self::usage("this endpoint does not accept connections").hint("make it with haul.listen")
            }
            _ => of("PeerError", &error),
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match &error {
            ConnectError::InvalidAddress { .. } | ConnectError::Paths { .. } => of("UsageError", &error),
            ConnectError::TimedOut { .. } => of("Unreachable", &error),
            ConnectError::PeerNotTrusted { .. } => of("NotTrusted", &error),
            ConnectError::VersionMismatch { .. } => of("PeerError", &error),
            _ if error.is_key_refused() => of("Refused", &error),
            ConnectError::Failed { source, .. } => Self { message: chain(&error), ..Self::from(source.clone()) },
            _ => of("LocalError", &error),
        }
    }
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        use haul::CloseReason;
        match &error {
            ConnectionError::ClosedHere => of("Closed", &error),
            ConnectionError::Ended(CloseReason::Peer { .. }) => of("ClosedByPeer", &error),
            ConnectionError::Ended(_) if error.is_unanswered() => of("Unreachable", &error),
            ConnectionError::Ended(_) if error.is_key_refused() => of("Refused", &error),
            ConnectionError::Ended(CloseReason::Handshake(_)) => of("PeerError", &error),
            ConnectionError::Ended(_) => of("ConnectionLost", &error),
            _ => of("LocalError", &error),
        }
    }
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        match error {
            StreamError::Connection(error) => error.into(),
            StreamError::Stopped { .. } | StreamError::Reset { .. } => of("StreamReset", &error),
            StreamError::Finished => of("Closed", &error),
            _ => of("UsageError", &error),
        }
    }
}

impl From<OperandError> for Failure {
    fn from(error: OperandError) -> Self {
        let hint = match &error {
            OperandError::BadHost(_) => Some("a local name with a : in it needs ./ before it"),
            OperandError::UnknownScheme(_) => Some("a local name with :// in it needs ./ before it"),
            _ => None,
        };
        let failure = of("UsageError", &error);
        Self { hint: hint.map(str::to_owned), ..failure }
    }
}

impl From<ReachError> for Failure {
    fn from(error: ReachError) -> Self {
        match &error {
            ReachError::State(_) | ReachError::Keys(_) | ReachError::Opening { .. } | ReachError::KeyNotKept { .. } => {
                of("LocalError", &error)
            }
            ReachError::Interrupted => of("Cancelled", &error),
            ReachError::NoSuchHost { .. }
            | ReachError::NoAddress { .. }
            | ReachError::NoWay { .. }
            | ReachError::UnknownWay { .. } => of("Unreachable", &error),
            ReachError::NoAnswer(_) => of("Unreachable", &error).hint("is `haul serve` running there? If it is, the firewall there lets no UDP in to this port, or the one here no answer back"),
            ReachError::Ssh(ssh) => of("LoginFailed", &error).with_ssh_hint(ssh),
            ReachError::Connect { source, .. } => Self { message: chain(&error), ..Self::connect_class(source) },
            ReachError::KeyRefused { key, .. } => {
                of("Refused", &error).hint(format!("on the other host, whoever runs haul there must say: haul key authorize {key}"))
            }
            ReachError::KeyUnknown { host, key, state } => {
                let (option, argument) = state_named(state.as_deref());
                of("NotTrusted", &error).hint(format!(
                    "if `haul key show` prints the same on that host: haul key trust{option} {host} {key}, or haul.trust(\"{host}\", \"{key}\"{argument})"
                ))
            }
            ReachError::KeyChanged { host, now, state, .. } => {
                let (option, argument) = state_named(state.as_deref());
                of("NotTrusted", &error).hint(format!(
                    "only if its owner confirms the new key: haul key trust{option} {host} {now} --replace, or haul.trust(\"{host}\", \"{now}\"{argument}, replace=True)"
                ))
            }
            _ => of("NotTrusted", &error),
        }
    }
}

/// The directory of keys, where it is not the usual one: for the command, and for `haul.trust`.
fn state_named(state: Option<&Path>) -> (String, String) {
    state.map_or_else(Default::default, |dir| {
        (format!(" --state {}", dir.display()), format!(", state={:?}", dir.to_string_lossy()))
    })
}

impl Failure {
    fn connect_class(source: &ConnectError) -> Self {
        let class = match source {
            ConnectError::TimedOut { .. } => "Unreachable",
            ConnectError::PeerNotTrusted { .. } => "NotTrusted",
            ConnectError::VersionMismatch { .. } => "PeerError",
            _ => "ConnectionLost",
        };
        Self::new(class, "")
    }

    fn with_ssh_hint(self, error: &SshError) -> Self {
        match error {
            SshError::NotStarted { source, .. } if source.kind() == ErrorKind::NotFound => {
                self.hint("install the ssh client, or name one with ssh={\"program\": PATH}")
            }
            SshError::NoAnswer { ended, login, .. } => Self { is_of_ssh: true, ..self }.hint(match ended.status {
                Some(SshEnded::NOT_FOUND) => "install haul on the far side, say where it is with ssh={\"remote_haul\": PATH}, or give haul.copy bootstrap=\"keep\", which brings it along".to_owned(),
                Some(SshEnded::NOT_EXECUTABLE) => "name another with ssh={\"remote_haul\": PATH}".to_owned(),
                Some(SshEnded::NO_LOGIN) => format!("`{login} true` must work first"),
                _ => format!("`{login} {} --version` must print haul's version", ended.program()),
            }),
            SshError::Failed { host, hint: Some(hint), .. } => self.hint(format!("on {host}: {hint}")),
            SshError::OtherVersion { .. } => {
                self.hint("install the same version of haul on both hosts, or give haul.copy bootstrap=\"keep\"")
            }
            SshError::NoProgram { .. } => self.hint("name one for it with bootstrap_from=PATH, or install haul there"),
            _ => self,
        }
    }
}

/// A copy that ended early, or what a server says to a request for files.
impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Self {
        match &error {
            CopyError::Cancelled => {
                Self::new("Cancelled", "interrupted; what has arrived is kept, and the same call goes on from there")
            }
            CopyError::Connection(source) => match source.get_ref().and_then(|inner| inner.downcast_ref::<Refusal>()) {
                Some(refusal) => Self::new("Refused", refusal).hint_of(refusal.hint.clone()),
                None => of("ConnectionLost", &error).hint("the same call goes on from where this one stopped"),
            },
            CopyError::Refused(stop) | CopyError::Stopped(stop) => Self::stopped(stop, &error),
            _ => of(class_of(error.fault()), &error),
        }
    }
}

impl Failure {
    fn stopped(stop: &Stop, error: &CopyError) -> Self {
        let class = match stop {
            Stop::ReadOnlyRoot { .. } => "Refused",
            Stop::UnknownRoot { .. } => "NotFound",
            Stop::DestinationFull { .. } => "DestinationFull",
            Stop::Destination { why: Why::Os(_), .. } | Stop::Busy { .. } => "DestinationError",
            _ => class_of(stop.fault()),
        };
        let errno = match stop {
            Stop::Destination { why: Why::Os(number), .. } => Some(*number),
            _ => None,
        };
        of(class, error).errno(errno)
    }
}

/// The class of errors that are somebody's fault.
pub const fn class_of(fault: Fault) -> &'static str {
    match fault {
        Fault::Source => "SourceError",
        Fault::Destination => "DestinationError",
        Fault::Peer => "PeerError",
        Fault::Connection => "ConnectionLost",
        Fault::Local => "LocalError",
    }
}

/// As Python names who is at fault.
pub const fn fault_name(fault: Fault) -> &'static str {
    match fault {
        Fault::Source => "source",
        Fault::Destination => "destination",
        Fault::Peer => "peer",
        Fault::Connection => "connection",
        Fault::Local => "local",
    }
}

/// For `?` where an exception is wanted.
pub trait OrRaise<T> {
    /// The value, or the exception.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T, E: Into<Failure>> OrRaise<T> for Result<T, E> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| error.into().into_py_err(py))
    }
}
