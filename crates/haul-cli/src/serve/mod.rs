//! `haul serve`: the daemon.
//!
//! One thread a client. A client is let in by its key; the file of authorised keys is read for each, so that a change needs no restart.
//! SIGTERM and SIGINT end the daemon: copies under way are stopped in a state that can be resumed.

mod clients;
mod systemd;

use std::fs;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use haul::{Endpoint, Identity, ServerConfig};
use haul_files::Export;
use tracing::{error, info, warn};

use self::clients::Clients;
use crate::args::ServeArgs;
use crate::exit::{Exit, Failure};
use crate::guests::{Guests, Limits, Memory};
use crate::keys::{self, AuthorizedKeys};
use crate::session::PROTOCOL;
use crate::ssh::Family;
use crate::state::StateDir;
use crate::{interrupt, logging, perf};

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(250);

/// Runs the command.
pub fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    logging::start(logging::Audience::Operator, args.verbose, args.quiet);
    interrupt::watch();
    let exports = exports(args)?;
    let state = StateDir::find(args.state.as_deref())?;
    let (identity, new) = keys::load_or_make(&state)?;
    let fingerprint = identity.public_key().fingerprint();
    let endpoint = listen(args.listen, identity, &state)?;
    info!(address = %endpoint.local_addr(), key = %fingerprint, new_key = new, "listening");
    for export in &exports {
        info!(root = export.name, path = %export.path.display(), writable = export.writable, "exporting");
    }
    if let Some(advice) = endpoint.buffer_warning() {
        warn!("{advice}");
    }
    warn_if_nobody_may(&state);
    systemd::notify("READY=1");
    let limits =
        Limits { clients: args.max_clients.into(), of_key: args.max_per_key.into(), of_address: args.max_per_address.into() };
    let guests = Guests::new(limits, args.max_memory.map_or_else(|| Memory::part_of_machine(2), Memory::Shared));
    let clients = Arc::new(Clients::new(exports, args.limit.map(|limit| limit.0), state, guests));
    while !interrupt::requested() {
        match endpoint.accept_stranger_timeout(LOOK) {
            Ok(Some(connection)) => clients.welcome(connection),
            Ok(None) => {}
            Err(error) => return Err(Failure::new(format!("the socket failed: {error}"))),
        }
    }
    systemd::notify("STOPPING=1");
    info!("ending");
    clients.dismiss();
    endpoint.close();
    Ok(Exit::Done)
}

/// The roots, each a directory that exists, no name twice.
fn exports(args: &ServeArgs) -> Result<Vec<Export>, Failure> {
    let mut exports: Vec<Export> = Vec::new();
    for root in &args.roots {
        let failed = |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", root.path.display()));
        if exports.iter().any(|export| export.name == root.name) {
            return Err(Failure::new(format!("the root `{}` is named twice", root.name)).hint("give each --root its own name"));
        }
        let path = fs::canonicalize(&root.path).map_err(|error| failed(&error))?;
        if !path.is_dir() {
            return Err(failed(&"not a directory").hint("a root is a directory: export the one that holds the file"));
        }
        exports.push(Export { name: root.name.clone(), path, writable: root.writable, ownership: root.ownership });
    }
    Ok(exports)
}

/// On a machine without IPv6, `[::]` means all of IPv4.
fn listen(address: SocketAddr, identity: Identity, state: &StateDir) -> Result<Endpoint, Failure> {
    let config = ServerConfig {
        reset_key: keys::reset_key(&identity, "serve", Some(address.ip()), address.port()),
        protocols: vec![PROTOCOL.to_vec(), perf::PROTOCOL.to_vec()],
        ..ServerConfig::new(identity, keys::may_knock(Some(state)))
    };
    let on = |ip: IpAddr| Endpoint::listen(SocketAddr::new(ip, address.port()), config.clone());
    let every = address.ip() == IpAddr::from(Ipv6Addr::UNSPECIFIED);
    let bound = if every { Family::Any.listen(on) } else { on(address.ip()) };
    bound.map_err(|error| {
        Failure::new(format!("{address}: {error}"))
            .hint("is another daemon running? Name another address or port with --listen ADDR:PORT")
    })
}

fn warn_if_nobody_may(state: &StateDir) {
    let path = state.authorized_keys();
    match AuthorizedKeys::load(path.clone()) {
        Ok(keys) => {
            for fault in keys.faults() {
                error!(file = %path.display(), line = fault.line, reason = fault.reason, "this line is refused: it lets nobody in");
            }
            if keys.entries().is_empty() {
                warn!(file = %path.display(), "no key is authorised yet: nobody can connect before `haul key authorize FINGERPRINT`");
            }
        }
        Err(failure) => error!(%failure, "the file of authorised keys cannot be used: nobody can connect"),
    }
}
