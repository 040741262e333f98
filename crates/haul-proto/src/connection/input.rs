//! What a received packet does.
//!
//! The fast path is a data packet of a known stream: find its place, decrypt into it, note it. Everything that could make state (a new stream, a violation)
//! waits until the packet is known to be authentic.

use std::net::SocketAddr;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use haul_units::Time;

use super::{Connection, Event, Phase, ProtocolViolation};
use crate::config::PATHS_MAX;
use crate::crypto::OpenError;
use crate::handshake::wire::is_handshake;
use crate::path::{NUMBER_MAX, Path};
use crate::receive::Ecn;
use crate::streams::{Receiver, Side, StreamId, StreamKind, StreamViolation};
use crate::wire::{CONTROL_HEADER_BYTES, DATA_HEADER_BYTES, Frame, Header, PacketKind, TAG_BYTES, parse_reset};

/// From where a train came, and when.
#[derive(Debug, Clone, Copy)]
pub struct Origin {
    /// Who has sent it.
    pub from: SocketAddr,
    /// The codepoint of its IP headers.
    pub ecn: Ecn,
    /// When it reached this machine, which may be before anybody has looked.
    pub at: Time,
}

impl Origin {
    /// Of what is looked at as it comes, by a network without marks.
    pub const fn just_now(now: Time, from: SocketAddr) -> Self {
        Self { from, ecn: Ecn::NotEct, at: now }
    }
}

/// A packet's origin, and the time now.
#[derive(Debug, Clone, Copy)]
struct Input {
    now: Time,
    origin: Origin,
}

impl Connection {
    /// A receive buffer with one or more datagrams, each of `segment` bytes but the last, which may be shorter. The buffer's bytes are of no use
    /// afterwards.
    pub fn handle_train(&mut self, now: Time, origin: Origin, train: &mut [u8], segment: usize) {
        if matches!(self.phase, Phase::Closing(_)) {
            self.tell_close_again();
            return;
        }
        let input = Input { now, origin: Origin { at: origin.at.min(now), ..origin } };
        for datagram in train.chunks_mut(segment.max(1)) {
            if matches!(self.phase, Phase::Draining(_) | Phase::Drained) {
                return;
            }
            if is_handshake(datagram) {
                self.handle_handshake(now, origin.from, datagram);
            } else if let Err(violation) = self.handle_packet(input, datagram) {
                self.fail(now, violation);
                return;
            }
        }
        match self.is_answered() {
            Ok(()) => self.after_input(now),
            Err(violation) => self.fail(now, violation),
        }
    }

    /// Whether what waits to be said is no more than an honest peer leaves unacknowledged: some frames for each stream that may be open. One that opens streams, has them reset, and acknowledges
    /// nothing would have all of it kept.
    fn is_answered(&self) -> Result<(), ProtocolViolation> {
        let most = CONTROL_MOST.saturating_add(self.config.max_streams as usize * StreamKind::ALL.len() * FRAMES_EACH);
        if self.control.len() <= most { Ok(()) } else { Err(ProtocolViolation::NeverAcknowledges) }
    }

    /// One data-phase packet.
    fn handle_packet(&mut self, input: Input, packet: &mut [u8]) -> Result<(), ProtocolViolation> {
        let Some(header) = Header::parse(packet) else {
            self.handle_reset(input.now, packet);
            return Ok(());
        };
        if header.destination != self.local || header.number > NUMBER_MAX {
            return Ok(());
        }
        if let Some(path) = self.paths.get_mut(usize::from(header.path)) {
            if path.reporter.is_duplicate(header.number) {
                return self.handle_duplicate(&header, packet);
            }
        } else if header.kind != PacketKind::Control || !self.may_admit_path(header.path) {
            // A path begins with a challenge, not with data.
            return Ok(());
        }
        match header.kind {
            PacketKind::Data { stream, offset, fin, end } => {
                let run = DataRun { stream, offset, fin, end };
                self.handle_data(input, &header, run, packet)
            }
            PacketKind::Control => self.handle_control(input, &header, packet),
        }
    }

