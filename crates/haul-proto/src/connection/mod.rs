//! A connection, sans-IO.
//!
//! The driver feeds it ([`Connection::handle_train`], [`Connection::handle_timeout`]), drains it ([`Connection::poll_transmit`] until `None`, then it waits until
//! [`Connection::poll_timeout`]) and passes [`Connection::poll_event`] on; applications use the stream calls. It never reads a clock.
//!
//! | file | idea |
//! |---|---|
//! | `mod` | the struct, what a user of the crate calls about the connection itself |
//! | `setup` | from the first datagram to the data phase |
//! | `admission` | what a client may do before the application has admitted it |
//! | `input` | what a received packet does |
//! | `acked` | what an acknowledgement or a loss does to streams and frames |
//! | `output` | what leaves next |
//! | `train` | filling a train with stream data |
//! | `sealing` | sealing a train, outside the connection |
//! | `filler` | trains of filler, to measure a path before there is data |
//! | `paths` | opening paths, and which of them is for what |
//! | `timers` | what happens when time passes |
//! | `close` | the end |
//! | `event`, `phase`, `reason` | what the application is told, where a connection stands, why it is over |
//! | `streams` | the application's calls |
//! | `stats` | what people read |

mod acked;
mod admission;
mod close;
mod echo;
mod event;
mod filler;
mod input;
mod output;
mod paths;
mod phase;
mod quiet;
mod reason;
mod redirect;
mod sealing;
mod server_addresses;
mod setup;
mod stats;
mod streams;
mod timers;
mod train;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use haul_cc::{ControllerChoice, Learned};
use haul_paths::{Roster, ServerAddresses, Whereabouts};
use haul_units::{BitRate, Bytes, Time};

pub(crate) use admission::confined;
pub use event::{Event, Transmit};
pub use input::Origin;
pub use paths::PathStats;
pub use reason::{CloseReason, ProtocolViolation};
pub use sealing::{TRAIN_BYTES, Train};
pub use setup::Arrival;
pub use stats::{Stats, Waits};
pub use streams::{OpenError, ReadError, WriteError};

use crate::ConnectionId;
use crate::config::TransportConfig;
use crate::crypto::{DataKeys, TrafficSecret};
use crate::flow::ReceiveCredit;
use crate::handshake::Handshake;
use crate::identity::PublicKey;
use crate::path::Path;
use crate::reset::Met;
use crate::rng::Rng;
use crate::streams::{Side, SinkFactory, StreamId, Streams};
use crate::wire::Frame;
use phase::Phase;
use stats::WaitMeter;

/// One end of a connection.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    local: ConnectionId,
    remote: ConnectionId,
    config: TransportConfig,
    phase: Phase,
    handshake: Option<Box<Handshake>>,
    /// Where handshake datagrams go; nowhere until the peer of a carried handshake has been heard.
    handshake_peer: Option<SocketAddr>,
    candidates: Whereabouts,
    /// Where the client of a carried handshake is, if that is known another way.
    vouched: Option<IpAddr>,
    keys: Option<DataKeys>,
    /// By their number; empty before the handshake is complete.
    paths: Vec<Path>,
    /// How many there may be.
    paths_allowed: u8,
    /// The peer understands what is said of them.
    takes_standings: bool,
    /// The peer, a client, wants to know where else we are.
    takes_addresses: bool,
    /// Where else a client's server is.
    server_addresses: ServerAddresses,
    /// Between how many paths rates are shared out.
    sharers: usize,
    /// Which of them carries what.
    roster: Roster,
    /// What goes by one path and again by another; none with one path.
    echoes: Option<Box<echo::Echoes>>,
    /// The largest packet that both sides take.
    max_packet: u16,
    /// The peer wants the first packets of each path reported in small groups.
    reports_the_start: bool,
    streams: Streams,
    credit: ReceiveCredit,
    /// Frames to send, reliable or not, oldest first.
    control: VecDeque<Frame>,
    /// Answers to challenges: on which path, where to, and the nonce.
    responses: VecDeque<(u8, SocketAddr, u64)>,
    events: VecDeque<Event>,
    rng: Rng,
    idle_timeout: Duration,
    /// When something authentic last came.
    heard_at: Time,
    quiet: quiet::Quiet,
    /// End of the round trip over which arrivals are counted for credit.
    round_until: Time,
    close: Option<close::Closing>,
    /// A server's client that has not been admitted.
    stranger: Option<admission::Stranger>,
    peer_key: Option<PublicKey>,
    protocol: Option<Vec<u8>>,
    met: Met,
    waits: WaitMeter,
    /// A write was refused for want of room.
    starved: bool,
    retransmitted_bytes: u64,
    /// Where packets without a slot are decrypted to.
    scratch: Vec<u8>,
    /// Where control frames are encoded.
    encoded: Vec<u8>,
    /// Streams touched by an acknowledgement, for reuse.
    touched: Vec<StreamId>,
    /// Ordered streams on which something has arrived in this round trip.
    arrived: Vec<StreamId>,
    /// Runs of the train being filled, for reuse.
    runs: Vec<crate::path::SentRun>,
    /// What of it is yet to be sealed.
    unsealed: Vec<sealing::Unsealed>,
}

