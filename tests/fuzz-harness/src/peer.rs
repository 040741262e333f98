//! A peer that has the keys and means harm: an honest handshake, then any packet at all.
//!
//! The server must not panic, loop, send without end or keep more than it allowed; it may close the connection.

use std::time::Duration;

use haul_proto::crypto::DataKeys;
use haul_proto::handshake::{ClientParams, ClientTls, Handshake, TransportParams};
use haul_proto::identity::PeerTrust;
use haul_proto::wire::ack::Ack;
use haul_proto::wire::{CONTROL_HEADER_BYTES, DATA_HEADER_BYTES, Frame, Header, PacketKind, TAG_BYTES};
use haul_proto::{ConnectionId, Side, StreamId, StreamKind};
use haul_units::Bytes;

use crate::feed::Feed;
use crate::world::{Datagram, World, transport};

const OPERATIONS: usize = 400;

/// The hostile client.
struct Peer<'a> {
    feed: Feed<'a>,
    world: World,
    keys: DataKeys,
    destination: ConnectionId,
    /// The next packet number.
    number: u64,
    /// The highest packet number seen from the server.
    seen: u64,
    /// Streams that the server has opened or accepted.
    streams: Vec<StreamId>,
}

/// A list of operations.
pub fn authenticated_peer(data: &[u8]) {
    let mut world = World::listening();
    let Some((keys, destination)) = handshake(&mut world) else { return };
    let mut peer = Peer { feed: Feed(data), world, keys, destination, number: 1, seen: 0, streams: Vec::new() };
    for _ in 0..OPERATIONS {
        if peer.feed.0.is_empty() {
            break;
        }
        peer.operation();
    }
    peer.world.settle(Duration::from_secs(3), |_| false);
}

/// Does the client's part by hand, to get at the keys.
fn handshake(world: &mut World) -> Option<(DataKeys, ConnectionId)> {
    let tls = ClientTls::new(None, &PeerTrust::Anyone, Vec::new()).expect("a sound configuration");
    let config = transport();
    let params = TransportParams {
        initial_max_data: Bytes(1 << 20),
        initial_max_stream_data: Bytes(1 << 18),
        max_streams: 16,
        idle_timeout: config.idle_timeout,
        max_packet_bytes: config.max_packet,
        ..TransportParams::default()
    };
    let mut client = Handshake::client(world.now, ClientParams::new(tls, params, 77, 99)).expect("a sound configuration");
    let mut buffer = [0; 2048];
    for _ in 0..20 {
        while let Some(length) = client.poll_transmit(world.now, &mut buffer) {
            let from = world.addresses[0];
            world.hand_over(Datagram { to: Side::Server, from, bytes: buffer[..length].to_vec() });
        }
        world.collect();
        while let Some(mut datagram) = world.wire.pop_front() {
            let _ = client.handle_datagram(world.now, &mut datagram.bytes);
        }
        let established = world.connection(Side::Server).is_some_and(|server| server.is_established());
        if client.is_complete() && established {
            let established = client.take_complete()?;
            return Some((established.keys, ConnectionId(established.peer_cid)));
        }
        world.sleep(Duration::from_millis(1));
    }
    panic!("an honest handshake on a perfect network did not complete");
}

