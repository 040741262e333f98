//! Two real connections over simulated links, in virtual time.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use haul_proto::identity::{Identity, PeerTrust};
use haul_proto::{
    ClientConfig, CloseReason, Connection, ConnectionId, Ecn, Endpoint, EndpointConfig, Event, Handled, ServerConfig, Sink,
    SinkFactory, StreamId, StreamKind, TransportConfig,
};
use haul_sim::{Delivered, EndpointId, LinkConfig, LossModel, Network, Reorder, Transmit};
use haul_units::{BitRate, Bytes, Ratio, Time};

pub const BLOCK: usize = 1 << 20;
const IP_UDP_BYTES: u64 = 28;

pub fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// What a path between the two ends is like.
#[derive(Debug, Clone, Copy)]
pub struct Path {
    pub rate: BitRate,
    pub rtt: Duration,
    pub loss: f64,
    pub queue_bdp: f64,
    pub reorder: f64,
    pub duplicate: f64,
    pub corrupt: f64,
    pub seed: u64,
}

impl Path {
    pub fn new(rate: BitRate, rtt: Duration) -> Self {
        Self { rate, rtt, loss: 0.0, queue_bdp: 1.0, reorder: 0.0, duplicate: 0.0, corrupt: 0.0, seed: 1 }
    }

    pub fn loss(self, loss: f64) -> Self {
        Self { loss, ..self }
    }

    pub fn link(&self, direction: u64) -> LinkConfig {
        let loss = if self.loss > 0.0 { LossModel::Random(Ratio::new(self.loss)) } else { LossModel::None };
        LinkConfig {
            rate: self.rate,
            delay: self.rtt / 2,
            queue: Bytes((self.rate.bytes_in(self.rtt).as_u64() as f64 * self.queue_bdp) as u64).max(Bytes(30_000)),
            loss,
            reorder: Reorder { ratio: Ratio::new(self.reorder), extra: self.rtt / 8 },
            duplicate: Ratio::new(self.duplicate),
            corrupt: Ratio::new(self.corrupt),
            seed: self.seed * 2 + direction,
            ..LinkConfig::default()
        }
    }

    /// How long `bytes` take at the link's rate, loss and overhead included.
    pub fn ideal(&self, bytes: u64, packet: u64) -> Duration {
        let payload = (packet - 44) as f64;
        let wire = bytes as f64 / payload * (packet + IP_UDP_BYTES) as f64 / (1.0 - self.loss);
        self.rate.time_for(Bytes(wire as u64))
    }
}

/// The byte that belongs at an offset of any stream here.
pub fn pattern(offset: u64) -> u8 {
    (offset ^ offset >> 8 ^ offset >> 20).to_le_bytes()[0]
}

/// What arrived on a placed stream.
#[derive(Debug, Default)]
pub struct Placed {
    pub bytes: u64,
    pub blocks: u64,
    pub finished: Option<u64>,
    pub wrong: u64,
}

/// A sink that checks every byte against the pattern and that none is committed twice.
struct CheckingSink {
    memory: Vec<u8>,
    seen: Vec<u64>,
    state: Arc<Mutex<Placed>>,
}

impl CheckingSink {
    fn mark(&mut self, offset: u64, len: usize) -> usize {
        let end = (offset as usize + len).div_ceil(64) + 1;
        if self.seen.len() < end {
            self.seen.resize(end, 0);
        }
        (offset as usize..offset as usize + len)
            .filter(|&at| {
                let fresh = self.seen[at / 64] & (1 << (at % 64)) == 0;
                self.seen[at / 64] |= 1 << (at % 64);
                fresh
            })
            .count()
    }

    fn is_fresh(&self, offset: u64, len: usize) -> bool {
        (offset as usize..offset as usize + len).all(|at| self.seen.get(at / 64).is_none_or(|word| word & (1 << (at % 64)) == 0))
    }
}

