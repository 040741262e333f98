//! Connections whose handshake was carried: when data may leave, where the peer is found, what is lost.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use haul_proto::{
    BeginError, ClientConfig, Connection, ConnectionId, Endpoint, EndpointConfig, Event, Handled, Opening, Origin, StreamId,
    StreamKind, TRAIN_BYTES, TransportConfig,
};
use haul_units::Time;

use crate::harness::{configs, ms};

const ONE_WAY: Duration = Duration::from_millis(50);

fn address(port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], port))
}

/// A datagram on the way.
struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// A client's connection, a server's, and what is between them.
struct Meeting {
    now: Time,
    client: (Endpoint, ConnectionId, Connection),
    server: (Endpoint, ConnectionId, Connection),
    /// Where the client is, and where the server is: what goes elsewhere is lost.
    client_at: SocketAddr,
    server_at: SocketAddr,
    wire: BTreeMap<(Time, u64), Datagram>,
    sent: u64,
    /// UDP payload that has come for the server from an address, and what it has sent there.
    exchanged: HashMap<SocketAddr, (usize, usize)>,
    read: Vec<u8>,
    /// What the client has read.
    heard: usize,
    answers: Option<StreamId>,
    /// When the server had all that was written.
    ended: Option<Time>,
    /// What the server says of the handshake does not come through.
    mutes_handshake: bool,
}

impl Meeting {
    /// A client that takes the server to be at `candidates`, and has something to say.
    fn new(candidates: &[u16], said: &[u8]) -> Self {
        Self::late(candidates, said, Duration::from_secs(60), Duration::ZERO, None)
    }

    /// The same, when the server knows where the client is.
    fn known(client: IpAddr, said: &[u8]) -> Self {
        Self::late(&[2], said, Duration::from_secs(60), Duration::ZERO, Some(client))
    }

    /// The same, when it has taken so long to find `candidates`.
    fn late(candidates: &[u16], said: &[u8], connect_timeout: Duration, late: Duration, at: Option<IpAddr>) -> Self {
        let (client_config, server_config) =
            configs(&TransportConfig { expected_rtt: Some(ONE_WAY * 2), ..TransportConfig::default() });
        let now = Time::ZERO + ms(1);
        let seed = |n: u8| [n; 32];
        let mut server = Endpoint::new(EndpointConfig { seed: seed(1), server: Some(server_config) }).unwrap();
        let mut client = Endpoint::new(EndpointConfig { seed: seed(2), server: None }).unwrap();
        let mut opening = Opening::new(now, ClientConfig { connect_timeout, ..client_config }, &[7; 32]).unwrap();
        let (id, connection, answer) = server.answer(now, &opening.bytes(), at).unwrap();
        opening.on_answer(now + ONE_WAY, &answer).unwrap();
        let now = now + ONE_WAY + late;
        let candidates: Vec<_> = candidates.iter().map(|&port| address(port)).collect();
        let (client_id, mut near) = client.connect_opened(now, &candidates, opening).unwrap();
        let stream = near.open(StreamKind::Unidirectional).unwrap();
        near.write(stream, said).unwrap();
        near.finish(stream).unwrap();
        Self {
            now,
            client: (client, client_id, near),
            server: (server, id, connection),
            client_at: address(1),
            server_at: address(2),
            wire: BTreeMap::new(),
            sent: 0,
            exchanged: HashMap::new(),
            read: Vec::new(),
            heard: 0,
            answers: None,
            ended: None,
            mutes_handshake: false,
        }
    }

    fn put(&mut self, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.sent += 1;
        if from == self.server_at {
            self.exchanged.entry(to).or_default().1 += bytes.len();
        }
        self.wire.insert((self.now + ONE_WAY, self.sent), Datagram { from, to, bytes: bytes.to_vec() });
    }

    fn drain(&mut self) {
        let mut train = vec![0; TRAIN_BYTES];
        for of_client in [true, false] {
            loop {
                let (from, connection) =
                    if of_client { (self.client_at, &mut self.client.2) } else { (self.server_at, &mut self.server.2) };
                let Some(transmit) = connection.poll_transmit(self.now, &mut train) else { break };
                for datagram in train[..transmit.len].chunks(transmit.segment) {
                    self.put(from, transmit.remote, datagram);
                }
            }
        }
    }

