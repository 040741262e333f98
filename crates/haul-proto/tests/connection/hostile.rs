//! A client that has the keys and abuses paths: what the server keeps and sends for it is bounded. Clients that leave in the middle of the handshake: nothing is kept of them.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use haul_paths::Told;
use haul_proto::crypto::DataKeys;
use haul_proto::handshake::{ClientParams, ClientTls, Handshake, TransportParams};
use haul_proto::identity::{Identity, PeerTrust};
use haul_proto::wire::ack::Ack;
use haul_proto::wire::{CONTROL_HEADER_BYTES, Frame, Header, PacketKind, TAG_BYTES};
use haul_proto::{
    Admission, AdmittedBy, ClientConfig, CloseReason, Connection, ConnectionId, Endpoint, EndpointConfig, Event, Handled, Origin,
    PATHS_MAX, ProtocolViolation, ServerConfig, Side, Sink, SinkFactory, Standing, StreamId, StreamKind, TRAIN_BYTES,
    TransportConfig,
};
use haul_units::{Bytes, Time};

/// A server with one connection, and the keys of its client.
struct Attack {
    now: Time,
    server: Connection,
    keys: DataKeys,
    destination: ConnectionId,
    number: u64,
    home: SocketAddr,
    /// UDP payload from and to each address after the handshake.
    received: HashMap<SocketAddr, usize>,
    sent: HashMap<SocketAddr, usize>,
    /// Challenges that the server has sent, and where to.
    challenges: Vec<(SocketAddr, u64)>,
    /// Numbers of packets that have come from it, in order.
    numbers: Vec<u64>,
    reports: u64,
    /// What it lets the client send, as the newest report tells.
    credit: u64,
    packets: usize,
}

impl Attack {
    /// An honest handshake, by hand, to get at the keys.
    fn begin() -> Self {
        Self::at(ServerConfig::new(Identity::generate(), PeerTrust::Anyone))
    }

    /// The same at this server.
    fn at(config: ServerConfig) -> Self {
        let home = "10.0.0.1:1000".parse().unwrap();
        let mut now = Time::ZERO;
        let mut endpoint = Endpoint::new(EndpointConfig { seed: [7; 32], server: Some(config) }).unwrap();
        let tls = ClientTls::new(None, &PeerTrust::Anyone, Vec::new()).unwrap();
        let params = TransportParams {
            initial_max_data: Bytes(1 << 30),
            initial_max_stream_data: Bytes(1 << 30),
            max_streams: 16,
            max_paths: u8::MAX,
            ..TransportParams::default()
        };
        let mut client = Handshake::client(now, ClientParams::new(tls, params, 77, 99)).unwrap();
        let mut server: Option<Connection> = None;
        let mut buffer = vec![0; TRAIN_BYTES];
        for _ in 0..50 {
            while let Some(len) = client.poll_transmit(now, &mut buffer) {
                if let Some(server) = &mut server {
                    server.handle_train(now, Origin::just_now(now, home), &mut buffer[..len], len);
                    continue;
                }
                match endpoint.handle(now, home, &mut buffer[..len]) {
                    Handled::Respond(mut answer) => client.handle_datagram(now, &mut answer).unwrap(),
                    Handled::New(_, connection) => server = Some(*connection),
                    _ => {}
                }
            }
            while let Some(transmit) = server.as_mut().and_then(|server| server.poll_transmit(now, &mut buffer)) {
                for datagram in buffer[..transmit.len].chunks_mut(transmit.segment) {
                    client.handle_datagram(now, datagram).unwrap();
                }
            }
            if server.as_ref().is_some_and(Connection::is_established) && client.is_complete() {
                break;
            }
            now += Duration::from_millis(10);
        }
        let established = client.take_complete().expect("an honest handshake");
        let (keys, destination) = (established.keys, ConnectionId(established.peer_cid));
        let server = server.expect("a server");
        Self {
            now,
            server,
            keys,
            destination,
            number: 0,
            home,
            received: HashMap::new(),
            sent: HashMap::new(),
            challenges: Vec::new(),
            numbers: Vec::new(),
            reports: 0,
            credit: 0,
            packets: 0,
        }
    }

    fn send(&mut self, from: SocketAddr, path: u8, frame: &Frame) {
        self.send_all(from, path, std::slice::from_ref(frame));
    }

