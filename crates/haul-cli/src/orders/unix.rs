//! By a socket of this user's.

use std::sync::Arc;

use haul_control::ControlSocket;
use haul_copy::CopyControl;

use crate::exit::chain;

/// Takes them until what is given back is dropped.
pub fn take(control: Arc<CopyControl>) -> Option<ControlSocket> {
    let socket = crate::ctl::dir().and_then(|dir| ControlSocket::open(&dir, control));
    socket.inspect_err(|error| tracing::info!(error = %chain(error), "takes no orders")).ok()
}