    /// A packet whose number has come before, or claims to: whoever sends what he has seen gets nothing for it. What is sent again on purpose has a number of its own.
    fn handle_duplicate(&mut self, header: &Header, packet: &[u8]) -> Result<(), ProtocolViolation> {
        let (head, body) = packet.split_at(header.bytes());
        let Some(len) = body.len().checked_sub(TAG_BYTES) else { return Ok(()) };
        let Some(keys) = self.keys.as_mut() else { return Ok(()) };
        self.scratch.resize(len, 0);
        if let Err(error) = keys.opener.open_into(header.epoch, header.path, header.number, head, body, &mut self.scratch) {
            return on_open_error(error);
        }
        if let Some(path) = self.paths.get_mut(usize::from(header.path)) {
            path.reporter.on_duplicate();
        }
        Ok(())
    }

    fn handle_data(&mut self, input: Input, header: &Header, run: DataRun, packet: &[u8]) -> Result<(), ProtocolViolation> {
        let (head, body) = packet.split_at(DATA_HEADER_BYTES);
        let Some(len) = body.len().checked_sub(TAG_BYTES) else { return Ok(()) };
        let Some(keys) = self.keys.as_mut() else { return Ok(()) };
        let fits_credit = self.credit.room() >= len as u64;
        let slot = if fits_credit { slot(&mut self.streams, run, len) } else { None };
        let Some(slot) = slot else { return self.handle_data_without_slot(input, header, run, packet, len) };
        if let Err(error) = keys.opener.open_into(header.epoch, header.path, header.number, head, body, slot) {
            return on_open_error(error);
        }
        self.note_packet(input, header, packet.len(), true);
        self.quiet.on_data(input.now);
        let has_credit = match self.streams.get_mut(run.stream).and_then(|stream| stream.receive.as_mut()) {
            Some(Receiver::Ordered(half)) => {
                let new = half.admit(run.offset, len, run.fin)?;
                if half.commit(run.offset, len, run.fin) {
                    self.events.push_back(Event::Readable(run.stream));
                }
                if half.begins_round() {
                    self.arrived.push(run.stream);
                }
                self.credit.on_ordered(new)
            }
            Some(Receiver::Placed(half)) => {
                half.sink.commit(run.offset, len, run.end);
                half.note(len as u64)?;
                self.credit.on_received(len as u64)
            }
            None => true,
        };
        within_credit(has_credit)
    }

    /// New streams, repeated and overlapping bytes, closed streams, violations.
    fn handle_data_without_slot(
        &mut self,
        input: Input,
        header: &Header,
        run: DataRun,
        packet: &[u8],
        len: usize,
    ) -> Result<(), ProtocolViolation> {
        let (head, body) = packet.split_at(DATA_HEADER_BYTES);
        let Some(keys) = self.keys.as_mut() else { return Ok(()) };
        self.scratch.resize(len, 0);
        if let Err(error) = keys.opener.open_into(header.epoch, header.path, header.number, head, body, &mut self.scratch) {
            return on_open_error(error);
        }
        self.open_for_peer(run.stream)?;
        if !self.has_room(run, len) {
            return Ok(());
        }
        self.note_packet(input, header, packet.len(), true);
        self.quiet.on_data(input.now);
        let Some((stream, pool)) = self.streams.with_pool(run.stream) else { return Ok(()) };
        let has_credit = match stream.receive.as_mut() {
            Some(Receiver::Ordered(half)) => {
                let new = half.admit(run.offset, len, run.fin)?;
                if self.credit.room() < new {
                    return Err(ProtocolViolation::BeyondCredit);
                }
                if half.deliver(run.offset, &self.scratch, run.fin, pool) {
                    self.events.push_back(Event::Readable(run.stream));
                }
                if half.begins_round() {
                    self.arrived.push(run.stream);
                }
                let has_credit = self.credit.on_ordered(new);
                if half.is_discarding() {
                    // What nobody will read is consumed at once.
                    self.credit.on_read(new);
                }
                has_credit
            }
            Some(Receiver::Placed(half)) if half.is_discarding() => true,
            Some(Receiver::Placed(half)) => {
                if run.offset.checked_add(len as u64).is_none() {
                    return Err(StreamViolation::FinalSize(run.stream).into());
                }
                let new = half.sink.deliver(run.offset, &self.scratch, run.end).min(len) as u64;
                half.note(new)?;
                self.credit.on_received(new)
            }
            None => return Err(StreamViolation::NotYours(run.stream).into()),
        };
        self.reap(run.stream);
        within_credit(has_credit)
    }

