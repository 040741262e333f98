//! From the first datagram to the data phase.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};

use haul_paths::{PeerAddress, Roster, ServerAddresses, Whereabouts};
use haul_units::{Bytes, Time};
use zeroize::Zeroizing;

use super::quiet::Quiet;
use super::stats::WaitMeter;
use super::{CloseReason, Connection, Event, Phase};
use crate::ConnectionId;
use crate::config::{PATHS_MAX, TransportConfig};
use crate::flow::ReceiveCredit;
use crate::handshake::{Established, Handshake, HandshakeError, TransportParams, feature};
use crate::path::ACK_DELAY_MAX;
use crate::reset::Met;
use crate::rng::Rng;
use crate::streams::{Side, Streams};

/// What a connection is made of, whichever end it is.
#[derive(Debug)]
pub struct Arrival {
    /// Which end.
    pub side: Side,
    /// Our number for it.
    pub local: ConnectionId,
    /// The peer's address, if it is known.
    pub remote: Option<SocketAddr>,
    /// How it behaves.
    pub config: TransportConfig,
    /// Seed of what is drawn by chance, its own.
    pub seed: Zeroizing<[u8; 32]>,
}

impl Connection {
    /// A connection whose handshake begins.
    pub(crate) fn new(now: Time, arrival: Arrival, handshake: Handshake) -> Self {
        let Arrival { side, local, remote, config, seed } = arrival;
        let memory = config.memory.as_u64();
        let limits = config.limits();
        Self {
            side,
            local,
            remote: ConnectionId(0),
            phase: Phase::Handshaking,
            handshake: Some(Box::new(handshake)),
            handshake_peer: remote,
            candidates: Whereabouts::default(),
            vouched: None,
            keys: None,
            paths: Vec::new(),
            paths_allowed: 1,
            takes_standings: false,
            takes_addresses: false,
            server_addresses: ServerAddresses::default(),
            sharers: 1,
            roster: Roster::default(),
            echoes: None,
            max_packet: config.max_packet,
            reports_the_start: false,
            streams: Streams::new(side, limits, config.sinks.clone()),
            credit: ReceiveCredit::new(memory),
            control: VecDeque::new(),
            responses: VecDeque::new(),
            events: VecDeque::new(),
            rng: Rng::new(&seed),
            idle_timeout: config.idle_timeout,
            heard_at: now,
            quiet: Quiet::default(),
            round_until: now,
            close: None,
            stranger: None,
            peer_key: None,
            protocol: None,
            met: Met::default(),
            waits: WaitMeter::new(now),
            starved: false,
            retransmitted_bytes: 0,
            scratch: Vec::new(),
            encoded: Vec::new(),
            touched: Vec::new(),
            arrived: Vec::new(),
            runs: Vec::new(),
            unsealed: Vec::new(),
            config,
        }
    }

    /// The client has shown another way that it is at this address: what comes from there proves the same.
    pub(crate) const fn vouch_for(&mut self, client: IpAddr) {
        self.vouched = Some(client);
    }

    /// A client's connection whose handshake is complete, with a server at one of these addresses, the likeliest first.
    pub(crate) fn opened(now: Time, arrival: Arrival, candidates: &[SocketAddr], handshake: Handshake) -> Self {
        let mut new = Self::new(now, Arrival { remote: candidates.first().copied(), ..arrival }, handshake);
        new.candidates = Whereabouts::new(candidates);
        new.advance_handshake(now);
        new
    }

    /// What we tell the peer in the handshake.
    pub(crate) fn params(config: &TransportConfig, reset_token: [u8; 16]) -> TransportParams {
        let memory = config.memory.as_u64();
        TransportParams {
            initial_max_data: Bytes(ReceiveCredit::initial(memory)),
            initial_max_stream_data: Bytes(config.limits().stream_window),
            max_streams: config.max_streams,
            idle_timeout: config.idle_timeout,
            max_packet_bytes: config.max_packet,
            ack_interval_max: ACK_DELAY_MAX,
            reset_token: Some(reset_token),
            max_paths: PATHS_MAX,
            features: features(config),
            ..TransportParams::default()
        }
    }

