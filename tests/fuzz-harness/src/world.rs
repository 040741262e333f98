//! Two endpoints and the wire between them, in virtual time.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use haul_proto::identity::{Identity, PeerTrust};
use haul_proto::{
    ClientConfig, CloseReason, Connection, ConnectionId, Endpoint, EndpointConfig, Event, Handled, Origin, ServerConfig, Side,
    SinkFactory, TransportConfig, data_destination,
};
use haul_units::{Bytes, Time};

use crate::sink::CheckedSink;

/// Most datagrams that the wire holds; a full one drops.
const WIRE_PKTS: usize = 2048;
/// More trains than this at one instant are a loop without end.
const TRAINS_AT_ONCE: u32 = 20_000;

/// Time that a datagram takes.
const HOP: Duration = Duration::from_micros(20);

/// A datagram on its way.
pub struct Datagram {
    pub to: Side,
    pub from: SocketAddr,
    pub bytes: Vec<u8>,
}

/// One end.
pub struct End {
    pub endpoint: Endpoint,
    pub connection: Option<(ConnectionId, Box<Connection>)>,
    pub closed: Option<CloseReason>,
    pub drained: bool,
}

/// Both ends and the wire.
pub struct World {
    pub now: Time,
    pub ends: Vec<End>,
    pub addresses: [SocketAddr; 2],
    pub wire: VecDeque<Datagram>,
    train: Vec<u8>,
}

/// Index of a side.
pub fn index(side: Side) -> usize {
    match side {
        Side::Client => 0,
        Side::Server => 1,
    }
}

/// The other side.
pub fn other(side: Side) -> Side {
    match side {
        Side::Client => Side::Server,
        Side::Server => Side::Client,
    }
}

/// Small bounds, so that the fuzzer reaches them.
pub fn transport() -> TransportConfig {
    TransportConfig {
        memory: Bytes(1 << 20),
        max_streams: 16,
        packets_per_key: 50,
        sinks: Some(SinkFactory::new(|id| Box::new(CheckedSink::new(id)))),
        ..TransportConfig::default()
    }
}

impl World {
    /// A server that listens and a client that has begun to connect.
    pub fn connecting() -> Self {
        let mut world = Self::listening();
        let trust = PeerTrust::Callback(Arc::new(|_| true));
        let config = ClientConfig { transport: transport(), ..ClientConfig::new(trust) };
        let server = world.addresses[1];
        let (id, connection) = world.ends[0].endpoint.connect(world.now, server, config).expect("a sound configuration");
        world.ends[0].connection = Some((id, Box::new(connection)));
        world
    }

    /// A server that listens; nobody connects yet.
    pub fn listening() -> Self {
        let identity = Identity::generate();
        let server = ServerConfig { transport: transport(), ..ServerConfig::new(identity, PeerTrust::Anyone) };
        let end = |seed: u8, server: Option<ServerConfig>| End {
            endpoint: Endpoint::new(EndpointConfig { seed: [seed; 32], server }).expect("a sound configuration"),
            connection: None,
            closed: None,
            drained: false,
        };
        let address = |last: u8| SocketAddr::from(([10, 0, 0, last], 4000));
        Self {
            now: Time::from_nanos(1_000_000_000),
            ends: vec![end(1, None), end(2, Some(server))],
            addresses: [address(1), address(2)],
            wire: VecDeque::new(),
            train: vec![0; 1 << 16],
        }
    }

    /// The connection of a side, if there is one.
    pub fn connection(&mut self, side: Side) -> Option<&mut Connection> {
        self.ends[index(side)].connection.as_mut().map(|(_, connection)| connection.as_mut())
    }

