//! A client that has the keys and abuses paths: what the server keeps and sends for it is bounded.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

use haul_proto::crypto::DataKeys;
use haul_proto::handshake::{ClientParams, ClientTls, Handshake, TransportParams};
use haul_proto::identity::{Identity, PeerTrust};
use haul_proto::wire::{CONTROL_HEADER_BYTES, Frame, Header, PacketKind, TAG_BYTES};
use haul_proto::{
    Connection, ConnectionId, Ecn, Endpoint, EndpointConfig, Handled, PATHS_MAX, ServerConfig, StreamKind, TRAIN_BYTES,
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
}

impl Attack {
    /// An honest handshake, by hand, to get at the keys.
    fn begin() -> Self {
        let home = "10.0.0.1:1000".parse().unwrap();
        let mut now = Time::ZERO;
        let config = ServerConfig::new(Identity::generate(), PeerTrust::Anyone);
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
                    server.handle_train(now, home, Ecn::NotEct, &mut buffer[..len], len);
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
        Self { now, server, keys, destination, number: 0, home, received: HashMap::new(), sent: HashMap::new() }
    }

    fn send(&mut self, from: SocketAddr, path: u8, frame: &Frame) {
        let mut payload = Vec::new();
        frame.encode(&mut payload);
        let mut packet = vec![0; CONTROL_HEADER_BYTES + payload.len() + TAG_BYTES];
        let (destination, epoch) = (self.destination, self.keys.sealer.epoch());
        self.number += 1;
        let header = Header { destination, path, epoch, number: self.number, kind: PacketKind::Control };
        header.encode(&mut packet);
        let (head, body) = packet.split_at_mut(CONTROL_HEADER_BYTES);
        self.keys.sealer.seal_into(path, self.number, head, &payload, body).unwrap();
        let len = packet.len();
        *self.received.entry(from).or_default() += len;
        self.server.handle_train(self.now, from, Ecn::NotEct, &mut packet, len);
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
