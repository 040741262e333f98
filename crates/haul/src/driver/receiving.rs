//! The receive thread of a socket: an endpoint's, or that of a further path of one connection.
//!
//! Besides receiving it sends what its input causes, as long as that is short: reports above all. While trains for a connection come in, its reports
//! are this thread's business (`reports.rs`), and the connection's send thread is left to sleep. Until a report is due, trains that come thick and fast wait in the
//! socket (`naps.rs`).

use std::net::SocketAddr;
use std::sync::{Arc, MutexGuard};
use std::thread;
use std::time::Duration;

use haul_proto::handshake::wire::is_handshake;
use haul_proto::{Handled, Origin, Train, data_destination, data_path};
use haul_units::Time;

use super::answers::Answers;
use super::carriers::is_carried;
use super::ecn;
use super::link::Link;
use super::naps::Naps;
use super::reports::{Displaced, Reports};
use super::shared::{Met, Shared};
use super::state::State;
use crate::clock;
use haul_udp::{Batch, Outgoing, Received, Socket};

/// Starts the thread that receives from a socket of the endpoint's, until it is stopped.
pub(super) fn spawn(shared: Arc<Shared>, socket: Arc<Socket>) -> std::io::Result<()> {
    thread::Builder::new().name("haul-receive".to_owned()).spawn(move || Receiver::new(shared, socket, false).run())?;
    Ok(())
}

/// The same for the socket of a path of its own, which may be the one that a handshake of ours leaves from.
pub(super) fn spawn_for_path(shared: Arc<Shared>, socket: Arc<Socket>) -> std::io::Result<()> {
    thread::Builder::new().name("haul-receive".to_owned()).spawn(move || Receiver::new(shared, socket, true).run())?;
    Ok(())
}

struct Receiver {
    shared: Arc<Shared>,
    socket: Arc<Socket>,
    /// A handshake's answers come here.
    takes_handshakes: bool,
    /// For what the input causes to be sent.
    train: Train,
    reports: Reports,
    naps: Naps,
    /// Those who are asked what they have to say, to be used again.
    asked: Vec<Arc<Link>>,
}

impl Receiver {
    fn new(shared: Arc<Shared>, socket: Arc<Socket>, takes_handshakes: bool) -> Self {
        let naps = Naps::new(socket.buffers().receive);
        let (train, reports, asked) = (Train::default(), Reports::default(), Vec::new());
        Self { shared, socket, takes_handshakes, train, reports, naps, asked }
    }

    fn run(mut self) {
        let mut batch = Batch::new(BATCH_TRAINS);
        // Batches in a row that were full: more may be there.
        let mut full = 0;
        loop {
            let due = self.reports.due();
            let received = if full > 0 {
                self.socket.receive_within(&mut batch, Duration::ZERO)
            } else if due == Time::NEVER {
                self.socket.receive(&mut batch).map(Some)
            } else {
                self.nap(due);
                self.socket.receive_within(&mut batch, due.since(clock::now()))
            };
            match received {
                Ok(Some(0)) => return,
                Ok(Some(count)) => {
                    self.take_all(&mut batch);
                    full = if count == BATCH_TRAINS { full + 1 } else { 0 };
                }
                Ok(None) => full = 0,
                Err(error) if self.is_further() => {
                    // The path falls silent, and the others take over.
                    tracing::warn!(%error, local = %self.socket.local_addr(), "a path can no longer receive");
                    return;
                }
                Err(error) => {
                    tracing::error!(%error, "the endpoint can no longer receive");
                    self.shared.fail(&error);
                    return;
                }
            }
            // A report tells of all that is there.
            if full % BATCHES_MOST == 0 {
                self.ask();
            }
        }
    }

    /// Leaves what comes where it is, if it is of use to nobody until `due`.
    fn nap(&self, due: Time) {
        if let Some(nap) = self.naps.length(clock::now(), due).filter(|_| self.reports.are_by_time()) {
            thread::park_timeout(nap);
        }
    }

