//! By a socket of this user's.

use std::sync::Arc;

use haul_control::{ControlSocket, Controlled};

use crate::exit::chain;

/// Takes them until what is given back is dropped.
pub fn take(controlled: Arc<dyn Controlled>) -> Option<ControlSocket> {
    let socket = crate::ctl::dir().and_then(|dir| ControlSocket::open(&dir, controlled));
    socket.inspect_err(|error| tracing::info!(error = %chain(error), "takes no orders")).ok()
}
