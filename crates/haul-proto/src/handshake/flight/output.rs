//! What a handshake sends.

use haul_units::Time;

use crate::crypto::{Role, TAG_LEN};
use crate::handshake::Level;
use crate::handshake::wire::{BODY_OVERHEAD_BYTES, Body, CryptoHeader, DATAGRAM_BYTES, Invariant, Kind};

use super::Handshake;

/// Clear header without its token.
const HEADER_BYTES: usize = 24;

impl Handshake {
    /// Writes the next datagram to the start of `buf`, which is at least 1200 bytes long; its length, or `None` if there is nothing to send.
    pub fn poll_transmit(&mut self, now: Time, buf: &mut [u8]) -> Option<usize> {
        let buf = buf.get_mut(..DATAGRAM_BYTES)?;
        if let Some((level, alert)) = self.close_due.take() {
            return self.send_close(now, level, alert, buf);
        }
        let has_numbers_left = self.next_packet_number < u32::MAX;
        if self.failure.is_some() || !has_numbers_left || !self.budget.allows(DATAGRAM_BYTES) {
            return None;
        }
        for level in Level::ALL {
            if self.outgoing[level as usize].has_unsent() {
                return self.send_tls(now, level, buf);
            }
        }
        for level in Level::ALL {
            if self.ack_due[level as usize] {
                return self.send_tls(now, level, buf);
            }
        }
        if self.probe_due {
            return self.send_tls(now, self.session.read_level(), buf);
        }
        None
    }

    /// A packet with the next bytes of `level`, or with an acknowledgement alone if there are none.
    fn send_tls(&mut self, now: Time, level: Level, buf: &mut [u8]) -> Option<usize> {
        let room = DATAGRAM_BYTES - HEADER_BYTES - self.token_bytes() - BODY_OVERHEAD_BYTES - TAG_LEN;
        let (offset, bytes) = self.outgoing[level as usize].peek(room);
        let sent = bytes.len();
        let acknowledged = [self.incoming[0].contiguous(), self.incoming[1].contiguous()];
        let body = Body::Tls { acknowledged, echo: self.peer_packet_number, offset, bytes };
        let length = self.seal(level, &body, buf)?;
        self.count(now, length);
        self.outgoing[level as usize].advance(sent);
        self.ack_due[level as usize] = false;
        self.probe_due = false;
        Some(length)
    }

    fn send_close(&mut self, now: Time, level: Level, alert: u8, buf: &mut [u8]) -> Option<usize> {
        if self.next_packet_number == u32::MAX || !self.budget.allows(DATAGRAM_BYTES) {
            return None;
        }
        let length = self.seal(level, &Body::Close { alert }, buf)?;
        self.count(now, length);
        Some(length)
    }

    fn token_bytes(&self) -> usize {
        // Once the server has answered, its state is what lets the client in.
        if self.peer_cid.is_some() { 0 } else { self.token.len() }
    }

    /// One whole datagram: header, sealed body. `buf` is `DATAGRAM_BYTES` long.
    fn seal(&self, level: Level, body: &Body<'_>, buf: &mut [u8]) -> Option<usize> {
        let packet_number = self.next_packet_number;
        let header = CryptoHeader {
            invariant: Invariant {
                kind: Kind::Crypto,
                version: self.version,
                destination_cid: self.peer_cid.unwrap_or(0),
                source_cid: self.local_cid,
                attempt: self.attempt,
            },
            packet_number,
            level,
            token: &self.token[..self.token_bytes()],
        };
        let header_len = header.encode(buf)?;
        let (header, rest) = buf.split_at_mut(header_len);
        let written = body.encode(rest.get_mut(..rest.len() - TAG_LEN)?)?;
        // RFC 9000 14.1: a client pads what it sends before its address is proved; a carried one until it has heard something.
        let is_padded = self.role == Role::Client && (level == Level::Initial || self.is_carried && !self.has_heard());
        let body_len = if is_padded { rest.len() - TAG_LEN } else { written };
        rest[written..body_len].fill(0);
        let sealed = rest.get_mut(..body_len + TAG_LEN)?;
        match level {
            Level::Initial => self.initial.seal.seal_in_place(0, packet_number.into(), header, sealed).ok()?,
            Level::Handshake => {
                let (body, tag) = sealed.split_at_mut(body_len);
                let key = &self.session.handshake_keys()?.local.packet;
                tag.copy_from_slice(key.encrypt_in_place(packet_number.into(), header, body).ok()?.as_ref());
            }
        }
        Some(header_len + body_len + TAG_LEN)
    }

    fn count(&mut self, now: Time, length: usize) {
        self.timing.on_sent(self.next_packet_number, now);
        self.next_packet_number += 1;
        self.budget.sent_bytes += length;
    }
}
