//! What leaves next.
//!
//! Order: the handshake; the close; challenges and their answers; reports and frames; packet-size probes; trains of stream data.

use std::net::SocketAddr;
use std::time::Duration;

use haul_paths::CONTROL_BYTES;
use haul_units::{Bytes, Time};

use super::sealing::{Row, TRAIN_BYTES};
use super::stats::Wait;
use super::{Connection, Phase, Transmit};
use crate::path::{Path, SentRun};
use crate::receive::Ecn;
use crate::recovery::Content;
use crate::streams::{Receiver, Side};
use crate::wire::{CONTROL_HEADER_BYTES, Frame, Header, PacketKind, TAG_BYTES};

const CONTROL_ROOM: usize = CONTROL_BYTES - CONTROL_HEADER_BYTES - TAG_BYTES;
/// A challenge has so long to be answered, however short the round trip was measured: the peer's processor may be busy.
const CHALLENGE_INTERVAL_MIN: Duration = Duration::from_millis(10);
/// Room that one frame other than a report or a close may need.
const FRAME_ROOM: usize = 32;

impl Connection {
    /// The next datagrams to send. What is in `self.unsealed` is still to be sealed.
    pub(super) fn make_train(&mut self, now: Time, train: &mut [u8]) -> Option<Transmit> {
        if train.len() < TRAIN_BYTES || self.phase == Phase::Drained {
            return None;
        }
        let transmit = self.poll_handshake(now, train).or_else(|| match self.phase {
            Phase::Established => self.poll_established(now, train),
            Phase::Closing(_) => self.poll_close(now, train),
            _ => None,
        })?;
        if let Some(path) = self.paths.get_mut(usize::from(transmit.path)) {
            path.peer.on_sent(transmit.remote, transmit.len as u64);
        }
        Some(transmit)
    }

    fn poll_handshake(&mut self, now: Time, train: &mut [u8]) -> Option<Transmit> {
        let (handshake, peer) = (self.handshake.as_mut()?, self.handshake_peer?);
        if self.paths.first().is_some_and(|path| path.peer.is_held()) {
            return None;
        }
        let mut sent = handshake.poll_transmit(now, train);
        while sent.is_none() && self.candidates.advance() {
            handshake.repeat();
            sent = handshake.poll_transmit(now, train);
        }
        let (len, remote) = (sent?, self.candidates.current().unwrap_or(peer));
        // Sending may have been the last step.
        self.advance_handshake(now);
        Some(Transmit { path: 0, remote, len, segment: len, ecn: Ecn::NotEct })
    }

    fn poll_established(&mut self, now: Time, train: &mut [u8]) -> Option<Transmit> {
        self.renew_credit();
        self.poll_response(now, train)
            .or_else(|| (0..self.paths.len()).find_map(|index| self.poll_path(now, index, train)))
            .or_else(|| self.poll_data(now, train))
    }

    /// What leaves on one path besides data.
    fn poll_path(&mut self, now: Time, index: usize, train: &mut [u8]) -> Option<Transmit> {
        if !self.may_leave_on(index) {
            return None;
        }
        self.poll_challenge(now, index, train)
            .or_else(|| self.poll_control(now, index, train))
            .or_else(|| self.poll_mtu_probe(now, index, train))
    }

    fn poll_close(&mut self, now: Time, train: &mut [u8]) -> Option<Transmit> {
        let close = self.close.as_mut()?;
        let may_tell = |path: &&Path| path.peer.is_open() && !path.peer.is_held();
        let path = close.due.find_map(|index| self.paths.get(index).filter(may_tell))?;
        let (remote, path) = (path.peer.current(), path.id);
        self.encoded.clear();
        close.frame.encode(&mut self.encoded);
        self.control_packet(now, train, remote, path, Vec::new())
    }

