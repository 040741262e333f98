//! The thread that samples an endpoint's connections for a trace; there is none unless one was asked for.

use std::sync::{Arc, Weak};
use std::thread;

use super::shared::Shared;
use crate::diagnose;

/// Starts it, if a trace is asked for. It ends with the endpoint and its connections.
pub(super) fn spawn(shared: &Arc<Shared>) -> std::io::Result<()> {
    if !diagnose::is_tracing() {
        return Ok(());
    }
    let shared = Arc::downgrade(shared);
    thread::Builder::new().name("haul-trace".to_owned()).spawn(move || watch(&shared)).map(drop)
}

fn watch(shared: &Weak<Shared>) {
    while let Some(shared) = shared.upgrade() {
        for link in shared.all_links() {
            link.look(|state| diagnose::sample(&state.connection));
        }
        drop(shared);
        thread::park_timeout(diagnose::EVERY);
    }
}
