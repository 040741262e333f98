//! Members that call this process: whose key is expected gets through the handshake, and nobody else.
//!
//! A member tries several addresses. Of its connections the one counts on which it says that it is calling, whichever comes first.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use haul::{BindError, ClientConfig, Connection, Endpoint, Fingerprint, Identity, PeerTrust, ServerConfig, TransportConfig};
use haul_peer::{Family, PortRange, from_line, race};
use haul_units::Cancel;

use super::error::AbsentError;
use super::far::Calling;
use super::messages::PROTOCOL;

/// How often there is a look for an interrupt, and for what else has happened.
const LOOK: Duration = Duration::from_millis(20);

/// Who may call, and where.
#[derive(Default)]
pub struct Callers {
    /// None: nobody calls.
    listening: Option<Endpoint>,
    /// Whose handshake is completed, each by its place among the members.
    expected: Arc<Mutex<HashMap<Fingerprint, usize>>>,
}

impl Callers {
    /// Listens, on one of these ports or on any.
    pub fn listen(
        family: Family,
        ports: Option<PortRange>,
        identity: Identity,
        transport: TransportConfig,
    ) -> Result<Self, BindError> {
        let expected: Arc<Mutex<HashMap<Fingerprint, usize>>> = Arc::default();
        let known = Arc::clone(&expected);
        let trust = PeerTrust::Callback(Arc::new(move |key| lock(&known).contains_key(&key.fingerprint())));
        let config = ServerConfig { protocols: vec![PROTOCOL.to_vec()], transport, ..ServerConfig::new(identity, trust) };
        let ports = ports.map_or(0..=0, PortRange::range);
        let endpoint = family.listen(|ip| Endpoint::listen_in(ip, ports.clone(), config.clone()))?;
        Ok(Self { listening: Some(endpoint), expected })
    }

    /// Where they call, if they do.
    pub fn port(&self) -> Option<u16> {
        self.listening.as_ref().map(|endpoint| endpoint.local_addr().port())
    }

    /// The member at this place has this key.
    pub fn expect(&self, key: Fingerprint, index: usize) {
        lock(&self.expected).insert(key, index);
    }

    /// The endpoint lives as long as its connections: from now on it knows nobody new.
    pub fn expect_nobody(&self) {
        lock(&self.expected).clear();
    }

    /// Waits a moment for what happens next. A member that calls is one of the events, once it has said so: `called` makes it one.
    pub fn next<E: Send + 'static>(
        &self,
        events: &Receiver<E>,
        tell: &Sender<E>,
        called: impl FnOnce(usize, Connection) -> E + Send + 'static,
    ) -> Option<E> {
        let Some(endpoint) = &self.listening else { return events.recv_timeout(LOOK).ok() };
        if let Ok(Some(connection)) = endpoint.accept_timeout(LOOK) {
            self.hear(connection, tell.clone(), called);
        }
        events.try_recv().ok()
    }

    /// Waits on a connection of an expected member for its word that it is calling.
    fn hear<E: Send + 'static>(
        &self,
        connection: Connection,
        tell: Sender<E>,
        called: impl FnOnce(usize, Connection) -> E + Send + 'static,
    ) {
        let key = connection.peer_key().map(|key| key.fingerprint());
        let Some(index) = key.and_then(|key| lock(&self.expected).get(&key).copied()) else { return };
        thread::spawn(move || {
            let calling =
                connection.accept_uni().map_err(io::Error::from).and_then(|mut stream| from_line::<Calling>(&mut stream));
            match calling {
                Ok(_) => {
                    // Nobody hears it where the wait was given up; the connection ends with the value.
                    let _ = tell.send(called(index, connection));
                }
                Err(error) => tracing::debug!(%error, "a connection that lost the race of its member"),
            }
        });
    }
}

/// Connects with a member that listens, and has this key.
pub fn dial(addresses: &[SocketAddr], config: &ClientConfig, cancel: &Cancel) -> Result<Connection, AbsentError> {
    let tried = || addresses.iter().map(SocketAddr::ip).collect();
    let reached = race(addresses, None, config, cancel).map(|(connection, _)| connection);
    reached.map_err(|lost| AbsentError::NoAnswer { tried: tried(), lost: lost.into() })
}

/// How a member that listens is dialled, by a client of this key.
pub fn dialling(identity: &Identity, member: Fingerprint, transport: TransportConfig) -> ClientConfig {
    ClientConfig {
        identity: Some(identity.clone()),
        protocols: vec![haul_copy::PROTOCOL.to_vec()],
        transport,
        ..ClientConfig::new(PeerTrust::Pinned(vec![member]))
    }
}

fn lock(expected: &Mutex<HashMap<Fingerprint, usize>>) -> MutexGuard<'_, HashMap<Fingerprint, usize>> {
    expected.lock().unwrap_or_else(PoisonError::into_inner)
}
