//! What goes wrong, as C hears of it: a code by fault, a message, and the last one of each thread.

use std::cell::{Cell, RefCell};
use std::error::Error;
use std::ffi::{CStr, c_char, c_int};
use std::io;

use haul::{AcceptError, BindError, CloseReason, ConnectError, ConnectionError, HandshakeError, IdentityError, StreamError};
use haul_files::{CopyError, Fault};
use haul_fleet::{GetError, JoinError, PutError, SessionError, StartError};
use haul_peer::{OperandError, ReachError, chain};

macro_rules! codes {
    ($($name:ident = $value:literal, $fault:ident, $words:literal;)*) => {
        /// What kind of failure.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(i32)]
        pub enum Code { $($name = $value),* }

        impl Code {
            fn of(code: c_int) -> Option<Self> {
                match code { $($value => Some(Self::$name),)* _ => None }
            }
            fn words(self) -> &'static CStr {
                match self { $(Self::$name => $words),* }
            }
            fn fault(self) -> Blame {
                match self { $(Self::$name => Blame::$fault),* }
            }
        }
    };
}

codes! {
    Handle = -1, Caller, c"no such handle";
    Invalid = -2, Caller, c"invalid argument";
    State = -3, Caller, c"not possible at this time";
    NotStarted = -4, Caller, c"haul_startup() was not called";
    Forked = -5, Caller, c"the process was forked";
    Closed = -6, Caller, c"closed by this side";
    Cancelled = -7, Caller, c"cancelled";
    Again = -10, None, c"nothing to be done without waiting";
    TimedOut = -11, None, c"timed out";
    System = -20, System, c"the system refuses";
    Unreached = -30, Network, c"no answer";
    Lost = -31, Network, c"the peer is silent";
    Untrusted = -40, Peer, c"not trusted";
    Refused = -41, Peer, c"refused by the peer";
    PeerClosed = -42, Peer, c"closed by the peer";
    Reset = -43, Peer, c"stream reset by the peer";
    Stopped = -44, Peer, c"stream stopped by the peer";
    Protocol = -45, Peer, c"the peer broke the protocol";
    Internal = -90, Library, c"a bug in the library";
}

/// Who is at fault: HAUL_FAULT_*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
enum Blame {
    None = 0,
    Caller = 1,
    System = 2,
    Network = 3,
    Peer = 4,
    Library = 5,
}

/// A failure. Cheap enough to keep: what failed once fails with the same words again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub code: Code,
    message: String,
    /// Of the peer's application.
    peer_code: u64,
    errno: c_int,
}

/// What everything here gives.
pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), peer_code: 0, errno: 0 }
    }

    fn of(code: Code, error: &dyn Error) -> Self {
        Self::new(code, chain(error))
    }

    fn with_peer_code(self, peer_code: u64) -> Self {
        Self { peer_code, ..self }
    }

    fn with_errno(self, errno: Option<c_int>) -> Self {
        Self { errno: errno.unwrap_or_default(), ..self }
    }
}

pub fn invalid(message: impl Into<String>) -> Failure {
    Failure::new(Code::Invalid, message)
}

pub fn wrong_state(message: impl Into<String>) -> Failure {
    Failure::new(Code::State, message)
}

pub fn system(doing: &str, source: &io::Error) -> Failure {
    Failure::new(Code::System, format!("{doing}: {source}")).with_errno(source.raw_os_error())
}

impl From<BindError> for Failure {
    fn from(error: BindError) -> Self {
        let errno = match &error {
            BindError::Address { source, .. } | BindError::Thread(source) => source.raw_os_error(),
            _ => None,
        };
        let code = if matches!(error, BindError::Config(_)) { Code::Invalid } else { Code::System };
        Self::of(code, &error).with_errno(errno)
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        let code = match &error {
            ConnectError::TimedOut { .. } => Code::Unreached,
            ConnectError::PeerNotTrusted { .. } => Code::Untrusted,
            ConnectError::VersionMismatch { .. } => Code::Protocol,
            ConnectError::NoRandomness | ConnectError::Thread(_) => Code::System,
            ConnectError::Failed { source, .. } => return Self { message: chain(&error), ..source.clone().into() },
            _ => Code::Invalid,
        };
        Self::of(code, &error)
    }
}