    fn take_all(&mut self, batch: &mut Batch) {
        let taken = clock::now();
        let (mut trains, mut bytes) = (0, 0);
        for received in batch.trains() {
            trains += 1;
            bytes += received.train.len() as u64;
            // Nobody is at a carrier's address.
            if !is_carried(received.from) {
                self.take(taken, received);
            }
        }
        self.naps.on_received(taken, trains, bytes);
    }

    /// Whether the socket is that of a further path.
    fn is_further(&self) -> bool {
        !Arc::ptr_eq(&self.socket, &self.shared.socket)
    }

    fn take(&mut self, taken: Time, received: Received<'_>) {
        let Received { from, to, ecn, train, segment_bytes, waited } = received;
        let ours = self.shared.marks.cut(from, train, segment_bytes);
        let Some(train) = train.get_mut(..ours) else { return };
        if let Some(link) = self.known(train) {
            self.feed(&link, taken, Received { from, to, ecn, train, segment_bytes, waited });
            return;
        }
        let now = clock::now();
        for datagram in train.chunks_mut(segment_bytes) {
            if self.is_further() && !self.takes_handshakes && is_handshake(datagram) {
                // Connections begin on the endpoint's own socket.
                continue;
            }
            if self.shared.marks.take(from, datagram) {
                continue;
            }
            let handled = self.shared.demultiplexer().handle(now, from, datagram);
            let segment_bytes = datagram.len();
            match handled {
                Handled::Connection(id) => {
                    if let Some(link) = self.shared.link(id) {
                        self.feed(&link, taken, Received { from, to, ecn, train: datagram, segment_bytes, waited });
                    }
                }
                // Nobody knows of this port.
                Handled::New(id, _) if self.is_further() => self.shared.demultiplexer().forget(id),
                Handled::New(id, connection) => {
                    self.shared.take_in(id, *connection, self.socket.answer_from(to));
                    let evicted = self.shared.demultiplexer().take_evicted();
                    if let Some(id) = evicted {
                        self.shared.evict(id);
                    }
                }
                Handled::Respond(answer) => self.respond(from, to, &answer),
                Handled::Ignore => {}
            }
        }
    }

    /// The link that a train of data packets is for, if there is one. All datagrams of a train have one sender and one flow, but they
    /// may be for different connections: then the transport sees foreign packets and drops them, which costs a retransmission.
    fn known(&self, train: &[u8]) -> Option<Arc<Link>> {
        let id = data_destination(train)?;
        self.reports.find(id).or_else(|| self.shared.link(id))
    }

    /// Sends what the connections have to say that have been given something, and the reports that are due.
    fn ask(&mut self) {
        let now = clock::now();
        let mut asked = std::mem::take(&mut self.asked);
        self.reports.choose(now, &mut asked);
        for link in asked.drain(..) {
            let mut state = link.lock();
            state.connection.hasten_reports(now);
            self.answer(&link, state, now);
        }
        self.asked = asked;
    }

    /// From now on the reports of `link` are sent here; the send thread of one that has been silent for longer gets its own back, and looks at once at what that one has been given.
    fn take_over_reports(&mut self, link: &Arc<Link>) {
        if let Some(Displaced { link: displaced, is_fed }) = self.reports.on_fed(link) {
            let mut state = displaced.lock();
            state.reports_by_receiver = false;
            let has_to = |until| is_fed || state.timeout() < until || state.connection.wants_data();
            let wake_sender = state.asleep_until.is_some_and(has_to);
            if wake_sender {
                state.asleep_until = None;
            }
            drop(state);
            displaced.wake(wake_sender, Vec::new());
        }
    }