    /// Whether a placed stream can take the bytes of an authentic packet.
    fn has_room(&mut self, run: DataRun, len: usize) -> bool {
        match self.streams.get_mut(run.stream).and_then(|stream| stream.receive.as_mut()) {
            Some(Receiver::Placed(half)) if !half.is_discarding() => half.sink.has_room(run.offset, len),
            _ => true,
        }
    }

    /// Makes sure that the stream of an authentic packet exists, if it may.
    fn open_for_peer(&mut self, id: StreamId) -> Result<(), ProtocolViolation> {
        let Self { streams, events, .. } = self;
        streams.on_peer_use(id, |kind| events.push_back(Event::Opened(kind)))?;
        self.refuse_placed_without_sink(id);
        Ok(())
    }

    /// An authentic packet of a path.
    fn note_packet(&mut self, input: Input, header: &Header, bytes: usize, elicits_ack: bool) {
        let Input { now, origin: Origin { from, ecn, at } } = input;
        if self.candidates.contains(from) {
            // The server's words of the handshake are late or lost.
            self.settle_on(now, from);
        }
        let Some(path) = self.paths.get_mut(usize::from(header.path)) else { return };
        // RFC 9000 9: servers do not move, wherever their packets seem to come from. Where a stranger goes nobody follows it.
        let is_confined = self.stranger.as_ref().is_some_and(super::admission::Stranger::is_confined);
        if self.side == Side::Server && !is_confined {
            let is_newest = path.reporter.largest().is_none_or(|largest| header.number > largest);
            path.peer.on_packet_from(now, from, bytes as u64, is_newest);
        }
        path.reporter.on_packet(at, header.number, bytes, ecn);
        path.on_heard();
        if elicits_ack {
            path.reporter.want_report(at);
        }
        self.heard_at = now;
        if let Some(mut handshake) = self.handshake.take() {
            // The peer has the keys, so it has had all of our handshake.
            handshake.confirm();
        }
    }

    fn handle_control(&mut self, input: Input, header: &Header, packet: &mut [u8]) -> Result<(), ProtocolViolation> {
        let (head, body) = packet.split_at_mut(CONTROL_HEADER_BYTES);
        let Some(keys) = self.keys.as_mut() else { return Ok(()) };
        let len = match keys.opener.open_in_place(header.epoch, header.path, header.number, head, body) {
            Ok(len) => len,
            Err(error) => return on_open_error(error),
        };
        let payload = &body[..len.min(body.len())];
        self.admit_path(input.now, header.path, input.origin.from);
        let mut elicits_ack = false;
        let mut at_once = false;
        let mut reported = [false; PATHS_MAX as usize];
        for frame in Frame::decode_all(payload) {
            let frame = frame?;
            elicits_ack |= frame.elicits_ack();
            at_once |= matches!(frame, Frame::Ping | Frame::PlacedFin { .. } | Frame::PathResponse(_));
            if let Frame::Ack(ack) = &frame
                && let Some(reported) = reported.get_mut(usize::from(ack.path))
                && std::mem::replace(reported, true)
            {
                return Err(ProtocolViolation::AckTwice);
            }
            if let Frame::PathChallenge(nonce) = frame {
                self.on_challenge(input, header.path, nonce);
            } else {
                self.handle_frame(input, frame)?;
            }
            if self.is_closed() {
                return Ok(());
            }
        }
        self.note_packet(input, header, CONTROL_HEADER_BYTES + len + TAG_BYTES, elicits_ack);
        if at_once && let Some(path) = self.paths.get_mut(usize::from(header.path)) {
            path.reporter.want_report_now(input.now);
        }
        Ok(())
    }

