//! One end of a connection on a simulated network: what a socket, threads and an application are elsewhere.
//!
//! Each time that it is asked for a packet, an [`End`] hears the events of its connection, reads what has come on ordered streams, writes what is to be sent, and
//! fills trains. All bytes of a transfer are known from their place in the stream ([`Content`]), so what arrives is checked without a copy of it.
//! It keeps count of what happens; whoever drives the network reads that.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use haul_proto::data_destination;
use haul_proto::wire::Header;
use haul_proto::{
    ClientConfig, CloseReason, Connection, ConnectionId, Ecn, Endpoint, EndpointConfig, Event, Handled, Origin, ServerConfig,
    SinkFactory, StreamId, StreamKind,
};
use haul_sim::{Delivered, EndpointId, Transmit};
use haul_units::{Bytes, Time};

use crate::placed::{Content, Placed};

/// One end: a demultiplexer and its connection.
pub struct End {
    /// What tells whose a datagram is.
    pub endpoint: Endpoint,
    /// The connection's id here.
    pub id: Option<ConnectionId>,
    /// The connection, once it has been made.
    pub connection: Option<Connection>,
    /// Where its datagrams come from.
    pub address: SocketAddr,
    peer: EndpointId,
    content: Content,
    /// Ways of further paths; what none of them is for leaves from `address` by the first way.
    pub ways: Vec<Way>,
    out: VecDeque<Transmit<Datagram>>,
    train: Vec<u8>,
    bulk: Option<Bulk>,
    /// What has come on placed streams, all together.
    pub placed: Arc<Mutex<Placed>>,
    /// Ordered streams that have been accepted: how many bytes have been read, and whether that was all.
    pub read: Vec<(StreamId, u64, bool)>,
    /// Bytes of ordered streams that are not what belongs there.
    pub wrong: u64,
    /// What the connection has told, in order.
    pub events: Vec<Event>,
    /// Why it has ended.
    pub closed: Option<CloseReason>,
    /// When the handshake was complete.
    pub connected_at: Option<Time>,
    /// Trains sent.
    pub trains: u64,
    /// Datagrams sent.
    pub packets: u64,
    /// Keys under which packets were sent; their number is clear.
    pub epochs: BTreeSet<u8>,
    /// Times that a timer has called.
    pub wakes: u64,
}

/// How packets of a further path leave an end.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// A client tells its paths apart by their number, a server by where they lead.
    pub path: Option<u8>,
    /// Where the path leads.
    pub remote: SocketAddr,
    /// Where its datagrams come from.
    pub address: SocketAddr,
    /// The way of the network that they take.
    pub way: u16,
}

/// One datagram of either side.
#[derive(Debug, Clone)]
pub struct Datagram {
    /// What it carries.
    pub bytes: Vec<u8>,
    from: SocketAddr,
    ecn: Ecn,
}

impl Datagram {
    /// What is left of a datagram at the end of a link.
    pub fn after(delivered: Delivered<Self>) -> Self {
        let mut datagram = delivered.packet;
        if delivered.corrupted {
            let at = datagram.bytes.len() * 2 / 3;
            datagram.bytes[at] ^= 0x20;
        }
        if delivered.ce && datagram.ecn != Ecn::NotEct {
            datagram.ecn = Ecn::Ce;
        }
        datagram
    }

    /// What it takes on the wire, with the headers of IP and UDP.
    pub fn wire_bytes(&self) -> Bytes {
        Bytes(self.bytes.len() as u64 + IP_UDP_BYTES)
    }
}

/// A transfer that an end is doing; it has a stream once it is connected.
#[derive(Debug)]
struct Bulk {
    stream: Option<StreamId>,
    kind: StreamKind,
    written: u64,
    /// `u64::MAX` where it has no end.
    total: u64,
    finished: bool,
}

impl End {
    /// The end of a client, which has yet to [`connect`](Self::connect).
    ///
    /// # Panics
    ///
    /// When haul-proto will not have the configuration, like all of this: these are tests.
    pub fn client(seed: [u8; 32], address: SocketAddr, peer: EndpointId, content: Content) -> Self {
        Self::new(EndpointConfig { seed, server: None }, address, peer, content, Arc::default())
    }

