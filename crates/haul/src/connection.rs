//! A connection to a peer.

use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;

use haul_cc::{ControllerChoice, Learned};
use haul_proto::identity::PublicKey;
use haul_proto::{Distributions, OpenError, PathStats, Stats, StreamId, StreamKind};
use haul_units::{BitRate, Bytes};

use crate::blocks::{BlockReceiver, BlockSender};
use crate::clock;
use crate::driver::{Handle, Link, Open, PathWay, State, Wanted, is_carried};
use crate::error::ConnectionError;
use crate::stream::{RecvStream, SendStream};
use crate::waiting::block_on;

/// An encrypted connection. Cheap to clone; all clones are one connection, which is closed when the last of them and the last of its
/// streams is dropped.
///
/// Three kinds of streams: bidirectional and one-way ones are ordered bytes; block streams ([`Connection::open_blocks`]) carry messages
/// of up to [`crate::MAX_BLOCK`] that arrive in any order, each as soon as it is complete: the way for bulk data.
#[derive(Clone)]
pub struct Connection {
    shared: Arc<Open>,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("remote_addr", &self.remote_addr()).finish_non_exhaustive()
    }
}

impl Connection {
    pub(crate) fn new(link: Arc<Link>, endpoint: Arc<Handle>) -> Self {
        Self { shared: Arc::new(Open::new(link, endpoint)) }
    }

    pub(crate) fn link(&self) -> &Arc<Link> {
        self.shared.link()
    }