    fn handle_frame(&mut self, input: Input, frame: Frame) -> Result<(), ProtocolViolation> {
        let now = input.now;
        match frame {
            // A challenge's path matters: `handle_control` has seen to it.
            Frame::Ping | Frame::Filler | Frame::PathChallenge(_) => {}
            Frame::Ack(ack) => self.on_ack(now, input.origin.at, &ack)?,
            Frame::AckFloor { path, floor, rtt } => {
                if let Some(path) = self.paths.get_mut(usize::from(path)) {
                    path.reporter.on_floor(floor, rtt);
                }
            }
            Frame::MaxData(max) => {
                self.streams.credit.raise(max);
            }
            Frame::MaxStreamData { stream, max } => {
                self.open_for_peer(stream)?;
                if let Some(send) = self.streams.sender(stream)
                    && send.raise_credit(max)
                {
                    if std::mem::take(&mut send.starved) {
                        self.events.push_back(Event::Writable(stream));
                    }
                    self.streams.schedule(stream);
                }
            }
            Frame::MaxStreams { kind, max } => {
                if self.streams.on_max_streams(kind, max) {
                    self.events.push_back(Event::Openable(kind));
                }
            }
            Frame::ResetStream { stream, code, total } => self.on_reset_stream(stream, code, total)?,
            Frame::StopSending { stream, code } => self.on_stop_sending(stream, code)?,
            Frame::PlacedFin { stream, total } => self.on_placed_fin(stream, total)?,
            Frame::PathResponse(nonce) => self.on_path_response(now, nonce),
            Frame::ServerAddress(told) => self.on_server_address(now, told),
            Frame::PathStatus(path, told) => self.on_told(now, input.origin.from, path, &told),
            Frame::Close { code, reason } => self.on_peer_close(now, code, &reason),
        }
        Ok(())
    }

    /// The peer asks whether we are here.
    fn on_challenge(&mut self, input: Input, path: u8, nonce: u64) {
        // A client answers where it has chosen to talk to, or looks for its server.
        let is_known = |path: &Path| self.side == Side::Server || path.peer.may_be_at(input.origin.from);
        let is_known = self.paths.get(usize::from(path)).is_some_and(is_known);
        // A few at most: who asks for more waits.
        if is_known && self.responses.len() < usize::from(PATHS_MAX) {
            self.responses.push_back((path, input.origin.from, nonce));
        }
    }

    fn on_reset_stream(&mut self, id: StreamId, code: u64, total: u64) -> Result<(), ProtocolViolation> {
        self.open_for_peer(id)?;
        let (unseen, given_up) = match self.streams.get_mut(id).map(|stream| &mut stream.receive) {
            Some(Some(Receiver::Ordered(half))) => {
                let held = half.held();
                let unseen = half.on_reset(code, total)?;
                self.events.push_back(Event::Readable(id));
                // What is complete stays readable; the rest will not be read.
                self.credit.on_read(held - half.held());
                (unseen, unseen)
            }
            Some(Some(Receiver::Placed(half))) => {
                let unseen = half.on_reset(code, total)?;
                (unseen, half.newly_consumed())
            }
            Some(None) => return Err(StreamViolation::NotYours(id).into()),
            None => return Ok(()),
        };
        within_credit(self.credit.on_received(unseen))?;
        self.credit.on_consumed(given_up);
        self.reap(id);
        Ok(())
    }