    /// A packet with these frames; returns it as it left.
    fn send_all(&mut self, from: SocketAddr, path: u8, frames: &[Frame]) -> Vec<u8> {
        let mut payload = Vec::new();
        for frame in frames {
            frame.encode(&mut payload);
        }
        let mut packet = vec![0; CONTROL_HEADER_BYTES + payload.len() + TAG_BYTES];
        let (destination, epoch) = (self.destination, self.keys.sealer.epoch());
        self.number += 1;
        let header = Header { destination, path, epoch, number: self.number, kind: PacketKind::Control };
        header.encode(&mut packet);
        let (head, body) = packet.split_at_mut(CONTROL_HEADER_BYTES);
        self.keys.sealer.seal_into(path, self.number, head, &payload, body).unwrap();
        let sent = packet.clone();
        self.hand_over(from, &mut packet);
        sent
    }

    fn hand_over(&mut self, from: SocketAddr, packet: &mut [u8]) {
        let len = packet.len();
        *self.received.entry(from).or_default() += len;
        self.server.handle_train(self.now, Origin::just_now(self.now, from), packet, len);
    }

    /// Lets time pass; what the server sends is counted and not answered.
    fn pass(&mut self, time: Duration) {
        let mut train = vec![0; TRAIN_BYTES];
        let until = self.now + time;
        while self.now < until {
            self.now += Duration::from_millis(5);
            self.server.handle_timeout(self.now);
            while let Some(transmit) = self.server.poll_transmit(self.now, &mut train) {
                *self.sent.entry(transmit.remote).or_default() += transmit.len;
                self.packets += transmit.len.div_ceil(transmit.segment);
                for packet in train[..transmit.len].chunks_mut(transmit.segment) {
                    self.look_at(transmit.remote, packet);
                }
            }
        }
    }

    /// Notes the challenges in a packet of the server's.
    fn look_at(&mut self, remote: SocketAddr, packet: &mut [u8]) {
        let header = Header::parse(packet).expect("an honest server");
        self.numbers.extend((header.path == 0).then_some(header.number));
        if header.kind != PacketKind::Control {
            return;
        }
        let (head, body) = packet.split_at_mut(CONTROL_HEADER_BYTES);
        let opened = self.keys.opener.open_in_place(header.epoch, header.path, header.number, head, body);
        let payload = &body[..opened.expect("an honest server")];
        for frame in Frame::decode_all(payload) {
            match frame.expect("an honest server") {
                Frame::PathChallenge(nonce) => self.challenges.push((remote, nonce)),
                Frame::Ack(ack) => {
                    self.reports += 1;
                    self.credit = ack.credit;
                }
                _ => {}
            }
        }
    }
}

#[test]
fn paths_of_any_number_from_any_address_make_little_state_and_little_traffic() {
    let mut attack = Attack::begin();
    // Something that the server would like to send on every path there is.
    let stream = attack.server.open(StreamKind::Unidirectional).unwrap();
    attack.server.write(stream, &vec![1; 1 << 20]).unwrap();
    for round in 0..40u16 {
        for path in 0..=u8::MAX {
            let victim = SocketAddr::from(([192, 0, 2, path], 1 + round));
            // Numbers with gaps make reports long.
            attack.number += 1;
            attack.send(victim, path.max(1), &Frame::PathChallenge(u64::from(round)));
        }
        attack.pass(Duration::from_millis(10));
    }
    attack.pass(Duration::from_secs(10));
    assert_eq!(attack.server.paths().count(), usize::from(PATHS_MAX));
    assert!(attack.server.paths().skip(1).all(|path| !path.usable && path.in_flight.as_u64() == 0), "nothing was proved");
    for (victim, sent) in attack.sent.iter().filter(|(address, _)| **address != attack.home) {
        // An answer to the challenge, as long as it, and two challenges.
        let received = attack.received[victim];
        assert!(*sent <= received * 3, "{victim}: {sent} B for {received} B");
    }
    let (to_victims, from_all): (usize, usize) = (
        attack.sent.iter().filter(|(address, _)| **address != attack.home).map(|(_, sent)| sent).sum(),
        attack.received.values().sum(),
    );
    assert!(to_victims < from_all, "no amplification: {to_victims} B for {from_all} B");
    assert!(attack.sent[&attack.home] > 100_000, "the data goes to the proved address");
}