    /// Opens a stream of ordered bytes both ways. The peer hears of it with the first byte. Waits while as many are open as the peer allows.
    pub fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        block_on(self.open_bi_async())
    }

    /// As [`Connection::open_bi`], for any async executor.
    pub async fn open_bi_async(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.open(StreamKind::Bidirectional).await?;
        Ok((SendStream::new(self.shared.clone(), id), RecvStream::new(self.shared.clone(), id)))
    }

    /// Opens a stream of ordered bytes to the peer.
    pub fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        block_on(self.open_uni_async())
    }

    /// As [`Connection::open_uni`], for any async executor.
    pub async fn open_uni_async(&self) -> Result<SendStream, ConnectionError> {
        Ok(SendStream::new(self.shared.clone(), self.open(StreamKind::Unidirectional).await?))
    }

    /// Opens a stream of blocks to the peer.
    pub fn open_blocks(&self) -> Result<BlockSender, ConnectionError> {
        block_on(self.open_blocks_async())
    }

    /// As [`Connection::open_blocks`], for any async executor.
    pub async fn open_blocks_async(&self) -> Result<BlockSender, ConnectionError> {
        Ok(BlockSender::new(self.shared.clone(), self.open(StreamKind::Placed).await?))
    }

    /// Opens a stream; waits while all that the peer allows are open.
    async fn open(&self, kind: StreamKind) -> Result<StreamId, ConnectionError> {
        poll_fn(|cx| {
            self.link().poll(cx, Wanted::Openable(kind), |state, _| {
                if let Some(error) = &state.closed {
                    return Poll::Ready(Err(error.clone()));
                }
                match state.connection.open(kind) {
                    Ok(id) => Poll::Ready(Ok(id)),
                    Err(OpenError::LimitReached) => Poll::Pending,
                    Err(OpenError::Closed) => Poll::Ready(Err(ConnectionError::ClosedHere)),
                }
            })
        })
        .await
    }

    /// Waits for a bidirectional stream that the peer opens.
    pub fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        block_on(self.accept_bi_async())
    }

    /// As [`Connection::accept_bi`], for any async executor.
    pub async fn accept_bi_async(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.accept(StreamKind::Bidirectional, |_, id| id).await?;
        Ok((SendStream::new(self.shared.clone(), id), RecvStream::new(self.shared.clone(), id)))
    }

    /// Waits for a one-way stream that the peer opens.
    pub fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        block_on(self.accept_uni_async())
    }

    /// As [`Connection::accept_uni`], for any async executor.
    pub async fn accept_uni_async(&self) -> Result<RecvStream, ConnectionError> {
        Ok(RecvStream::new(self.shared.clone(), self.accept(StreamKind::Unidirectional, |_, id| id).await?))
    }

    /// Waits for a stream of blocks that the peer opens. Not for configurations with sinks of their own: see [`Connection::accept_placed`].
    pub fn accept_blocks(&self) -> Result<BlockReceiver, ConnectionError> {
        block_on(self.accept_blocks_async())
    }

    /// As [`Connection::accept_blocks`], for any async executor.
    pub async fn accept_blocks_async(&self) -> Result<BlockReceiver, ConnectionError> {
        let (id, queue) = self.accept(StreamKind::Placed, |state, id| (id, state.queues.get(id))).await?;
        let queue = queue.ok_or(ConnectionError::ForeignSink)?;
        Ok(BlockReceiver::new(self.shared.clone(), id, queue))
    }

    /// Waits for a placed stream that the peer opens, where [`crate::TransportConfig::sinks`] gave it a sink of the application's.
    pub fn accept_placed(&self) -> Result<StreamId, ConnectionError> {
        block_on(self.accept(StreamKind::Placed, |_, id| id))
    }

    /// Sinks of the application's have consumed bytes: credit for the peer is renewed from [`crate::Sink::consumed`].
    pub fn sinks_consumed(&self) {
        self.link().note_consumed();
    }

    async fn accept<R>(&self, kind: StreamKind, take: impl Fn(&mut State, StreamId) -> R) -> Result<R, ConnectionError> {
        poll_fn(|cx| {
            self.link().poll(cx, Wanted::Opened(kind), |state, _| {
                if let Some(id) = state.connection.accept(kind) {
                    return Poll::Ready(Ok(take(state, id)));
                }
                match &state.closed {
                    Some(error) => Poll::Ready(Err(error.clone())),
                    None => Poll::Pending,
                }
            })
        })
        .await
    }

    /// Admits the client of a connection from [`Endpoint::accept_stranger_timeout`](crate::Endpoint::accept_stranger_timeout): it may use what the configuration
    /// says from now on, or this memory, and stay. Does nothing to one that is admitted.
    pub fn admit(&self, memory: Option<Bytes>) {
        self.shared.admit(memory);
    }

    /// Whether the client is admitted; always true of connections that this side began.
    pub fn is_admitted(&self) -> bool {
        !self.link().is_stranger()
    }

    /// The key that the peer has proved to hold; `None` for an anonymous client and for X.509 peers.
    pub fn peer_key(&self) -> Option<PublicKey> {
        self.link().look(|state| state.connection.peer_key().cloned())
    }

    /// Of a client: its server, and a token that as [`ClientConfig::admission`](crate::ClientConfig::admission) of the next connection from this host saves it a round trip, where the server gives any
    /// ([`Admission::lets_return`](crate::Admission::lets_return)). An endpoint returns by itself to the servers that it has met.
    pub fn way_back(&self) -> Option<(SocketAddr, Vec<u8>)> {
        self.link().look(|state| state.connection.met().way_back).map(|(server, token)| (server, token.to_vec()))
    }

    /// Where the peer is at present: its address may change, for instance behind a NAT.
    pub fn remote_addr(&self) -> SocketAddr {
        let link = self.link();
        link.carriers.resolve(link.look(|state| state.connection.remote()))
    }

    /// Whether it goes by a carrier at present ([`Endpoint::carry`](crate::Endpoint::carry)), and not over UDP.
    pub fn is_carried(&self) -> bool {
        is_carried(self.link().look(|state| state.connection.remote()))
    }

    /// A client goes on with its server at another address, for instance a carrier's: what was on its way elsewhere is sent again, and the server follows.
    pub fn redirect(&self, to: SocketAddr) {
        self.link().act(|state, now| state.connection.redirect(now, to));
    }

    /// The application protocol agreed on.
    pub fn protocol(&self) -> Option<Vec<u8>> {
        self.link().look(|state| state.connection.protocol().map(<[u8]>::to_vec))
    }

    /// Measurements and counters.
    pub fn stats(&self) -> Stats {
        let stats = self.link().look(|state| state.connection.stats(clock::now()));
        stats.expect("handles are made for established connections")
    }

    /// The paths that the connection has at present, each with figures of its own; the one of the handshake is the first.
    pub fn paths(&self) -> Vec<PathStats> {
        self.link().look(|state| state.connection.paths().collect())
    }

    /// By which interfaces and addresses a client's paths leave, by their number, where [`crate::TransportConfig::via`] has named some; else nothing.
    pub fn path_ways(&self) -> Vec<PathWay> {
        self.link().ways.as_ref().map(|ways| ways.list()).unwrap_or_default()
    }

    /// How what was measured so far is distributed: round-trip times, queueing delays, gaps, packets out of order.
    pub fn distributions(&self) -> Distributions {
        self.link().look(|state| state.connection.distributions()).unwrap_or_default()
    }

    /// Limits the rate at which this side sends; `None` lifts the limit.
    pub fn set_rate_limit(&self, limit: Option<BitRate>) {
        self.link().act(|state, _| state.connection.set_rate_limit(limit));
    }

    /// The peer, who sees all that comes through its link, has made room for this rate: where less is sent now, it is sent soon. What is found on the way still bounds it.
    pub fn take_room(&self, rate: BitRate) {
        self.link().act(|state, now| state.connection.take_room(now, rate));
    }

    /// Changes the memory that the connection may use, for what it sends and for what it receives; see [`crate::TransportConfig::memory`]. What
    /// the peer may send already it may still send.
    pub fn set_memory(&self, memory: Bytes) {
        self.link().act(|state, _| {
            state.connection.set_memory(memory);
            state.queues.set_memory(memory);
        });
    }

    /// Changes the congestion controller while data flows. The new one begins with the bandwidth and round-trip time that the old one has
    /// found. Only what this side sends is concerned.
    pub fn set_controller(&self, choice: ControllerChoice) {
        self.link().act(|state, now| match &mut state.ruled_over {
            // It waits for UDP.
            Some(over) => *over = choice,
            None => state.connection.set_controller(now, choice),
        });
    }

    /// What is known about the way to the peer, for [`crate::TransportConfig::remembered`] of the next connection to it; `None` as long as
    /// it is little.
    pub fn learned(&self) -> Option<Learned> {
        // Of a carrier's path nothing was measured that UDP could use.
        self.link().look(|state| if state.ruled_over.is_some() { None } else { state.connection.learned() })
    }

    /// Closes the connection at once and tells the peer why. What is not acknowledged may be lost: see
    /// [`SendStream::wait_acknowledged`]. Of long reasons the peer gets the beginning.
    pub fn close(&self, code: u64, reason: &str) {
        self.link().close(code, reason.as_bytes());
    }

    /// Why the connection is over, if it is.
    pub fn end(&self) -> Option<ConnectionError> {
        self.link().look(|state| state.closed.clone())
    }

    /// Waits until the connection is over and says why.
    pub fn closed(&self) -> ConnectionError {
        block_on(self.closed_async())
    }

    /// As [`Connection::closed`], for any async executor.
    pub async fn closed_async(&self) -> ConnectionError {
        poll_fn(|cx| {
            self.link().poll(cx, Wanted::Closed, |state, _| match &state.closed {
                Some(error) => Poll::Ready(error.clone()),
                None => Poll::Pending,
            })
        })
        .await
    }
}
