//! Trains that are sealed long after they were made: what happens meanwhile changes nothing in them.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use haul_proto::{
    Connection, Endpoint, EndpointConfig, Handled, Origin, StreamKind, TRAIN_BYTES, Train, Transmit, TransportConfig,
};
use haul_units::Time;

use crate::harness::configs;

/// Trains of the client that are made and not yet sealed.
const WAITING: usize = 5;

fn address(side: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, side], 4433))
}

struct Pair {
    now: Time,
    client: Connection,
    server: Option<Connection>,
    listener: Endpoint,
    made: VecDeque<(Train, Transmit)>,
    spare: Vec<Train>,
    back: VecDeque<(Time, Vec<u8>)>,
    sent: usize,
}

impl Pair {
    fn new() -> Self {
        let (client, server) = configs(&TransportConfig::default());
        let listener = Endpoint::new(EndpointConfig { seed: [2; 32], server: Some(server) }).unwrap();
        let now = Time::ZERO + Duration::from_secs(1);
        let mut endpoint = Endpoint::new(EndpointConfig { seed: [1; 32], server: None }).unwrap();
        let (_, client) = endpoint.connect(now, address(1), client).unwrap();
        let (made, spare, back) = (VecDeque::new(), Vec::new(), VecDeque::new());
        Self { now, client, server: None, listener, made, spare, back, sent: 0 }
    }

    /// Half a millisecond: the client makes trains, and those that have waited are sealed and arrive, but for each seventh.
    fn step(&mut self) {
        self.now += Duration::from_micros(500);
        let now = self.now;
        while self.back.front().is_some_and(|(at, _)| *at <= now) {
            let (_, mut datagram) = self.back.pop_front().unwrap();
            let len = datagram.len();
            self.client.handle_train(now, Origin::just_now(now, address(1)), &mut datagram, len);
        }
        if self.client.poll_timeout() <= now {
            self.client.handle_timeout(now);
        }
        while self.client.poll_event().is_some() {}
        loop {
            let mut train = self.spare.pop().unwrap_or_default();
            let Some(transmit) = self.client.poll_train(now, &mut train) else { break };
            self.made.push_back((train, transmit));
        }
        let waiting = if self.client.is_established() && self.now < Time::ZERO + Duration::from_secs(5) { WAITING } else { 0 };
        while self.made.len() > waiting {
            let (mut train, transmit) = self.made.pop_front().unwrap();
            self.sent += 1;
            let mut datagrams = train.sealed()[..transmit.len].to_vec();
            self.spare.push(train);
            if waiting == 0 || !self.sent.is_multiple_of(7) {
                self.arrive(&mut datagrams, transmit.segment);
            }
        }
        let Some(server) = &mut self.server else { return };
        if server.poll_timeout() <= now {
            server.handle_timeout(now);
        }
        while server.poll_event().is_some() {}
        let mut train = vec![0; TRAIN_BYTES];
        while let Some(transmit) = server.poll_transmit(now, &mut train) {
            for datagram in train[..transmit.len].chunks(transmit.segment) {
                self.back.push_back((now + Duration::from_millis(2), datagram.to_vec()));
            }
        }
    }

    fn arrive(&mut self, datagrams: &mut [u8], segment: usize) {
        let now = self.now;
        if let Some(server) = &mut self.server {
            return server.handle_train(now, Origin::just_now(now, address(0)), datagrams, segment);
        }
        match self.listener.handle(now, address(0), datagrams) {
            Handled::New(_, connection) => self.server = Some(*connection),
            Handled::Respond(answer) => self.back.push_back((now, answer)),
            _ => {}
        }
    }
}

fn pattern(from: usize, len: usize) -> Vec<u8> {
    (from..from + len).map(|at| (at * 37 % 253) as u8).collect()
}

/// Bytes that were acknowledged before a train with them was sealed, for they had been sent again, and memory that was written behind them, are not another's.
#[test]
fn what_is_written_and_acknowledged_before_a_train_is_sealed_does_not_change_it() {
    let mut pair = Pair::new();
    while !pair.client.is_established() || pair.server.is_none() {
        pair.step();
    }
    let id = pair.client.open(StreamKind::Bidirectional).unwrap();
    let (total, mut written, mut read) = (3_000_000, 0_usize, Vec::new());
    let mut buffer = vec![0; 1 << 20];
    while read.len() < total {
        // Some writes are small, so that memory grows behind what a train carries; others fill it.
        let len = if written.is_multiple_of(3) { 200 } else { 90_000 }.min(total - written);
        if len > 0
            && let Ok(taken) = pair.client.write(id, &pattern(written, len))
        {
            written += taken;
        }
        pair.step();
        let server = pair.server.as_mut().unwrap();
        while let Ok(len) = server.read(id, &mut buffer) {
            read.extend_from_slice(&buffer[..len]);
        }
        assert!(pair.now < Time::ZERO + Duration::from_secs(60), "{} of {total}", read.len());
    }
    assert!(
        read == pattern(0, total),
        "the first byte that differs: {:?}",
        read.iter().zip(pattern(0, total)).position(|(a, b)| *a != b)
    );
    assert!(pair.client.stats(pair.now).unwrap().retransmitted.as_u64() > 0);
}
