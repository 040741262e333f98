//! A client's handshake, step by step, so that hundreds can be under way in one thread.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use aws_lc_rs::rand;
use e2e::Stopwatch;
use haul_proto::handshake::{ClientParams, ClientTls, Handshake, TransportParams};
use haul_proto::identity::{Identity, PeerTrust};
use haul_units::{Bytes, Time};

use crate::outlet::Outlet;
use crate::peer::Peer;

/// How long a handshake may take on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest handshake datagram.
const DATAGRAM_BYTES: usize = 2048;

/// A handshake under way.
pub struct Attempt {
    outlet: Outlet,
    server: SocketAddr,
    client: Box<Handshake>,
    watch: Stopwatch,
    stops_halfway: bool,
}

/// What has become of it.
pub enum Outcome {
    /// Not over yet.
    Waiting(Attempt),
    /// The peer has keys.
    In(Box<Peer>),
    /// Nobody answered, or no was the answer.
    Out,
}

impl Attempt {
    /// Begins at a server, from an address, as somebody or nobody. The peer allows the server all that it could want.
    pub fn begin(server: SocketAddr, source: IpAddr, identity: Option<&Identity>, protocol: &[u8]) -> Self {
        let tls = ClientTls::new(identity, &PeerTrust::Anyone, vec![protocol.to_vec()]).expect("a sound configuration");
        let params = generous();
        let [cid, number] = [random(), random()];
        let params = ClientParams { timeout: PATIENCE, ..ClientParams::new(tls, params, cid as u32 | 1, number) };
        let client = Box::new(Handshake::client(Time::ZERO, params).expect("a sound configuration"));
        Self { outlet: Outlet::bind(source), server, client, watch: Stopwatch::start(), stops_halfway: false }
    }

    /// Goes no further than to show the cookie: the server's flight is not answered.
    pub fn halfway(self) -> Self {
        Self { stops_halfway: true, ..self }
    }

    /// Whether it has shown the cookie and goes no further.
    pub fn has_stopped(&self) -> bool {
        self.stops_halfway && self.outlet.received_pkts > 1
    }

    /// Sends and takes what there is; does not wait.
    pub fn step(mut self) -> Outcome {
        let mut buffer = [0; DATAGRAM_BYTES];
        if self.has_stopped() {
            while self.outlet.take(&mut buffer).is_some() {}
            return if self.watch.elapsed() < PATIENCE { Outcome::Waiting(self) } else { Outcome::Out };
        }
        let mut failed = false;
        while let Some((_, datagram)) = self.outlet.take(&mut buffer) {
            // The first that comes is the cookie, or the server's flight at once.
            if self.has_stopped() {
                break;
            }
            failed |= self.client.handle_datagram(now(&self.watch), datagram).is_err();
        }
        let now = now(&self.watch);
        if self.client.poll_timeout().is_some_and(|at| at <= now) {
            failed |= self.client.handle_timeout(now).is_err();
        }
        while let Some(length) = self.client.poll_transmit(now, &mut buffer) {
            self.outlet.send(self.server, &buffer[..length]);
        }
        if failed {
            return Outcome::Out;
        }
        if self.client.is_settled()
            && let Some(established) = self.client.take_complete()
        {
            return Outcome::In(Box::new(Peer::new(self.outlet, self.server, established)));
        }
        Outcome::Waiting(self)
    }

    /// Goes on to the end.
    pub fn finish(self) -> Option<Box<Peer>> {
        let mut attempt = self;
        loop {
            match attempt.step() {
                Outcome::In(peer) => return Some(peer),
                Outcome::Out => return None,
                Outcome::Waiting(waiting) => attempt = waiting,
            }
            Outlet::wait([&attempt.outlet], Duration::from_millis(5));
        }
    }

    /// Sends its first packets again and again for so long and answers nothing, as somebody does who has forged the address: the socket, with its counts.
    pub fn shout(mut self, time: Duration) -> Outlet {
        let mut first = Vec::new();
        let mut buffer = [0; DATAGRAM_BYTES];
        while let Some(length) = self.client.poll_transmit(Time::ZERO, &mut buffer) {
            first.push(buffer[..length].to_vec());
        }
        while self.watch.elapsed() < time {
            for datagram in &first {
                self.outlet.send(self.server, datagram);
            }
            while self.outlet.take(&mut buffer).is_some() {}
            Outlet::wait([&self.outlet], Duration::from_millis(20));
        }
        self.outlet
    }
}

/// What a peer allows: so much that nothing but the other side's own bounds holds it back.
pub(crate) fn generous() -> TransportParams {
    TransportParams {
        initial_max_data: Bytes(1 << 40),
        initial_max_stream_data: Bytes(1 << 40),
        max_streams: 1 << 16,
        max_paths: u8::MAX,
        // In effect is the smaller of both sides.
        idle_timeout: Duration::from_secs(3600),
        ..TransportParams::default()
    }
}

pub(crate) fn now(watch: &Stopwatch) -> Time {
    Time::ZERO + watch.elapsed()
}

pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    rand::fill(&mut bytes).expect("the system's random source works");
    u64::from_le_bytes(bytes)
}
