//! The listening side: lets one client in after another, each checked by its key.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use haul::{BitRate, Connection, Endpoint, Identity, ServerConfig, TransportConfig};
use haul_peer::keys;
use haul_peer::{Family, Refusal, StateDir};
use haul_units::Cancel;

use super::error::ListenError;
use super::opening::Ask;
use super::server::Session;
use super::{CLOSE_REFUSED, PROTOCOL};

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Clients that have asked and wait to be served; more are turned away.
const MOST_WAITING: usize = 16;

/// Where to wait, and for whom.
#[derive(Debug, Clone)]
pub struct ListenSettings {
    /// The key that clients see.
    pub identity: Identity,
    /// Whose keys are let in: those of this directory's file, which is read for each client; without one everybody's.
    pub authorized: Option<StateDir>,
    /// The address to listen on; every one of `family` if there is none.
    pub address: Option<IpAddr>,
    /// Families of addresses, where none is named.
    pub family: Family,
    /// The UDP port; 0 is any free one.
    pub port: u16,
    /// How connections behave ([`transport`](super::transport)); what this side sends is limited for each client by its key, too.
    pub transport: TransportConfig,
}

/// Waits for programs that connect.
pub struct Listener {
    endpoint: Endpoint,
    waiting: mpsc::Receiver<Session>,
}

impl Listener {
    /// Listens.
    pub fn bind(settings: ListenSettings) -> Result<Self, ListenError> {
        let ListenSettings { identity, authorized, address, family, port, transport } = settings;
        let limit = transport.rate_limit;
        let config = ServerConfig {
            protocols: vec![PROTOCOL.to_vec()],
            transport,
            reset_key: keys::reset_key(&identity, "pipe", address, port),
            admission: keys::admission(authorized.is_none()),
            ..ServerConfig::new(identity, keys::may_knock(authorized.as_ref()))
        };
        let on = |ip: IpAddr| Endpoint::listen(SocketAddr::new(ip, port), config.clone());
        let bound = address.map_or_else(|| family.listen(on), on);
        let endpoint = bound.map_err(|source| ListenError { port, source })?;
        let waiting = doorkeeper(endpoint.clone(), authorized, limit);
        Ok(Self { endpoint, waiting })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// Waits for the next client that was let in and wants its streams connected with this side's; none once cancelled.
    pub fn next(&self, cancel: &Cancel) -> Option<Session> {
        loop {
            if cancel.is_cancelled() {
                return None;
            }
            if let Ok(session) = self.waiting.recv_timeout(LOOK) {
                return Some(session);
            }
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.endpoint.close();
    }
}

/// Lets clients in, each in a thread of its own, so that one that says nothing keeps nobody out.
fn doorkeeper(endpoint: Endpoint, state: Option<StateDir>, limit: Option<BitRate>) -> mpsc::Receiver<Session> {
    let (ready, waiting) = mpsc::sync_channel(0);
    let tickets = Arc::new(AtomicUsize::new(0));
    thread::spawn(move || {
        while let Ok(connection) = endpoint.accept_stranger() {
            let (ready, state, tickets) = (ready.clone(), state.clone(), Arc::clone(&tickets));
            thread::spawn(move || {
                let Some(session) = admit(connection, state.as_ref(), limit) else { return };
                if tickets.fetch_add(1, Ordering::AcqRel) < MOST_WAITING {
                    session.connection.admit(None);
                    // Dropped if nobody waits for it any more.
                    let _ = ready.send(session);
                } else {
                    session.connection.close(CLOSE_REFUSED, "too many wait here");
                }
                tickets.fetch_sub(1, Ordering::AcqRel);
            });
        }
    });
    waiting
}

fn admit(connection: Connection, state: Option<&StateDir>, limit: Option<BitRate>) -> Option<Session> {
    let session = Session::accept(connection).ok()?;
    let admitted = state.map_or(Ok(None), |state| keys::admit(state, &session.connection).map(Some));
    let most = admitted.as_ref().ok().and_then(|admitted| admitted.as_ref()?.rights.max_rate);
    if let Some(lower) = [limit, most].into_iter().flatten().min() {
        session.connection.set_rate_limit(Some(lower));
    }
    let refusal = match admitted.map(|admitted| admitted.and_then(|admitted| admitted.refuses(keys::Service::Pipe))) {
        Err(refusal) | Ok(Some(refusal)) => refusal,
        _ if session.ask == Ask::Pipe => return Some(session),
        _ => Refusal { error: "this is a pipe: it runs no commands".into(), hint: None },
    };
    session.refuse(&refusal);
    None
}
