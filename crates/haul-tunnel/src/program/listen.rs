//! The listening side: lets one client in after another, each checked by its key.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, TrySendError};
use std::thread;
use std::time::Duration;

use haul::{AcceptError, BitRate, Connection, Endpoint, Identity, ServerConfig, TransportConfig};
use haul_peer::keys::{self, KeyWatch, Service};
use haul_peer::{Family, GuestMemory, Guests, Limits, Refusal, StateDir, serve_apart};
use haul_units::Cancel;

use super::error::{ListenError, TunnelError};
use super::opening::Ask;
use super::server::Session;
use super::{CLOSE_ABORTED, CLOSE_REFUSED, PROTOCOL};
use crate::visits::{Record, Visits, overheard};

/// How often it looks whether it is to end.
const LOOK: Duration = Duration::from_millis(100);
/// Clients that have asked and wait to be served; more are turned away.
const MOST_WAITING: usize = 16;

/// Where to wait, and for whom.
pub struct ListenSettings {
    /// The key that clients see.
    pub identity: Identity,
    /// Whose keys are let in, and stay in: those of this directory's file, which is looked at for each client and while clients are there; without one everybody's.
    pub authorized: Option<StateDir>,
    /// The address to listen on; every one of `family` if there is none.
    pub address: Option<IpAddr>,
    /// Families of addresses, where none is named.
    pub family: Family,
    /// The UDP port; 0 is any free one.
    pub port: u16,
    /// How connections behave ([`transport`](super::transport)); what this side sends is limited for each client by its key, too.
    pub transport: TransportConfig,
    /// Places for clients, those that wait among them, and what memory they share ([`guests`]).
    pub guests: Guests,
    /// Who hears of those who come; nobody does by `Arc::new(())`.
    pub visits: Arc<dyn Visits>,
}

/// Waits for programs that connect.
pub struct Listener {
    endpoint: Endpoint,
    waiting: mpsc::Receiver<Result<Session, AcceptError>>,
}

impl Listener {
    /// Listens.
    pub fn bind(settings: ListenSettings) -> Result<Self, ListenError> {
        let ListenSettings { identity, authorized, address, family, port, transport, guests, visits } = settings;
        let limit = transport.rate_limit;
        let config = ServerConfig {
            protocols: vec![PROTOCOL.to_vec()],
            transport,
            reset_key: keys::reset_key(&identity, "pipe", address, port),
            admission: keys::admission(authorized.is_none()),
            ..ServerConfig::new(identity, overheard(keys::may_handshake(authorized.as_ref()), &visits))
        };
        let on = |ip: IpAddr| Endpoint::listen(SocketAddr::new(ip, port), config.clone());
        let bound = address.map_or_else(|| family.listen(on), on);
        let endpoint = bound.map_err(|source| ListenError { port, source })?;
        let keys = authorized.map(|state| KeyWatch::new(state, CLOSE_ABORTED));
        let waiting = admit_clients(endpoint.clone(), Admission { keys, limit, guests, visits });
        Ok(Self { endpoint, waiting })
    }

    /// Where it listens.
    pub fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// Waits for the next client that was let in and wants its streams connected with this side's; none once cancelled.
    pub fn next(&self, cancel: &Cancel) -> Result<Option<Session>, TunnelError> {
        while !cancel.is_cancelled() {
            match self.waiting.recv_timeout(LOOK) {
                Ok(Ok(session)) if session.connection.end().is_some() => {}
                Ok(next) => return next.map(Some).map_err(TunnelError::Socket),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(TunnelError::Socket(AcceptError::Closed)),
            }
        }
        Ok(None)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.endpoint.close();
    }
}

/// Places for clients of a listener that serves one after another: as many as may wait, and the one that is served; no key and no address has more than half of them. They share half of this machine's
/// memory.
pub fn guests() -> Guests {
    let clients = MOST_WAITING + 1;
    Guests::new(Limits { clients, of_key: clients / 2, of_address: clients / 2 }, GuestMemory::part_of_machine(2))
}

/// Who is let in, and with what.
struct Admission {
    /// None: everybody is.
    keys: Option<KeyWatch>,
    limit: Option<BitRate>,
    guests: Guests,
    visits: Arc<dyn Visits>,
}

/// Lets clients in, each in a thread of its own, so that one that says nothing keeps nobody out.
fn admit_clients(endpoint: Endpoint, admission: Admission) -> mpsc::Receiver<Result<Session, AcceptError>> {
    let (ready, waiting) = mpsc::sync_channel(0);
    let (admission, tickets) = (Arc::new(admission), Arc::new(AtomicUsize::new(0)));
    thread::spawn(move || {
        loop {
            let connection = match endpoint.accept_stranger() {
                Ok(connection) => connection,
                // Dropped if nobody waits any more.
                Err(error) => return drop(ready.send(Err(error))),
            };
            let (ready, admission, tickets) = (ready.clone(), Arc::clone(&admission), Arc::clone(&tickets));
            serve_apart(&connection.clone(), CLOSE_ABORTED, move || {
                let Some(session) = admission.admit(connection) else { return };
                if tickets.fetch_add(1, Ordering::AcqRel) < MOST_WAITING {
                    wait_for_turn(session, &ready);
                } else {
                    session.connection.close(CLOSE_REFUSED, "too many wait here");
                }
                tickets.fetch_sub(1, Ordering::AcqRel);
            });
        }
    });
    waiting
}

/// Until somebody takes it; one whose client has gone meanwhile gives up its place.
fn wait_for_turn(session: Session, ready: &mpsc::SyncSender<Result<Session, AcceptError>>) {
    let mut waiting = Ok(session);
    while let Err(TrySendError::Full(back)) = ready.try_send(waiting) {
        if back.as_ref().is_ok_and(|session| session.connection.end().is_some()) {
            return;
        }
        waiting = back;
        thread::park_timeout(LOOK);
    }
}

impl Admission {
    fn admit(&self, connection: Connection) -> Option<Session> {
        let record = Record::begin(&self.visits, &connection);
        let mut session = Session::accept(connection).inspect_err(|error| record.asked_nothing(error)).ok()?;
        match self.let_in(&mut session) {
            Ok(name) => {
                record.admitted(name.as_deref(), &session.version);
                session.record = Some(record);
                Some(session)
            }
            Err(refusal) => {
                record.refused(&refusal);
                session.refuse(&refusal);
                None
            }
        }
    }

    /// The name of its key.
    fn let_in(&self, session: &mut Session) -> Result<Option<String>, Refusal> {
        let (mut limit, mut name) = (self.limit, None);
        if let Some(keys) = &self.keys {
            let (admitted, stay) = keys.admit(&session.connection)?;
            if let Some(refusal) = admitted.refuses(Service::Pipe) {
                return Err(refusal);
            }
            session.stay = Some(stay);
            limit = [limit, admitted.rights.max_rate].into_iter().flatten().min();
            name = Some(admitted.name);
        }
        if limit.is_some() {
            session.connection.set_rate_limit(limit);
        }
        if session.ask != Ask::Pipe {
            return Err(Refusal { error: "this is a pipe: it runs no commands".into(), hint: None });
        }
        session.place = Some(self.guests.admit(&session.connection)?);
        Ok(name)
    }
}
