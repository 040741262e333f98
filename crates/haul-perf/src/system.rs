//! What this machine is.

use haul_units::PeerText;

/// What `uname -a` says, but for the date.
pub fn system_info() -> PeerText {
    crate::kernel::name().into()
}