    /// Sends what a connection has to say if its send thread sleeps: reports and frames; of a train of data the first, then the send thread
    /// goes on.
    fn answer(&mut self, link: &Arc<Link>, state: MutexGuard<'_, State>, now: Time) {
        let mut state = state;
        while let Some(deadline) = state.asleep_until {
            let transmit = state.connection.poll_train(now, &mut self.train);
            let is_data = transmit.is_some() && state.connection.has_more();
            let wake_sender = is_data || state.drained || state.timeout() < deadline;
            if wake_sender {
                state.asleep_until = None;
            }
            let from = transmit.as_ref().and_then(|transmit| state.answers.of(transmit.path));
            let Some(transmit) = transmit else {
                if wake_sender {
                    link.wake(true, Vec::new());
                }
                break;
            };
            drop(state);
            link.wake(wake_sender, Vec::new());
            link.send(&transmit, self.train.sealed(), from, Duration::ZERO);
            state = link.lock();
        }
        // A send thread that is awake looks after the reports when it goes to sleep.
        state.reports_by_receiver = state.asleep_until.is_some();
        let due = if state.reports_by_receiver { state.connection.report_due() } else { Time::NEVER };
        self.reports.on_asked(link, due, state.connection.reports_by_time());
    }

    /// Hands a train, taken from the socket then, to its connection. What that caused is sent once all that was taken with it has been handed over, or at once where the peer counts on it.
    fn feed(&mut self, link: &Arc<Link>, taken: Time, received: Received<'_>) {
        let Received { from, to, ecn, train, segment_bytes, waited } = received;
        let (now, origin) = (clock::now(), Origin { from, ecn: ecn::from_bits(ecn), at: taken.before(waited) });
        self.take_over_reports(link);
        link.carriers.on_heard_over_udp();
        let mut state = link.lock();
        state.reports_by_receiver = true;
        let was_connected = state.connected;
        let path = data_path(train).unwrap_or(0);
        let heard = state.connection.heard(path);
        state.connection.handle_train(now, origin, train, segment_bytes);
        if state.accepted && to.is_some() && state.connection.heard(path) != heard {
            state.answers.on_heard(path, self.socket.answer_from(to));
        }
        link.renew_credit(&mut state);
        let woken = state.dispatch();
        let met = (state.connected && !was_connected).then(|| Met::by(&state));
        let announce = state.connected && state.connection.is_presentable() && std::mem::take(&mut state.incoming);

        if state.connection.reports_by_time() {
            drop(state);
        } else {
            self.answer(link, state, now);
        }
        link.wake(false, woken);
        if let Some(met) = met {
            self.shared.on_connected(link.id, &met);
            if let Some(ways) = &link.ways {
                ways.wake();
            }
        }
        if announce {
            self.shared.announce(link.clone());
        }
    }

    fn respond(&self, to: SocketAddr, from: Option<std::net::IpAddr>, answer: &[u8]) {
        let from = self.socket.answer_from(from);
        let outgoing = Outgoing { to, from, ecn: 0, train: answer, segment_bytes: answer.len().max(1) };
        // Never waits: whoever did not get an answer asks again.
        if let Err(error) = self.socket.try_send(&outgoing) {
            tracing::debug!(%error, %to, "answer not sent");
        }
    }
}

/// A train that has come by a carrier. What it causes is for the connection's send thread, or the porter, to send: they may wait for the carrier, or lose it.
pub(super) fn take_carried(shared: &Shared, from: SocketAddr, train: &mut [u8], segment_bytes: usize) {
    let now = clock::now();
    if let Some(link) = data_destination(train).and_then(|id| shared.link(id)) {
        return feed_carried(shared, &link, now, from, train, segment_bytes);
    }
    for datagram in train.chunks_mut(segment_bytes) {
        let handled = shared.demultiplexer().handle(now, from, datagram);
        match handled {
            Handled::Connection(id) => {
                if let Some(link) = shared.link(id) {
                    let len = datagram.len();
                    feed_carried(shared, &link, now, from, datagram, len);
                }
            }
            Handled::New(id, connection) => {
                shared.take_in(id, *connection, None);
                let evicted = shared.demultiplexer().take_evicted();
                if let Some(id) = evicted {
                    shared.evict(id);
                }
            }
            Handled::Respond(answer) => {
                if let Some(carrier) = shared.carriers.get(from) {
                    carrier.send(&answer, answer.len().max(1), Duration::ZERO);
                }
            }
            Handled::Ignore => {}
        }
    }
}

