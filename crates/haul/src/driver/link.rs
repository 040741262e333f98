//! A connection, its lock, and how trains leave.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use haul_carrier::Handed;
use haul_proto::{Connection, ConnectionId, Train, Transmit};
use haul_units::Time;

use crate::arriving::{Queues, Spares};
use crate::clock;
use crate::error::ConnectionError;
use haul_udp::{Outgoing, Sent, Socket};

use super::calls::Calls;
use super::carriers::{self, Carriers, is_carried};
use super::ecn;
use super::state::{State, Wanted};
use super::ways::Ways;

/// A connection and what its threads and handles share.
pub(crate) struct Link {
    pub(crate) id: ConnectionId,
    /// By path: a client sends each from a socket of its own, a server all from the first. None for paths that leave by ways of their own.
    sockets: Vec<Arc<Socket>>,
    /// By which interfaces a client's paths leave, where it has been told.
    pub(crate) ways: Option<Arc<Ways>>,
    state: Mutex<State>,
    /// The send thread sleeps on it.
    pub(super) alarm: Condvar,
    /// To whoever looks after it as long as it has no send thread.
    calls: Arc<Calls>,
    has_thread: AtomicBool,
    /// Nobody looks after it any more: what comes for it is not for it.
    gone: AtomicBool,
    /// Blocks have been given back: credit may be due.
    consumed: AtomicBool,
    pub(crate) carriers: Arc<Carriers>,
}

/// What a client's paths leave from besides its endpoint's socket.
#[derive(Clone)]
pub(super) enum Sockets {
    /// The further ones from ports of their own.
    Ports(Vec<Arc<Socket>>),
    /// All from interfaces.
    Ways(Arc<Ways>),
}

impl Link {
    /// `socket` is the endpoint's; those of a client's paths are the link's own.
    pub(super) fn new(
        id: ConnectionId,
        mut connection: Connection,
        calls: Arc<Calls>,
        socket: Arc<Socket>,
        own: Sockets,
        carriers: Arc<Carriers>,
    ) -> Arc<Self> {
        let (sockets, ways) = match own {
            Sockets::Ports(further) => (std::iter::once(socket).chain(further).collect(), None),
            Sockets::Ways(ways) => (Vec::new(), Some(ways)),
        };
        let queues = Queues::new(connection.memory(), Spares::of_this_process());
        connection.provide_sinks(queues.sinks());
        let state = State::new(connection, queues);
        let (state, alarm, [has_thread, gone, consumed]) = (Mutex::new(state), Condvar::new(), Default::default());
        Arc::new(Self { id, sockets, ways, state, alarm, calls, has_thread, gone, consumed, carriers })
    }

    /// Whether it has a send thread.
    pub(super) fn has_thread(&self) -> bool {
        self.has_thread.load(Ordering::Acquire)
    }

    /// It has a send thread from now on, or none after all.
    pub(super) fn set_has_thread(&self, has_thread: bool) {
        self.has_thread.store(has_thread, Ordering::Release);
    }

    /// Whether it has been forgotten by its endpoint; handles may still be there.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// Nobody looks after it any more.
    pub(super) fn set_gone(&self) {
        self.gone.store(true, Ordering::Release);
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
            state.wait(cx, wanted);
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
            self.calls.call(self.id);
        }
        woken.into_iter().for_each(Waker::wake);
    }

    /// Nothing will come for this connection any more: the threads that receive for it alone end.
    pub(super) fn stop_further_sockets(&self) {
        self.sockets.iter().skip(1).for_each(|socket| socket.stop());
        if let Some(ways) = &self.ways {
            ways.stop();
        }
    }

    /// Sends a sealed train. The lock must not be held. A carrier without room is waited for no longer than this. False: the path's own socket, or the carrier, has
    /// no room, and nothing has left.
    pub(super) fn send(&self, transmit: &Transmit, train: &[u8], from: Option<IpAddr>, patience: Duration) -> bool {
        let Some(train) = train.get(..transmit.len) else { return true };
        if is_carried(transmit.remote) {
            let handed = self.carriers.get(transmit.remote).map(|carrier| carrier.send(train, transmit.segment, patience));
            return handed != Some(Handed::Full);
        }
        let ecn = ecn::to_bits(transmit.ecn);
        let outgoing = Outgoing { to: transmit.remote, from, ecn, train, segment_bytes: transmit.segment };
        let own = self.ways.as_ref().and_then(|ways| ways.socket(transmit.path));
        let Some(socket) = own.as_ref().or(self.sockets.get(usize::from(transmit.path))).or(self.sockets.first()) else {
            return true;
        };
        // One socket is waited for; of several each is for itself.
        let has_others = self.ways.is_some() || self.sockets.len() > 1;
        let hand_over = |outgoing: &Outgoing<'_>| if has_others { socket.try_send(outgoing) } else { socket.send(outgoing) };
        let mut sent = hand_over(&outgoing);
        if from.is_some() && matches!(sent, Ok(Sent::Lost(_))) {
            // The address that the peer talks to may be gone: any other will do until the peer is heard again.
            self.lock().answers.forget(transmit.path);
            sent = hand_over(&Outgoing { from: None, ..outgoing });
        }
        match sent {
            Ok(Sent::Taken) => {}
            Ok(Sent::Lost(error)) if has_others && error.kind() == std::io::ErrorKind::WouldBlock => return false,
            Ok(Sent::TooBig) => self.lock().connection.send_refused(transmit.path, transmit.segment),
            Ok(Sent::Lost(error)) => tracing::debug!(%error, to = %transmit.remote, "train lost on sending"),
            Err(error) => tracing::warn!(%error, "the socket refuses to send"),
        }
        true
    }

    /// Closes the connection and sends the reason from the calling thread, so that a process that ends at once has still said it.
    pub(crate) fn close(&self, code: u64, reason: &[u8]) {
        let mut train = Train::default();
        let mut state = self.lock();
        let now = clock::now();
        let woken = state.end(ConnectionError::ClosedHere);
        state.connection.close(now, code, reason);
        // Taken under the same lock as the closing itself: the send thread might not get to send before the process ends.
        let farewell = state.connection.poll_train(now, &mut train);
        let from = farewell.as_ref().and_then(|transmit| state.answers.of(transmit.path));
        let also = state.dispatch();
        let wake_sender = state.asleep_until.take().is_some();
        drop(state);
        if let Some(transmit) = farewell {
            self.send(&transmit, train.sealed(), from, carriers::PATIENCE);
            // As a datagram would have been by now.
            if let Some(carrier) = self.carriers.get(transmit.remote) {
                carrier.flush(carriers::PATIENCE);
            }
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
