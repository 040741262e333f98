//! What a user of the transport chooses.

use std::time::Duration;

use haul_cc::{ControllerChoice, Learned};
use haul_paths::{Announced, Scheduler, Via};
use haul_units::{BitRate, Bytes};

use crate::identity::{Identity, PeerTrust};
use crate::reset::ResetKey;
use crate::strangers::Admission;
use crate::streams::{Limits, SinkFactory};

/// Paths of a connection, at most: what a server takes, and what it keeps for a peer that means harm.
pub const PATHS_MAX: u8 = 8;

/// How a connection behaves. Nothing here must be set: the path's rate and round-trip time are measured.
#[derive(Debug, Clone)]
pub struct TransportConfig {
    /// The congestion controller. Default: [`ControllerChoice::Fair`], made for what haul is made for.
    pub controller: ControllerChoice,
    /// What an earlier connection to the same host learned ([`crate::Connection::learned`]), if it is not too old. Controllers that know how
    /// to use it test it before they believe it. Default: nothing.
    pub remembered: Option<Learned>,
    /// What the first path's round trip should be, known another way: what must be guessed before the first acknowledgement is guessed by it. A client's hello goes by it, for which an
    /// earlier connection knows best, and all of a connection without a handshake's round trip to measure ([`crate::Opening`]). Default: unknown; hellos then go by `remembered`.
    pub expected_rtt: Option<Duration>,
    /// Bound on bytes buffered in each direction. Default: 1 GiB, two bandwidth-delay products of 10 Gbit/s at 400 ms.
    pub memory: Bytes,
    /// Bytes that the peer may send ahead of the reader on a new ordered stream. Once 64 KiB have been read, the window is at
    /// least the stream's share of an eighth of `memory` (64 MiB at most) and follows what arrives. Default: 16 MiB. Many streams whose readers
    /// may stand still want less: `memory` is for all of them together.
    pub stream_window: Bytes,
    /// The largest packet to try, UDP payload. 1200..=65,507; default 8972, which 9000 bytes of Ethernet carry.
    pub max_packet: u16,
    /// A connection over which nothing authentic has come for so long is dead. Default: 90 s, so that an outage of a minute is survived.
    pub idle_timeout: Duration,
    /// Something is sent after so long without anything, to keep NATs and the peer's idle timer open. Default: 5 s; NATs forget UDP after 30 s.
    pub keep_alive: Option<Duration>,
    /// Streams of each kind that the peer may have open at once. Default: 16,384.
    pub max_streams: u32,
    /// A bound on the sending rate. Default: none.
    pub rate_limit: Option<BitRate>,
    /// Whether packets are spaced. Default: [`Pacing::On`].
    pub pacing: Pacing,
    /// Whether a path may be measured by filler (some 20 kB, on a fast path up to 0.8 MB) while the application has nothing to send yet, in modes
    /// that measure; for applications that greet each other before they move much. Default: no.
    pub filler: bool,
    /// Makes the sinks of placed streams that the peer opens. Default: none, such streams are refused.
    pub sinks: Option<SinkFactory>,
    /// Paths that a client opens, the first counted: each has its own packet numbers, window and rate, and a port of its own if the
    /// driver gives it one. 1..=[`PATHS_MAX`], and no
    /// more than the server takes. Default: 1. Those that share a bottleneck are one flow to others; further ones carry nothing before a flow has proved long.
    pub paths: u8,
    /// By which interfaces or addresses a client's paths leave, where the driver can do that: one for each, instead of `paths`. Default: none, the routing table says.
    pub via: Vec<Via>,
    /// Which path is asked first where several carry data. Default: [`Scheduler::Completion`]; the others are there to be compared with.
    pub scheduler: Scheduler,
    /// Data packets sealed with one key, at most. Default 2^22, half of what AES-GCM allows; tests set it small.
    pub packets_per_key: u64,
}

impl TransportConfig {
    /// What streams may hold.
    pub(crate) fn limits(&self) -> Limits {
        Limits { streams: self.max_streams, stream_window: self.stream_window.min(self.memory).as_u64() }
    }
}

impl Default for TransportConfig {
    fn default() -> Self {
        Self {
            controller: ControllerChoice::default(),
            remembered: None,
            expected_rtt: None,
            memory: Bytes::gib(1),
            stream_window: Bytes::mib(16),
            max_packet: 8972,
            idle_timeout: Duration::from_secs(90),
            keep_alive: Some(Duration::from_secs(5)),
            max_streams: 1 << 14,
            rate_limit: None,
            pacing: Pacing::On,
            filler: false,
            sinks: None,
            paths: 1,
            via: Vec::new(),
            scheduler: Scheduler::default(),
            packets_per_key: 1 << 22,
        }
    }
}

/// Whether packets are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Pacing {
    /// Trains leave at the controller's rate: queues on the way stay short, and others' packets find room.
    #[default]
    On,
    /// Whatever the window lets go leaves at once, in bursts as large as what is acknowledged at once; only a rate limit spaces them. It
    /// is there to be compared with.
    Off,
}

/// What one end needs to connect.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Who we are, if the server wants to know.
    pub identity: Option<Identity>,
    /// Which servers to believe.
    pub trust: PeerTrust,
    /// Application protocols, the preferred one first; the server picks one.
    pub protocols: Vec<Vec<u8>>,
    /// How the connection behaves.
    pub transport: TransportConfig,
    /// An admission token, if one was got another way (over ssh): it saves one connection the round trip of the retry cookie.
    pub admission: Option<Vec<u8>>,
    /// The handshake is given up after so long. Default: 5 s.
    pub connect_timeout: Duration,
}

impl ClientConfig {
    /// Everything at its default, for servers that `trust` believes.
    pub fn new(trust: PeerTrust) -> Self {
        Self {
            identity: None,
            trust,
            protocols: Vec::new(),
            transport: TransportConfig::default(),
            admission: None,
            connect_timeout: Duration::from_secs(5),
        }
    }
}

/// What one end needs to accept connections.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Who we are.
    pub identity: Identity,
    /// Which clients to believe; [`PeerTrust::Anyone`] asks for no key.
    pub trust: PeerTrust,
    /// Application protocols, the preferred one first; empty: any.
    pub protocols: Vec<Vec<u8>>,
    /// How connections behave.
    pub transport: TransportConfig,
    /// From which the endpoint's reset tokens follow. One that outlives the process ([`ResetKey::of_identity`]) lets the endpoint tell the clients of the process before it that their
    /// connections are gone. Default: none, a random one for each endpoint.
    pub reset_key: Option<ResetKey>,
    /// What clients whose paths leave by interfaces are told of our addresses, once they are admitted. Default: where the endpoint is bound to no address of its own, those of its interfaces.
    pub addresses: Announced,
    /// What clients get before they are admitted. Default: who is believed is admitted.
    pub admission: Admission,
}

impl ServerConfig {
    /// Everything at its default.
    pub fn new(identity: Identity, trust: PeerTrust) -> Self {
        Self {
            identity,
            trust,
            protocols: Vec::new(),
            transport: TransportConfig::default(),
            reset_key: None,
            addresses: Announced::default(),
            admission: Admission::default(),
        }
    }
}
