//! `haul serve`: the daemon.
//!
//! One thread a client. A client is let in by its key; the file of authorised keys is read for each, so that a change needs no restart.
//! SIGTERM and SIGINT end the daemon: copies under way are stopped in a state that can be resumed. SIGHUP has it read roots again; keys are looked at all the time.
//!
//! Before it opens its port it locks itself in to its roots and its state directory (Landlock); where a file names the roots, they can change, and each client's thread is locked in
//! alone. Then it becomes the user of `--user`.

mod clients;
mod roots;
mod systemd;
mod user;

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use haul::{Endpoint, Fingerprint, Identity, PeerTrust, ServerConfig};
use haul_copy::PROTOCOL;
use haul_files::Export;
use haul_peer::keys::{self, AuthorizedKeys};
use haul_peer::{Family, StateDir};
use tracing::{error, info, warn};

use self::clients::Clients;
use self::user::User;
use crate::args::ServeArgs;
use crate::audit::{Audit, Entry, Event, Strangers};
use crate::exit::{Exit, Failure};
use crate::lock_in::Locked;
use crate::{clock, interrupt, logging};

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(250);

/// Runs the command.
pub fn run(args: &ServeArgs) -> Result<Exit, Failure> {
    logging::start(logging::Audience::Operator, args.verbose, args.quiet);
    interrupt::watch_daemon();
    let exports = roots::read(args)?;
    let state = StateDir::find(args.state.as_deref())?;
    let (identity, new) = keys::load_or_make(&state)?;
    let fingerprint = identity.public_key().fingerprint();
    let user = args.user.as_deref().map(User::find).transpose()?;
    let audit = Arc::new(Audit::open(&args.audit, user.as_ref().map(User::id))?);
    audit.refuse_below(exports.iter().map(|export| &*export.path))?;
    if args.roots_file.is_none() {
        lock_in(&exports, &state, &audit);
    }
    let endpoint = listen(args.listen, identity, &state, &audit)?;
    if let Some(user) = &user {
        drop_to(user, &state)?;
    } else if rustix::process::geteuid().is_root() {
        warn!("runs as root: whatever goes wrong, goes wrong as root; --user NAME becomes another user");
    }
    info!(address = %endpoint.local_addr(), key = %fingerprint, new_key = new, "listening");
    roots::tell(&exports);
    audit.write(started(&exports, endpoint.local_addr(), &fingerprint));
    if let Some(advice) = endpoint.buffer_warning() {
        warn!("{advice}");
    }
    warn_if_nobody_may(&state);
    systemd::notify("READY=1");
    let guests = args.guests.places(args.max_clients);
    let clients = Arc::new(Clients::new(exports, args.limit.map(|limit| limit.0), state, guests, Arc::clone(&audit)));
    let began = clock::now();
    let stopped = || Entry::of(Event::Stopped).took(clock::now().saturating_duration_since(began));
    while !interrupt::requested() {
        match endpoint.accept_stranger_timeout(LOOK) {
            Ok(Some(connection)) => clients.welcome(connection),
            Ok(None) => {}
            Err(error) => {
                let why = format!("the socket failed: {error}");
                audit.write(Entry { result: Some("failed"), ..stopped().because(why.clone()) });
                return Err(Failure::new(why));
            }
        }
        if interrupt::reload_requested() {
            reload(args, &clients, &audit);
        }
    }
    systemd::notify("STOPPING=1");
    info!("ending");
    clients.dismiss();
    endpoint.close();
    audit.write(stopped());
    Ok(Exit::Done)
}

/// Reads roots and keys again. Roots that are wrong leave the old ones.
fn reload(args: &ServeArgs, clients: &Clients, audit: &Audit) {
    info!("reading roots again");
    audit.open_again();
    let mut event = Entry { result: Some("done"), ..Entry::of(Event::Reloaded) };
    if args.roots_file.is_some() {
        let read = roots::read(args).and_then(|exports| {
            audit.refuse_below(exports.iter().map(|export| &*export.path))?;
            Ok(exports)
        });
        match read {
            Ok(exports) => {
                roots::tell(&exports);
                event = event.roots(names(&exports));
                clients.export(exports);
            }
            Err(failure) => {
                error!(%failure, "the roots stay as they were");
                event = Entry { result: Some("failed"), ..event.because(failure.message) };
            }
        }
    }
    audit.write(event);
}

