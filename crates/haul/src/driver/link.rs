//! A connection, its lock, and those who wait for it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use haul_proto::{Connection, ConnectionId, Event, StreamId, StreamKind, TRAIN_BYTES, Transmit};
use haul_units::Time;

use crate::blocks::Queues;
use crate::clock;
use crate::error::ConnectionError;
use crate::waiting::Waiters;
use haul_udp::{Outgoing, Sent, Socket};

use super::porter::Porter;

/// A connection and what its threads and handles share.
pub(crate) struct Link {
    pub(crate) id: ConnectionId,
    /// By path: a client sends each from a socket of its own, a server all from the first.
    sockets: Vec<Arc<Socket>>,
    state: Mutex<State>,
    /// The send thread sleeps on it.
    pub(super) alarm: Condvar,
    /// Who looks after it as long as it has no send thread.
    porter: Arc<Porter>,
    has_thread: AtomicBool,
    /// Blocks have been given back: credit may be due.
    consumed: AtomicBool,
}

/// The state under the lock.
pub(crate) struct State {
    pub(crate) connection: Connection,
    /// Our address that the peer has connected to, where the socket has none of its own; `None` too for connections that we began,
    /// which leave it to the routing table.
    pub(super) answer_from: Option<IpAddr>,
    /// The peer began the connection.
    pub(super) accepted: bool,
    /// Until when the send thread sleeps; `None` while it is at work and will look at everything again before it sleeps.
    pub(super) asleep_until: Option<Time>,
    /// The receive thread comes back when a report is due: the send thread need not wake up for it.
    pub(super) reports_by_receiver: bool,
    /// The handshake is complete.
    pub(crate) connected: bool,
    /// To be announced to those who accept, once connected.
    pub(super) incoming: bool,
    /// Why it is over, once it is.
    pub(crate) closed: Option<ConnectionError>,
    /// Nothing is left to do: the connection can be forgotten.
    pub(super) drained: bool,
    /// Codes with which the peer has stopped streams of ours whose handle is still there.
    pub(crate) stopped: HashMap<StreamId, u64>,
    /// Queues of the incoming block streams, for those who accept them and to end them with the connection.
    pub(crate) queues: Queues,
    waiting: Waiting,
}

/// Who waits for what.
#[derive(Default)]
struct Waiting {
    connected: Waiters,
    opened: [Waiters; 3],
    openable: [Waiters; 3],
    readable: HashMap<StreamId, Waiters>,
    writable: HashMap<StreamId, Waiters>,
    acknowledged: HashMap<StreamId, Waiters>,
    budget: Waiters,
    closed: Waiters,
}

/// What a handle can wait for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted {
    Connected,
    Opened(StreamKind),
    Openable(StreamKind),
    Readable(StreamId),
    Writable(StreamId),
    Acknowledged(StreamId),
    Budget,
    Closed,
}

impl Link {
    /// `socket` is the endpoint's; those for a client's `further` paths are the link's own.
    pub(crate) fn new(
        id: ConnectionId,
        mut connection: Connection,
        porter: Arc<Porter>,
        socket: Arc<Socket>,
        further: Vec<Arc<Socket>>,
    ) -> Arc<Self> {
        let sockets = std::iter::once(socket).chain(further).collect();
        let queues = Queues::new(connection.memory());
        connection.provide_sinks(queues.sinks());
        let state = State {
            connection,
            answer_from: None,
            accepted: false,
            asleep_until: None,
            reports_by_receiver: false,
            connected: false,
            incoming: false,
            closed: None,
            drained: false,
            stopped: HashMap::new(),
            queues,
            waiting: Waiting::default(),
        };
        let (state, alarm, [has_thread, consumed]) = (Mutex::new(state), Condvar::new(), Default::default());
        Arc::new(Self { id, sockets, state, alarm, porter, has_thread, consumed })
    }

    /// Whether it has a send thread.
    pub(super) fn has_thread(&self) -> bool {
        self.has_thread.load(Ordering::Acquire)
    }

    /// It has a send thread from now on, or none after all.
    pub(super) fn set_has_thread(&self, has_thread: bool) {
        self.has_thread.store(has_thread, Ordering::Release);
    }

    /// Whether the application is still to admit the client.
    pub(crate) fn is_stranger(&self) -> bool {
        !self.lock().connection.is_admitted()
    }

