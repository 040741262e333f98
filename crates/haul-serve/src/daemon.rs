//! The daemon: a thread a client.
//!
//! A client is let in by its key; the file of authorised keys is read for each, so that a change needs no restart.
//! Cancelled, the daemon ends: copies under way are stopped in a state that can be resumed. Roots are read again when that is asked for; keys are looked at all the time.
//!
//! Before it opens its port it locks itself in to its roots and its state directory (Landlock); where a file names the roots, they can change, and each client's thread is locked in
//! alone. Then it becomes the user that was named.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use haul::{AcceptError, BindError, Endpoint, Fingerprint, Identity, PeerTrust, ServerConfig, TransportConfig};
use haul_copy::PROTOCOL;
use haul_files::Export;
use haul_peer::keys::{self, AuthorizedKeys, KeysError};
use haul_peer::{Family, RELAY_PROTOCOL, StateDir, StateError, carry_clients};
use haul_units::Cancel;
use thiserror::Error;
use tracing::{error, info, warn};

use crate::audit::{Audit, AuditError, Entry, Event, Strangers};
use crate::clients::{self, Clients};
use crate::lock_in::Locked;
use crate::relay::{Relaying, Whom};
use crate::roots::{self, RootsError};
use crate::settings::Settings;
use crate::user::{User, UserError};
use crate::{clock, systemd};

/// How often it looks whether it is to end, or to read roots again.
const LOOK: Duration = Duration::from_millis(250);