#[test]
fn answers_that_nobody_asked_for_prove_nothing() {
    let mut attack = Attack::begin();
    let victim: SocketAddr = "192.0.2.9:9".parse().unwrap();
    for nonce in 0..1000 {
        attack.send(victim, 1, &Frame::PathResponse(nonce));
    }
    attack.pass(Duration::from_secs(1));
    let paths: Vec<_> = attack.server.paths().collect();
    assert!(paths.len() == 2 && !paths[1].usable, "{paths:?}");
    assert!(attack.sent.get(&victim).copied().unwrap_or(0) < 500, "challenges only");
}

/// What a guesser would try who has seen `nonce`: the numbers behind it, and what a generator with 64 bits of state (SplitMix64) would have said next.
fn guesses(nonce: u64) -> Vec<u64> {
    let unshift = |value: u64, by: u32| (0..64 / by).fold(value, |found, _| value ^ found >> by);
    let inverse = |odd: u64| (0..6).fold(odd, |found, _| found.wrapping_mul(2u64.wrapping_sub(odd.wrapping_mul(found))));
    let (first, second) = (0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb);
    let z = unshift(nonce, 31).wrapping_mul(inverse(second));
    let mut state = unshift(unshift(z, 27).wrapping_mul(inverse(first)), 30);
    let next = (0..16).map(|_| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ state >> 30).wrapping_mul(first);
        let z = (z ^ z >> 27).wrapping_mul(second);
        z ^ z >> 31
    });
    next.chain((1..16).map(|more| nonce.wrapping_add(more))).collect()
}

#[test]
fn who_has_seen_challenges_cannot_answer_those_that_went_elsewhere() {
    let mut attack = Attack::begin();
    let stream = attack.server.open(StreamKind::Unidirectional).unwrap();
    attack.server.write(stream, &vec![1; 1 << 20]).unwrap();
    let (other_home, victim): (SocketAddr, SocketAddr) = ("10.0.0.1:1001".parse().unwrap(), "192.0.2.9:9".parse().unwrap());
    for _ in 0..20 {
        attack.send(other_home, 0, &Frame::Ping);
        attack.pass(Duration::from_millis(20));
        // "I have moved", and answers to whatever the server is asking there.
        attack.send(victim, 0, &Frame::Ping);
        attack.pass(Duration::from_millis(5));
        assert_eq!(attack.challenges.last().unwrap().0, victim);
        let seen = attack.challenges.iter().rev().find(|(to, _)| *to == other_home).expect("the server has asked at home").1;
        let answers: Vec<_> = guesses(seen).into_iter().map(Frame::PathResponse).collect();
        attack.send_all(attack.home, 0, &answers);
        assert_eq!(attack.server.remote(), attack.home);
    }
    attack.pass(Duration::from_secs(5));
    let (received, sent) = (attack.received[&victim], attack.sent[&victim]);
    assert!(sent <= received * 3, "{sent} B for {received} B");
}

/// Whose address a path's first packet came from may be anybody's, whatever its client says of the path.
#[test]
fn a_path_that_is_wanted_again_and_again_draws_nothing_to_where_nobody_has_answered() {
    let mut attack = Attack::begin();
    let (home, victim): (SocketAddr, SocketAddr) = (attack.home, "192.0.2.9:9".parse().unwrap());
    attack.send(victim, 1, &Frame::PathChallenge(1));
    for sequence in 1..40 {
        let standing = if sequence % 2 == 1 { Standing::Away } else { Standing::Available };
        attack.send(home, 0, &Frame::PathStatus(1, Told { sequence, standing, cap: 1 << 60 }));
        attack.pass(Duration::from_millis(700));
    }
    let (received, sent) = (attack.received[&victim], attack.sent[&victim]);
    assert!(sent > 0 && sent <= received * 3, "{sent} B for {received} B");
}

#[test]
fn many_challenges_in_a_packet_draw_no_more_than_three_times_its_bytes() {
    for (path, count) in [(0, 8), (1, 8), (0, 1), (3, 1), (0, 100)] {
        let mut attack = Attack::begin();
        let victim: SocketAddr = "192.0.2.9:9".parse().unwrap();
        let challenges: Vec<_> = (0..count).map(Frame::PathChallenge).collect();
        attack.send_all(victim, path, &challenges);
        attack.pass(Duration::from_secs(10));
        let (received, sent) = (attack.received[&victim], attack.sent[&victim]);
        assert!(sent > 0 && sent <= received * 3, "{count} challenges on path {path}: {sent} B for {received} B");
    }
}