    /// Puts what both sides want to send on the wire; returns whether anything was.
    pub fn collect(&mut self) -> bool {
        let mut any = false;
        for side in [Side::Client, Side::Server] {
            let mut trains = 0;
            while let Some((_, connection)) = self.ends[index(side)].connection.as_mut() {
                let Some(transmit) = connection.poll_transmit(self.now, &mut self.train) else { break };
                assert!(transmit.len > 0 && transmit.segment > 0 && transmit.len <= self.train.len(), "{transmit:?}");
                any = true;
                trains += 1;
                assert!(trains < TRAINS_AT_ONCE, "{side:?} sends without end at one instant");
                let to = other(side);
                if transmit.remote != self.addresses[index(to)] {
                    continue;
                }
                for bytes in self.train[..transmit.len].chunks(transmit.segment) {
                    if self.wire.len() < WIRE_PKTS {
                        self.wire.push_back(Datagram { to, from: self.addresses[index(side)], bytes: bytes.to_vec() });
                    }
                }
            }
            self.take_events(side);
        }
        any
    }

    /// Hands the oldest datagram over.
    pub fn deliver(&mut self) {
        if let Some(datagram) = self.wire.pop_front() {
            self.now += HOP;
            self.hand_over(datagram);
        }
    }

    /// Hands a datagram to a side.
    pub fn hand_over(&mut self, mut datagram: Datagram) {
        let (now, side) = (self.now, datagram.to);
        let end = &mut self.ends[index(side)];
        let known = end.connection.as_ref().map(|(id, _)| *id);
        let mine = data_destination(&datagram.bytes);
        let handled = match mine {
            Some(id) if mine == known => Handled::Connection(id),
            _ => end.endpoint.handle(now, datagram.from, &mut datagram.bytes),
        };
        match handled {
            Handled::Connection(id) => {
                if let Some((known, connection)) = end.connection.as_mut()
                    && *known == id
                {
                    let segment = datagram.bytes.len();
                    connection.handle_train(now, Origin::just_now(now, datagram.from), &mut datagram.bytes, segment);
                }
            }
            Handled::New(id, connection) if end.connection.is_none() => end.connection = Some((id, connection)),
            Handled::New(id, _) => end.endpoint.forget(id),
            Handled::Respond(bytes) => {
                assert!(bytes.len() <= datagram.bytes.len(), "a stranger gets more than it sent");
                let (to, from) = (other(side), self.addresses[index(side)]);
                if datagram.from == self.addresses[index(to)] {
                    self.wire.push_back(Datagram { to, from, bytes });
                }
            }
            Handled::Ignore => {}
        }
        self.take_events(side);
    }

    fn take_events(&mut self, side: Side) {
        let end = &mut self.ends[index(side)];
        let Some((id, connection)) = end.connection.as_mut() else { return };
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Connected => end.endpoint.on_connected(*id, connection.met()),
                Event::Closed(reason) => assert!(end.closed.replace(reason).is_none(), "closed twice"),
                Event::Drained => end.drained = true,
                _ => {}
            }
        }
    }

    /// Lets time pass to the next timer, at most to `until`; false if there is none before.
    pub fn wait(&mut self, until: Time) -> bool {
        let next =
            self.ends.iter().filter_map(|end| Some(end.connection.as_ref()?.1.poll_timeout())).min().unwrap_or(Time::NEVER);
        let reached = next <= until;
        self.now = self.now.max(next.min(until));
        self.fire_timers();
        reached
    }

    /// Lets an amount of time pass, timers or not.
    pub fn sleep(&mut self, time: Duration) {
        self.now += time;
        self.fire_timers();
    }

    fn fire_timers(&mut self) {
        for side in [Side::Client, Side::Server] {
            let now = self.now;
            if let Some(connection) = self.connection(side)
                && connection.poll_timeout() <= now
            {
                connection.handle_timeout(now);
            }
            self.take_events(side);
        }
    }

    /// A quiet, honest network for a while; `every_step` sees the world as an application would.
    pub fn settle(&mut self, time: Duration, mut every_step: impl FnMut(&mut Self) -> bool) {
        let until = self.now + time;
        let (mut still_at, mut turns) = (self.now, 0);
        while self.now < until {
            let mut busy = self.collect();
            while !self.wire.is_empty() {
                self.deliver();
                busy = true;
            }
            busy |= every_step(self);
            if !busy && !self.wait(until) {
                return;
            }
            turns = if self.now == still_at { turns + 1 } else { 0 };
            still_at = self.now;
            assert!(turns < 5_000, "the connection is busy without time passing");
            // A round trip takes time.
            self.now += Duration::from_micros(100);
        }
    }
}