    fn hand_over(&mut self, datagram: Datagram) {
        let Datagram { from, to, mut bytes } = datagram;
        let end = if to == self.server_at { &mut self.server } else { &mut self.client };
        let is_mute = self.mutes_handshake && from == self.server_at && haul_proto::handshake::wire::is_handshake(&bytes);
        if to != self.server_at && to != self.client_at || is_mute {
            return;
        }
        if to == self.server_at {
            self.exchanged.entry(from).or_default().0 += bytes.len();
        }
        let (endpoint, id, connection) = end;
        let is_data = haul_proto::data_destination(&bytes) == Some(*id);
        if is_data || matches!(endpoint.handle(self.now, from, &mut bytes), Handled::Connection(of) if of == *id) {
            let len = bytes.len();
            connection.handle_train(self.now, Origin::just_now(self.now, from), &mut bytes, len);
        }
    }

    /// One event.
    fn step(&mut self) {
        self.drain();
        let timer = self.client.2.poll_timeout().min(self.server.2.poll_timeout());
        let arrival = self.wire.keys().next().map_or(Time::NEVER, |(at, _)| *at);
        self.now = self.now.max(timer.min(arrival));
        if arrival <= self.now {
            let (_, datagram) = self.wire.pop_first().unwrap();
            self.hand_over(datagram);
        } else {
            self.client.2.handle_timeout(self.now);
            self.server.2.handle_timeout(self.now);
        }
        if let Some(stream) = self.answers.or_else(|| self.client.2.accept(StreamKind::Unidirectional)) {
            self.answers = Some(stream);
            let mut buffer = [0; 4096];
            while let Ok(length @ 1..) = self.client.2.read(stream, &mut buffer) {
                self.heard += length;
            }
        }
        if let Some(stream) = self.server.2.accept(StreamKind::Unidirectional) {
            let mut buffer = [0; 4096];
            while let Ok(length) = self.server.2.read(stream, &mut buffer) {
                self.read.extend_from_slice(&buffer[..length]);
                if length == 0 {
                    self.ended = Some(self.now);
                    break;
                }
            }
        }
    }

    /// How long it took until the server had heard everything.
    fn said(&mut self) -> Duration {
        let start = self.now;
        for _ in 0..10_000 {
            self.step();
            if let Some(ended) = self.ended {
                return ended - start;
            }
        }
        panic!("nothing arrived: {:?}", self.client.2);
    }
}

/// How long a client waits for so many bytes that the server says as soon as it can.
fn answered(mut meeting: Meeting, bytes: usize) -> Duration {
    let start = meeting.now;
    while !meeting.server.2.is_established() {
        meeting.step();
    }
    let stream = meeting.server.2.open(StreamKind::Unidirectional).unwrap();
    meeting.server.2.write(stream, &vec![7; bytes]).unwrap();
    for _ in 0..10_000 {
        meeting.step();
        if meeting.heard == bytes {
            return meeting.now - start;
        }
    }
    panic!("{} of {bytes} arrived: {:?}", meeting.heard, meeting.server.2);
}

#[test]
fn data_follows_the_first_packet() {
    let mut meeting = Meeting::new(&[2], b"hello");
    assert!(meeting.client.2.is_established() && !meeting.server.2.is_established());
    assert_eq!(meeting.said(), ONE_WAY);
    assert_eq!(meeting.read, b"hello");
    assert_eq!(meeting.server.2.remote(), address(1));
    let rtt = meeting.server.2.paths().next().unwrap().rtt;
    assert_eq!(rtt, ONE_WAY * 2, "the server has measured it by what was carried");
}

#[test]
fn the_server_finds_the_client_wherever_it_is_and_strangers_do_not_lead_it_astray() {
    let mut meeting = Meeting::new(&[2], b"hello");
    meeting.drain();
    let (_, finished) = meeting.wire.first_key_value().unwrap();
    let finished = finished.bytes.clone();
    // A packet of the same shape from elsewhere, sooner; then the real one, doubled.
    let mut forged = finished.clone();
    *forged.last_mut().unwrap() ^= 1;
    meeting.hand_over(Datagram { from: address(666), to: address(2), bytes: forged });
    assert!(!meeting.server.2.is_established());
    meeting.put(address(1), address(2), &finished);
    assert_eq!(meeting.said(), ONE_WAY);
    assert_eq!(meeting.server.2.remote(), address(1));
}

