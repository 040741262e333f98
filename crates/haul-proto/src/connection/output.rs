//! What leaves next.
//!
//! Order: the handshake; the close; challenges and their answers; reports and frames; packet-size probes; trains of stream data.

use std::net::SocketAddr;

use haul_units::{Bytes, Time};

use super::stats::Wait;
use super::{Connection, Phase, Transmit};
use crate::path::SentRun;
use crate::receive::Ecn;
use crate::recovery::Content;
use crate::streams::Receiver;
use crate::wire::{CONTROL_HEADER_BYTES, Frame, Header, PacketKind, TAG_BYTES};

/// The smallest buffer that [`Connection::poll_transmit`] takes.
pub const TRAIN_BYTES: usize = 65_536;
/// UDP payload of a control packet, at most: what every path carries.
const CONTROL_BYTES: usize = 1200;
const CONTROL_ROOM: usize = CONTROL_BYTES - CONTROL_HEADER_BYTES - TAG_BYTES;
/// Room that one frame other than a report or a close may need.
const FRAME_ROOM: usize = 32;

impl Connection {
    /// The next datagrams to send, written to `train` (at least 64 KiB). `None`: wait for [`Connection::poll_timeout`] or input.
    pub fn poll_transmit(&mut self, now: Time, train: &mut [u8]) -> Option<Transmit> {
        if train.len() < TRAIN_BYTES || self.phase == Phase::Drained {
            return None;
        }
        let transmit = self.poll_handshake(now, train).or_else(|| match self.phase {
            Phase::Established => self.poll_established(now, train),
            Phase::Closing(_) => self.poll_close(now, train),
            _ => None,
        });
        if transmit.is_some() {
            self.sent_at = now;
        }
        transmit
    }

    fn poll_handshake(&mut self, now: Time, train: &mut [u8]) -> Option<Transmit> {
        let len = self.handshake.as_mut()?.poll_transmit(now, train)?;
        // Sending may have been the last step.
        self.advance_handshake(now);
        Some(Transmit { remote: self.handshake_peer, len, segment: len, ecn: Ecn::NotEct })
    }

    fn poll_established(&mut self, now: Time, train: &mut [u8]) -> Option<Transmit> {
        self.renew_credit();
        self.poll_challenge(now, train)
            .or_else(|| self.poll_control(now, train))
            .or_else(|| self.poll_mtu_probe(now, train))
            .or_else(|| self.poll_data(now, train))
    }

    fn poll_close(&mut self, now: Time, train: &mut [u8]) -> Option<Transmit> {
        let close = self.close.as_mut().filter(|close| close.due)?;
        close.due = false;
        let frame = close.frame.clone();
        let remote = self.close_target();
        self.encoded.clear();
        frame.encode(&mut self.encoded);
        self.seal_control(now, train, remote, 0, Vec::new())
    }

    /// A challenge to a new address, or the answer to the peer's.
    fn poll_challenge(&mut self, now: Time, train: &mut [u8]) -> Option<Transmit> {
        let (remote, frame) = if let Some((remote, nonce)) = self.responses.pop_front() {
            (remote, Frame::PathResponse(nonce))
        } else {
            let path = self.paths.first_mut()?;
            let (remote, nonce) = path.peer.poll_challenge(now, path.rtt.smoothed() * 2)?;
            (remote, Frame::PathChallenge(nonce))
        };
        self.encoded.clear();
        frame.encode(&mut self.encoded);
        self.seal_control(now, train, remote, 0, Vec::new())
    }

    /// Reports that are due, and frames.
    fn poll_control(&mut self, now: Time, train: &mut [u8]) -> Option<Transmit> {
        let path = self.paths.first_mut()?;
        let report_due = path.reporter.due() <= now;
        let floor_due = path.floor_due <= now && path.sent.in_flight() > 0;
        if !report_due && !floor_due && self.control.is_empty() {
            return None;
        }
        self.encoded.clear();
        if floor_due {
            let rtt = path.rtt.smoothed();
            let floor = path.sent.floor().unwrap_or(path.next_number);
            path.floor_due = now + path.floor_interval();
            Frame::AckFloor { path: path.id, floor, rtt }.encode(&mut self.encoded);
        }
        let mut kept = Vec::new();
        let mut elicits_ack = false;
        // A report fills what is left, so frames go first; most often there are none.
        while self.encoded.len() + FRAME_ROOM <= CONTROL_ROOM / 2
            && let Some(frame) = self.control.pop_front()
        {
            frame.encode(&mut self.encoded);
            elicits_ack |= frame.elicits_ack();
            if frame.is_reliable() {
                kept.push(frame);
            }
        }
        if report_due {
            let room = CONTROL_ROOM - self.encoded.len();
            let credit = self.credit.grant();
            if let Some(ack) = path.reporter.report(now, path.id, credit, room) {
                Frame::Ack(ack).encode(&mut self.encoded);
            }
        }
        let (remote, path) = (path.peer.current(), path.id);
        let content = elicits_ack.then(|| Content::Control(kept.into_boxed_slice()));
        self.seal_control(now, train, remote, path, content.into_iter().collect())
    }

    fn poll_mtu_probe(&mut self, now: Time, train: &mut [u8]) -> Option<Transmit> {
        let path = self.paths.first_mut()?;
        let size = path.mtu.poll_probe(now)?;
        self.encoded.clear();
        Frame::Ping.encode(&mut self.encoded);
        self.encoded.resize(usize::from(size) - CONTROL_HEADER_BYTES - TAG_BYTES, 0);
        let (remote, path) = (path.peer.current(), path.id);
        self.seal_control(now, train, remote, path, vec![Content::MtuProbe(size)])
    }

    /// Seals `self.encoded` as one control packet; `content` is remembered until it is acknowledged.
    fn seal_control(
        &mut self,
        now: Time,
        train: &mut [u8],
        remote: SocketAddr,
        path: u8,
        content: Vec<Content>,
    ) -> Option<Transmit> {
        let path = self.paths.get_mut(usize::from(path))?;
        let keys = self.keys.as_mut()?;
        let number = path.next_number;
        let header =
            Header { destination: self.remote, path: path.id, epoch: keys.sealer.epoch(), number, kind: PacketKind::Control };
        let len = CONTROL_HEADER_BYTES + self.encoded.len() + TAG_BYTES;
        let packet = train.get_mut(..len)?;
        header.encode(packet);
        let (head, body) = packet.split_at_mut(CONTROL_HEADER_BYTES);
        keys.sealer.seal_into(path.id, number, head, &self.encoded, body).ok()?;
        path.next_number += 1;
        let size = len as u16;
        let runs =
            content.into_iter().map(|content| SentRun { first: number, count: 1, content, packet: size, last_packet: size });
        let mut runs = runs.peekable();
        if runs.peek().is_some() {
            path.on_sent(now, len as u64, 1, false, runs);
        } else {
            path.meter.sent_pkts += 1;
            path.meter.sent_bytes += len as u64;
        }
        Some(Transmit { remote, len, segment: len, ecn: Ecn::NotEct })
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
    pub fn send_refused(&mut self, packet_bytes: usize) {
        for path in &mut self.paths {
            if path.mtu.on_refused(u16::try_from(packet_bytes).unwrap_or(u16::MAX)) {
                path.controller.on_mtu(Bytes(path.mtu.current().into()));
            }
        }
    }
}