    /// A handshake datagram.
    pub(super) fn handle_handshake(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) {
        let Some(handshake) = self.handshake.as_mut() else { return };
        if self.handshake_peer.is_some_and(|peer| peer != from) && !self.candidates.contains(from) {
            return;
        }
        let had_heard = handshake.has_heard();
        let (before, _) = handshake.address_bytes();
        let result = handshake.handle_datagram(now, datagram);
        let (after, _) = handshake.address_bytes();
        if let Some(path) = self.paths.first_mut().filter(|path| self.side == Side::Server && path.peer.current() == from) {
            path.peer.on_packet_from(now, from, after - before, false);
        }
        if !had_heard && handshake.has_heard() {
            self.settle_on(now, from);
        }
        match result {
            Ok(()) => self.advance_handshake(now),
            Err(error) => self.fail_handshake(now, error),
        }
    }

    /// The peer of the handshake is at `from`: the first authentic packet came from there.
    pub(super) fn settle_on(&mut self, now: Time, from: SocketAddr) {
        self.candidates.clear();
        if self.vouched.is_some_and(|ip| ip.to_canonical() == from.ip().to_canonical())
            && let Some(handshake) = self.handshake.as_mut()
        {
            handshake.prove_address();
        }
        let moved = self.handshake_peer.replace(from).is_some_and(|peer| peer != from);
        if !moved || self.paths.is_empty() {
            return;
        }
        // The paths begin there.
        self.lose_flight(now, 0);
        let rtt = self.handshake.as_ref().and_then(|handshake| handshake.rtt());
        for path in &mut self.paths {
            let random = self.rng.next_u64();
            if path.id > 0 {
                path.peer = PeerAddress::opening(now, from);
                continue;
            }
            path.peer = PeerAddress::new(from);
            if let Some(rtt) = rtt {
                path.begin(now, rtt, self.config.controller, random);
            }
        }
    }

    /// The handshake may be complete: then data can flow.
    pub(super) fn advance_handshake(&mut self, now: Time) {
        if let Some(established) = self.handshake.as_mut().and_then(|handshake| handshake.take_complete()) {
            self.establish(now, established);
        }
        if self.is_established()
            && self.handshake.as_ref().is_some_and(|handshake| handshake.is_settled())
            && self.side == Side::Client
        {
            self.handshake = None;
        }
    }

    fn establish(&mut self, now: Time, established: Established) {
        let Established { mut keys, peer_params, peer_cid, protocol, peer_key, rtt, .. } = established;
        keys.sealer.rotate_every(self.config.packets_per_key);
        self.keys = Some(keys);
        self.remote = ConnectionId(peer_cid);
        self.protocol = protocol;
        self.peer_key = peer_key;
        let server = self.handshake_peer.filter(|_| self.side == Side::Client);
        self.met = Met { reset_token: peer_params.reset_token, way_back: server.zip(peer_params.return_token) };
        self.idle_timeout = self.idle_timeout.min(peer_params.idle_timeout);
        self.streams.on_peer_limits(
            peer_params.max_streams,
            peer_params.features & feature::CONFINED != 0,
            peer_params.initial_max_data.as_u64(),
            peer_params.initial_max_stream_data.as_u64(),
        );
        self.max_packet = self.config.max_packet.min(peer_params.max_packet_bytes);
        self.takes_addresses = peer_params.features & feature::SERVER_ADDRESSES != 0;
        self.takes_standings = peer_params.features & feature::PATH_STATUS != 0;
        self.reports_the_start = peer_params.features & feature::REPORT_THE_START != 0;
        let peer = match self.handshake.as_ref().filter(|handshake| !handshake.is_address_proved()) {
            Some(handshake) => {
                let (received, sent) = handshake.address_bytes();
                PeerAddress::provisional(now, self.remote(), received, sent)
            }
            None => PeerAddress::new(self.remote()),
        };
        self.add_path(now, peer, rtt);
        self.phase = Phase::Established;
        self.paths_allowed = peer_params.max_paths.min(PATHS_MAX);
        for _ in 1..self.config.paths {
            self.open_path(now, self.remote());
        }
        self.heard_at = now;
        self.waits = WaitMeter::new(now);
        self.events.push_back(Event::Connected);
    }

    pub(super) fn fail_handshake(&mut self, now: Time, error: HandshakeError) {
        if self.is_closed() {
            return;
        }
        // The handshake still tells the peer why.
        self.phase = Phase::Draining(now + self.drain_time());
        self.events.push_back(Event::Closed(CloseReason::Handshake(error)));
    }
}

/// What we can and what we want.
fn features(config: &TransportConfig) -> u64 {
    let mut features = feature::PATH_STATUS;
    if config.controller.measures_dispersion() {
        features |= feature::REPORT_THE_START;
    }
    if !config.via.is_empty() {
        features |= feature::SERVER_ADDRESSES;
    }
    features
}