#[test]
fn what_is_repeated_or_claims_to_be_causes_nothing() {
    let mut attack = Attack::begin();
    let victim: SocketAddr = "192.0.2.9:9".parse().unwrap();
    let packet = attack.send_all(attack.home, 0, &[Frame::Ping, Frame::PathChallenge(7)]);
    attack.pass(Duration::from_secs(1));
    assert!(attack.reports > 0, "it was told of the packet");
    let (reports, packets) = (attack.reports, attack.packets);
    for from in [attack.home, victim] {
        for _ in 0..10 {
            attack.hand_over(from, &mut packet.clone());
            // The same number, and not a word of it true.
            let mut forged = packet.clone();
            forged[CONTROL_HEADER_BYTES..].fill(0x55);
            attack.hand_over(from, &mut forged);
        }
    }
    attack.pass(Duration::from_secs(1));
    assert_eq!((attack.reports, attack.packets, attack.sent.get(&victim)), (reports, packets, None));
    assert_eq!(attack.server.remote(), attack.home);
    let now = attack.now;
    assert_eq!(attack.server.stats(now).unwrap().duplicate_pkts, 20, "what was forged is not even counted");
}

/// An on-path attacker takes a packet away and brings it from elsewhere, before anything newer: the server asks there, and stays.
#[test]
fn a_packet_that_was_held_back_and_comes_from_elsewhere_moves_nothing() {
    let mut attack = Attack::begin();
    let victim: SocketAddr = "192.0.2.9:9".parse().unwrap();
    attack.send(victim, 0, &Frame::Filler);
    attack.pass(Duration::from_secs(1));
    assert_eq!(attack.server.remote(), attack.home);
    assert!(attack.sent[&victim] <= attack.received[&victim] * 3);
}

/// A report of these packets, as runs.
fn report(numbers: &[u64]) -> Ack {
    let mut runs: Vec<std::ops::RangeInclusive<u64>> = Vec::new();
    for &number in numbers.iter().rev() {
        match runs.last_mut() {
            Some(run) if *run.start() == number + 1 => *run = number..=*run.end(),
            _ => runs.push(number..=number),
        }
    }
    let largest = *numbers.last().expect("something came");
    Ack { largest, runs, credit: 1 << 30, ..Ack::default() }
}

/// Who acknowledges what it did not receive is told so soon; who acknowledges everything else, in whatever portions, is not.
#[test]
fn acknowledgements_of_what_was_never_sent_end_the_connection() {
    for hides_losses in [true, false] {
        let mut attack = Attack::begin();
        let stream = attack.server.open(StreamKind::Unidirectional).unwrap();
        attack.server.write(stream, &vec![1; 1 << 20]).unwrap();
        let mut rounds = 0;
        while !attack.server.is_closed() && rounds < 400 {
            attack.pass(Duration::from_millis(10));
            let mut claimed = attack.numbers.clone();
            claimed.sort_unstable();
            if hides_losses && let (Some(&first), Some(&last)) = (claimed.first(), claimed.last()) {
                claimed = (first..=last).collect();
            }
            if !claimed.is_empty() {
                attack.send(attack.home, 0, &Frame::Ack(report(&claimed)));
            }
            // As much as there is room for; an end is what the test looks for.
            let _ = attack.server.write(stream, &vec![1; 1 << 16]);
            rounds += 1;
        }
        let mut events = std::iter::from_fn(|| attack.server.poll_event());
        let violation = Event::Closed(CloseReason::Violation(ProtocolViolation::AckOfSkipped));
        assert_eq!(events.any(|event| event == violation), hides_losses, "after {rounds} rounds and {} packets", attack.packets);
        assert!(attack.packets > 100, "{}", attack.packets);
    }
}

