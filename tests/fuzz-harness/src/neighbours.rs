//! Two connections of one endpoint, with further paths and block streams on both, on a network that mixes them up.
//!
//! The input is a list of operations. A datagram may be lost, repeated, changed, come from the other client's address, or name the other's connection. Whatever happens, no
//! byte of one connection is seen on the other, nobody is accused, and once the network behaves again everything arrives on every connection that time has not ended.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use haul_proto::identity::{Identity, PeerTrust};
use haul_proto::{
    ClientConfig, CloseReason, Connection, ConnectionId, Endpoint, EndpointConfig, Event, Handled, Origin, ServerConfig, Side,
    Sink, SinkFactory, StreamId, StreamKind, TransportConfig, data_destination,
};
use haul_units::{Bytes, Time};

use crate::feed::Feed;
use crate::sink::{SINK_BYTES, pattern};
use crate::world::transport;

const OPERATIONS: usize = 400;
/// On each connection.
const WRITTEN_BYTES: u64 = 400 << 10;
const CLIENTS: usize = 2;
const PATHS: u8 = 3;
/// Most datagrams that the wire holds; a full one drops.
const WIRE_PKTS: usize = 2048;
/// Time that a datagram takes.
const HOP: Duration = Duration::from_micros(20);
/// Rounds without time passing after which it never will.
const STILL_ROUNDS: u32 = 5_000;

const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 100)), 4000);

/// What the byte at an offset of a client's stream is: another one for each client, so that a byte of the other's is a wrong byte.
fn byte_of(client: usize, id: StreamId, at: u64) -> u8 {
    pattern(id, at) ^ [0x00, 0xa5][client % CLIENTS]
}

fn run_of(client: usize, id: StreamId, from: u64, length: usize) -> Vec<u8> {
    (0..length as u64).map(|at| byte_of(client, id, from + at)).collect()
}

/// Takes each byte of a placed stream once, and only the right one.
struct OwnSink {
    client: usize,
    id: StreamId,
    memory: Vec<u8>,
    filled: Vec<bool>,
    taken: u64,
}

impl OwnSink {
    fn factory(client: usize) -> SinkFactory {
        let empty = (vec![0; SINK_BYTES], vec![false; SINK_BYTES]);
        SinkFactory::new(move |id| {
            let (memory, filled) = empty.clone();
            Box::new(Self { client, id, memory, filled, taken: 0 })
        })
    }

    fn range(&self, offset: u64, length: usize) -> Option<std::ops::Range<usize>> {
        let start = usize::try_from(offset).ok()?;
        let end = start.checked_add(length)?;
        (end <= self.memory.len()).then_some(start..end)
    }

    fn check(&self, offset: u64, bytes: &[u8]) {
        for (at, byte) in (offset..).zip(bytes) {
            assert_eq!(*byte, byte_of(self.client, self.id, at), "client {}: wrong byte at {at} of {:?}", self.client, self.id);
        }
    }
}

impl Sink for OwnSink {
    fn slot(&mut self, offset: u64, len: usize) -> Option<&mut [u8]> {
        let range = self.range(offset, len)?;
        if self.filled[range.clone()].iter().any(|filled| *filled) { None } else { Some(&mut self.memory[range]) }
    }

    fn commit(&mut self, offset: u64, len: usize, _end: bool) {
        let range = self.range(offset, len).expect("what had a slot is in range");
        self.check(offset, &self.memory[range.clone()]);
        self.filled[range].fill(true);
        self.taken += len as u64;
    }

    fn deliver(&mut self, offset: u64, bytes: &[u8], _end: bool) -> usize {
        let Some(range) = self.range(offset, bytes.len()) else { return 0 };
        self.check(offset, bytes);
        let new = self.filled[range.clone()].iter().filter(|filled| !**filled).count();
        self.filled[range].fill(true);
        self.taken += new as u64;
        new
    }

    fn finish(&mut self, _total: u64) {}

    fn reset(&mut self, _code: u64) {}

    fn consumed(&self) -> u64 {
        self.taken
    }
}

/// A client, and what it has to do with the server.
struct Client {
    endpoint: Endpoint,
    id: ConnectionId,
    connection: Connection,
    /// First port of its paths; another one after it has moved.
    port: u16,
    tracks: Vec<Track>,
    written: u64,
    closed: [Option<CloseReason>; 2],
}