/// Why the daemon did not start, or what ended it.
#[derive(Debug, Error)]
pub enum ServeError {
    /// Its roots cannot be exported.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// It has no state directory.
    #[error(transparent)]
    State(#[from] StateError),
    /// It has no key.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// It cannot become the user that was named.
    #[error(transparent)]
    User(#[from] UserError),
    /// That user could not do the daemon's work.
    #[error("{user}: it must be able to read {}: {source}", keys.display())]
    NotReadable {
        /// What the user is called.
        user: String,
        /// The file of authorised keys.
        keys: PathBuf,
        /// The state directory.
        state: PathBuf,
        /// Why.
        source: KeysError,
    },
    /// There is no audit log where it was to be.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// Its port is not free, or not here.
    #[error("{address}: {source}")]
    NotOpened {
        /// Where it was to listen.
        address: SocketAddr,
        /// Why.
        source: BindError,
    },
    /// The port of its relay is not free.
    #[error("no port for the relay: {0}")]
    NoRelay(#[source] std::io::Error),
    /// It was up.
    #[error("the socket failed: {0}")]
    Socket(#[source] AcceptError),
}

/// Serves until it is cancelled. `reload` is asked several times a second whether roots are to be read again.
///
/// # Errors
///
/// When it does not start, or its socket fails.
pub fn serve(settings: Settings, cancel: &Cancel, reload: &dyn Fn() -> bool) -> Result<(), ServeError> {
    let exports = roots::read(&settings.roots, settings.roots_file.as_deref())?;
    let state = StateDir::find(settings.state.as_deref())?;
    let (identity, new) = keys::load_or_make(&state)?;
    let fingerprint = identity.public_key().fingerprint();
    let user = settings.user.as_deref().map(User::find).transpose()?;
    let audit = Arc::new(Audit::open(settings.audit.as_ref(), user.as_ref().map(User::id))?);
    audit.refuse_below(exports.iter().map(|export| &*export.path))?;
    if settings.roots_file.is_none() {
        lock_in(&exports, &state, &audit);
    }
    let endpoint = listen(&settings, identity, &state, &audit)?;
    let over = Cancel::new();
    let relay = settings.relay.map(|relay| Relaying::open(relay, endpoint.local_addr(), &over)).transpose();
    let relay = relay.map_err(ServeError::NoRelay)?;
    // The UDP port is the daemon; without this one some clients do not get there.
    if let Err(error) = carry_clients(&endpoint, &over) {
        warn!(%error, address = %endpoint.local_addr(), "no TCP: clients come over UDP alone");
    }
    if let Some(user) = &user {
        drop_to(user, &state)?;
    }
    info!(address = %endpoint.local_addr(), key = %fingerprint, new_key = new, "listening");
    if let Some(relay) = &relay {
        info!(port = relay.port(), for_whom = ?relay.whom(), "relays");
    }
    roots::tell(&exports);
    audit.write(started(&exports, endpoint.local_addr(), &fingerprint));
    if let Some(advice) = endpoint.buffer_warning() {
        warn!("{advice}");
    }
    warn_if_nobody_may(&state);
    systemd::notify("READY=1");
    let again = Again { roots: settings.roots.clone(), file: settings.roots_file.clone() };
    let clients = Arc::new(Clients::new(settings, exports, state, Arc::clone(&audit), relay));
    let began = clock::now();
    let stopped = || Entry::of(Event::Stopped).took(clock::now().saturating_duration_since(began));
    while !cancel.is_cancelled() {
        match endpoint.accept_stranger_timeout(LOOK) {
            Ok(Some(connection)) => clients.welcome(connection),
            Ok(None) => {}
            Err(error) => {
                let error = ServeError::Socket(error);
                audit.write(Entry { result: Some("failed"), ..stopped().because(error.to_string()) });
                return Err(error);
            }
        }
        if reload() {
            again.reload(&clients, &audit);
        }
    }
    systemd::notify("STOPPING=1");
    info!("ending");
    over.cancel();
    clients.dismiss();
    endpoint.close();
    audit.write(stopped());
    Ok(())
}

/// What is read again.
struct Again {
    roots: Vec<Export>,
    file: Option<PathBuf>,
}

impl Again {
    /// Reads roots again, and has the log opened again. Roots that are wrong leave the old ones.
    fn reload(&self, clients: &Clients, audit: &Audit) {
        info!("reading roots again");
        audit.open_again();
        let mut event = Entry { result: Some("done"), ..Entry::of(Event::Reloaded) };
        if self.file.is_some() {
            match self.read(audit) {
                Ok(exports) => {
                    roots::tell(&exports);
                    event = event.roots(names(&exports));
                    clients.export(exports);
                }
                Err(error) => {
                    error!(%error, "the roots stay as they were");
                    event = Entry { result: Some("failed"), ..event.because(error.to_string()) };
                }
            }
        }
        audit.write(event);
    }

    fn read(&self, audit: &Audit) -> Result<Vec<Export>, ServeError> {
        let exports = roots::read(&self.roots, self.file.as_deref())?;
        audit.refuse_below(exports.iter().map(|export| &*export.path))?;
        Ok(exports)
    }
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
fn drop_to(user: &User, state: &StateDir) -> Result<(), ServeError> {
    user.become_for_good()?;
    let keys = state.authorized_keys();
    AuthorizedKeys::load(keys.clone()).map_err(|source| {
        let state = state.path().to_owned();
        ServeError::NotReadable { user: user.name().to_owned(), keys, state, source }
    })?;
    info!(user = user.name(), "is no longer root");
    Ok(())
}

/// On a machine without IPv6, `[::]` means all of IPv4.
fn listen(settings: &Settings, identity: Identity, state: &StateDir, audit: &Arc<Audit>) -> Result<Endpoint, ServeError> {
    let address = settings.listen;
    let open_to_anybody = settings.relay.is_some_and(|relay| relay.whom == Whom::Anybody);
    // Whose key is in no line gets a pair of the relay, and for everything else a refusal that says why.
    let trust = if open_to_anybody { PeerTrust::Anyone } else { audited(keys::may_handshake(Some(state)), audit) };
    let config = ServerConfig {
        reset_key: keys::reset_key(&identity, "serve", Some(address.ip()), address.port()),
        protocols: vec![PROTOCOL.to_vec(), haul_perf::PROTOCOL.to_vec(), RELAY_PROTOCOL.to_vec()],
        addresses: settings.addresses.clone(),
        admission: keys::admission(open_to_anybody),
        // A measurement has most, and two for what is said about it. Each costs memory from its first byte on.
        transport: TransportConfig { max_streams: u32::from(haul_perf::MAX_STREAMS) + 2, ..TransportConfig::default() },
        ..ServerConfig::new(identity, trust)
    };
    let on = |ip: IpAddr| Endpoint::listen(SocketAddr::new(ip, address.port()), config.clone());
    let every = address.ip() == IpAddr::from(Ipv6Addr::UNSPECIFIED);
    let bound = if every { Family::Any.listen(on) } else { on(address.ip()) };
    bound.map_err(|source| ServeError::NotOpened { address, source })
}

/// The same trust, with those whom it turns away in the audit log.
fn audited(trust: PeerTrust, audit: &Arc<Audit>) -> PeerTrust {
    let PeerTrust::Callback(trusts) = trust else { return trust };
    let strangers = Strangers::of(audit);
    PeerTrust::Callback(Arc::new(move |key| {
        let trusted = trusts(key);
        if !trusted {
            strangers.unknown(key);
        }
        trusted
    }))
}

fn warn_if_nobody_may(state: &StateDir) {
    let path = state.authorized_keys();
    match AuthorizedKeys::load(path.clone()) {
        Ok(keys) => {
            for fault in keys.faults() {
                error!(file = %path.display(), line = fault.line, reason = %fault.reason, "this line is refused: it lets nobody in");
            }
            if keys.entries().is_empty() {
                warn!(file = %path.display(), "no key is authorised yet: nobody can connect before `haul key authorize FINGERPRINT`");
            }
        }
        Err(error) => error!(%error, "the file of authorised keys cannot be used: nobody can connect"),
    }
}