impl From<AcceptError> for Failure {
    fn from(error: AcceptError) -> Self {
        let code = if matches!(error, AcceptError::Closed) { Code::Closed } else { Code::State };
        Self::of(code, &error)
    }
}

impl From<ConnectionError> for Failure {
    fn from(error: ConnectionError) -> Self {
        let (code, peer_code) = match &error {
            ConnectionError::ClosedHere | ConnectionError::Ended(CloseReason::Local) => (Code::Closed, 0),
            ConnectionError::Ended(reason) => of_reason(reason),
            ConnectionError::Socket { .. } => (Code::System, 0),
            _ => (Code::Internal, 0),
        };
        Self::of(code, &error).with_peer_code(peer_code)
    }
}

fn of_reason(reason: &CloseReason) -> (Code, u64) {
    match reason {
        CloseReason::Peer { code, .. } => (Code::PeerClosed, *code),
        CloseReason::Reset => (Code::PeerClosed, 0),
        CloseReason::TimedOut(_) => (Code::Lost, 0),
        CloseReason::Handshake(error) => (of_handshake(error), 0),
        CloseReason::NotAdmitted => (Code::Refused, 0),
        _ => (Code::Protocol, 0),
    }
}

fn of_handshake(error: &HandshakeError) -> Code {
    match error {
        HandshakeError::TimedOut { heard: false } => Code::Unreached,
        HandshakeError::TimedOut { heard: true } => Code::Lost,
        HandshakeError::PeerNotTrusted { .. } | HandshakeError::BadCertificate(_) | HandshakeError::ClientAnonymous => {
            Code::Untrusted
        }
        HandshakeError::NoCommonProtocol | HandshakeError::Refused { .. } => Code::Refused,
        HandshakeError::Local(_) => Code::Invalid,
        _ => Code::Protocol,
    }
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        match &error {
            StreamError::Stopped { code } => Self::of(Code::Stopped, &error).with_peer_code(*code),
            StreamError::Reset { code } => Self::of(Code::Reset, &error).with_peer_code(*code),
            StreamError::Connection(error) => error.clone().into(),
            StreamError::BlockSize { .. } => Self::of(Code::Invalid, &error),
            _ => Self::of(Code::State, &error),
        }
    }
}

impl From<IdentityError> for Failure {
    fn from(error: IdentityError) -> Self {
        Self::of(Code::Invalid, &error)
    }
}

impl From<OperandError> for Failure {
    fn from(error: OperandError) -> Self {
        Self::of(Code::Invalid, &error)
    }
}

impl From<ReachError> for Failure {
    fn from(error: ReachError) -> Self {
        let code = match &error {
            ReachError::NoAnswer(_) | ReachError::NoWay { .. } | ReachError::UnknownWay { .. } => Code::Unreached,
            ReachError::KeyRefused { .. } => Code::Refused,
            ReachError::SomebodyElse { .. }
            | ReachError::OtherKey { .. }
            | ReachError::NotTheKeyGiven { .. }
            | ReachError::KeyChanged { .. }
            | ReachError::KeyUnknown { .. }
            | ReachError::KeyNotTrusted { .. } => Code::Untrusted,
            _ => Code::System,
        };
        Self::of(code, &error)
    }
}

impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Self {
        let code = match (&error, error.fault()) {
            (CopyError::Cancelled, _) => Code::Cancelled,
            (CopyError::Refused(_), _) => Code::Refused,
            (_, Fault::Connection) => Code::Lost,
            (_, Fault::Peer) => Code::Protocol,
            _ => Code::System,
        };
        Self::of(code, &error)
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        let code = if matches!(error, StartError::NoHosts) { Code::Invalid } else { Code::System };
        Self::of(code, &error)
    }
}