/// A stream as its two ends see it.
struct Track {
    id: StreamId,
    writer: Side,
    written: u64,
    read: u64,
    finished: bool,
    at_end: bool,
    /// Reset or stopped: it need not arrive.
    spoiled: bool,
}

/// Where a datagram goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum To {
    Server,
    Client(usize),
}

#[derive(Clone)]
struct Datagram {
    to: To,
    from: SocketAddr,
    bytes: Vec<u8>,
}

struct Neighbours<'a> {
    feed: Feed<'a>,
    now: Time,
    server: Endpoint,
    /// The server's connections, and whose each is.
    served: HashMap<ConnectionId, (usize, Box<Connection>)>,
    clients: Vec<Client>,
    wire: VecDeque<Datagram>,
    train: Vec<u8>,
}

/// A list of operations.
pub fn neighbours(data: &[u8]) {
    let mut world = Neighbours::meet(Feed(data));
    for _ in 0..OPERATIONS {
        if world.feed.0.is_empty() {
            break;
        }
        world.operation();
    }
    world.finish();
}

impl<'a> Neighbours<'a> {
    fn meet(mut feed: Feed<'a>) -> Self {
        let now = Time::from_nanos(1_000_000_000);
        // The server's connections get their sinks one by one, as a driver gives them.
        let config = TransportConfig { sinks: None, memory: Bytes(1 << 20), ..transport() };
        let server = ServerConfig { transport: config.clone(), ..ServerConfig::new(Identity::generate(), PeerTrust::Anyone) };
        let server = Endpoint::new(EndpointConfig { seed: [9; 32], server: Some(server) }).expect("a sound configuration");
        let mut begin = |number: usize| {
            let mut endpoint =
                Endpoint::new(EndpointConfig { seed: [number as u8; 32], server: None }).expect("a sound configuration");
            let paths = 1 + feed.u8() % PATHS;
            let transport = TransportConfig { sinks: Some(OwnSink::factory(number)), paths, ..config.clone() };
            let client = ClientConfig { transport, ..ClientConfig::new(PeerTrust::Anyone) };
            let (id, connection) = endpoint.connect(now, SERVER, client).expect("a sound configuration");
            Client { endpoint, id, connection, port: 4000, tracks: Vec::new(), written: 0, closed: [None, None] }
        };
        let clients = (0..CLIENTS).map(&mut begin).collect();
        Self { feed, now, server, served: HashMap::new(), clients, wire: VecDeque::new(), train: vec![0; 1 << 16] }
    }

    fn operation(&mut self) {
        match self.feed.u8() % 16 {
            0 | 1 => self.exchange(),
            2 => drop(self.collect()),
            3 => self.deliver(),
            4 => drop(self.wire.pop_front()),
            5 => {
                if let Some(first) = self.wire.front().cloned() {
                    self.wire.push_back(first);
                }
            }
            6 => self.corrupt(),
            7 => self.wire.rotate_left(usize::from(self.feed.u8()).min(self.wire.len())),
            8 => self.confuse(),
            9 => {
                let time = Duration::from_micros(1 << (self.feed.u8() % 24));
                self.sleep(time);
            }
            10 => self.open(),
            11 | 12 => self.write(),
            13 => drop(self.read_all()),
            14 => self.end_a_stream(),
            _ => {
                let client = self.client();
                self.clients[client].port = 4000 + 16 * u16::from(self.feed.u8() % 4);
            }
        }
    }

    fn client(&mut self) -> usize {
        usize::from(self.feed.u8()) % CLIENTS
    }

    fn corrupt(&mut self) {
        let (at, flip) = (usize::from(self.feed.u64() as u16), self.feed.u8());
        if let Some(first) = self.wire.front_mut().filter(|first| !first.bytes.is_empty()) {
            let at = at % first.bytes.len();
            first.bytes[at] ^= flip;
        }
    }

