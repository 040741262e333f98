//! Two connected ends, and deterministic bytes.

use std::time::Duration;

use haul::udp::Options;
use haul::{ClientConfig, Connection, Endpoint, Identity, PeerTrust, ServerConfig};

/// Nothing on loopback takes so long; a test that waits for it has failed.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Both ends of a connection, with their endpoints.
pub struct Pair {
    pub server: Endpoint,
    pub client: Endpoint,
    /// The client's end.
    pub near: Connection,
    /// The server's end.
    pub far: Connection,
}

pub fn pair() -> Pair {
    pair_with("127.0.0.1:0", Options::default(), |_, _| ())
}

/// A pair bound to `addr`, after `configure` has had its say.
pub fn pair_with(addr: &str, options: Options, configure: impl FnOnce(&mut ClientConfig, &mut ServerConfig)) -> Pair {
    let (mut client_config, mut server_config) = configs();
    configure(&mut client_config, &mut server_config);
    let bind = |server| Endpoint::with_options(addr.parse().expect("an address"), options, server).expect("binds");
    let server = bind(Some(server_config));
    let client = bind(None);
    let near = client.connect(server.local_addr(), client_config).expect("connects");
    let far = accept(&server);
    Pair { server, client, near, far }
}

/// Configurations that trust each other.
pub fn configs() -> (ClientConfig, ServerConfig) {
    let identity = Identity::generate();
    let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
    (ClientConfig::new(trust), ServerConfig::new(identity, PeerTrust::Anyone))
}

pub fn accept(server: &Endpoint) -> Connection {
    server.accept_timeout(PATIENCE).expect("listens").expect("in time")
}

/// Bytes that differ everywhere: `seed` gives another sequence.
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut random = Random(seed | 1);
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// xorshift64*: enough chance for a test, the same from the same seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// True in `permille` of a thousand calls.
    pub fn chance(&mut self, permille: u64) -> bool {
        self.next() % 1000 < permille
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }
}

/// Polls `done` until it says so.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    for _ in 0..PATIENCE.as_millis() / 5 {
        if done() {
            return;
        }
        pause(Duration::from_millis(5));
    }
    panic!("waited in vain: {what}");
}

#[expect(clippy::disallowed_methods, reason = "the network takes its time")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}