impl Sink for CheckingSink {
    fn slot(&mut self, offset: u64, len: usize) -> Option<&mut [u8]> {
        if offset > 1 << 34 || !self.is_fresh(offset, len) {
            return None;
        }
        self.memory.resize(len, 0);
        Some(&mut self.memory)
    }

    fn commit(&mut self, offset: u64, len: usize, end: bool) {
        let fresh = self.mark(offset, len);
        let wrong = (0..len).filter(|&i| self.memory[i] != pattern(offset + i as u64)).count();
        let mut state = self.state.lock().unwrap();
        state.wrong += wrong as u64 + (len - fresh) as u64;
        state.bytes += len as u64;
        state.blocks += u64::from(end);
    }

    fn deliver(&mut self, offset: u64, bytes: &[u8], end: bool) -> usize {
        let fresh = self.mark(offset, bytes.len());
        let wrong = bytes.iter().enumerate().filter(|&(i, &byte)| byte != pattern(offset + i as u64)).count();
        let mut state = self.state.lock().unwrap();
        state.wrong += wrong as u64;
        state.bytes += fresh as u64;
        state.blocks += u64::from(end && fresh > 0);
        fresh
    }

    fn finish(&mut self, total: u64) {
        self.state.lock().unwrap().finished = Some(total);
    }

    fn reset(&mut self, _code: u64) {}

    fn consumed(&self) -> u64 {
        self.state.lock().unwrap().bytes
    }
}

/// A bulk transfer that an end is doing.
#[derive(Debug)]
struct Bulk {
    stream: StreamId,
    written: u64,
    total: u64,
    finished: bool,
    ordered: bool,
}

/// How packets of a further path leave an end.
#[derive(Debug, Clone, Copy)]
pub struct Way {
    /// A client tells its paths apart by their number, a server by where they lead.
    pub path: Option<u8>,
    pub remote: SocketAddr,
    pub address: SocketAddr,
    pub via: EndpointId,
}

/// One end: a demultiplexer and its connection.
pub struct End {
    pub endpoint: Endpoint,
    pub id: Option<ConnectionId>,
    pub connection: Option<Connection>,
    pub address: SocketAddr,
    peer: EndpointId,
    /// Ways of further paths; what none of them is for leaves from `address` straight to `peer`.
    pub ways: Vec<Way>,
    out: VecDeque<Transmit<Datagram>>,
    train: Vec<u8>,
    bulk: Option<Bulk>,
    pub placed: Arc<Mutex<Placed>>,
    /// Ordered bytes read, by stream.
    pub read: Vec<(StreamId, u64, bool)>,
    pub wrong: u64,
    pub events: Vec<Event>,
    pub closed: Option<CloseReason>,
    pub connected_at: Option<Time>,
    pub trains: u64,
    /// Datagrams sent.
    pub packets: u64,
    /// Times that a timer has called.
    pub wakes: u64,
}

#[derive(Debug, Clone)]
pub struct Datagram {
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

    pub fn wire_bytes(&self) -> Bytes {
        Bytes(self.bytes.len() as u64 + IP_UDP_BYTES)
    }
}

