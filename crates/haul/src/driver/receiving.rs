//! The receive thread of an endpoint.

use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::thread;

use haul_proto::{ConnectionId, Handled, TRAIN_BYTES, data_destination};
use haul_units::Time;

use super::link::Link;
use super::shared::Shared;
use crate::clock;
use crate::udp::{Batch, Outgoing, Received};

/// Starts the thread that receives for the endpoint, until its socket is stopped.
pub(super) fn spawn(shared: Arc<Shared>) -> std::io::Result<()> {
    thread::Builder::new().name("haul-receive".to_owned()).spawn(move || Receiver::new(shared).run())?;
    Ok(())
}

struct Receiver {
    shared: Arc<Shared>,
    /// For what the input causes to be sent.
    train: Vec<u8>,
    /// The connection that the last train was for: on a busy path the next one is for it too.
    last: Option<(ConnectionId, Weak<Link>)>,
}

impl Receiver {
    fn new(shared: Arc<Shared>) -> Self {
        Self { shared, train: vec![0; TRAIN_BYTES], last: None }
    }

    fn run(mut self) {
        let mut batch = Batch::new(BATCH_TRAINS);
        loop {
            match self.shared.socket.receive(&mut batch) {
                Ok(0) => return,
                Ok(_) => {}
                Err(error) => {
                    tracing::error!(%error, "the endpoint can no longer receive");
                    self.shared.fail(&error);
                    return;
                }
            }
            for received in batch.trains() {
                self.take(received);
            }
        }
    }

    fn take(&mut self, received: Received<'_>) {
        let now = clock::now();
        if let Some(link) = self.known(received.train) {
            self.feed(&link, now, received);
            return;
        }
        let Received { from, to, ecn, train, segment_bytes } = received;
        for datagram in train.chunks_mut(segment_bytes) {
            let handled = self.shared.demultiplexer().handle(now, from, datagram);
            let segment_bytes = datagram.len();
            match handled {
                Handled::Connection(id) => {
                    if let Some(link) = self.shared.link(id) {
                        self.feed(&link, now, Received { from, to, ecn, train: datagram, segment_bytes });
                    }
                }
                Handled::New(id, connection) => self.shared.admit(id, *connection, self.shared.socket.answer_from(to)),
                Handled::Respond(answer) => self.respond(from, to, &answer),
                Handled::Ignore => {}
            }
        }
    }

    /// The link that a train of data packets is for, if there is one. All datagrams of a train have one sender and one flow, but they
    /// may be for different connections: then the transport sees foreign packets and drops them, which costs a retransmission.
    fn known(&mut self, train: &[u8]) -> Option<Arc<Link>> {
        let id = data_destination(train)?;
        if let Some((_, link)) = self.last.as_ref().filter(|(last, _)| *last == id)
            && let Some(link) = link.upgrade()
        {
            return Some(link);
        }
        let link = self.shared.link(id)?;
        self.last = Some((id, Arc::downgrade(&link)));
        Some(link)
    }

    /// Hands a train to its connection, then sends what that caused if the send thread sleeps.
    fn feed(&mut self, link: &Arc<Link>, now: Time, received: Received<'_>) {
        let Received { from, to, ecn, train, segment_bytes } = received;
        let mut state = link.lock();
        let was_connected = state.connected;
        state.connection.handle_train(now, from, super::ecn_from_bits(ecn), train, segment_bytes);
        if state.accepted && to.is_some() {
            state.answer_from = self.shared.socket.answer_from(to);
        }
        self.shared.register_queues(&mut state);
        link.renew_credit(&mut state);
        let woken = state.dispatch();
        let connected = state.connected && !was_connected;
        let reset_token = state.connection.peer_reset_token();
        let announce = state.connected && std::mem::take(&mut state.incoming);

        // A sleeping send thread is spared as long as one train says everything.
        let mut transmit = None;
        let mut wake_sender = false;
        if let Some(deadline) = state.asleep_until {
            transmit = state.connection.poll_transmit(now, &mut self.train);
            let more = transmit.as_ref().is_some_and(|transmit| transmit.len > SMALL_TRAIN_BYTES);
            wake_sender = more || state.drained || state.connection.poll_timeout() < deadline;
            if wake_sender {
                state.asleep_until = None;
            }
        }
        let from = state.answer_from;
        drop(state);
        link.wake(wake_sender, woken);
        if let Some(transmit) = transmit {
            link.send(&transmit, &self.train, from);
        }
        if connected {
            self.shared.on_connected(link.id, reset_token);
        }
        if announce {
            self.shared.announce(link.clone());
        }
    }

    fn respond(&self, to: SocketAddr, from: Option<std::net::IpAddr>, answer: &[u8]) {
        let from = self.shared.socket.answer_from(from);
        let outgoing = Outgoing { to, from, ecn: 0, train: answer, segment_bytes: answer.len().max(1) };
        // Never waits: whoever did not get an answer asks again.
        if let Err(error) = self.shared.socket.try_send(&outgoing) {
            tracing::debug!(%error, %to, "answer not sent");
        }
    }
}

/// Trains taken from the kernel at once.
const BATCH_TRAINS: usize = 8;

/// A train of at most this size is taken for acknowledgements: nothing follows it.
const SMALL_TRAIN_BYTES: usize = 2 * 1472;
