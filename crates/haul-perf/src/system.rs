//! What this machine is.

use haul_units::PeerText;

/// What `uname -a` says, but for the date.
pub fn system_info() -> PeerText {
    let name = rustix::system::uname();
    let parts = [name.sysname(), name.nodename(), name.release(), name.version(), name.machine()];
    parts.map(|part| part.to_string_lossy().into_owned()).join(" ").into()
}