    /// The end of a server, which waits for a client; the sinks of the configuration are its own.
    pub fn server(seed: [u8; 32], address: SocketAddr, peer: EndpointId, content: Content, mut config: ServerConfig) -> Self {
        let placed = Arc::default();
        config.transport.sinks = Some(sinks(&placed, content));
        Self::new(EndpointConfig { seed, server: Some(config) }, address, peer, content, placed)
    }

    fn new(config: EndpointConfig, address: SocketAddr, peer: EndpointId, content: Content, placed: Arc<Mutex<Placed>>) -> Self {
        Self {
            endpoint: Endpoint::new(config).expect("a valid configuration"),
            id: None,
            connection: None,
            address,
            peer,
            content,
            ways: Vec::new(),
            out: VecDeque::new(),
            train: vec![0; 1 << 16],
            bulk: None,
            placed,
            read: Vec::new(),
            wrong: 0,
            events: Vec::new(),
            closed: None,
            connected_at: None,
            trains: 0,
            packets: 0,
            epochs: BTreeSet::new(),
            wakes: 0,
        }
    }

    /// Begins a connection with the server at this address; the sinks of the configuration are its own.
    pub fn connect(&mut self, now: Time, server: SocketAddr, mut config: ClientConfig) {
        config.transport.sinks = Some(sinks(&self.placed, self.content));
        let (id, connection) = self.endpoint.connect(now, server, config).expect("a valid configuration");
        (self.id, self.connection) = (Some(id), Some(connection));
    }

    /// The connection.
    ///
    /// # Panics
    ///
    /// When there is none.
    pub fn connection(&mut self) -> &mut Connection {
        self.connection.as_mut().expect("it has been made")
    }

    /// Starts sending `total` bytes now, placed or ordered.
    pub fn start_bulk(&mut self, total: u64, ordered: bool) -> StreamId {
        let kind = if ordered { StreamKind::Bidirectional } else { StreamKind::Placed };
        let stream = self.connection().open(kind).expect("a stream is left");
        self.bulk = Some(Bulk { stream: Some(stream), kind, written: 0, total, finished: false });
        stream
    }

    /// Sends `total` bytes as soon as it is connected; without a total: for ever.
    pub fn send_once_connected(&mut self, total: Option<Bytes>, kind: StreamKind) {
        let total = total.map_or(u64::MAX, Bytes::as_u64);
        self.bulk = Some(Bulk { stream: None, kind, written: 0, total, finished: false });
    }

    /// Bytes that have arrived: placed ones as they came, of ordered streams those that could be read.
    pub fn arrived(&self) -> u64 {
        let placed = self.placed.lock().expect("nobody panics with it").bytes;
        placed + self.read.iter().map(|&(_, bytes, _)| bytes).sum::<u64>()
    }

    /// Whether all that was to come has.
    pub fn has_all(&self) -> bool {
        self.placed.lock().expect("nobody panics with it").is_complete() || self.read.iter().any(|&(_, _, ended)| ended)
    }

    fn pump(&mut self, now: Time) {
        let Some(connection) = self.connection.as_mut() else { return };
        connection.sink_released();
        while let Some(event) = connection.poll_event() {
            match &event {
                Event::Connected => {
                    self.connected_at.get_or_insert(now);
                    if let Some(id) = self.id {
                        self.endpoint.on_connected(id, connection.met());
                    }
                    if let Some(bulk) = self.bulk.as_mut().filter(|bulk| bulk.stream.is_none()) {
                        bulk.stream = connection.open(bulk.kind).ok();
                    }
                }
                Event::Opened(kind) => {
                    while let Some(stream) = connection.accept(*kind) {
                        if *kind != StreamKind::Placed {
                            self.read.push((stream, 0, false));
                        }
                    }
                }
                Event::Closed(reason) => self.closed = Some(reason.clone()),
                _ => {}
            }
            self.events.push(event);
        }
        self.read();
        self.write();
        self.transmit(now);
    }

