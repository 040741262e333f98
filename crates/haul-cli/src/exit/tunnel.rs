//! What failed in a tunnel or a proxy, and what to do about it.

use haul_tunnel::program::{ListenError, TunnelError};
use haul_tunnel::proxy::{ClientError, ServeError, TcpListenError};

use super::{Failure, chain, refused};

impl From<TunnelError> for Failure {
    fn from(error: TunnelError) -> Self {
        match error {
            TunnelError::Unreached(error) => error.into(),
            TunnelError::Refused { host, refusal } => refused(&host, &refusal),
            _ => Self::new(chain(&error)),
        }
    }
}

impl From<ListenError> for Failure {
    fn from(error: ListenError) -> Self {
        Self::new(chain(&error)).hint("name another port, or none: a free one is taken")
    }
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Unreached(error) => error.into(),
            ClientError::Refused { host, refusal } => refused(&host, &refusal),
            ClientError::Listen(error) => error.into(),
            _ => Self::new(chain(&error)),
        }
    }
}

impl From<TcpListenError> for Failure {
    fn from(error: TcpListenError) -> Self {
        Self { message: error.to_string(), hint: error.advice().map(str::to_owned) }
    }
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        let failure = Self::new(chain(&error));
        match error {
            ServeError::Bind { .. } => {
                failure.hint("is another proxy running? Name another port with -p, or an address of this machine with -B")
            }
            ServeError::Threads(_) | ServeError::Socket(_) => failure,
        }
    }
}
