//! Real connections as the flows of a plan: real handshakes and real encryption, the bytes themselves all zero.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use haul_proto::identity::{Identity, PeerTrust};
use haul_proto::{ClientConfig, Connection, PATHS_MAX, ServerConfig, Stats, StreamKind, TransportConfig};
use haul_sim::{Delivered, EndpointId, FlowEnd, FlowSpec, Transmit};
use haul_units::{Bytes, Time};

use crate::end::{Datagram, End, Way};
use crate::placed::Content;

/// What the hosts of a plan remember: the round trip that the newest connection of each has met, as a client's endpoint does ([`haul_proto::TransportConfig::expected_rtt`]). All of them are in
/// one network.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hosts(Arc<Mutex<HashMap<usize, Duration>>>);

impl Hosts {
    fn rtt(&self, host: usize) -> Option<Duration> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&host).copied()
    }

    fn note(&self, host: usize, rtt: Duration) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(host, rtt);
    }
}

/// One end of a flow.
pub struct Haul {
    end: End,
    start: Option<Start>,
    /// The client's, until it is connected.
    remembers: Option<(Hosts, usize)>,
    completed_at: Option<Time>,
}

/// A connection to be made.
struct Start {
    at: Time,
    server: SocketAddr,
    config: Box<ClientConfig>,
}

impl Haul {
    /// The sender and the receiver of a flow, with a path for each of the flow's ways.
    pub fn pair<K>(flow: &FlowSpec<'_, K>, transport: TransportConfig, kind: StreamKind) -> (Self, Self) {
        static IDENTITY: LazyLock<Vec<u8>> = LazyLock::new(|| Identity::generate().to_pkcs8().expect("it is ours").to_vec());
        let identity = Identity::from_pkcs8(&IDENTITY).expect("just made");
        let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
        let transport = TransportConfig { max_packet: 1472, paths: paths(flow.ways), ..transport };
        let server = ServerConfig { transport: transport.clone(), ..ServerConfig::new(identity, PeerTrust::Anyone) };
        let client = ClientConfig { transport, connect_timeout: Duration::from_secs(60), ..ClientConfig::new(trust) };
        let seed = |side: u8| {
            let mut seed = [side; 32];
            seed[..8].copy_from_slice(&flow.seed.to_le_bytes());
            seed
        };
        let mut sender = End::client(seed(1), address(flow.sender), flow.receiver, Content::Zeros);
        sender.send_once_connected(flow.size, kind);
        let mut receiver = End::server(seed(2), address(flow.receiver), flow.sender, Content::Zeros, server);
        let start = Start { at: flow.start, server: address(flow.receiver), config: Box::new(client) };
        for way in 1..flow.ways {
            let (mut from, server) = (address(flow.sender), address(flow.receiver));
            from.set_port(from.port() + way);
            sender.ways.push(Way { path: u8::try_from(way).ok(), remote: server, address: from, way });
            receiver.ways.push(Way { path: None, remote: from, address: server, way });
        }
        let new = |end, start| Self { end, start, remembers: None, completed_at: None };
        (new(sender, Some(start)), new(receiver, None))
    }

    /// On a host that has connected before, or will again.
    pub(crate) fn on_host(self, hosts: &Hosts, host: usize) -> Self {
        Self { remembers: Some((hosts.clone(), host)), ..self }
    }

    fn remember(&mut self) {
        let Some(connection) = self.end.connection.as_ref().filter(|_| self.end.connected_at.is_some()) else { return };
        if let (Some((hosts, host)), Some(path)) = (self.remembers.take(), connection.paths().next()) {
            hosts.note(host, path.rtt);
        }
    }
}

impl Haul {
    /// Packets that this end took for lost.
    pub fn lost_pkts(&self, now: Time) -> u64 {
        self.stats(now).map_or(0, |stats| stats.lost_pkts)
    }

    /// Probe timers that ran out at this end; those of the handshake are not counted.
    pub fn timeouts(&self, now: Time) -> u64 {
        self.stats(now).map_or(0, |stats| stats.probe_timeouts)
    }

    /// What it may have in flight, in packets of the full size.
    pub fn window_pkts(&self, now: Time) -> f64 {
        self.stats(now).map_or(0.0, |stats| stats.window.as_u64() as f64 / stats.packet_size.as_u64().max(1) as f64)
    }

    /// What was sent on each path.
    pub fn sent_by_path(&self) -> Vec<Bytes> {
        self.end.connection.iter().flat_map(Connection::paths).map(|path| path.sent).collect()
    }

    /// What was acknowledged on each path.
    pub fn acknowledged_by_path(&self) -> Vec<Bytes> {
        self.end.connection.iter().flat_map(Connection::paths).map(|path| path.acknowledged).collect()
    }

    fn stats(&self, now: Time) -> Option<Stats> {
        self.end.connection.as_ref().and_then(|connection| connection.stats(now))
    }
}

/// A path for each way, up to what a connection can have.
fn paths(ways: u16) -> u8 {
    u8::try_from(ways).unwrap_or(PATHS_MAX).clamp(1, PATHS_MAX)
}

fn address(id: EndpointId) -> SocketAddr {
    let [.., a, b] = (id.0 as u32).to_be_bytes();
    SocketAddr::from(([10, 0, a, b], 7000))
}

impl haul_sim::Endpoint for Haul {
    type Packet = Datagram;

    fn handle(&mut self, now: Time, from: EndpointId, delivered: Delivered<Datagram>) {
        self.end.handle(now, from, delivered);
    }

    fn handle_timeout(&mut self, now: Time) {
        self.end.handle_timeout(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<Transmit<Datagram>> {
        if let Some(mut start) = self.start.take_if(|start| start.at <= now) {
            start.config.transport.expected_rtt = self.remembers.as_ref().and_then(|(hosts, host)| hosts.rtt(*host));
            self.end.connect(now, start.server, *start.config);
        }
        let transmit = self.end.poll_transmit(now);
        if self.remembers.is_some() {
            self.remember();
        }
        if self.completed_at.is_none() && self.end.has_all() {
            self.completed_at = Some(now);
        }
        if let Some(reason) = &self.end.closed {
            panic!("closed at {now}: {reason:?}");
        }
        self.end.events.clear();
        transmit
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.start.as_ref().map(|start| start.at).or_else(|| self.end.poll_timeout())
    }

    fn ecn_capable(packet: &Datagram) -> bool {
        End::ecn_capable(packet)
    }
}

impl FlowEnd for Haul {
    fn received(&self) -> Bytes {
        Bytes(self.end.arrived())
    }

    fn completed_at(&self) -> Option<Time> {
        self.completed_at
    }
}
