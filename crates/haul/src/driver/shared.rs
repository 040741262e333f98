//! What the threads and handles of an endpoint share.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use haul_paths::Familiar;
use haul_proto::{Announced, Connection, ConnectionId, Endpoint, EndpointConfig, ServerConfig};
use haul_udp::Socket;

use super::answers::Answers;
use super::calls::Calls;
use super::carriers::Carriers;
use super::link::{Link, Sockets};
use super::marks::Marks;
use super::state::State;
use crate::clock;
use crate::error::{AcceptError, BindError, ConnectionError};
use crate::waiting::Waiters;

/// An endpoint as its threads see it.
pub(crate) struct Shared {
    pub(crate) socket: Arc<Socket>,
    endpoint: Mutex<Endpoint>,
    links: RwLock<HashMap<ConnectionId, Arc<Link>>>,
    arrivals: Mutex<Arrivals>,
    accepts: bool,
    /// What clients are told of our addresses; none where none are taken.
    pub(super) announced: Option<Announced>,
    /// Whether somebody follows the interfaces, for clients that want to know of them.
    pub(super) follows: Mutex<bool>,
    /// How long a client may wait to be admitted.
    patience: Duration,
    pub(super) calls: Arc<Calls>,
    pub(crate) carriers: Arc<Carriers>,
    pub(super) marks: Marks,
    familiar: Mutex<Familiar>,
    /// No handle is left: the threads end with the last connection.
    abandoned: AtomicBool,
}

/// Incoming connections.
#[derive(Default)]
struct Arrivals {
    /// Complete and not accepted yet.
    ready: VecDeque<Arc<Link>>,
    waiting: Waiters,
    closed: bool,
}

impl Shared {
    /// Of an endpoint on this socket; it accepts if it has a configuration for that.
    pub(super) fn new(socket: Socket, server: Option<ServerConfig>) -> Result<Self, BindError> {
        let accepts = server.is_some();
        let announced = server.as_ref().map(|server| server.addresses.clone());
        let patience = server.as_ref().map(|server| server.admission.deadline).unwrap_or_default();
        let mut seed = [0; 32];
        aws_lc_rs::rand::fill(&mut seed).map_err(|_| BindError::NoRandomness)?;
        let endpoint = Endpoint::new(EndpointConfig { seed, server }).map_err(BindError::Config)?;
        Ok(Self {
            socket: Arc::new(socket),
            endpoint: Mutex::new(endpoint),
            links: RwLock::default(),
            arrivals: Mutex::default(),
            accepts,
            announced,
            follows: Mutex::default(),
            patience,
            calls: Arc::default(),
            carriers: Arc::default(),
            marks: Marks::default(),
            familiar: Mutex::default(),
            abandoned: AtomicBool::new(false),
        })
    }

    /// Whether it takes connections.
    pub(super) fn accepts(&self) -> bool {
        self.accepts
    }