    fn on_placed_fin(&mut self, id: StreamId, total: u64) -> Result<(), ProtocolViolation> {
        self.open_for_peer(id)?;
        let (unseen, given_up) = match self.streams.get_mut(id).map(|stream| &mut stream.receive) {
            Some(Some(Receiver::Placed(half))) => (half.on_fin(total, self.credit.room())?, half.newly_consumed()),
            Some(_) => return Err(StreamViolation::NotYours(id).into()),
            None => return Ok(()),
        };
        within_credit(self.credit.on_received(unseen))?;
        self.credit.on_consumed(given_up);
        self.reap(id);
        Ok(())
    }

    fn on_stop_sending(&mut self, id: StreamId, code: u64) -> Result<(), ProtocolViolation> {
        self.open_for_peer(id)?;
        if let Some(send) = self.streams.sender(id)
            && !send.is_done()
            && send.stopped().is_none()
        {
            send.stop(code);
            self.events.push_back(Event::Stopped(id, code));
            self.reset(id, code);
        }
        Ok(())
    }

    fn handle_reset(&mut self, now: Time, datagram: &[u8]) {
        if let Some((_, token)) = parse_reset(datagram)
            && self.met.reset_token.is_some_and(|known| verify_slices_are_equal(&known, &token).is_ok())
            && !self.is_closed()
        {
            self.on_peer_lost(now);
        }
    }

    /// After a batch of packets: credit, rounds.
    fn after_input(&mut self, now: Time) {
        if !self.is_established() {
            return;
        }
        self.renew_allowances();
        if now >= self.round_until {
            self.on_round(now);
        }
    }

    /// A round trip has passed: windows follow what arrived in it.
    fn on_round(&mut self, now: Time) {
        let rtt = self.longest_rtt().unwrap_or(std::time::Duration::from_millis(100));
        self.round_until = now + rtt;
        self.credit.on_round();
        // Not every stream: there may be thousands that rest, and a round trip may be short.
        for id in self.arrived.drain(..) {
            if let Some(Receiver::Ordered(half)) = self.streams.get_mut(id).and_then(|stream| stream.receive.as_mut()) {
                let bound = self.credit.stream_bound(half.held());
                half.on_round(bound);
            }
        }
    }
}

fn within_credit(has_credit: bool) -> Result<(), ProtocolViolation> {
    if has_credit { Ok(()) } else { Err(ProtocolViolation::BeyondCredit) }
}

/// A packet that does not open is dropped; too many of them end the connection, before forging one becomes likely.
fn on_open_error(error: OpenError) -> Result<(), ProtocolViolation> {
    match error {
        OpenError::IntegrityLimit => Err(ProtocolViolation::TooManyForgeries),
        OpenError::NotAuthentic | OpenError::UnknownEpoch { .. } => Ok(()),
    }
}

/// A run of a stream's bytes, as a packet's header names it.
#[derive(Debug, Clone, Copy)]
struct DataRun {
    stream: StreamId,
    offset: u64,
    fin: bool,
    end: bool,
}

/// The place of the run's bytes, if the stream is known and nothing speaks against the packet.
#[inline]
fn slot(streams: &mut crate::streams::Streams, run: DataRun, len: usize) -> Option<&mut [u8]> {
    match streams.get_mut(run.stream)?.receive.as_mut()? {
        Receiver::Ordered(half) => {
            half.admit(run.offset, len, run.fin).ok()?;
            half.slot(run.offset, len)
        }
        Receiver::Placed(half) if half.is_discarding() || run.offset.checked_add(len as u64).is_none() => None,
        Receiver::Placed(half) => half.sink.slot(run.offset, len).filter(|slot| slot.len() == len),
    }
}

/// Of a stream: its credit, its end, that it is given up, that it is not wanted; for both sides.
const FRAMES_EACH: usize = 8;
/// .. and of the connection and its paths, and of streams that were over a moment ago: as many as leave in a round trip of some hundred packets.
const CONTROL_MOST: usize = 4096;