/// Each report is looked for in all that is in flight, and a packet has room for dozens.
#[test]
fn a_second_report_of_a_path_in_a_packet_ends_the_connection() {
    for paths in [[0, 1], [0, 0]] {
        let mut attack = Attack::begin();
        let stream = attack.server.open(StreamKind::Unidirectional).unwrap();
        attack.server.write(stream, &[1; 1000]).unwrap();
        attack.send(attack.home, 1, &Frame::PathChallenge(7));
        attack.pass(Duration::from_millis(50));
        let reports = paths.map(|path| {
            // What has come on the first path says nothing of the second, on which a challenge has.
            let numbers = if path == 0 { attack.numbers.clone() } else { vec![0] };
            Frame::Ack(Ack { path, ..report(&numbers) })
        });
        attack.send_all(attack.home, 0, &reports);
        let mut events = std::iter::from_fn(|| attack.server.poll_event());
        let violation = Event::Closed(CloseReason::Violation(ProtocolViolation::AckTwice));
        assert_eq!(events.any(|event| event == violation), paths == [0, 0], "{paths:?}");
        assert_eq!(attack.server.is_closed(), paths == [0, 0], "{paths:?}");
    }
}

#[test]
fn a_close_is_not_told_for_each_packet_that_comes() {
    let mut attack = Attack::begin();
    let now = attack.now;
    attack.server.close(now, 7, &[b'x'; 500]);
    let mut train = vec![0; TRAIN_BYTES];
    let mut told = 0;
    for _ in 0..1000 {
        while attack.server.poll_transmit(now, &mut train).is_some() {
            told += 1;
        }
        // Anybody can send this.
        attack.hand_over(attack.home, &mut [0x55; 20]);
    }
    assert!((5..=12).contains(&told), "{told}");
}

/// It needs no promise of the client's: an honest one is told what it may open, and a stranger may open it all the same.
#[test]
fn a_stranger_that_opens_more_than_its_one_stream_is_gone() {
    let stream = |kind, index| StreamId::new(Side::Client, kind, index);
    let first = stream(StreamKind::Bidirectional, 0);
    for other in [stream(StreamKind::Bidirectional, 1), stream(StreamKind::Unidirectional, 0)] {
        for by in [AdmittedBy::Trust, AdmittedBy::Application] {
            let mut attack = Attack::at(ServerConfig {
                admission: Admission { by, ..Admission::default() },
                ..ServerConfig::new(Identity::generate(), PeerTrust::Anyone)
            });
            let home = attack.home;
            for id in [first, other] {
                attack.send(home, 0, &Frame::ResetStream { stream: id, code: 0, total: 0 });
                let ends: Vec<_> = std::iter::from_fn(|| attack.server.poll_event())
                    .filter_map(|event| if let Event::Closed(reason) = event { Some(reason.to_string()) } else { None })
                    .collect();
                let is_beyond = by == AdmittedBy::Application && id == other;
                let expected = format!("the peer broke the protocol: {id}: beyond the limit of streams");
                assert_eq!(ends, Vec::from_iter(is_beyond.then_some(expected)), "{by:?}: {id:?}");
            }
        }
    }
}

/// Each stream that it opens and gives up draws an answer, which is to be said until it is acknowledged.
#[test]
fn who_acknowledges_nothing_has_little_kept_for_it() {
    let transport = TransportConfig { max_streams: 16, ..TransportConfig::default() };
    let mut attack = Attack::at(ServerConfig { transport, ..ServerConfig::new(Identity::generate(), PeerTrust::Anyone) });
    let home = attack.home;
    for index in 0..10_000 {
        let stream = StreamId::new(Side::Client, StreamKind::Bidirectional, index);
        attack.send(home, 0, &Frame::ResetStream { stream, code: 0, total: 0 });
        while let Some(accepted) = attack.server.accept(StreamKind::Bidirectional) {
            attack.server.reset(accepted, 0);
            assert!(attack.server.read(accepted, &mut [0; 10]).is_err(), "it was given up");
        }
        while let Some(event) = attack.server.poll_event() {
            if let Event::Closed(CloseReason::Violation(ProtocolViolation::NeverAcknowledges)) = event {
                assert!(index > 1000, "an honest client has as many answers on their way: {index}");
                return;
            }
        }
    }
    panic!("ten thousand answers are kept");
}

/// Takes blocks that never come.
struct Nothing;

impl Sink for Nothing {
    fn slot(&mut self, _offset: u64, _len: usize) -> Option<&mut [u8]> {
        None
    }

    fn commit(&mut self, _offset: u64, _len: usize, _end: bool) {}

    fn deliver(&mut self, _offset: u64, _bytes: &[u8], _end: bool) -> usize {
        0
    }