impl End {
    fn pump(&mut self, now: Time) {
        let Some(connection) = self.connection.as_mut() else { return };
        connection.sink_released();
        write_bulk(connection, &mut self.bulk);
        while let Some(event) = connection.poll_event() {
            match &event {
                Event::Connected => {
                    self.connected_at.get_or_insert(now);
                    if let Some(id) = self.id {
                        self.endpoint.on_connected(id, connection.peer_reset_token());
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
        let mut buffer = [0; 8192];
        for (stream, at, ended) in &mut self.read {
            while let Ok(len) = connection.read(*stream, &mut buffer) {
                self.wrong +=
                    buffer[..len].iter().enumerate().filter(|&(i, &byte)| byte != pattern(*at + i as u64)).count() as u64;
                *at += len as u64;
                if len == 0 {
                    *ended = true;
                    break;
                }
            }
        }
        while let Some(transmit) = connection.poll_transmit(now, &mut self.train) {
            self.trains += 1;
            let is_for = |way: &&Way| way.remote == transmit.remote && way.path.is_none_or(|path| path == transmit.path);
            let (from, to) = self.ways.iter().find(is_for).map_or((self.address, self.peer), |way| (way.address, way.via));
            for bytes in self.train[..transmit.len].chunks(transmit.segment) {
                self.packets += 1;
                let datagram = Datagram { bytes: bytes.to_vec(), from, ecn: transmit.ecn };
                let bytes = datagram.wire_bytes();
                self.out.push_back(Transmit { to, packet: datagram, bytes });
            }
        }
    }

    /// Starts sending `total` bytes of the pattern, placed or ordered.
    pub fn start_bulk(&mut self, total: u64, ordered: bool) -> StreamId {
        let kind = if ordered { StreamKind::Bidirectional } else { StreamKind::Placed };
        let stream = self.connection.as_mut().unwrap().open(kind).unwrap();
        self.bulk = Some(Bulk { stream, written: 0, total, finished: false, ordered });
        stream
    }

    pub fn connection(&mut self) -> &mut Connection {
        self.connection.as_mut().unwrap()
    }
}

fn write_bulk(connection: &mut Connection, bulk: &mut Option<Bulk>) {
    let Some(bulk) = bulk.as_mut().filter(|bulk| !bulk.finished) else { return };
    while bulk.written < bulk.total {
        if connection.buffered() >= connection.send_budget() {
            return;
        }
        let len = (bulk.total - bulk.written).min(BLOCK as u64) as usize;
        let data: Vec<u8> = (bulk.written..bulk.written + len as u64).map(pattern).collect();
        if bulk.ordered {
            let Ok(written) = connection.write(bulk.stream, &data) else { return };
            bulk.written += written as u64;
        } else {
            if connection.write_block(bulk.stream, bulk.written, data).is_err() {
                return;
            }
            bulk.written += len as u64;
        }
    }
    bulk.finished = connection.finish(bulk.stream).is_ok();
}

impl haul_sim::Endpoint for End {
    type Packet = Datagram;

    fn handle(&mut self, now: Time, _from: EndpointId, delivered: Delivered<Datagram>) {
        let Datagram { mut bytes, from, ecn } = Datagram::after(delivered);
        let len = bytes.len();
        match haul_proto::data_destination(&bytes) {
            Some(id) if Some(id) == self.id && self.connection.is_some() => {
                self.connection().handle_train(now, from, ecn, &mut bytes, len);
            }
            _ => match self.endpoint.handle(now, from, &mut bytes) {
                Handled::Connection(id) if Some(id) == self.id && self.connection.is_some() => {
                    self.connection().handle_train(now, from, ecn, &mut bytes, len);
                }
                Handled::New(id, connection) => {
                    self.id = Some(id);
                    self.connection = Some(*connection);
                }
                Handled::Respond(answer) => {
                    assert!(answer.len() <= len, "amplification");
                    let wire = Bytes(answer.len() as u64 + IP_UDP_BYTES);
                    let packet = Datagram { bytes: answer, from: self.address, ecn: Ecn::NotEct };
                    self.out.push_back(Transmit { to: self.peer, packet, bytes: wire });
                }
                _ => {}
            },
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
}

pub const CLIENT: EndpointId = EndpointId(0);
pub const SERVER: EndpointId = EndpointId(1);

/// A client and a server with a path between them, the client connecting.
pub fn pair(path: Path, transport: &TransportConfig) -> Network<End> {
    let (client, server) = configs(transport);
    pair_of(path, client, server)
}

/// What both ends need, for the same behaviour.
pub fn configs(transport: &TransportConfig) -> (ClientConfig, ServerConfig) {
    let identity = Identity::generate();
    let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
    let server = ServerConfig { transport: transport.clone(), ..ServerConfig::new(identity, PeerTrust::Anyone) };
    let client =
        ClientConfig { transport: transport.clone(), connect_timeout: Duration::from_secs(60), ..ClientConfig::new(trust) };
    (client, server)
}

pub fn pair_of(path: Path, client: ClientConfig, server: ServerConfig) -> Network<End> {
    let (client, server) = ends(path.seed, client, server);
    Network::pair(client, server, path.link(0), path.link(1))
}

/// The client, which connects, and the server, to be [`CLIENT`] and [`SERVER`] of a network.
pub fn ends(seed: u64, mut client: ClientConfig, mut server: ServerConfig) -> (End, End) {
    let client_placed = Arc::new(Mutex::new(Placed::default()));
    let server_placed = Arc::new(Mutex::new(Placed::default()));
    client.transport.sinks = Some(sinks(&client_placed));
    server.transport.sinks = Some(sinks(&server_placed));
    let client_address: SocketAddr = "10.0.0.1:1000".parse().unwrap();
    let server_address: SocketAddr = "10.0.0.2:2000".parse().unwrap();
    let seeds = |n: u64| [(seed * 7 + n) as u8; 32];
    let mut client_endpoint = Endpoint::new(EndpointConfig { seed: seeds(1), server: None }).unwrap();
    let (id, connection) = client_endpoint.connect(Time::ZERO, server_address, client).unwrap();
    let server_endpoint = Endpoint::new(EndpointConfig { seed: seeds(2), server: Some(server) }).unwrap();
    let end = |endpoint, address, peer, placed| End {
        endpoint,
        id: None,
        connection: None,
        address,
        peer,
        ways: Vec::new(),
        out: VecDeque::new(),
        train: vec![0; 65536],
        bulk: None,
        placed,
        read: Vec::new(),
        wrong: 0,
        events: Vec::new(),
        closed: None,
        connected_at: None,
        trains: 0,
        packets: 0,
        wakes: 0,
    };
    let mut client = end(client_endpoint, client_address, SERVER, client_placed);
    (client.id, client.connection) = (Some(id), Some(connection));
    (client, end(server_endpoint, server_address, CLIENT, server_placed))
}

fn sinks(state: &Arc<Mutex<Placed>>) -> SinkFactory {
    let state = state.clone();
    SinkFactory::new(move |_| Box::new(CheckingSink { memory: Vec::new(), seen: Vec::new(), state: state.clone() }))
}

/// Runs until both ends are connected.
pub fn connected(network: &mut Network<End>) -> Time {
    let deadline = network.now() + Duration::from_secs(60);
    let ok = network.run_until(deadline, |network| {
        network.endpoint(CLIENT).connected_at.is_some() && network.endpoint(SERVER).connected_at.is_some()
    });
    assert!(ok, "no connection: {:?} {:?}", network.endpoint(CLIENT).closed, network.endpoint(SERVER).closed);
    network.now()
}

/// The client sends `bytes` on a placed stream; returns how long it took until the server had all of them.
pub fn upload(network: &mut Network<End>, bytes: u64, limit: Duration) -> Duration {
    let start = connected(network);
    upload_from(network, start, bytes, limit)
}

/// The same on a connection that there is already, from now (`start`) on.
pub fn upload_from(network: &mut Network<End>, start: Time, bytes: u64, limit: Duration) -> Duration {
    network.endpoint_mut(CLIENT).start_bulk(bytes, false);
    let done = network.run_until(start + limit, |network| {
        let placed = network.endpoint(SERVER).placed.lock().unwrap();
        placed.finished == Some(bytes) && placed.bytes == bytes
    });
    let (now, placed) = (network.now(), network.endpoint(SERVER).placed.clone());
    let placed = placed.lock().unwrap();
    assert_eq!(placed.wrong, 0, "wrong or repeated bytes");
    assert!(
        done,
        "{:?} after {:?}: {:?}; {:?}",
        *placed,
        limit,
        network.endpoint_mut(CLIENT).connection().stats(now),
        network.endpoint(CLIENT).closed
    );
    now - start
}
