//! A peer that has the keys of a connection: it sends any packet, from any of its addresses, and hears what comes back.

use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use e2e::Stopwatch;
use haul_proto::ConnectionId;
use haul_proto::StreamId;
use haul_proto::crypto::DataKeys;
use haul_proto::handshake::Established;
use haul_proto::wire::{CONTROL_HEADER_BYTES, DATA_HEADER_BYTES, Frame, Header, PacketKind, RESET_BYTES, TAG_BYTES, parse_reset};

use crate::outlet::Outlet;

/// Datagrams kept for a replay.
const KEPT: usize = 64;

/// What came in one packet.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// A control packet on a path.
    Frames(u8, Vec<Frame>),
    /// Bytes of a stream.
    Data(StreamId, u64, Vec<u8>),
    /// The connection is known there no more.
    Reset,
    /// What has no meaning here: late words of the handshake, a packet that does not open.
    Other,
}

/// The peer.
pub struct Peer {
    keys: DataKeys,
    destination: ConnectionId,
    remote: SocketAddr,
    /// Its addresses: the first is that of the handshake.
    outlets: Vec<Outlet>,
    /// Which of them it sends from.
    from: usize,
    number: u64,
    /// Packet numbers heard on path 0.
    seen: BTreeSet<u64>,
    kept: VecDeque<Vec<u8>>,
    watch: Stopwatch,
    /// Answers challenges where they arrive.
    pub answers_challenges: bool,
}

impl Peer {
    /// After a handshake from `outlet`.
    pub(crate) fn new(outlet: Outlet, remote: SocketAddr, established: Established) -> Self {
        Self {
            keys: established.keys,
            destination: ConnectionId(established.peer_cid),
            remote,
            outlets: vec![outlet],
            from: 0,
            number: 0,
            seen: BTreeSet::new(),
            kept: VecDeque::new(),
            watch: Stopwatch::start(),
            answers_challenges: false,
        }
    }

    /// Its addresses, and what went through each; the first is that of the handshake.
    pub fn outlets(&self) -> &[Outlet] {
        &self.outlets
    }

    /// Sends from another address from here on.
    pub fn move_to(&mut self, address: IpAddr) {
        self.outlets.push(Outlet::bind(address));
        self.from = self.outlets.len() - 1;
    }

    /// Sends from the address of the handshake again.
    pub fn move_home(&mut self) {
        self.from = 0;
    }

    /// Packet numbers heard so far.
    pub fn seen(&self) -> &BTreeSet<u64> {
        &self.seen
    }

    /// Time since the handshake, on its own clock.
    pub(crate) fn clock_ns(&self) -> u64 {
        self.watch.elapsed().as_nanos() as u64
    }

    /// Sends a control packet.
    pub fn say(&mut self, path: u8, frames: &[Frame]) {
        let mut payload = Vec::new();
        for frame in frames {
            frame.encode(&mut payload);
        }
        self.seal(path, PacketKind::Control, CONTROL_HEADER_BYTES, &payload);
    }

    /// Sends a data packet.
    pub fn put(&mut self, stream: StreamId, offset: u64, bytes: &[u8], end: bool) {
        let kind = PacketKind::Data { stream, offset, fin: false, end };
        self.seal(0, kind, DATA_HEADER_BYTES, bytes);
    }

    /// Sends anything at all.
    pub fn throw(&mut self, datagram: &[u8]) {
        let to = self.remote;
        self.outlets[self.from].send(to, datagram);
    }

    /// The last datagrams that it sealed.
    pub fn kept(&self) -> Vec<Vec<u8>> {
        self.kept.iter().cloned().collect()
    }

    /// The number that the other side gave the connection.
    pub fn destination(&self) -> ConnectionId {
        self.destination
    }

