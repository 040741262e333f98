//! A server tells a client that it has admitted where else it can be reached.

use std::sync::Arc;

use haul_paths::announced;

use super::link::Link;
use super::shared::Shared;
use super::ways;

/// To a client that wants to know; interfaces are looked at for those alone.
pub(super) fn announce(shared: &Shared, link: &Arc<Link>) {
    let Some(what) = &shared.announced else { return };
    let interfaces = || {
        ways::interfaces().unwrap_or_else(|error| {
            tracing::debug!(%error, "no list of interfaces: nothing to announce");
            Vec::new()
        })
    };
    link.act(|state, _| {
        let (client, local) = (state.connection.remote().ip(), shared.socket.local_addr());
        state.connection.announce(|| announced(what, local, client, interfaces));
    });
}