impl Connection {
    /// Our number for the connection, which the peer's packets carry.
    pub const fn id(&self) -> ConnectionId {
        self.local
    }

    /// The peer's number for it, which our packets carry; 0 before the handshake is complete.
    pub const fn peer_id(&self) -> ConnectionId {
        self.remote
    }

    /// The secrets of what we send and of what the peer sends, from now on; `None` before the handshake is complete. For who looks for a fault.
    pub fn traffic_secrets(&self) -> Option<[TrafficSecret; 2]> {
        self.keys.as_ref().map(DataKeys::secrets)
    }

    /// Which end this is.
    pub const fn side(&self) -> Side {
        self.side
    }

    /// Whether data can flow.
    pub fn is_established(&self) -> bool {
        self.phase == Phase::Established
    }

    /// Whether the connection is over for the application.
    pub const fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closing(_) | Phase::Draining(_) | Phase::Drained)
    }

    /// Where the peer is; nowhere ([`Ipv4Addr::UNSPECIFIED`]) before it has been heard for the first time.
    pub fn remote(&self) -> SocketAddr {
        let nowhere = SocketAddr::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        self.paths.first().map(|path| path.peer.current()).or(self.handshake_peer).unwrap_or(nowhere)
    }

    /// Who the peer is, if it has shown a key.
    pub const fn peer_key(&self) -> Option<&PublicKey> {
        self.peer_key.as_ref()
    }

    /// The application protocol agreed on.
    pub fn protocol(&self) -> Option<&[u8]> {
        self.protocol.as_deref()
    }

    /// What the peer has given this side, once the connection is established.
    pub const fn met(&self) -> Met {
        self.met
    }

    /// Bounds the sending rate, or lifts the bound.
    pub const fn set_rate_limit(&mut self, limit: Option<BitRate>) {
        self.config.rate_limit = limit;
    }

    /// What the peer has made room for, who sees all that comes through its link: paths that carry less take it up at once, each by its part of what arrives on all. No bound: see
    /// [`set_rate_limit`](Self::set_rate_limit).
    pub fn take_room(&mut self, now: Time, rate: BitRate) {
        let arriving = |path: &Path| path.meter.delivery_rate.as_bps() as f64;
        let all: f64 = self.paths.iter().map(arriving).sum();
        for path in self.paths.iter_mut().filter(|path| path.is_usable()) {
            let part = arriving(path) / all.max(1.0);
            path.controller.on_room(now, rate.scaled(part));
        }
    }

    /// Other memory from now on; see [`crate::TransportConfig::memory`]. What the peer may send already it may still send.
    pub const fn set_memory(&mut self, memory: Bytes) {
        self.config.memory = memory;
        self.credit.set_memory(memory.as_u64());
    }

    /// The memory that the connection may use at present.
    pub const fn memory(&self) -> Bytes {
        self.config.memory
    }

    /// Sinks for the placed streams that the peer opens from now on, unless the configuration has its own. A driver gives each connection its own, for the
    /// names of streams are the same on all.
    pub fn provide_sinks(&mut self, sinks: SinkFactory) {
        self.streams.provide_sinks(sinks);
    }

    /// Another controller for every path. It begins with what the ones before have learned, not from nothing.
    pub fn set_controller(&mut self, now: Time, choice: ControllerChoice) {
        self.config.controller = choice;
        self.set_controllers(now);
    }

    /// The controller that paths get.
    pub const fn controller(&self) -> ControllerChoice {
        self.config.controller
    }

    /// What is known about the way to the peer on the first path, for [`TransportConfig::remembered`] of the next connection; `None` as long as it is little.
    pub fn learned(&self) -> Option<Learned> {
        self.paths.first()?.learned()
    }

    /// What has happened, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}
