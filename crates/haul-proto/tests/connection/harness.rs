//! Two real connections over simulated links, in virtual time.

use std::net::SocketAddr;
use std::time::Duration;

use haul_proto::identity::{Identity, PeerTrust};
use haul_proto::{ClientConfig, ServerConfig, TransportConfig};
use haul_scenarios::{Content, End};
use haul_sim::{EndpointId, LinkConfig, LossModel, Network, Reorder};
use haul_units::{BitRate, Bytes, Ratio, Time};

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
    /// By how much later they arrive; none: an eighth of the round trip.
    pub reorder_by: Option<Duration>,
    pub duplicate: f64,
    pub corrupt: f64,
    pub seed: u64,
}

impl Path {
    pub fn new(rate: BitRate, rtt: Duration) -> Self {
        Self { rate, rtt, loss: 0.0, queue_bdp: 1.0, reorder: 0.0, reorder_by: None, duplicate: 0.0, corrupt: 0.0, seed: 1 }
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
            reorder: Reorder { ratio: Ratio::new(self.reorder), extra: self.reorder_by.unwrap_or(self.rtt / 8) },
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
pub fn ends(seed: u64, client: ClientConfig, server: ServerConfig) -> (End, End) {
    let client_address: SocketAddr = "10.0.0.1:1000".parse().unwrap();
    let server_address: SocketAddr = "10.0.0.2:2000".parse().unwrap();
    let seeds = |n: u64| [(seed * 7 + n) as u8; 32];
    let mut connecting = End::client(seeds(1), client_address, SERVER, Content::Pattern);
    connecting.connect(Time::ZERO, server_address, client);
    (connecting, End::server(seeds(2), server_address, CLIENT, Content::Pattern, server))
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
