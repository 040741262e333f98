//! A whole connection on a network that does its worst, but has no keys.
//!
//! The input is a list of operations: what the applications do, and what happens to datagrams. Whatever the network does, nobody is accused of breaking the
//! protocol, what is read is what was written, and once the network behaves again everything arrives, unless time has ended the connection.

use std::time::Duration;

use haul_proto::{CloseReason, Connection, Side, StreamId, StreamKind};

use crate::feed::Feed;
use crate::sink::{SINK_BYTES, pattern, pattern_run};
use crate::world::{Datagram, World, index, other};

const OPERATIONS: usize = 400;
const WRITTEN_BYTES: u64 = 600 << 10;

/// A stream as its two ends see it.
struct Track {
    id: StreamId,
    writer: Side,
    written: u64,
    read: u64,
    finished: bool,
    at_end: bool,
    /// Reset or stopped: it need not arrive.
    spoiled: bool,
}

impl Track {
    /// Reads what there is; returns whether there was any.
    fn read_from(&mut self, connection: &mut Connection) -> bool {
        let mut any = false;
        let mut buffer = [0; 4096];
        while !self.at_end
            && let Ok(length) = connection.read(self.id, &mut buffer)
        {
            any = true;
            self.at_end = length == 0;
            assert!(!self.at_end || self.spoiled || self.finished && self.read == self.written, "an end that nobody wrote");
            for (at, byte) in (self.read..).zip(&buffer[..length]) {
                assert_eq!(*byte, pattern(self.id, at), "wrong byte at {at} of {:?}", self.id);
            }
            self.read += length as u64;
            assert!(self.read <= self.written, "more was read than written");
        }
        any
    }
}

struct Run<'a> {
    feed: Feed<'a>,
    world: World,
    tracks: Vec<Track>,
    written: u64,
    closed_on_purpose: bool,
}

/// A list of operations.
pub fn connection(data: &[u8]) {
    let mut run = Run { feed: Feed(data), world: World::connecting(), tracks: Vec::new(), written: 0, closed_on_purpose: false };
    for _ in 0..OPERATIONS {
        if run.feed.0.is_empty() {
            break;
        }
        run.operation();
    }
    run.finish();
}