impl From<JoinError> for Failure {
    fn from(error: JoinError) -> Self {
        let code = match &error {
            JoinError::BadName { .. } | JoinError::NotUp { .. } => Code::Invalid,
            JoinError::NotOurs { .. } | JoinError::Refused(_) => Code::Refused,
            JoinError::Empty { .. } => Code::Unreached,
            JoinError::Interrupted => Code::Cancelled,
            _ => Code::System,
        };
        Self::of(code, &error)
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let code = match error {
            SessionError::Join(error) => return error.into(),
            SessionError::Get(GetError::Destination(error)) => return error.into(),
            SessionError::Get(GetError::Cancelled) | SessionError::Put(PutError::Cancelled) => Code::Cancelled,
            SessionError::Get(GetError::AllDown { .. } | GetError::OutOfReach { .. })
            | SessionError::Put(PutError::AllDown { .. }) => Code::Lost,
            SessionError::Get(GetError::Conflict { .. } | GetError::Unsupported { .. }) => Code::Protocol,
            SessionError::Put(PutError::Replicas { .. }) => Code::Invalid,
            _ => Code::System,
        };
        Self::of(code, &error)
    }
}

/// Room for a message and the zero at its end; what is longer is cut.
const ROOM: usize = 1024;

thread_local! {
    static LAST: RefCell<Option<Failure>> = const { RefCell::new(None) };
    /// The words of it, in one place for as long as the thread lives: C may have asked for them before the call that fails, as in `printf("%d %s", haul_close(it), haul_error_message())`,
    /// whose arguments have no order.
    static WORDS: Cell<[u8; ROOM]> = const { Cell::new([0; ROOM]) };
}

/// Keeps the thread's last failure, and gives its code.
pub fn keep(failure: Failure) -> c_int {
    let code = failure.code as c_int;
    let message = failure.message.replace('\0', "\\0");
    let length = (0..ROOM).rev().find(|end| message.is_char_boundary(*end)).unwrap_or_default();
    // A thread that is ending has nowhere to keep it, and nobody to ask for it.
    let _ = WORDS.try_with(|words| {
        let words: &Cell<[u8]> = words;
        let bytes = message.bytes().take(length).chain([0]);
        words.as_slice_of_cells().iter().zip(bytes).for_each(|(to, byte)| to.set(byte));
    });
    let _ = LAST.try_with(|last| last.replace(Some(failure)));
    code
}

fn last<T>(of: impl FnOnce(&Failure) -> T) -> Option<T> {
    LAST.try_with(|last| last.borrow().as_ref().map(of)).ok().flatten()
}

#[unsafe(no_mangle)]
extern "C" fn haul_strerror(code: c_int) -> *const c_char {
    let words = match Code::of(code) {
        Some(code) => code.words(),
        None if code >= 0 => c"no error",
        None => c"unknown code",
    };
    words.as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn haul_fault(code: c_int) -> c_int {
    Code::of(code).map_or(Blame::None, Code::fault) as c_int
}

#[unsafe(no_mangle)]
extern "C" fn haul_error_code() -> c_int {
    last(|failure| failure.code as c_int).unwrap_or_default()
}

#[unsafe(no_mangle)]
extern "C" fn haul_error_message() -> *const c_char {
    WORDS.try_with(|words| words.as_ptr().cast_const().cast()).unwrap_or(c"".as_ptr())
}

#[unsafe(no_mangle)]
extern "C" fn haul_error_peer_code() -> u64 {
    last(|failure| failure.peer_code).unwrap_or_default()
}

#[unsafe(no_mangle)]
extern "C" fn haul_error_errno() -> c_int {
    last(|failure| failure.errno).unwrap_or_default()
}