    /// The answers to challenges of the peer's, on the path and to the address that they came from: one packet for all from there, as long as that address may get.
    fn poll_response(&mut self, now: Time, train: &mut [u8]) -> Option<Transmit> {
        loop {
            let &(path, remote, _) = self.responses.front()?;
            let room = self.paths.get(usize::from(path)).map_or(0, |path| path.peer.room(remote));
            let room =
                usize::try_from(room).unwrap_or(usize::MAX).min(CONTROL_BYTES).saturating_sub(CONTROL_HEADER_BYTES + TAG_BYTES);
            let encoded = &mut self.encoded;
            encoded.clear();
            self.responses.retain(|&(other_path, other_remote, nonce)| {
                let is_due = (other_path, other_remote) == (path, remote);
                if is_due {
                    let before = encoded.len();
                    Frame::PathResponse(nonce).encode(encoded);
                    if encoded.len() > room {
                        encoded.truncate(before);
                    }
                }
                !is_due
            });
            if !encoded.is_empty() {
                return self.control_packet(now, train, remote, path, Vec::new());
            }
        }
    }

    /// A challenge to a new address.
    fn poll_challenge(&mut self, now: Time, index: usize, train: &mut [u8]) -> Option<Transmit> {
        let path = self.paths.get_mut(index)?;
        let rng = &mut self.rng;
        let (remote, nonce) =
            path.peer.poll_challenge(now, (path.rtt.smoothed() * 2).max(CHALLENGE_INTERVAL_MIN), || rng.next_u64())?;
        let opens = self.side == Side::Client && !path.peer.is_proved();
        let path = path.id;
        self.encoded.clear();
        Frame::PathChallenge(nonce).encode(&mut self.encoded);
        if opens {
            // RFC 9000 8.2.1: shows that the path carries packets of that size.
            self.encoded.resize(CONTROL_ROOM, 0);
        }
        self.control_packet(now, train, remote, path, Vec::new())
    }

    /// Which path's report is due on this path, if any: its own, on the main path also one that has nowhere to go yet.
    fn report_due_on(&self, now: Time, index: usize) -> Option<usize> {
        let is_due = |path: &Path| path.reporter.due() <= now;
        let own = self.paths.get(index).filter(|path| path.is_home() && is_due(path));
        if own.is_some() {
            return Some(index);
        }
        let homeless = self.paths.iter().position(|path| !path.is_home() && is_due(path))?;
        (index == self.main_path()).then_some(homeless)
    }

    /// Reports that are due, and frames.
    fn poll_control(&mut self, now: Time, index: usize, train: &mut [u8]) -> Option<Transmit> {
        let report_due = self.report_due_on(now, index);
        let is_main = index == self.main_path();
        let path = self.paths.get_mut(index).filter(|path| !path.peer.is_held())?;
        let takes_frames = !self.control.is_empty() && is_main && path.may_send();
        let floor_due = path.floor_timer() <= now;
        if report_due.is_none() && !floor_due && !takes_frames && !path.ping_due {
            return None;
        }
        self.encoded.clear();
        if floor_due {
            let rtt = path.rtt.smoothed();
            let floor = path.sent.floor().unwrap_or(path.next_number);
            path.on_floor_told(now);
            Frame::AckFloor { path: path.id, floor, rtt }.encode(&mut self.encoded);
        }
        let mut kept = Vec::new();
        let mut elicits_ack = std::mem::take(&mut path.ping_due);
        if elicits_ack {
            Frame::Ping.encode(&mut self.encoded);
        }
        if takes_frames {
            path.probes_due = path.probes_due.saturating_sub(1);
        }
        let (remote, path) = (path.peer.current(), path.id);
        // A report fills what is left, so frames go first; most often there are none.
        while takes_frames
            && self.encoded.len() + FRAME_ROOM <= CONTROL_ROOM / 2
            && let Some(frame) = self.control.pop_front()
        {
            frame.encode(&mut self.encoded);
            elicits_ack |= frame.elicits_ack();
            if frame.is_reliable() {
                kept.push(frame);
            }
        }
        if let Some(about) = report_due.and_then(|about| self.paths.get_mut(about)) {
            let room = CONTROL_ROOM - self.encoded.len();
            let credit = self.credit.grant();
            if let Some(ack) = about.reporter.report(now, about.id, credit, room) {
                Frame::Ack(ack).encode(&mut self.encoded);
            }
        }
        let content = elicits_ack.then(|| Content::Control(kept.into_boxed_slice()));
        self.control_packet(now, train, remote, path, content.into_iter().collect())
    }