fn started(exports: &[Export], address: SocketAddr, key: &Fingerprint) -> Entry {
    let version = Some(env!("CARGO_PKG_VERSION").into());
    Entry { key: Some(key.to_string()), version, ..Entry::of(Event::Started).at(address).roots(names(exports)) }
}

fn names(exports: &[Export]) -> impl Iterator<Item = &str> {
    exports.iter().map(|export| &*export.name)
}

/// Locks the whole process in.
fn lock_in(exports: &[Export], state: &StateDir, audit: &Audit) {
    let mut open = clients::below(exports).reading(state.path());
    if let Some(directory) = audit.directory() {
        open = open.appending(&directory);
    }
    match open.lock_in() {
        Ok(Locked::Fully) => info!("locked in to the roots and the state directory (Landlock)"),
        Ok(Locked::Partly) => info!("locked in to the roots and the state directory, as far as this kernel does (Landlock)"),
        Ok(Locked::No) => info!("not locked in: this kernel has no Landlock"),
        Err(error) => warn!(%error, "not locked in"),
    }
}

/// Becomes the user, who must be able to do the daemon's work.
fn drop_to(user: &User, state: &StateDir) -> Result<(), Failure> {
    user.become_for_good()?;
    let keys = state.authorized_keys();
    AuthorizedKeys::load(keys.clone()).map_err(|error| {
        let failure = Failure::from(error);
        Failure::new(format!("--user {}: it must be able to read {}: {}", user.name(), keys.display(), failure.message))
            .hint(failure.hint.unwrap_or_else(|| format!("chmod go+x {}; chmod go+r {}", state.path().display(), keys.display())))
    })?;
    info!(user = user.name(), "is no longer root");
    Ok(())
}

/// On a machine without IPv6, `[::]` means all of IPv4.
fn listen(address: SocketAddr, identity: Identity, state: &StateDir, audit: &Arc<Audit>) -> Result<Endpoint, Failure> {
    let config = ServerConfig {
        reset_key: keys::reset_key(&identity, "serve", Some(address.ip()), address.port()),
        protocols: vec![PROTOCOL.to_vec(), haul_perf::PROTOCOL.to_vec()],
        ..ServerConfig::new(identity, audited(keys::may_knock(Some(state)), audit))
    };
    let on = |ip: IpAddr| Endpoint::listen(SocketAddr::new(ip, address.port()), config.clone());
    let every = address.ip() == IpAddr::from(Ipv6Addr::UNSPECIFIED);
    let bound = if every { Family::Any.listen(on) } else { on(address.ip()) };
    bound.map_err(|error| {
        Failure::new(format!("{address}: {error}"))
            .hint("is another daemon running? Name another address or port with --listen ADDR:PORT")
    })
}

/// The same trust, with those whom it turns away in the audit log.
fn audited(trust: PeerTrust, audit: &Arc<Audit>) -> PeerTrust {
    let PeerTrust::Callback(trusts) = trust else { return trust };
    let strangers = Strangers::of(audit);
    PeerTrust::Callback(Arc::new(move |key| {
        let trusted = trusts(key);
        if !trusted {
            strangers.knocked(key);
        }
        trusted
    }))
}

fn warn_if_nobody_may(state: &StateDir) {
    let path = state.authorized_keys();
    match AuthorizedKeys::load(path.clone()).map_err(Failure::from) {
        Ok(keys) => {
            for fault in keys.faults() {
                error!(file = %path.display(), line = fault.line, reason = %fault.reason, "this line is refused: it lets nobody in");
            }
            if keys.entries().is_empty() {
                warn!(file = %path.display(), "no key is authorised yet: nobody can connect before `haul key authorize FINGERPRINT`");
            }
        }
        Err(failure) => error!(%failure, "the file of authorised keys cannot be used: nobody can connect"),
    }
}