    fn finish(&mut self, _total: u64) {}

    fn reset(&mut self, _code: u64) {}

    fn consumed(&self) -> u64 {
        0
    }
}

/// A server that takes blocks, and a stream of its client's that it knows of, before anything has come on it.
fn with_a_placed_stream() -> (Attack, StreamId) {
    let sinks = Some(SinkFactory::new(|_| Box::new(Nothing)));
    let transport = TransportConfig { sinks, ..TransportConfig::default() };
    let mut attack = Attack::at(ServerConfig { transport, ..ServerConfig::new(Identity::generate(), PeerTrust::Anyone) });
    let (home, stream) = (attack.home, StreamId::new(Side::Client, StreamKind::Placed, 0));
    // Says nothing about a stream that the client alone sends on.
    attack.send(home, 0, &Frame::MaxStreamData { stream, max: 0 });
    assert_eq!(attack.server.accept(StreamKind::Placed), Some(stream));
    (attack, stream)
}

/// What comes on a stream that is stopped is acknowledged and dropped, so its client may be done before it hears that it was to stop: then the end is the last that it says.
#[test]
fn a_stream_that_was_stopped_gives_its_credit_and_its_place_back_with_its_end() {
    const TOTAL: u64 = 1 << 20;
    for is_stopped_first in [true, false] {
        let (mut attack, stream) = with_a_placed_stream();
        let (home, end) = (attack.home, Frame::PlacedFin { stream, total: TOTAL });
        attack.pass(Duration::from_millis(50));
        let before = attack.credit;
        if is_stopped_first {
            attack.server.stop(stream, 7);
            attack.send(home, 0, &end);
        } else {
            attack.send(home, 0, &end);
            attack.server.stop(stream, 7);
        }
        attack.send(home, 0, &Frame::Ping);
        attack.pass(Duration::from_millis(50));
        let now = attack.now;
        let stats = attack.server.stats(now).expect("it is connected");
        assert_eq!((stats.streams, stats.held), (0, Bytes(0)), "{is_stopped_first}");
        assert!(attack.credit >= before + TOTAL, "{is_stopped_first}: {} after {before}", attack.credit);
        // What is late of it.
        attack.send_all(home, 0, &[end, Frame::ResetStream { stream, code: 7, total: TOTAL }]);
        assert!(!attack.server.is_closed());
    }
}

#[test]
fn an_end_beyond_the_credit_ends_the_connection() {
    let (mut attack, stream) = with_a_placed_stream();
    attack.send(attack.home, 0, &Frame::PlacedFin { stream, total: u64::MAX });
    let mut events = std::iter::from_fn(|| attack.server.poll_event());
    assert!(events.any(|event| matches!(event, Event::Closed(CloseReason::Violation(_)))));
}

/// All of it decides, each bit: a seed that is folded somewhere gives the same numbers for many.
#[test]
fn each_bit_of_an_endpoints_seed_changes_what_it_draws() {
    let draw = |seed: [u8; 32]| {
        let server = ServerConfig::new(Identity::generate(), PeerTrust::Anyone);
        let mut endpoint = Endpoint::new(EndpointConfig { seed, server: Some(server) }).unwrap();
        let remote = "10.0.0.2:1000".parse().unwrap();
        let (id, mut connection) =
            endpoint.connect(Time::ZERO, remote, ClientConfig::new(PeerTrust::Anyone)).expect("a sound configuration");
        let mut train = vec![0; TRAIN_BYTES];
        // Its first datagram has the attempt's number, and nothing else that is drawn from this seed but the connection's.
        let opening = connection.poll_transmit(Time::ZERO, &mut train).expect("an opening");
        (id.0, endpoint.admission_token(Time::ZERO), train[..opening.len.min(32)].to_vec())
    };
    let flipped = (0..256).map(|bit| {
        let mut seed = [7; 32];
        seed[bit / 8] ^= 1 << (bit % 8);
        draw(seed)
    });
    let all: Vec<_> = flipped.chain([draw([7; 32])]).collect();
    let count = |numbers: HashSet<Vec<u8>>| assert_eq!(numbers.len(), all.len());
    count(all.iter().map(|(id, ..)| id.to_be_bytes().to_vec()).collect());
    count(all.iter().map(|(_, token, _)| token.clone()).collect());
    count(all.iter().map(|(.., opening)| opening.clone()).collect());
    assert_eq!(draw([7; 32]).0, all[256].0, "the same seed, the same numbers");
}