impl Run<'_> {
    fn operation(&mut self) {
        match self.feed.u8() % 16 {
            0 | 1 => {
                self.world.collect();
                while !self.world.wire.is_empty() {
                    self.world.deliver();
                }
            }
            2 => {
                self.world.collect();
            }
            3 => self.world.deliver(),
            4 => {
                self.world.wire.pop_front();
            }
            5 => self.duplicate(),
            6 => self.corrupt(),
            7 => self.resize(),
            8 => self.world.wire.rotate_left(usize::from(self.feed.u8()).min(self.world.wire.len())),
            9 => self.inject(),
            10 => {
                let time = Duration::from_micros(1 << (self.feed.u8() % 25));
                self.world.sleep(time);
            }
            11 => self.open(),
            12 => self.write(),
            13 => {
                self.read_all();
            }
            14 => self.end_a_stream(),
            _ => self.rare(),
        }
    }

    fn side(&mut self) -> Side {
        if self.feed.u8().is_multiple_of(2) { Side::Client } else { Side::Server }
    }

    fn duplicate(&mut self) {
        if let Some(first) = self.world.wire.front() {
            let copy = Datagram { to: first.to, from: first.from, bytes: first.bytes.clone() };
            self.world.wire.push_back(copy);
        }
    }

    fn corrupt(&mut self) {
        let (at, flip) = (self.feed.u64() as u16, self.feed.u8());
        if let Some(first) = self.world.wire.front_mut().filter(|first| !first.bytes.is_empty()) {
            let at = usize::from(at) % first.bytes.len();
            first.bytes[at] ^= flip;
        }
    }

    fn resize(&mut self) {
        let length = usize::from(self.feed.u64() as u16) % 9000;
        if let Some(first) = self.world.wire.front_mut() {
            first.bytes.resize(length, 0);
        }
    }

    /// A datagram out of nothing, or with the head of a real one.
    fn inject(&mut self) {
        let (to, bytes) = (self.side(), self.feed.run().to_vec());
        let head = self.world.wire.front().map(|first| first.bytes[..first.bytes.len().min(16)].to_vec());
        let head = head.filter(|_| bytes.len().is_multiple_of(2)).unwrap_or_default();
        let from = self.world.addresses[index(other(to))];
        self.world.hand_over(Datagram { to, from, bytes: [head, bytes].concat() });
    }

    fn open(&mut self) {
        let (writer, kind) = (self.side(), StreamKind::from_bits(self.feed.u8() % 3).expect("three kinds"));
        if let Some(Ok(id)) = self.world.connection(writer).map(|connection| connection.open(kind)) {
            self.tracks.push(Track { id, writer, written: 0, read: 0, finished: false, at_end: false, spoiled: false });
        }
    }

    fn write(&mut self) {
        let (which, length) = (usize::from(self.feed.u8()), self.feed.u64() as u16 as usize % 20_000 + 1);
        if self.tracks.is_empty() || self.written > WRITTEN_BYTES {
            return;
        }
        let which = which % self.tracks.len();
        let track = &mut self.tracks[which];
        let bytes = pattern_run(track.id, track.written, length);
        let Some(connection) = self.world.connection(track.writer) else { return };
        let taken = if track.id.kind() == Some(StreamKind::Placed) {
            if track.written as usize + length > SINK_BYTES {
                return;
            }
            connection.write_block(track.id, track.written, bytes).map_or(0, |()| length)
        } else {
            connection.write(track.id, &bytes).unwrap_or(0)
        };
        track.written += taken as u64;
        self.written += taken as u64;
    }

    /// Reads all that can be read on both sides and compares it with what was written; returns whether there was any.
    fn read_all(&mut self) -> bool {
        let mut any = false;
        for side in [Side::Client, Side::Server] {
            for kind in [StreamKind::Bidirectional, StreamKind::Unidirectional, StreamKind::Placed] {
                while self.world.connection(side).and_then(|connection| connection.accept(kind)).is_some() {
                    any = true;
                }
            }
        }
        for track in &mut self.tracks {
            let Some(connection) = self.world.connection(other(track.writer)) else { continue };
            any |= track.read_from(connection);
        }
        any
    }

    fn end_a_stream(&mut self) {
        let (which, how) = (usize::from(self.feed.u8()), self.feed.u8() % 8);
        if self.tracks.is_empty() {
            return;
        }
        let which = which % self.tracks.len();
        let track = &mut self.tracks[which];
        match how {
            0 => {
                if let Some(connection) = self.world.connection(track.writer) {
                    track.spoiled = true;
                    connection.reset(track.id, 7);
                }
            }
            1 => {
                if let Some(connection) = self.world.connection(other(track.writer)) {
                    track.spoiled = true;
                    connection.stop(track.id, 7);
                }
            }
            2 => {
                if let Some(connection) = self.world.connection(track.writer) {
                    connection.set_priority(track.id, how);
                }
            }
            _ => {
                if let Some(connection) = self.world.connection(track.writer) {
                    track.finished |= connection.finish(track.id).is_ok();
                }
            }
        }
    }

    fn rare(&mut self) {
        match self.feed.u8() % 8 {
            0 => {
                let side = self.side();
                let now = self.world.now;
                if let Some(connection) = self.world.connection(side) {
                    self.closed_on_purpose = true;
                    connection.close(now, 3, b"enough");
                }
            }
            1 => {
                let port = 4000 + u16::from(self.feed.u8() % 4);
                self.world.addresses[0].set_port(port);
            }
            2 => {
                let (side, size, path) = (self.side(), usize::from(self.feed.u64() as u16), self.feed.u8() % 3);
                if let Some(connection) = self.world.connection(side) {
                    connection.send_refused(path, size);
                }
            }
            3 => self.world.wire.clear(),
            _ => self.world.sleep(Duration::from_millis(20)),
        }
    }

    fn finish(mut self) {
        let mut world = std::mem::replace(&mut self.world, World::listening());
        world.settle(Duration::from_secs(90), |world| {
            std::mem::swap(world, &mut self.world);
            let any = self.read_all();
            std::mem::swap(world, &mut self.world);
            any
        });
        self.world = world;
        for side in [Side::Client, Side::Server] {
            match &self.world.ends[index(side)].closed {
                None | Some(CloseReason::Handshake(_) | CloseReason::TimedOut(_)) => {}
                Some(CloseReason::Local | CloseReason::Peer { .. }) if self.closed_on_purpose => {}
                Some(reason) => panic!("{side:?}: {reason:?}"),
            }
        }
        let mut alive = |side| self.world.connection(side).is_some_and(|connection| connection.is_established());
        if alive(Side::Client) && alive(Side::Server) {
            self.assert_all_arrived();
        }
    }

    fn assert_all_arrived(&mut self) {
        for track in self.tracks.iter().filter(|track| track.finished && !track.spoiled) {
            if track.id.kind() == Some(StreamKind::Placed) {
                let left = self.world.connection(track.writer).and_then(|connection| connection.unacknowledged(track.id));
                assert!(left.is_none_or(|bytes| bytes == 0), "{:?}: {left:?} bytes never arrived", track.id);
            } else {
                assert_eq!(track.read, track.written, "{:?} never arrived", track.id);
                assert!(track.at_end, "the end of {:?} never arrived", track.id);
            }
        }
    }
}