    /// The client has to give its place to another one.
    pub(super) fn evict(&self) {
        self.act(|state, now| state.connection.evict(now));
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic under the lock is a bug in the transport; the others then still get to close and to leave.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the connection without giving it anything to send.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut State) -> R) -> R {
        look(&mut self.lock())
    }

    /// Does something to the connection that may give it something to send, or events to tell.
    pub(crate) fn act<R>(&self, act: impl FnOnce(&mut State, Time) -> R) -> R {
        let mut state = self.lock();
        let result = act(&mut state, clock::now());
        let woken = state.dispatch();
        let wake_sender = state.asleep_until.take().is_some();
        drop(state);
        self.wake(wake_sender, woken);
        result
    }

    /// As [`Link::act`], for something that can be `Pending`: then the task is woken when `wanted` happens.
    pub(crate) fn poll<R>(&self, cx: &Context<'_>, wanted: Wanted, act: impl FnOnce(&mut State, Time) -> Poll<R>) -> Poll<R> {
        let mut state = self.lock();
        let result = act(&mut state, clock::now());
        let (mut wake_sender, mut woken) = (false, Vec::new());
        if result.is_ready() {
            woken = state.dispatch();
            wake_sender = state.wakes_sender(wanted);
        } else {
            state.waiting.of(wanted).add(cx);
        }
        drop(state);
        self.wake(wake_sender, woken);
        result
    }

    /// Blocks have been given back; the credit that this makes is worth telling the peer before long.
    pub(crate) fn note_consumed(&self) {
        if !self.consumed.swap(true, Ordering::AcqRel) {
            let mut state = self.lock();
            self.renew_credit(&mut state);
            let wake_sender = state.wakes_sender(Wanted::Closed);
            drop(state);
            self.wake(wake_sender, Vec::new());
        }
    }

    /// Renews credit for what was given back since the last call.
    pub(super) fn renew_credit(&self, state: &mut State) {
        if self.consumed.load(Ordering::Relaxed) && self.consumed.swap(false, Ordering::AcqRel) {
            state.connection.sink_released();
        }
    }

    pub(super) fn wake(&self, sender: bool, woken: Vec<Waker>) {
        if sender && self.has_thread() {
            self.alarm.notify_one();
        } else if sender {
            self.porter.call(self.id);
        }
        woken.into_iter().for_each(Waker::wake);
    }

    /// Nothing will come for this connection any more: the threads that receive for it alone end.
    pub(super) fn stop_further_sockets(&self) {
        self.sockets.iter().skip(1).for_each(|socket| socket.stop());
    }

    /// Sends a train that the connection has made. The lock must not be held.
    pub(super) fn send(&self, transmit: &Transmit, train: &[u8], from: Option<IpAddr>) {
        let Some(train) = train.get(..transmit.len) else { return };
        let ecn = super::ecn_to_bits(transmit.ecn);
        let outgoing = Outgoing { to: transmit.remote, from, ecn, train, segment_bytes: transmit.segment };
        let Some(socket) = self.sockets.get(usize::from(transmit.path)).or(self.sockets.first()) else { return };
        let mut sent = socket.send(&outgoing);
        if from.is_some() && matches!(sent, Ok(Sent::Lost(_))) {
            // The address that the peer talks to may be gone: any other will do until the peer is heard again.
            self.lock().answer_from = None;
            sent = socket.send(&Outgoing { from: None, ..outgoing });
        }
        match sent {
            Ok(Sent::Taken) => {}
            Ok(Sent::TooBig) => self.lock().connection.send_refused(transmit.path, transmit.segment),
            Ok(Sent::Lost(error)) => tracing::debug!(%error, to = %transmit.remote, "train lost on sending"),
            Err(error) => tracing::warn!(%error, "the socket refuses to send"),
        }
    }

    /// Closes the connection and sends the reason from the calling thread, so that a process that ends at once has still said it.
    pub(crate) fn close(&self, code: u64, reason: &[u8]) {
        let mut train = vec![0; TRAIN_BYTES];
        let mut state = self.lock();
        let now = clock::now();
        let woken = state.end(ConnectionError::ClosedHere);
        state.connection.close(now, code, reason);
        // Taken under the same lock as the closing itself: the send thread might not get to send before the process ends.
        let farewell = state.connection.poll_transmit(now, &mut train);
        let from = state.answer_from;
        let also = state.dispatch();
        let wake_sender = state.asleep_until.take().is_some();
        drop(state);
        if let Some(transmit) = farewell {
            self.send(&transmit, &train, from);
        }
        self.wake(wake_sender, woken);
        self.wake(false, also);
    }

    /// Ends the connection because this side can no longer receive.
    pub(super) fn fail(&self, error: &ConnectionError) {
        let mut state = self.lock();
        let woken = state.end(error.clone());
        state.drained = true;
        state.asleep_until = None;
        drop(state);
        self.wake(true, woken);
    }
}