    pub(super) fn demultiplexer(&self) -> MutexGuard<'_, Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrivals(&self) -> MutexGuard<'_, Arrivals> {
        self.arrivals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn link(&self, id: ConnectionId) -> Option<Arc<Link>> {
        self.links.read().unwrap_or_else(PoisonError::into_inner).get(&id).cloned()
    }

    pub(crate) fn admission_token(&self) -> Vec<u8> {
        self.demultiplexer().admission_token(clock::now())
    }

    /// Answers an opening that came another way; the connection goes on in the threads.
    pub(crate) fn answer(&self, opening: &[u8], client: Option<IpAddr>) -> Result<Vec<u8>, AcceptError> {
        let (id, connection, answer) = self.demultiplexer().answer(clock::now(), opening, client)?;
        if self.take_in(id, connection, None) { Ok(answer) } else { Err(AcceptError::Closed) }
    }

    /// Takes a new incoming connection in, if that is possible.
    pub(super) fn take_in(&self, id: ConnectionId, mut connection: Connection, answer_from: Option<IpAddr>) -> bool {
        connection.expect_admission(clock::now() + self.patience);
        let taken = self.accepts && !self.abandoned.load(Ordering::Acquire);
        if taken {
            let link = self.link_for(id, connection, Sockets::Ports(Vec::new()));
            link.look(|state| {
                state.answers = Answers::begun_at(answer_from);
                (state.accepted, state.incoming) = (true, true);
            });
            self.add(link);
            self.calls.call(id);
        } else {
            self.demultiplexer().forget(id);
        }
        taken
    }

    /// A link for a connection, with the sockets of a client's paths.
    pub(super) fn link_for(&self, id: ConnectionId, connection: Connection, sockets: Sockets) -> Arc<Link> {
        Link::new(id, connection, self.calls.clone(), self.socket.clone(), sockets, self.carriers.clone())
    }

    /// What comes for this connection goes to this link.
    pub(super) fn add(&self, link: Arc<Link>) {
        self.links.write().unwrap_or_else(PoisonError::into_inner).insert(link.id, link);
    }

    /// A connection is not driven after all.
    pub(super) fn remove(&self, id: ConnectionId) {
        let removed = self.links.write().unwrap_or_else(PoisonError::into_inner).remove(&id);
        if let Some(link) = removed {
            link.set_gone();
        }
    }

    /// Clients that have not been admitted.
    pub(crate) fn strangers(&self) -> usize {
        self.demultiplexer().strangers()
    }

    /// A connection's client gives its place up.
    pub(super) fn evict(&self, id: ConnectionId) {
        if let Some(link) = self.link(id) {
            link.evict();
        }
    }

    /// An incoming connection is complete.
    pub(super) fn announce(&self, link: Arc<Link>) {
        let mut woken = Vec::new();
        let mut arrivals = self.arrivals();
        if arrivals.closed || arrivals.ready.len() >= MAX_UNACCEPTED {
            drop(arrivals);
            link.close(0, b"nobody accepts connections here");
            return;
        }
        arrivals.ready.push_back(link);
        arrivals.waiting.drain_into(&mut woken);
        drop(arrivals);
        woken.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn poll_accept(&self, cx: &Context<'_>) -> Poll<Result<Arc<Link>, AcceptError>> {
        if !self.accepts {
            return Poll::Ready(Err(AcceptError::NotListening));
        }
        let mut arrivals = self.arrivals();
        while let Some(link) = arrivals.ready.pop_front() {
            if link.look(|state| state.closed.is_some()) {
                continue;
            }
            return Poll::Ready(Ok(link));
        }
        if arrivals.closed {
            return Poll::Ready(Err(AcceptError::Closed));
        }
        arrivals.waiting.add(cx);
        Poll::Pending
    }

    /// Takes no more connections and closes those there are.
    pub(crate) fn close(&self) {
        self.refuse_arrivals();
        for link in self.all_links() {
            link.close(0, b"endpoint closed");
        }
    }

    /// Ends whoever waits in `accept`, and the connections that nobody has taken.
    fn refuse_arrivals(&self) {
        let mut woken = Vec::new();
        let mut arrivals = self.arrivals();
        arrivals.closed = true;
        arrivals.waiting.drain_into(&mut woken);
        let ready = std::mem::take(&mut arrivals.ready);
        drop(arrivals);
        woken.into_iter().for_each(Waker::wake);
        for link in ready {
            link.close(0, b"endpoint closed");
        }
    }

    /// The last handle is gone.
    pub(crate) fn abandon(&self) {
        self.refuse_arrivals();
        self.abandoned.store(true, Ordering::Release);
        for link in self.all_links() {
            // Those in their handshake have no handle that could close them.
            if link.look(|state| state.incoming) {
                link.close(0, b"endpoint closed");
            }
        }
        self.stop_if_idle();
    }

    /// A connection is over: nobody looks after it any more.
    pub(super) fn forget(&self, id: ConnectionId) {
        self.remove(id);
        self.demultiplexer().forget(id);
        self.arrivals().ready.retain(|link| link.id != id);
        self.stop_if_idle();
    }

    fn stop_if_idle(&self) {
        let idle = self.links.read().unwrap_or_else(PoisonError::into_inner).is_empty();
        if idle && self.abandoned.load(Ordering::Acquire) {
            self.socket.stop();
            self.calls.stop();
            self.carriers.close();
        }
    }

    /// The socket is broken.
    pub(super) fn fail(&self, error: &io::Error) {
        self.refuse_arrivals();
        for link in self.all_links() {
            link.fail(&ConnectionError::Socket { kind: error.kind() });
        }
    }

    /// A connection is complete: its peer may reset it from now on, and the next one to that network knows how far it is.
    pub(super) fn on_connected(&self, id: ConnectionId, met: &Met) {
        self.demultiplexer().on_connected(id, met.given);
        if let Some((server, rtt)) = met.server {
            self.familiar().note(server, rtt);
        }
    }

    /// The round trips to networks that connections have been made to.
    pub(crate) fn familiar(&self) -> MutexGuard<'_, Familiar> {
        self.familiar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All connections that are looked after.
    pub(crate) fn all_links(&self) -> Vec<Arc<Link>> {
        self.links.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// What a connection that is complete has learned of its peer.
pub(super) struct Met {
    given: haul_proto::Met,
    /// Where a client has found its server, and how far away.
    server: Option<(IpAddr, Duration)>,
}

impl Met {
    pub(super) fn by(state: &State) -> Self {
        let first = state.connection.paths().next().filter(|_| !state.accepted);
        Self { given: state.connection.met(), server: first.map(|path| (path.remote.ip(), path.rtt)) }
    }
}

/// Complete connections that wait to be accepted; more are refused.
const MAX_UNACCEPTED: usize = 1024;