    /// Reads ordered streams, all of them pattern.
    fn read(&mut self) {
        let Some(connection) = self.connection.as_mut().filter(|_| !self.read.is_empty()) else { return };
        let mut buffer = [0; 8192];
        for (stream, at, ended) in &mut self.read {
            while let Ok(len) = connection.read(*stream, &mut buffer) {
                self.wrong += self.content.wrong(*at, &buffer[..len]);
                *at += len as u64;
                if len == 0 {
                    *ended = true;
                    break;
                }
            }
        }
    }

    fn write(&mut self) {
        let Some(connection) = self.connection.as_mut() else { return };
        let Some(bulk) = self.bulk.as_mut().filter(|bulk| !bulk.finished) else { return };
        let Some(stream) = bulk.stream else { return };
        while bulk.written < bulk.total {
            if connection.buffered() >= connection.send_budget() {
                return;
            }
            let len = (bulk.total - bulk.written).min(BLOCK_BYTES) as usize;
            let data = self.content.of(bulk.written, len);
            let written = match bulk.kind {
                StreamKind::Placed => connection.write_block(stream, bulk.written, data).map(|()| len).ok(),
                _ => connection.write(stream, &data).ok(),
            };
            let Some(written) = written else { return };
            bulk.written += written as u64;
        }
        bulk.finished = connection.finish(stream).is_ok();
    }

    fn transmit(&mut self, now: Time) {
        let Some(connection) = self.connection.as_mut() else { return };
        while let Some(transmit) = connection.poll_transmit(now, &mut self.train) {
            self.trains += 1;
            let is_for = |way: &&Way| way.remote == transmit.remote && way.path.is_none_or(|path| path == transmit.path);
            let (from, way) = self.ways.iter().find(is_for).map_or((self.address, 0), |way| (way.address, way.way));
            for bytes in self.train[..transmit.len].chunks(transmit.segment) {
                self.packets += 1;
                self.epochs.extend(data_destination(bytes).and_then(|_| Header::parse(bytes)).map(|header| header.epoch));
                let packet = Datagram { bytes: bytes.to_vec(), from, ecn: transmit.ecn };
                self.out.push_back(Transmit { to: self.peer, way, bytes: packet.wire_bytes(), packet });
            }
        }
    }
}

fn sinks(placed: &Arc<Mutex<Placed>>, content: Content) -> SinkFactory {
    let placed = placed.clone();
    SinkFactory::new(move |_| Box::new(content.sink(&placed)))
}

impl haul_sim::Endpoint for End {
    type Packet = Datagram;

    fn handle(&mut self, now: Time, _from: EndpointId, delivered: Delivered<Datagram>) {
        let Datagram { mut bytes, from, ecn } = Datagram::after(delivered);
        let len = bytes.len();
        let is_data = data_destination(&bytes).is_some_and(|id| Some(id) == self.id);
        if let Some(connection) = self.connection.as_mut().filter(|_| is_data) {
            connection.handle_train(now, Origin { from, ecn, at: now }, &mut bytes, len);
            return;
        }
        match self.endpoint.handle(now, from, &mut bytes) {
            Handled::Connection(id) if Some(id) == self.id => {
                if let Some(connection) = self.connection.as_mut() {
                    connection.handle_train(now, Origin { from, ecn, at: now }, &mut bytes, len);
                }
            }
            Handled::New(id, connection) => (self.id, self.connection) = (Some(id), Some(*connection)),
            Handled::Respond(answer) => {
                assert!(answer.len() <= len, "amplification");
                let packet = Datagram { bytes: answer, from: self.address, ecn: Ecn::NotEct };
                self.out.push_back(Transmit { to: self.peer, way: 0, bytes: packet.wire_bytes(), packet });
            }
            _ => {}
        }
    }

    fn handle_timeout(&mut self, now: Time) {
        self.wakes += 1;
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
        self.connection.as_ref().map(Connection::poll_timeout).filter(|&at| at != Time::NEVER)
    }

    fn ecn_capable(packet: &Datagram) -> bool {
        packet.ecn != Ecn::NotEct
    }
}

const IP_UDP_BYTES: u64 = 28;
/// A fraction of what a connection buffers, so that its budget is met closely.
const BLOCK_BYTES: u64 = 1 << 18;