#[test]
fn one_lost_packet_delays_nothing() {
    let mut meeting = Meeting::new(&[2], b"hello");
    meeting.drain();
    meeting.wire.pop_first().unwrap();
    assert_eq!(meeting.said(), ONE_WAY);
}

#[test]
fn what_came_before_the_handshake_was_complete_comes_again() {
    let mut meeting = Meeting::new(&[2], b"hello");
    meeting.drain();
    for _ in 0..2 {
        let (_, lost) = meeting.wire.pop_first().unwrap();
        assert!(haul_proto::handshake::wire::is_handshake(&lost.bytes));
    }
    let took = meeting.said();
    assert!(took < ms(600), "{took:?}: the handshake's timer of 250 ms, then the probe timeout of three round trips");
    assert_eq!(meeting.read, b"hello");
}

#[test]
fn the_address_that_answers_is_taken() {
    for candidates in [[3, 2], [2, 3]] {
        let mut meeting = Meeting::new(&candidates, b"hello");
        let took = meeting.said();
        let bound = if candidates[0] == 2 { ONE_WAY } else { ms(250) + ONE_WAY * 3 };
        assert!(took <= bound, "{took:?} to {candidates:?}");
        assert_eq!(meeting.client.2.remote(), address(2));
        assert_eq!(meeting.read, b"hello");
    }
}

#[test]
fn the_first_that_comes_through_may_be_data() {
    let mut meeting = Meeting::new(&[3, 2], b"hello");
    meeting.mutes_handshake = true;
    let start = meeting.now;
    while !meeting.server.2.is_established() {
        meeting.step();
    }
    let stream = meeting.server.2.open(StreamKind::Unidirectional).unwrap();
    meeting.server.2.write(stream, b"and you?").unwrap();
    meeting.said();
    let took = meeting.now - start;
    assert!(took <= ms(250) + ONE_WAY * 3, "{took:?}");
    assert!(meeting.client.2.paths().all(|path| path.remote == address(2)));
}

#[test]
fn the_time_to_be_heard_begins_when_the_addresses_are_known() {
    let mut meeting = Meeting::late(&[2], b"hello", ms(500), Duration::from_secs(5), None);
    assert_eq!(meeting.said(), ONE_WAY);
}

#[test]
fn an_opening_without_an_answer_is_no_connection() {
    let (client_config, _) = configs(&TransportConfig::default());
    let mut client = Endpoint::new(EndpointConfig { seed: [2; 32], server: None }).unwrap();
    let opening = Opening::new(Time::ZERO, client_config, &[7; 32]).unwrap();
    let result = client.connect_opened(Time::ZERO, &[address(2)], opening);
    assert!(matches!(result, Err(BeginError::NotAnswered)), "{result:?}");
}

#[test]
fn where_nobody_answers_the_connection_ends_in_time() {
    let mut meeting = Meeting::new(&[3, 4], b"hello");
    let start = meeting.now;
    while !meeting.client.2.is_closed() {
        meeting.step();
    }
    assert_eq!(meeting.now - start, Duration::from_secs(60), "as long as the configuration says");
    let asked: Vec<u16> = meeting.wire.values().map(|datagram| datagram.to.port()).collect();
    assert!(!asked.contains(&2));
    let mut reasons = std::iter::from_fn(|| meeting.client.2.poll_event());
    assert!(reasons.any(|event| matches!(event, Event::Closed(reason) if reason.to_string() == "peer does not answer")));
    assert!(meeting.server.2.is_closed(), "nobody has taken up its answer");
}

#[test]
fn a_known_client_has_the_first_window_at_once_and_another_one_round_trip_later() {
    let (here, elsewhere) = (address(1).ip(), IpAddr::from([198, 51, 100, 1]));
    // (bytes, round trips of a client that the server knows, of one that it does not)
    for (bytes, known, unknown) in [(1000, 1.0, 1.0), (5000, 1.0, 1.0), (10_000, 1.0, 2.0), (50_000, 3.0, 4.0)] {
        let round_trips = |took: Duration| took.as_secs_f64() / (ONE_WAY * 2).as_secs_f64();
        let took = round_trips(answered(Meeting::known(here, b"get"), bytes));
        assert!(took <= known + 0.1, "{bytes} B to a known client: {took:.2} round trips");
        for client in [None, Some(elsewhere)] {
            let meeting = Meeting::late(&[2], b"get", Duration::from_secs(60), Duration::ZERO, client);
            let took = round_trips(answered(meeting, bytes));
            assert!(took <= unknown + 0.1, "{bytes} B to an unknown client: {took:.2} round trips");
        }
    }
}