impl Peer<'_> {
    fn operation(&mut self) {
        match self.feed.u8() % 12 {
            0 => {
                let payload = self.feed.run().to_vec();
                self.send_control(&payload);
            }
            1..=4 => self.send_frames(),
            5..=7 => self.send_data(),
            8 => self.application(),
            9 => {
                let time = Duration::from_micros(1 << (self.feed.u8() % 25));
                self.world.sleep(time);
            }
            10 => {
                let port = 4000 + u16::from(self.feed.u8() % 4);
                self.world.addresses[0].set_port(port);
            }
            _ => {
                let bytes = self.feed.run().to_vec();
                self.hand_over(bytes);
            }
        }
        self.listen();
    }

    /// Looks at the clear headers of what the server sends.
    fn listen(&mut self) {
        self.world.collect();
        while let Some(datagram) = self.world.wire.pop_front() {
            if let Some(header) = Header::parse(&datagram.bytes) {
                self.seen = self.seen.max(header.number);
            }
        }
    }

    fn hand_over(&mut self, bytes: Vec<u8>) {
        let from = self.world.addresses[0];
        self.world.hand_over(Datagram { to: Side::Server, from, bytes });
    }

    /// A number that is small, near something that matters, or anything.
    fn value(&mut self) -> u64 {
        let near = u64::from(self.feed.u8());
        match near % 8 {
            0..=2 => near / 8,
            3 => self.seen.saturating_sub(near / 8),
            4 => self.seen.saturating_add(near / 8),
            5 => (1 << (near / 8)) - 1,
            6 => u64::MAX - near / 8,
            _ => self.feed.u64(),
        }
    }

    fn stream(&mut self) -> StreamId {
        let pick = self.feed.u8();
        if pick >= 128 && !self.streams.is_empty() {
            return self.streams[usize::from(pick) % self.streams.len()];
        }
        let kind = StreamKind::from_bits(pick % 3).unwrap_or(StreamKind::Bidirectional);
        let opener = if (pick / 4).is_multiple_of(4) { Side::Server } else { Side::Client };
        if pick == 127 { StreamId(self.feed.u64() as u32) } else { StreamId::new(opener, kind, u32::from(pick / 16)) }
    }

    fn next_number(&mut self) -> u64 {
        let jump = self.feed.u8();
        match jump {
            0..=239 => self.number = self.number.wrapping_add(1),
            240..=247 => self.number = self.number.wrapping_add(self.value()),
            // An old or repeated number: for this packet only.
            _ => return self.number.saturating_sub(u64::from(jump - 247)),
        }
        self.number
    }

    fn send_control(&mut self, payload: &[u8]) {
        let header = self.header(PacketKind::Control);
        self.send(header, CONTROL_HEADER_BYTES, payload);
    }

    fn send_data(&mut self) {
        let (stream, offset, flags) = (self.stream(), self.value(), self.feed.u8());
        let length = usize::from(self.feed.u8()) * if flags & 8 == 0 { 1 } else { 30 };
        let kind = PacketKind::Data { stream, offset, fin: flags & 1 != 0, end: flags & 2 != 0 };
        let header = self.header(kind);
        self.send(header, DATA_HEADER_BYTES, &vec![flags; length]);
    }

    fn header(&mut self, kind: PacketKind) -> Header {
        let odd = self.feed.u8();
        let path = match odd {
            0..=159 => 0,
            160..=250 => odd % 9,
            _ => odd,
        };
        Header { destination: self.destination, path, epoch: self.keys.sealer.epoch(), number: self.next_number(), kind }
    }

    fn send(&mut self, header: Header, header_bytes: usize, payload: &[u8]) {
        let mut packet = vec![0; header_bytes + payload.len() + TAG_BYTES];
        header.encode(&mut packet);
        let (head, body) = packet.split_at_mut(header_bytes);
        if self.keys.sealer.seal_into(header.path, header.number, head, payload, body).is_ok() {
            self.hand_over(packet);
        }
    }

    fn send_frames(&mut self) {
        let mut payload = Vec::new();
        for _ in 0..=self.feed.u8() % 4 {
            self.frame().encode(&mut payload);
        }
        self.send_control(&payload);
    }

    fn frame(&mut self) -> Frame {
        match self.feed.u8() % 13 {
            0 => Frame::Ping,
            1..=3 => Frame::Ack(self.ack()),
            4 => Frame::AckFloor { path: self.feed.u8() % 2, floor: self.value(), rtt: Duration::from_micros(self.value()) },
            5 => Frame::MaxData(self.value()),
            6 => Frame::MaxStreamData { stream: self.stream(), max: self.value() },
            7 => {
                let kind = StreamKind::from_bits(self.feed.u8() % 3).unwrap_or(StreamKind::Bidirectional);
                Frame::MaxStreams { kind, max: self.value() as u32 }
            }
            8 => Frame::ResetStream { stream: self.stream(), code: self.value(), total: self.value() },
            9 => Frame::StopSending { stream: self.stream(), code: self.value() },
            10 => Frame::PlacedFin { stream: self.stream(), total: self.value() },
            11 => Frame::PathChallenge(self.value()),
            _ => Frame::PathResponse(self.value()),
        }
    }

    /// A report that holds together in itself, whatever it claims.
    fn ack(&mut self) -> Ack {
        let largest = self.value();
        let mut runs = Vec::new();
        let mut top = Some(largest);
        for _ in 0..=self.feed.u8() % 8 {
            let Some(end) = top else { break };
            let start = end.saturating_sub(u64::from(self.feed.u8()) % 40);
            runs.push(start..=end);
            top = start.checked_sub(2 + u64::from(self.feed.u8()) % 40);
        }
        let lowest = runs.last().map_or(largest, |run| run.start().saturating_sub(u64::from(self.feed.u8())));
        let clock_ns = self.value();
        Ack {
            path: self.feed.u8() / 200,
            largest,
            delay_us: self.value(),
            clock_ns,
            largest_clock_ns: clock_ns.saturating_sub(self.value()),
            bytes: self.value(),
            ect0: self.value(),
            ect1: self.value(),
            ce: self.value(),
            credit: self.value(),
            runs,
            lowest,
        }
    }

    /// What the server's application does meanwhile.
    fn application(&mut self) {
        let (what, id, length) = (self.feed.u8() % 8, self.stream(), usize::from(self.feed.u8()) * 64 + 1);
        let kind = StreamKind::from_bits(what % 3).unwrap_or(StreamKind::Bidirectional);
        let now = self.world.now;
        let Some(server) = self.world.connection(Side::Server) else { return };
        match what {
            0 => self.streams.extend(server.open(kind)),
            1 => self.streams.extend(server.accept(kind)),
            2 => {
                let _ = server.write(id, &vec![1; length]);
            }
            3 => {
                let _ = server.read(id, &mut vec![0; length]);
            }
            4 => {
                let _ = server.finish(id);
            }
            5 => server.stop(id, 1),
            6 => server.reset(id, 1),
            _ => {
                let _ = server.write_block(id, length as u64 * 7, vec![1; length]);
                server.sink_released();
                let _ = server.stats(now);
            }
        }
    }
}