fn feed_carried(shared: &Shared, link: &Arc<Link>, now: Time, from: SocketAddr, train: &mut [u8], segment_bytes: usize) {
    let mut state = link.lock();
    // No receive thread comes back for these.
    state.reports_by_receiver = false;
    let was_connected = state.connected;
    state.connection.handle_train(now, Origin::just_now(now, from), train, segment_bytes);
    if state.accepted && is_carried(state.connection.remote()) {
        state.answers = Answers::default();
    }
    link.renew_credit(&mut state);
    let woken = state.dispatch();
    let met = (state.connected && !was_connected).then(|| Met::by(&state));
    let announce = state.connected && state.connection.is_presentable() && std::mem::take(&mut state.incoming);
    let wake_sender = state.asleep_until.take().is_some();
    drop(state);
    link.wake(wake_sender, woken);
    if let Some(met) = met {
        shared.on_connected(link.id, &met);
    }
    if announce {
        shared.announce(link.clone());
    }
}

/// Trains taken from the kernel at once.
const BATCH_TRAINS: usize = 8;
/// Full batches that are taken before anything is said of them.
const BATCHES_MOST: u32 = 8;

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use haul_proto::identity::{Identity, PeerTrust};
    use haul_proto::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, StreamKind, TRAIN_BYTES};
    use haul_udp::Options;

    use super::super::link::Sockets;
    use super::*;

    /// An endpoint's receive thread that does not run, on a socket bound to no address of its own.
    fn receiver() -> Receiver {
        let socket = Socket::bind("0.0.0.0:0".parse().unwrap(), Options::default()).unwrap();
        let shared = Arc::new(Shared::new(socket, None).unwrap());
        Receiver::new(shared.clone(), shared.socket.clone(), false)
    }

    /// A client's end and its server's, connected by hand.
    fn connected() -> (Connection, Connection) {
        let mut client = Endpoint::new(EndpointConfig { seed: [1; 32], server: None }).unwrap();
        let config = ServerConfig::new(Identity::generate(), PeerTrust::Anyone);
        let mut server = Endpoint::new(EndpointConfig { seed: [2; 32], server: Some(config) }).unwrap();
        let now = clock::now();
        let (_, mut near) = client.connect(now, FAR.parse().unwrap(), ClientConfig::new(PeerTrust::Anyone)).unwrap();
        let mut far: Option<Connection> = None;
        let mut train = vec![0; TRAIN_BYTES];
        while !far.as_ref().is_some_and(Connection::is_established) {
            while let Some(transmit) = near.poll_transmit(now, &mut train) {
                for datagram in train[..transmit.len].chunks_mut(transmit.segment) {
                    let origin = Origin::just_now(now, NEAR.parse().unwrap());
                    match (server.handle(now, origin.from, datagram), &mut far) {
                        (Handled::Respond(mut answer), _) => {
                            let len = answer.len();
                            near.handle_train(now, Origin::just_now(now, FAR.parse().unwrap()), &mut answer, len);
                        }
                        (Handled::New(_, connection), _) => far = Some(*connection),
                        (Handled::Connection(_), Some(far)) => {
                            let len = datagram.len();
                            far.handle_train(now, origin, datagram, len);
                        }
                        _ => {}
                    }
                }
            }
            while let Some(transmit) = far.as_mut().and_then(|far| far.poll_transmit(now, &mut train)) {
                let origin = Origin::just_now(now, FAR.parse().unwrap());
                near.handle_train(now, origin, &mut train[..transmit.len], transmit.segment);
            }
        }
        (near, far.expect("it is established"))
    }

    /// What comes may be the report that lets a sender go on that waits for its window: nothing else wakes it up soon.
    #[test]
    fn a_connection_that_gives_way_before_it_was_asked_wakes_up() {
        let mut receiver = receiver();
        let (mut near, _far) = connected();
        let stream = near.open(StreamKind::Unidirectional).unwrap();
        near.write(stream, &vec![1; 1 << 20]).unwrap();
        let (now, mut train) = (clock::now(), vec![0; TRAIN_BYTES]);
        while near.poll_transmit(now, &mut train).is_some() {}
        assert!(!near.wants_data(), "it waits for the window, or the pacer");
        let waiting = receiver.shared.link_for(near.id(), near, Sockets::Ports(Vec::new()));
        // No timer wakes it up.
        waiting.lock().asleep_until = Some(Time::ZERO);
        receiver.take_over_reports(&waiting);
        let others: Vec<_> = (0..32).map(|_| other(&receiver.shared)).collect();
        for link in &others[..31] {
            receiver.take_over_reports(link);
        }
        assert_eq!(waiting.lock().asleep_until, Some(Time::ZERO), "there is room for all of them");
        receiver.take_over_reports(&others[31]);
        assert_eq!(waiting.lock().asleep_until, None);
    }

    #[test]
    fn who_was_heard_the_longest_time_ago_gives_way() {
        let mut receiver = receiver();
        let links: Vec<_> = (0..33).map(|_| other(&receiver.shared)).collect();
        for link in links[..32].iter().chain([&links[0], &links[32]]) {
            receiver.take_over_reports(link);
        }
        let is_known = |link: &Arc<Link>| receiver.reports.find(link.id).is_some();
        let gone: Vec<_> = links.iter().map(|link| !is_known(link)).collect();
        assert_eq!((gone.iter().filter(|gone| **gone).count(), gone[1]), (1, true));
    }

    /// Who has seen a packet knows all that is clear in it.
    #[test]
    fn what_is_not_authentic_does_not_change_from_where_a_path_is_answered() {
        let mut receiver = receiver();
        let (mut near, far) = connected();
        let link = receiver.shared.link_for(far.id(), far, Sockets::Ports(Vec::new()));
        link.lock().accepted = true;
        let stream = near.open(StreamKind::Unidirectional).unwrap();
        let mut packet = || {
            near.write(stream, b"word").unwrap();
            let mut train = vec![0; TRAIN_BYTES];
            let transmit = near.poll_transmit(clock::now(), &mut train).expect("a packet");
            train.truncate(transmit.len);
            train
        };
        let mut answered_from = |train: &[u8], to: IpAddr| {
            let (from, segment_bytes) = (NEAR.parse().unwrap(), train.len());
            let train = &mut train.to_vec();
            let received = Received { from, to: Some(to), ecn: 0, train, segment_bytes, waited: Duration::ZERO };
            receiver.feed(&link, clock::now(), received);
            link.lock().answers.of(0)
        };
        let [here, elsewhere] = [1, 2].map(|last| IpAddr::from([127, 0, 0, last]));
        let (first, second) = (packet(), packet());
        assert_eq!(answered_from(&first, here), Some(here));
        let mut forged = second.clone();
        *forged.last_mut().expect("a tag") ^= 1;
        assert_eq!(answered_from(&forged, elsewhere), Some(here), "forged");
        assert_eq!(answered_from(&first, elsewhere), Some(here), "repeated");
        assert_eq!(answered_from(&second, elsewhere), Some(elsewhere));
    }

    /// The link of a connection that has just begun.
    fn other(shared: &Shared) -> Arc<Link> {
        let config = ClientConfig::new(PeerTrust::Anyone);
        let (id, connection) = shared.demultiplexer().connect(clock::now(), FAR.parse().unwrap(), config).unwrap();
        shared.link_for(id, connection, Sockets::Ports(Vec::new()))
    }

    const NEAR: &str = "127.0.0.1:1000";
    const FAR: &str = "127.0.0.1:2000";
}