/// What the client's address may get is used up, and then the client opens another path, of which nothing can be reported on the first: that waits for what comes, and not for a time that has passed.
#[test]
fn a_report_that_may_not_leave_makes_nothing_due() {
    let mut meeting = Meeting::new(&[2], &[7; 600]);
    meeting.drain();
    let to_server = |meeting: &mut Meeting, is_meant: fn(&[u8]) -> bool| {
        for datagram in std::mem::take(&mut meeting.wire).into_values() {
            if datagram.to == meeting.server_at && is_meant(&datagram.bytes) {
                meeting.hand_over(datagram);
            }
        }
    };
    to_server(&mut meeting, |_| true);
    let stream = meeting.server.2.open(StreamKind::Unidirectional).unwrap();
    meeting.server.2.write(stream, &vec![7; 100_000]).unwrap();
    let room = |meeting: &Meeting| {
        let (received, sent) = meeting.exchanged[&address(1)];
        received * 3 - sent
    };
    while room(&meeting) >= 1200 {
        meeting.now += ms(10);
        assert!(meeting.now < Time::ZERO + Duration::from_secs(10), "{} bytes are left", room(&meeting));
        meeting.server.2.handle_timeout(meeting.now);
        meeting.drain();
    }
    meeting.wire.clear();
    let now = meeting.now;
    assert_eq!(meeting.client.2.open_path(now, address(2)), Some(1));
    meeting.drain();
    to_server(&mut meeting, |bytes| haul_proto::data_path(bytes) == Some(1));
    assert_eq!(meeting.server.2.paths().count(), 2);
    meeting.now += ms(20);
    meeting.server.2.handle_timeout(meeting.now);
    meeting.drain();
    assert!(meeting.server.2.poll_timeout() > meeting.now, "at {}", meeting.now);
}

/// Somebody on the way has seen the client's first packets, and has copies of them arrive sooner, from a victim's address.
#[test]
fn a_victim_gets_no_more_than_three_times_what_came_from_it_and_the_client_everything() {
    for client in [None, Some(address(1).ip())] {
        let mut meeting = Meeting::late(&[2], b"get", Duration::from_secs(60), Duration::ZERO, client);
        let victim = SocketAddr::from(([203, 0, 113, 9], 9));
        meeting.drain();
        let copies: Vec<_> = meeting.wire.values().map(|datagram| datagram.bytes.clone()).collect();
        for bytes in copies {
            meeting.hand_over(Datagram { from: victim, to: address(2), bytes });
        }
        assert_eq!(meeting.server.2.remote(), victim, "for the time being");
        let took = answered(meeting, 1 << 20);
        assert!(took < Duration::from_secs(3), "{took:?}");
    }
    // The same without the client's own packets: nothing else leads away from the victim.
    for client in [None, Some(address(1).ip())] {
        let mut meeting = Meeting::late(&[2], b"get", Duration::from_secs(60), Duration::ZERO, client);
        let victim = SocketAddr::from(([203, 0, 113, 9], 9));
        meeting.drain();
        let copies: Vec<_> = std::mem::take(&mut meeting.wire).into_values().collect();
        for Datagram { to, bytes, .. } in copies {
            meeting.hand_over(Datagram { from: victim, to, bytes });
        }
        let stream = meeting.server.2.open(StreamKind::Unidirectional).unwrap();
        meeting.server.2.write(stream, &vec![7; 1 << 20]).unwrap();
        let mut train = vec![0; TRAIN_BYTES];
        let end = meeting.now + Duration::from_secs(60);
        let mut wakes = 0;
        while meeting.now < end {
            while let Some(transmit) = meeting.server.2.poll_transmit(meeting.now, &mut train) {
                meeting.exchanged.entry(transmit.remote).or_default().1 += transmit.len;
            }
            meeting.now = meeting.server.2.poll_timeout().min(end);
            meeting.server.2.handle_timeout(meeting.now);
            wakes += 1;
        }
        let (received, sent) = meeting.exchanged[&victim];
        assert!(sent > 2000 && sent <= received * 3, "{sent} B for {received} B");
        assert!(wakes < 200, "awake {wakes} times in a minute");
    }
}