/// Half a handshake.
struct Half {
    from: SocketAddr,
    connection: Connection,
    /// What the client has to say to the server's flight, and keeps to itself.
    last_words: Vec<Vec<u8>>,
}

/// A client shows its cookie, and leaves the server alone with its flight.
fn leave_halfway(endpoint: &mut Endpoint, from: SocketAddr) -> (ConnectionId, Half) {
    let tls = ClientTls::new(None, &PeerTrust::Anyone, Vec::new()).unwrap();
    let mut client = Handshake::client(Time::ZERO, ClientParams::new(tls, TransportParams::default(), 77, 99)).unwrap();
    let mut buffer = vec![0; TRAIN_BYTES];
    let mut begun: Option<(ConnectionId, Connection)> = None;
    while let Some(len) = client.poll_transmit(Time::ZERO, &mut buffer) {
        if let Some((_, connection)) = &mut begun {
            connection.handle_train(Time::ZERO, Origin::just_now(Time::ZERO, from), &mut buffer[..len], len);
            continue;
        }
        match endpoint.handle(Time::ZERO, from, &mut buffer[..len]) {
            Handled::Respond(mut cookie) => client.handle_datagram(Time::ZERO, &mut cookie).unwrap(),
            Handled::New(id, connection) => begun = Some((id, *connection)),
            _ => {}
        }
    }
    let (id, mut connection) = begun.expect("an honest cookie");
    while let Some(transmit) = connection.poll_transmit(Time::ZERO, &mut buffer) {
        for datagram in buffer[..transmit.len].chunks_mut(transmit.segment) {
            client.handle_datagram(Time::ZERO, datagram).unwrap();
        }
    }
    let last_words =
        std::iter::from_fn(|| client.poll_transmit(Time::ZERO, &mut buffer).map(|len| buffer[..len].to_vec())).collect();
    (id, Half { from, connection, last_words })
}

#[test]
fn handshakes_that_are_left_halfway_are_gone_after_ten_seconds() {
    const HALVES: usize = 100;
    for by in [AdmittedBy::Trust, AdmittedBy::Application] {
        let config = ServerConfig {
            admission: Admission { by, ..Admission::default() },
            ..ServerConfig::new(Identity::generate(), PeerTrust::Anyone)
        };
        let mut endpoint = Endpoint::new(EndpointConfig { seed: [7; 32], server: Some(config) }).unwrap();
        let home = |index: usize| SocketAddr::from(([10, 0, index as u8, 1], 1000));
        let mut halves: HashMap<_, _> = (0..HALVES).map(|index| leave_halfway(&mut endpoint, home(index))).collect();
        assert_eq!((halves.len(), endpoint.strangers()), (HALVES, HALVES), "{by:?}");
        let mut late = Vec::new();
        for (&id, Half { from, last_words, .. }) in &halves {
            assert!(!last_words.is_empty(), "{by:?}");
            for words in last_words {
                let found = endpoint.handle(Time::ZERO, *from, &mut words.clone());
                assert!(matches!(found, Handled::Connection(known) if known == id), "{by:?}: {found:?}");
                late.push((*from, words.clone()));
            }
        }

        // As a driver does it, with nobody to hear.
        let (mut now, mut train) = (Time::ZERO, vec![0; TRAIN_BYTES]);
        while now < Time::ZERO + Duration::from_secs(11) {
            now += Duration::from_millis(50);
            halves.retain(|&id, Half { connection, .. }| {
                connection.handle_timeout(now);
                while connection.poll_transmit(now, &mut train).is_some() {}
                let is_over = std::iter::from_fn(|| connection.poll_event()).any(|event| event == Event::Drained);
                if is_over {
                    endpoint.forget(id);
                }
                !is_over
            });
            let is_early = now < Time::ZERO + Duration::from_secs(9);
            assert!(!is_early || halves.len() == HALVES, "{by:?}: {} at {now}", halves.len());
        }
        assert_eq!((halves.len(), endpoint.strangers()), (0, 0), "{by:?}");
        for (from, mut words) in late {
            let found = endpoint.handle(now, from, &mut words);
            assert!(matches!(found, Handled::Ignore), "{by:?}: who comes late finds {found:?}");
        }
    }
}