    /// The oldest datagram comes from the other client's address, names the other's connection, or goes to the other client.
    fn confuse(&mut self) {
        let (how, to) = (self.feed.u8() % 3, self.client());
        let mine: Vec<ConnectionId> = self.served.keys().copied().collect();
        let other = address_of(to, self.clients[to].port, 0);
        let ids = [self.clients[0].id, self.clients[1].id];
        let Some(first) = self.wire.front_mut() else { return };
        match (how, first.to) {
            (0, To::Server) => first.from = other,
            (0 | 1, To::Client(_)) => first.to = To::Client(to),
            (_, kind) if first.bytes.len() >= 8 && data_destination(&first.bytes).is_some() => {
                let id = match kind {
                    To::Server => mine.get(to % mine.len().max(1)).copied(),
                    To::Client(_) => Some(ids[to]),
                };
                if let Some(id) = id {
                    first.bytes[4..8].copy_from_slice(&id.0.to_be_bytes());
                }
            }
            _ => {}
        }
    }

    /// The two ends of a client's connection.
    fn end(&mut self, client: usize, side: Side) -> Option<&mut Connection> {
        match side {
            Side::Client => Some(&mut self.clients[client].connection),
            Side::Server => {
                let connections = self.served.values_mut().filter(|(whose, _)| *whose == client);
                connections.map(|(_, connection)| connection.as_mut()).next()
            }
        }
    }

    fn open(&mut self) {
        let (client, kind) = (self.client(), self.feed.u8());
        let side = if kind & 8 == 0 { Side::Client } else { Side::Server };
        // Blocks oftenest.
        let kind = [StreamKind::Placed, StreamKind::Placed, StreamKind::Bidirectional, StreamKind::Unidirectional]
            [usize::from(kind % 4)];
        if let Some(Ok(id)) = self.end(client, side).map(|connection| connection.open(kind)) {
            let track = Track { id, writer: side, written: 0, read: 0, finished: false, at_end: false, spoiled: false };
            self.clients[client].tracks.push(track);
        }
    }

    fn write(&mut self) {
        let (client, which, length) = (self.client(), usize::from(self.feed.u8()), self.feed.u64() as u16 as usize % 20_000 + 1);
        let Client { tracks, written, .. } = &self.clients[client];
        if tracks.is_empty() || *written > WRITTEN_BYTES {
            return;
        }
        let which = which % tracks.len();
        let Track { id, writer, written: at, .. } = tracks[which];
        let is_placed = id.kind() == Some(StreamKind::Placed);
        if is_placed && at as usize + length > SINK_BYTES {
            return;
        }
        let bytes = run_of(client, id, at, length);
        let Some(connection) = self.end(client, writer) else { return };
        let taken = if is_placed {
            connection.write_block(id, at, bytes).map_or(0, |()| length)
        } else {
            connection.write(id, &bytes).unwrap_or(0)
        };
        let client = &mut self.clients[client];
        client.tracks[which].written += taken as u64;
        client.written += taken as u64;
    }

    fn end_a_stream(&mut self) {
        let (client, which, how) = (self.client(), usize::from(self.feed.u8()), self.feed.u8() % 6);
        let count = self.clients[client].tracks.len();
        if count == 0 {
            return;
        }
        let which = which % count;
        let Track { id, writer, .. } = self.clients[client].tracks[which];
        let by = if how == 1 { writer.peer() } else { writer };
        let Some(connection) = self.end(client, by) else { return };
        let (finished, spoiled) = match how {
            0 => {
                connection.reset(id, 7);
                (false, true)
            }
            1 => {
                connection.stop(id, 7);
                (false, true)
            }
            _ => (connection.finish(id).is_ok(), false),
        };
        let track = &mut self.clients[client].tracks[which];
        track.finished |= finished;
        track.spoiled |= spoiled;
    }

    /// Reads all that can be read and compares it with what was written; returns whether there was any.
    fn read_all(&mut self) -> bool {
        let mut any = false;
        for client in 0..CLIENTS {
            for side in [Side::Client, Side::Server] {
                for kind in StreamKind::ALL {
                    while self.end(client, side).and_then(|connection| connection.accept(kind)).is_some() {
                        any = true;
                    }
                }
            }
            let mut tracks = std::mem::take(&mut self.clients[client].tracks);
            for track in &mut tracks {
                if let Some(connection) = self.end(client, track.writer.peer()) {
                    any |= track.read_from(connection, client);
                }
            }
            self.clients[client].tracks = tracks;
        }
        any
    }

