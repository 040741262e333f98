//! What a connection's lock guards: the transport's state, and those who wait for it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::task::{Context, Waker};

use haul_cc::ControllerChoice;
use haul_proto::{Connection, Event, StreamId, StreamKind};
use haul_units::Time;

use crate::arriving::Queues;
use crate::diagnose;
use crate::error::ConnectionError;
use crate::waiting::Waiters;

use super::answers::Answers;

/// The state under the lock.
pub(crate) struct State {
    pub(crate) connection: Connection,
    /// Our addresses that the peer talks to.
    pub(super) answers: Answers,
    /// Our addresses that the peer has been told of last.
    pub(super) told: Vec<SocketAddr>,
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
    /// The controller that a carrier stands in for, while one does.
    pub(crate) ruled_over: Option<ControllerChoice>,
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

impl State {
    /// Of a connection that has just been made.
    pub(super) fn new(connection: Connection, queues: Queues) -> Self {
        Self {
            connection,
            answers: Answers::default(),
            told: Vec::new(),
            accepted: false,
            asleep_until: None,
            reports_by_receiver: false,
            connected: false,
            incoming: false,
            closed: None,
            drained: false,
            stopped: HashMap::new(),
            queues,
            ruled_over: None,
            waiting: Waiting::default(),
        }
    }

    /// Has the task woken when that happens.
    pub(super) fn wait(&mut self, cx: &Context<'_>, wanted: Wanted) {
        self.waiting.of(wanted).add(cx);
    }

    /// Takes the connection's events. Returns whom to wake when the lock is released.
    pub(super) fn dispatch(&mut self) -> Vec<Waker> {
        let mut woken = Vec::new();
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Connected => {
                    self.connected = true;
                    diagnose::on_connected(&self.connection);
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
    pub(super) fn wakes_sender(&mut self, wanted: Wanted) -> bool {
        let has_bytes = matches!(wanted, Wanted::Writable(_) | Wanted::Budget) && self.connection.wants_data();
        // Without bytes there may be credit to tell, and seldom enough there is.
        let due = has_bytes || self.asleep_until.is_some_and(|until| self.timeout() < until);
        due && self.asleep_until.take().is_some()
    }

    /// The connection is over: everybody is woken to see it.
    pub(super) fn end(&mut self, error: ConnectionError) -> Vec<Waker> {
        if self.closed.is_none() {
            diagnose::on_closed(&self.connection);
        }
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
