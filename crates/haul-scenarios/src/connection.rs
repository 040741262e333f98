//! Real connections as the flows of a plan: real handshakes and real encryption, the bytes themselves all zero.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_proto::identity::{Identity, PeerTrust};
use haul_proto::{
    ClientConfig, Connection, ConnectionId, Ecn, Endpoint, EndpointConfig, Event, Handled, Pacing, ServerConfig, Sink,
    SinkFactory, StreamId, StreamKind, TransportConfig,
};
use haul_sim::{Delivered, EndpointId, FlowEnd, FlowSpec, Transmit};
use haul_units::{Bytes, Time};

/// The sender and the receiver of a flow, driven by a controller.
pub fn ends<K>(flow: &FlowSpec<'_, K>, controller: ControllerChoice, pacing: Pacing) -> (End, End) {
    static IDENTITY: LazyLock<Vec<u8>> = LazyLock::new(|| Identity::generate().to_pkcs8().expect("it is ours").to_vec());
    let identity = Identity::from_pkcs8(&IDENTITY).expect("just made");
    let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
    let received = Arc::new(Received::default());
    let (shared, size) = (received.clone(), flow.size);
    let sinks = SinkFactory::new(move |_| Box::new(Counting::new(shared.clone())));
    let transport = TransportConfig { controller, pacing, max_packet: 1472, sinks: Some(sinks), ..TransportConfig::default() };
    let server = ServerConfig { transport: transport.clone(), ..ServerConfig::new(identity, PeerTrust::Anyone) };
    let client = ClientConfig { transport, connect_timeout: Duration::from_secs(60), ..ClientConfig::new(trust) };
    let seed = |side: u8| {
        let mut seed = [side; 32];
        seed[..8].copy_from_slice(&flow.seed.to_le_bytes());
        seed
    };
    let start = Start { at: flow.start, server: address(flow.receiver), config: Box::new(client), size: size.map(Bytes::as_u64) };
    let sender = End::new(flow.sender, flow.receiver, EndpointConfig { seed: seed(1), server: None }, None);
    let receiver = End::new(flow.receiver, flow.sender, EndpointConfig { seed: seed(2), server: Some(server) }, Some(received));
    (End { start: Some(start), ..sender }, receiver)
}

fn address(id: EndpointId) -> SocketAddr {
    let [.., a, b] = (id.0 as u32).to_be_bytes();
    SocketAddr::from(([10, 0, a, b], 7000))
}

/// One end of a connection.
pub struct End {
    endpoint: Endpoint,
    start: Option<Start>,
    id: Option<ConnectionId>,
    connection: Option<Connection>,
    address: SocketAddr,
    peer: EndpointId,
    out: VecDeque<Transmit<Datagram>>,
    train: Vec<u8>,
    bulk: Option<Bulk>,
    received: Option<Arc<Received>>,
    completed_at: Option<Time>,
}

/// A connection to be made.
struct Start {
    at: Time,
    server: SocketAddr,
    config: Box<ClientConfig>,
    size: Option<u64>,
}

/// What is being sent; without a total: no end.
struct Bulk {
    /// Once connected.
    stream: Option<StreamId>,
    written: u64,
    total: Option<u64>,
    finished: bool,
}

/// One datagram of either side.
#[derive(Debug, Clone)]
pub struct Datagram {
    bytes: Vec<u8>,
    from: SocketAddr,
    ecn: Ecn,
}

impl End {
    fn new(me: EndpointId, peer: EndpointId, config: EndpointConfig, received: Option<Arc<Received>>) -> Self {
        Self {
            endpoint: Endpoint::new(config).expect("a valid configuration"),
            start: None,
            id: None,
            connection: None,
            address: address(me),
            peer,
            out: VecDeque::new(),
            train: vec![0; 1 << 16],
            bulk: None,
            received,
            completed_at: None,
        }
    }

    fn connect(&mut self, now: Time) {
        let Some(start) = self.start.take_if(|start| start.at <= now) else { return };
        let (id, connection) = self.endpoint.connect(now, start.server, *start.config).expect("a valid configuration");
        (self.id, self.connection) = (Some(id), Some(connection));
        self.bulk = Some(Bulk { stream: None, written: 0, total: start.size, finished: false });
    }

    fn pump(&mut self, now: Time) {
        self.connect(now);
        let Some(connection) = self.connection.as_mut() else { return };
        connection.sink_released();
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Connected => {
                    if let Some(id) = self.id {
                        self.endpoint.on_connected(id, connection.peer_reset_token());
                    }
                    if let Some(bulk) = &mut self.bulk {
                        bulk.stream = connection.open(StreamKind::Placed).ok();
                    }
                }
                Event::Opened(kind) => while connection.accept(kind).is_some() {},
                Event::Closed(reason) => panic!("closed at {now}: {reason:?}"),
                _ => {}
            }
        }
        if let Some(bulk) = &mut self.bulk {
            bulk.write(connection);
        }
        while let Some(transmit) = connection.poll_transmit(now, &mut self.train) {
            for bytes in self.train[..transmit.len].chunks(transmit.segment) {
                let datagram = Datagram { bytes: bytes.to_vec(), from: self.address, ecn: transmit.ecn };
                let bytes = Bytes(bytes.len() as u64 + IP_UDP_BYTES);
                self.out.push_back(Transmit { to: self.peer, packet: datagram, bytes });
            }
        }
    }

    /// The connection, where it has been made.
    fn take(&mut self, now: Time, from: SocketAddr, ecn: Ecn, bytes: &mut [u8]) {
        let len = bytes.len();
        if let Some(connection) = &mut self.connection {
            connection.handle_train(now, from, ecn, bytes, len);
        }
        if self.completed_at.is_none() && self.received.as_ref().is_some_and(|received| received.complete()) {
            self.completed_at = Some(now);
        }
    }
}