    /// Puts what everybody wants to send on the wire; returns whether anything was.
    fn collect(&mut self) -> bool {
        let Self { clients, served, wire, train, now, .. } = self;
        let mut any = false;
        for (number, client) in clients.iter_mut().enumerate() {
            let port = client.port;
            any |= send(&mut client.connection, *now, train, wire, |transmit_path, remote| {
                (remote == SERVER).then(|| (To::Server, address_of(number, port, transmit_path)))
            });
        }
        for (_, connection) in served.values_mut() {
            any |= send(connection, *now, train, wire, |_, remote| Some((To::Client(client_at(remote)?), SERVER)));
        }
        self.take_events();
        any
    }

    fn exchange(&mut self) {
        self.collect();
        while !self.wire.is_empty() {
            self.deliver();
        }
    }

    fn deliver(&mut self) {
        if let Some(datagram) = self.wire.pop_front() {
            self.now += HOP;
            self.hand_over(datagram);
        }
    }

    fn hand_over(&mut self, mut datagram: Datagram) {
        let (now, from, length) = (self.now, datagram.from, datagram.bytes.len());
        match datagram.to {
            To::Client(number) => {
                let client = &mut self.clients[number];
                let is_its = data_destination(&datagram.bytes) == Some(client.id)
                    || matches!(client.endpoint.handle(now, from, &mut datagram.bytes), Handled::Connection(id) if id == client.id);
                if is_its {
                    client.connection.handle_train(now, Origin::just_now(now, from), &mut datagram.bytes, length);
                }
            }
            To::Server => {
                let known = data_destination(&datagram.bytes).filter(|id| self.served.contains_key(id));
                let handled = match known {
                    Some(id) => Handled::Connection(id),
                    None => self.server.handle(now, from, &mut datagram.bytes),
                };
                match handled {
                    Handled::Connection(id) => {
                        if let Some((_, connection)) = self.served.get_mut(&id) {
                            connection.handle_train(now, Origin::just_now(now, from), &mut datagram.bytes, length);
                        }
                    }
                    Handled::New(id, connection) => self.welcome(id, connection, from),
                    Handled::Respond(bytes) => {
                        assert!(bytes.len() <= length, "a stranger gets more than it sent");
                        if let Some(client) = client_at(from) {
                            self.wire.push_back(Datagram { to: To::Client(client), from: SERVER, bytes });
                        }
                    }
                    Handled::Ignore => {}
                }
            }
        }
        self.take_events();
    }

    /// A connection begins: it is that of the client at the address, or none's, and then forgotten at once.
    fn welcome(&mut self, id: ConnectionId, mut connection: Box<Connection>, from: SocketAddr) {
        let whose = client_at(from).filter(|client| !self.served.values().any(|(whose, _)| whose == client));
        let Some(client) = whose else { return self.server.forget(id) };
        connection.provide_sinks(OwnSink::factory(client));
        self.served.insert(id, (client, connection));
    }

    fn take_events(&mut self) {
        let Self { clients, served, server, .. } = self;
        for client in clients.iter_mut() {
            while let Some(event) = client.connection.poll_event() {
                match event {
                    Event::Connected => client.endpoint.on_connected(client.id, client.connection.met()),
                    Event::Closed(reason) => assert!(client.closed[0].replace(reason).is_none(), "closed twice"),
                    _ => {}
                }
            }
        }
        for (id, (whose, connection)) in served.iter_mut() {
            while let Some(event) = connection.poll_event() {
                match event {
                    Event::Connected => server.on_connected(*id, connection.met()),
                    Event::Closed(reason) => assert!(clients[*whose].closed[1].replace(reason).is_none(), "closed twice"),
                    _ => {}
                }
            }
        }
    }

    fn next_timer(&self) -> Time {
        let theirs = self.clients.iter().map(|client| client.connection.poll_timeout());
        theirs.chain(self.served.values().map(|(_, connection)| connection.poll_timeout())).min().unwrap_or(Time::NEVER)
    }

    fn sleep(&mut self, time: Duration) {
        self.now += time;
        self.fire_timers();
    }

    fn fire_timers(&mut self) {
        let now = self.now;
        let theirs = self.clients.iter_mut().map(|client| &mut client.connection);
        let ours = self.served.values_mut().map(|(_, connection)| connection.as_mut());
        for connection in theirs.chain(ours) {
            if connection.poll_timeout() <= now {
                connection.handle_timeout(now);
            }
        }
        self.take_events();
    }

