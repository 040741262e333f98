//! A server tells clients that it has admitted where else it can be reached, and tells those who are there again when its interfaces change.
//!
//! Who follows the interfaces is one thread of the endpoint, and only while there are clients that want to know.

use std::sync::{Arc, PoisonError};
use std::thread;
use std::time::Duration;

use haul_paths::leave::Interface;
use haul_paths::{Announced, announced};
use haul_udp::InterfaceWatch;

use super::link::Link;
use super::shared::Shared;
use super::ways;

/// To a client that wants to know; interfaces are looked at for those alone.
pub(super) fn announce(shared: &Arc<Shared>, link: &Arc<Link>) {
    if !tell(shared, link, &mut None) || !may_change(shared) {
        return;
    }
    let mut is_followed = shared.follows.lock().unwrap_or_else(PoisonError::into_inner);
    if !*is_followed {
        let watch = match InterfaceWatch::open() {
            Ok(watch) => watch,
            Err(error) => return tracing::debug!(%error, "addresses that come later are told to nobody"),
        };
        let of_thread = shared.clone();
        let started = thread::Builder::new().name("haul-announce".to_owned()).spawn(move || follow(&of_thread, &watch));
        *is_followed = started.inspect_err(|error| tracing::warn!(%error, "no thread that follows the interfaces")).is_ok();
    }
}

/// Whether what is told is that of interfaces, which come and go.
fn may_change(shared: &Shared) -> bool {
    shared.announced == Some(Announced::Interfaces) && shared.socket.local_addr().ip().is_unspecified()
}

/// Until nobody is left who wants to know.
fn follow(shared: &Arc<Shared>, watch: &InterfaceWatch) {
    loop {
        watch.wait(LOOK);
        // A client that comes now waits for this, and then starts another thread.
        let mut is_followed = shared.follows.lock().unwrap_or_else(PoisonError::into_inner);
        let mut interfaces = None;
        let wanted = shared.all_links().iter().filter(|link| tell(shared, link, &mut interfaces)).count();
        if wanted == 0 {
            *is_followed = false;
            return;
        }
    }
}

/// Tells a client what it has not been told. Whether it wants to know at all; `interfaces` are looked at once for several.
fn tell(shared: &Shared, link: &Link, interfaces: &mut Option<Vec<Interface>>) -> bool {
    let Some(what) = &shared.announced else { return false };
    let client = link.look(|state| state.connection.takes_addresses().then(|| state.connection.remote().ip()));
    let Some(client) = client else { return false };
    let look = || interfaces.get_or_insert_with(those_there).clone();
    let addresses = announced(what, shared.socket.local_addr(), client, look);
    let fresh: Vec<_> = link.look(|state| addresses.iter().copied().filter(|address| !state.told.contains(address)).collect());
    // Whoever has nothing to be told is left to sleep.
    if !fresh.is_empty() {
        link.act(|state, _| {
            state.connection.announce(&fresh);
            state.told = addresses;
        });
    }
    true
}

fn those_there() -> Vec<Interface> {
    ways::interfaces().unwrap_or_else(|error| {
        tracing::debug!(%error, "no list of interfaces: nothing to announce");
        Vec::new()
    })
}

/// How often it is seen whether those who want to know are still there. Changes are seen at once.
const LOOK: Duration = Duration::from_secs(1);