impl Bulk {
    fn write(&mut self, connection: &mut Connection) {
        let Some(stream) = self.stream else { return };
        while !self.finished && connection.buffered() < connection.send_budget() {
            let left = self.total.map_or(u64::MAX, |total| total - self.written);
            if left == 0 {
                self.finished = connection.finish(stream).is_ok();
                return;
            }
            let len = left.min(BLOCK_BYTES);
            if connection.write_block(stream, self.written, vec![0; len as usize]).is_err() {
                return;
            }
            self.written += len;
        }
    }
}

impl haul_sim::Endpoint for End {
    type Packet = Datagram;

    fn handle(&mut self, now: Time, _from: EndpointId, delivered: Delivered<Datagram>) {
        let Datagram { mut bytes, from, mut ecn } = delivered.packet;
        if delivered.corrupted {
            let at = bytes.len() * 2 / 3;
            bytes[at] ^= 0x20;
        }
        if delivered.ce && ecn != Ecn::NotEct {
            ecn = Ecn::Ce;
        }
        if haul_proto::data_destination(&bytes).is_some_and(|id| Some(id) == self.id) {
            return self.take(now, from, ecn, &mut bytes);
        }
        match self.endpoint.handle(now, from, &mut bytes) {
            Handled::Connection(id) if Some(id) == self.id => self.take(now, from, ecn, &mut bytes),
            Handled::New(id, connection) => (self.id, self.connection) = (Some(id), Some(*connection)),
            Handled::Respond(answer) => {
                let bytes = Bytes(answer.len() as u64 + IP_UDP_BYTES);
                let packet = Datagram { bytes: answer, from: self.address, ecn: Ecn::NotEct };
                self.out.push_back(Transmit { to: self.peer, packet, bytes });
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        if let Some(connection) = self.connection.as_mut() {
            connection.handle_timeout(now);
        }
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Datagram>> {
        if self.out.is_empty() {
            self.pump(now);
        }
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Time> {
        if let Some(start) = &self.start {
            return Some(start.at);
        }
        self.connection.as_ref().map(Connection::poll_timeout).filter(|&at| at != Time::NEVER)
    }

    fn ecn_capable(packet: &Datagram) -> bool {
        packet.ecn != Ecn::NotEct
    }
}

impl FlowEnd for End {
    fn received(&self) -> Bytes {
        Bytes(self.received.as_ref().map_or(0, |received| received.bytes.load(Ordering::Relaxed)))
    }

    fn completed_at(&self) -> Option<Time> {
        self.completed_at
    }
}

/// What has arrived, each byte once.
#[derive(Debug, Default)]
struct Received {
    bytes: AtomicU64,
    total: AtomicU64,
    finished: AtomicBool,
}

impl Received {
    fn complete(&self) -> bool {
        self.finished.load(Ordering::Relaxed) && self.bytes.load(Ordering::Relaxed) == self.total.load(Ordering::Relaxed)
    }
}

/// Counts bytes and forgets them.
struct Counting {
    memory: Vec<u8>,
    /// A bit for each byte, from the first word that is not complete.
    seen: VecDeque<u64>,
    /// Complete words before that.
    complete: u64,
    received: Arc<Received>,
}

impl Counting {
    fn new(received: Arc<Received>) -> Self {
        Self { memory: Vec::new(), seen: VecDeque::new(), complete: 0, received }
    }

    /// The words of the bitmap that hold a range, each with a mask of its part; nothing in place of a word that is complete.
    fn words(complete: u64, offset: u64, len: usize) -> impl Iterator<Item = Option<(usize, u64)>> {
        let (start, end) = (offset, offset + len as u64);
        (start / 64..end.div_ceil(64)).map(move |word| {
            let (from, to) = (start.max(word * 64) - word * 64, end.min(word * 64 + 64) - word * 64);
            Some((word.checked_sub(complete)? as usize, (u64::MAX >> (64 - (to - from))) << from))
        })
    }

    fn mark(&mut self, offset: u64, len: usize) -> usize {
        let mut fresh = 0;
        for (word, mask) in Self::words(self.complete, offset, len).flatten() {
            if self.seen.len() <= word {
                self.seen.resize(word + 1, 0);
            }
            fresh += (mask & !self.seen[word]).count_ones() as usize;
            self.seen[word] |= mask;
        }
        while self.seen.front() == Some(&u64::MAX) {
            self.seen.pop_front();
            self.complete += 1;
        }
        self.received.bytes.fetch_add(fresh as u64, Ordering::Relaxed);
        fresh
    }
}

impl Sink for Counting {
    fn slot(&mut self, offset: u64, len: usize) -> Option<&mut [u8]> {
        let here = |(word, mask): (usize, u64)| self.seen.get(word).is_some_and(|seen| seen & mask != 0);
        if Self::words(self.complete, offset, len).any(|place| place.is_none_or(here)) {
            return None;
        }
        self.memory.resize(len.max(self.memory.len()), 0);
        Some(&mut self.memory[..len])
    }

    fn commit(&mut self, offset: u64, len: usize, _end: bool) {
        self.mark(offset, len);
    }

    fn deliver(&mut self, offset: u64, bytes: &[u8], _end: bool) -> usize {
        self.mark(offset, bytes.len())
    }

    fn finish(&mut self, total: u64) {
        self.received.total.store(total, Ordering::Relaxed);
        self.received.finished.store(true, Ordering::Relaxed);
    }

    fn reset(&mut self, _code: u64) {}

    fn consumed(&self) -> u64 {
        self.received.bytes.load(Ordering::Relaxed)
    }
}

const IP_UDP_BYTES: u64 = 28;
const BLOCK_BYTES: u64 = 1 << 18;