    /// A quiet, honest network until nobody has anything to say.
    fn settle(&mut self, time: Duration) {
        let until = self.now + time;
        let (mut still_at, mut rounds) = (self.now, 0);
        while self.now < until {
            let mut busy = self.collect();
            busy |= !self.wire.is_empty();
            while !self.wire.is_empty() {
                self.deliver();
            }
            busy |= self.read_all();
            if !busy {
                let next = self.next_timer();
                if next > until {
                    return;
                }
                self.now = self.now.max(next);
                self.fire_timers();
            }
            rounds = if self.now == still_at { rounds + 1 } else { 0 };
            still_at = self.now;
            assert!(rounds < STILL_ROUNDS, "busy without time passing");
            // A round trip takes time.
            self.now += Duration::from_micros(100);
        }
    }

    fn finish(&mut self) {
        self.settle(Duration::from_secs(90));
        for client in 0..CLIENTS {
            for (side, closed) in self.clients[client].closed.iter().enumerate() {
                match closed {
                    None | Some(CloseReason::Handshake(_) | CloseReason::TimedOut(_) | CloseReason::Reset) => {}
                    Some(reason) => panic!("client {client}, side {side}: {reason:?}"),
                }
            }
            let is_alive = self.clients[client].closed == [None, None]
                && [Side::Client, Side::Server].iter().all(|side| self.end(client, *side).is_some_and(|it| it.is_established()));
            if is_alive {
                self.assert_all_arrived(client);
            }
        }
    }

    fn assert_all_arrived(&mut self, client: usize) {
        let tracks = std::mem::take(&mut self.clients[client].tracks);
        for track in tracks.iter().filter(|track| track.finished && !track.spoiled) {
            if track.id.kind() == Some(StreamKind::Placed) {
                let left = self.end(client, track.writer).and_then(|connection| connection.unacknowledged(track.id));
                assert!(left.is_none_or(|bytes| bytes == 0), "client {client}, {:?}: {left:?} bytes never arrived", track.id);
            } else {
                assert_eq!(track.read, track.written, "client {client}, {:?} never arrived", track.id);
                assert!(track.at_end, "client {client}: the end of {:?} never arrived", track.id);
            }
        }
    }
}

impl Track {
    /// Reads what there is; returns whether there was any.
    fn read_from(&mut self, connection: &mut Connection, client: usize) -> bool {
        let (mut any, mut buffer) = (false, [0; 4096]);
        while !self.at_end
            && let Ok(length) = connection.read(self.id, &mut buffer)
        {
            any = true;
            self.at_end = length == 0;
            assert!(!self.at_end || self.spoiled || self.finished && self.read == self.written, "an end that nobody wrote");
            for (at, byte) in (self.read..).zip(&buffer[..length]) {
                assert_eq!(*byte, byte_of(client, self.id, at), "client {client}: wrong byte at {at} of {:?}", self.id);
            }
            self.read += length as u64;
            assert!(self.read <= self.written, "more was read than written");
        }
        any
    }
}

/// Where a client's path is. An address tells whose it is, a port which path.
fn address_of(client: usize, port: u16, path: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1 + client as u8], port + u16::from(path)))
}

fn client_at(address: SocketAddr) -> Option<usize> {
    let IpAddr::V4(ip) = address.ip() else { return None };
    let client = usize::from(ip.octets()[3]).checked_sub(1)?;
    (client < CLIENTS).then_some(client)
}

/// Puts what a connection wants to send on the wire, by the way that `route` names; returns whether anything was.
fn send(
    connection: &mut Connection,
    now: Time,
    train: &mut [u8],
    wire: &mut VecDeque<Datagram>,
    route: impl Fn(u8, SocketAddr) -> Option<(To, SocketAddr)>,
) -> bool {
    let mut any = false;
    let mut trains = 0;
    while let Some(transmit) = connection.poll_transmit(now, train) {
        any = true;
        trains += 1;
        assert!(trains < 20_000, "sends without end at one instant");
        let Some((to, from)) = route(transmit.path, transmit.remote) else { continue };
        for bytes in train[..transmit.len].chunks(transmit.segment.max(1)) {
            if wire.len() < WIRE_PKTS {
                wire.push_back(Datagram { to, from, bytes: bytes.to_vec() });
            }
        }
    }
    any
}