impl State {
    /// Takes the connection's events. Returns whom to wake when the lock is released.
    pub(super) fn dispatch(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Connected => {
                    self.connected = true;
                    self.waiting.connected.drain_into(&mut woken);
                }
                Event::Opened(kind) => self.waiting.opened[kind as usize].drain_into(&mut woken),
                Event::Openable(kind) => self.waiting.openable[kind as usize].drain_into(&mut woken),
                Event::Readable(id) => wake_stream(&mut self.waiting.readable, id, &mut woken),
                Event::Acknowledged(id) => wake_stream(&mut self.waiting.acknowledged, id, &mut woken),
                Event::Stopped(id, code) => {
                    self.stopped.insert(id, code);
                    wake_stream(&mut self.waiting.writable, id, &mut woken);
                    wake_stream(&mut self.waiting.acknowledged, id, &mut woken);
                    self.waiting.budget.drain_into(&mut woken);
                }
                Event::BudgetFree => {
                    self.waiting.budget.drain_into(&mut woken);
                    for (_, mut waiters) in self.waiting.writable.drain() {
                        waiters.drain_into(&mut woken);
                    }
                }
                Event::Writable(id) => wake_stream(&mut self.waiting.writable, id, &mut woken),
                Event::Closed(reason) => woken.append(&mut self.end(ConnectionError::from(reason))),
                Event::Drained => self.drained = true,
            }
        }
        woken
    }

    /// The handle of a stream's sending half is gone.
    pub(crate) fn forget_sender(&mut self, id: StreamId) {
        self.stopped.remove(&id);
        self.waiting.writable.remove(&id);
        self.waiting.acknowledged.remove(&id);
    }

    /// The handle of a stream's receiving half is gone.
    pub(crate) fn forget_receiver(&mut self, id: StreamId) {
        self.waiting.readable.remove(&id);
    }

    /// Until when the send thread may sleep.
    pub(super) fn timeout(&self) -> Time {
        if self.reports_by_receiver { self.connection.poll_timeout_besides_report() } else { self.connection.poll_timeout() }
    }

    /// Whether the send thread sleeps and must not after something was done that somebody `wanted` to be possible. If so it counts as
    /// woken from now on.
    fn wakes_sender(&mut self, wanted: Wanted) -> bool {
        let has_bytes = matches!(wanted, Wanted::Writable(_) | Wanted::Budget) && self.connection.wants_data();
        // Without bytes there may be credit to tell, and seldom enough there is.
        let due = has_bytes || self.asleep_until.is_some_and(|until| self.timeout() < until);
        due && self.asleep_until.take().is_some()
    }

    /// The connection is over: everybody is woken to see it.
    fn end(&mut self, error: ConnectionError) -> Vec<Waker> {
        self.closed.get_or_insert(error);
        self.queues.connection_closed();
        self.waiting.take_all()
    }
}

impl Waiting {
    fn of(&mut self, wanted: Wanted) -> &mut Waiters {
        match wanted {
            Wanted::Connected => &mut self.connected,
            Wanted::Opened(kind) => &mut self.opened[kind as usize],
            Wanted::Openable(kind) => &mut self.openable[kind as usize],
            Wanted::Readable(id) => self.readable.entry(id).or_default(),
            Wanted::Writable(id) => self.writable.entry(id).or_default(),
            Wanted::Acknowledged(id) => self.acknowledged.entry(id).or_default(),
            Wanted::Budget => &mut self.budget,
            Wanted::Closed => &mut self.closed,
        }
    }

    fn take_all(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        let Self { connected, opened, openable, readable, writable, acknowledged, budget, closed } = self;
        let single = [connected, budget, closed].into_iter().chain(opened).chain(openable);
        let streams = [readable, writable, acknowledged].into_iter().flat_map(HashMap::values_mut);
        for waiters in single.chain(streams) {
            waiters.drain_into(&mut woken);
        }
        woken
    }
}

fn wake_stream(waiting: &mut HashMap<StreamId, Waiters>, id: StreamId, woken: &mut Vec<Waker>) {
    // The entry goes too, so that streams long gone leave nothing behind.
    if let Some(mut waiters) = waiting.remove(&id) {
        waiters.drain_into(woken);
    }
}