    fn seal(&mut self, path: u8, kind: PacketKind, header_bytes: usize, payload: &[u8]) {
        self.number += 1;
        let header = Header { destination: self.destination, path, epoch: self.keys.sealer.epoch(), number: self.number, kind };
        let mut packet = vec![0; header_bytes + payload.len() + TAG_BYTES];
        header.encode(&mut packet);
        let (head, body) = packet.split_at_mut(header_bytes);
        self.keys.sealer.seal_into(path, self.number, head, payload, body).expect("room for the payload and the tag");
        self.throw(&packet);
        self.kept.push_back(packet);
        if self.kept.len() > KEPT {
            self.kept.pop_front();
        }
    }

    /// Hears everything for so long. `until` may end it before.
    pub fn hear_until(&mut self, limit: Duration, mut until: impl FnMut(&Heard) -> bool) -> bool {
        let watch = Stopwatch::start();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let mut challenges = Vec::new();
            for at in 0..self.outlets.len() {
                while let Some((_, datagram)) = self.outlets[at].take(&mut buffer) {
                    let heard = open(&mut self.keys, &mut self.seen, datagram);
                    if let Heard::Frames(path, frames) = &heard {
                        challenges.extend(frames.iter().filter_map(|frame| match frame {
                            Frame::PathChallenge(nonce) => Some((at, *path, *nonce)),
                            _ => None,
                        }));
                    }
                    if until(&heard) {
                        return true;
                    }
                }
            }
            if self.answers_challenges {
                for (at, path, nonce) in challenges {
                    let back = std::mem::replace(&mut self.from, at);
                    self.say(path, &[Frame::PathResponse(nonce)]);
                    self.from = back;
                }
            }
            let left = limit.saturating_sub(watch.elapsed());
            if left.is_zero() {
                return false;
            }
            Outlet::wait(&self.outlets, left.min(Duration::from_millis(50)));
        }
    }

    /// Hears everything for so long.
    pub fn hear(&mut self, limit: Duration) -> Vec<Heard> {
        let mut all = Vec::new();
        self.hear_until(limit, |heard| {
            all.push(heard.clone());
            false
        });
        all
    }

    /// Whether the other side ends the connection within the time: it says so, or knows it no more. Asks now and then.
    pub fn is_ended_within(&mut self, limit: Duration) -> bool {
        let watch = Stopwatch::start();
        while watch.elapsed() < limit {
            self.say(0, &[Frame::Ping]);
            let left = limit.saturating_sub(watch.elapsed()).min(Duration::from_millis(500));
            if self.hear_until(left, is_end) {
                return true;
            }
        }
        false
    }
}

/// Whether a packet ends a connection.
pub fn is_end(heard: &Heard) -> bool {
    match heard {
        Heard::Frames(_, frames) => frames.iter().any(|frame| matches!(frame, Frame::Close { .. })),
        Heard::Reset => true,
        Heard::Data(..) | Heard::Other => false,
    }
}

fn open(keys: &mut DataKeys, seen: &mut BTreeSet<u64>, datagram: &mut [u8]) -> Heard {
    if datagram.len() == RESET_BYTES && parse_reset(datagram).is_some() {
        return Heard::Reset;
    }
    let Some(header) = Header::parse(datagram) else { return Heard::Other };
    let header_bytes = if header.kind == PacketKind::Control { CONTROL_HEADER_BYTES } else { DATA_HEADER_BYTES };
    let Some((head, body)) = datagram.split_at_mut_checked(header_bytes) else { return Heard::Other };
    let Ok(length) = keys.opener.open_in_place(header.epoch, header.path, header.number, head, body) else {
        return Heard::Other;
    };
    if header.path == 0 {
        seen.insert(header.number);
    }
    let payload = &body[..length];
    match header.kind {
        PacketKind::Control => Heard::Frames(header.path, Frame::decode_all(payload).map_while(Result::ok).collect()),
        PacketKind::Data { stream, offset, .. } => Heard::Data(stream, offset, payload.to_vec()),
    }
}