    fn poll_mtu_probe(&mut self, now: Time, index: usize, train: &mut [u8]) -> Option<Transmit> {
        if self.is_confined() {
            return None;
        }
        let path = self.paths.get_mut(index).filter(|path| path.peer.is_proved() && path.loss.probes() == 0)?;
        let size = path.mtu.poll_probe(now)?;
        self.encoded.clear();
        Frame::Ping.encode(&mut self.encoded);
        self.encoded.resize(usize::from(size) - CONTROL_HEADER_BYTES - TAG_BYTES, 0);
        let (remote, path) = (path.peer.current(), path.id);
        self.control_packet(now, train, remote, path, vec![Content::MtuProbe(size)])
    }

    /// Makes `self.encoded` one control packet; `content` is remembered until it is acknowledged.
    fn control_packet(
        &mut self,
        now: Time,
        train: &mut [u8],
        remote: SocketAddr,
        path: u8,
        content: Vec<Content>,
    ) -> Option<Transmit> {
        let app_limited = self.streams.is_idle();
        let path = self.paths.get_mut(usize::from(path))?;
        let keys = self.keys.as_mut()?;
        let rng = &mut self.rng;
        if path.skips.leaves_out(path.next_number, || rng.next_u64()) {
            path.next_number += 1;
        }
        let number = path.next_number;
        let header = Header { destination: self.remote, path: path.id, epoch: 0, number, kind: PacketKind::Control };
        let row = Row { header, at: 0, payload: self.encoded.len(), len: self.encoded.len(), memory: None };
        row.place(&self.encoded, train);
        row.defer(&mut keys.sealer, &mut self.unsealed);
        let len = CONTROL_HEADER_BYTES + self.encoded.len() + TAG_BYTES;
        path.next_number += 1;
        let size = len as u16;
        let runs =
            content.into_iter().map(|content| SentRun { first: number, count: 1, content, packet: size, last_packet: size });
        let mut runs = runs.peekable();
        if runs.peek().is_some() {
            path.on_sent(now, len as u64, 1, app_limited, runs);
        } else {
            path.sent_at = now;
            path.meter.sent_pkts += 1;
            path.meter.sent_bytes += len as u64;
        }
        Some(Transmit { path: path.id, remote, len, segment: len, ecn: Ecn::NotEct })
    }

    /// Tells the peer of new credit.
    pub(super) fn renew_credit(&mut self) {
        if let Some(max) = self.credit.frame_due() {
            self.control.push_back(Frame::MaxData(max));
        }
    }

    /// The application has taken bytes from sinks: counts what they have consumed.
    pub fn sink_released(&mut self) {
        let mut reaped = Vec::new();
        for (id, stream) in self.streams.iter_mut() {
            if let Some(Receiver::Placed(half)) = &mut stream.receive {
                self.credit.on_consumed(half.newly_consumed());
                if half.is_settled() {
                    reaped.push(id);
                }
            }
        }
        for id in reaped {
            self.reap(id);
        }
        self.renew_credit();
    }

    /// Notes why nothing leaves.
    pub(super) fn wait(&mut self, now: Time, wait: Wait) {
        self.waits.note(now, wait);
    }

    /// The system refused a packet of this size: it does not fit the path.
    pub fn send_refused(&mut self, path: u8, packet_bytes: usize) {
        let Some(path) = self.paths.get_mut(usize::from(path)) else { return };
        let size = u16::try_from(packet_bytes).unwrap_or(u16::MAX);
        path.sent.on_refused(size);
        if path.mtu.on_refused(size) {
            path.controller.on_mtu(Bytes(path.mtu.current().into()));
        }
    }
}
