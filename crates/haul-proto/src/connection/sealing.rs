//! Trains that are made now and sealed later, when whoever made them has let go of the connection.
//!
//! Making a train decides everything that is in it: which bytes leave, under which numbers, with which key. What is left is the cipher, most of the work, and needs nothing of the connection:
//! the key is shared, and so is memory that nobody writes to any more. Only what may still change is copied into the train: control frames, and the last bytes written to an ordered stream.

use std::sync::Arc;

use haul_units::Time;

use super::{Connection, Transmit};
use crate::crypto::{PacketKey, Sealer};
use crate::streams::Fixed;
use crate::wire::{Header, PacketKind, TAG_BYTES};

/// The smallest buffer that [`Connection::poll_transmit`] takes.
pub const TRAIN_BYTES: usize = 65_536;

/// A buffer for [`Connection::poll_train`], to be used again and again.
#[derive(Debug)]
pub struct Train {
    bytes: Box<[u8]>,
    unsealed: Vec<Unsealed>,
}

impl Default for Train {
    fn default() -> Self {
        Self { bytes: vec![0; TRAIN_BYTES].into(), unsealed: Vec::new() }
    }
}

impl Train {
    /// Seals what is in it, if that has not been done yet: its datagrams, those that [`Transmit::len`] counts at the front.
    pub fn sealed(&mut self) -> &[u8] {
        seal(&mut self.unsealed, &mut self.bytes);
        &self.bytes
    }
}

impl Connection {
    /// As [`Connection::poll_transmit`], but the datagrams are sealed by [`Train::sealed`], which needs nothing of the connection. A train that was in the buffer is forgotten.
    pub fn poll_train(&mut self, now: Time, train: &mut Train) -> Option<Transmit> {
        train.unsealed.clear();
        let transmit = self.make_train(now, &mut train.bytes);
        std::mem::swap(&mut self.unsealed, &mut train.unsealed);
        transmit
    }

    /// The next datagrams to send, written to `train` (at least 64 KiB). `None`: wait for [`Connection::poll_timeout`] or input.
    pub fn poll_transmit(&mut self, now: Time, train: &mut [u8]) -> Option<Transmit> {
        let transmit = self.make_train(now, train);
        seal(&mut self.unsealed, train);
        transmit
    }
}

/// Seals what is to be sealed in `train`.
fn seal(unsealed: &mut Vec<Unsealed>, train: &mut [u8]) {
    unsealed.drain(..).for_each(|Unsealed { row, key }| row.seal(&key, train));
}

/// Packets of one key, yet to be sealed.
#[derive(Debug)]
pub(super) struct Unsealed {
    row: Row,
    key: Arc<PacketKey>,
}

/// Packets that follow one another in a train: bytes of one stream, or control frames.
#[derive(Debug)]
pub(super) struct Row {
    /// Of the first packet. The numbers and offsets of those after it follow; what ends, ends with the last. The epoch is told by [`Row::defer`].
    pub(super) header: Header,
    /// Where in the train the first packet begins.
    pub(super) at: usize,
    /// Bytes of each packet but the last, without header and tag.
    pub(super) payload: usize,
    /// Bytes of all of them.
    pub(super) len: usize,
    /// What the bytes lie in, and where; `None` if they are in their places in the train already.
    pub(super) memory: Option<(Fixed, usize)>,
}

impl Row {
    /// Leaves the packets to be sealed, with the keys that are theirs whatever happens until then.
    pub(super) fn defer(mut self, sealer: &mut Sealer, unsealed: &mut Vec<Unsealed>) {
        loop {
            let wanted = self.pkts();
            let (key, epoch, taken) = sealer.take(self.header.path, self.header.number, wanted as u64);
            self.header.epoch = epoch;
            let rest = (taken as usize) < wanted;
            let rest = rest.then(|| self.split_off(taken as usize));
            unsealed.push(Unsealed { row: self, key });
            let Some(rest) = rest else { return };
            self = rest;
        }
    }

    /// Copies bytes to their places in the train.
    pub(super) fn place(&self, bytes: &[u8], train: &mut [u8]) {
        for (index, plain) in bytes.chunks(self.payload.max(1)).enumerate() {
            self.place_in(index, plain, train);
        }
    }

    /// Copies the bytes of one packet to their place.
    pub(super) fn place_in(&self, index: usize, plain: &[u8], train: &mut [u8]) {
        let at = self.at + index * self.stride() + self.header.bytes();
        if let Some(place) = train.get_mut(at..at + plain.len()) {
            place.copy_from_slice(plain);
        }
    }

    fn pkts(&self) -> usize {
        self.len.div_ceil(self.payload.max(1)).max(1)
    }

    fn stride(&self) -> usize {
        self.header.bytes() + self.payload + TAG_BYTES
    }

    /// The header of a packet.
    fn header(&self, index: usize, is_last: bool) -> Header {
        let kind = match self.header.kind {
            PacketKind::Data { stream, offset, fin, end } => {
                let offset = offset + (index * self.payload) as u64;
                PacketKind::Data { stream, offset, fin: fin && is_last, end: end && is_last }
            }
            PacketKind::Control => PacketKind::Control,
        };
        Header { number: self.header.number + index as u64, kind, ..self.header }
    }

    /// Keeps the first `pkts` packets, which are not all.
    fn split_off(&mut self, pkts: usize) -> Self {
        let (stride, kept) = (self.stride(), pkts * self.payload);
        let memory = self.memory.as_ref().map(|(memory, start)| (memory.clone(), start + kept));
        let mut header = self.header;
        header.number += pkts as u64;
        if let PacketKind::Data { offset, .. } = &mut header.kind {
            *offset += kept as u64;
        }
        let rest = Self { header, at: self.at + pkts * stride, len: self.len - kept, memory, payload: self.payload };
        // Without the end, which is the last one's.
        self.header = self.header(0, false);
        self.len = kept;
        rest
    }

    fn seal(&self, key: &PacketKey, train: &mut [u8]) {
        let pkts = self.pkts();
        for index in 0..pkts {
            let (header, start) = (self.header(index, index + 1 == pkts), index * self.payload);
            let len = self.payload.min(self.len - start);
            let at = self.at + index * self.stride();
            let Some(packet) = train.get_mut(at..at + header.bytes() + len + TAG_BYTES) else { return };
            let (head, body) = packet.split_at_mut(header.bytes());
            header.encode(head);
            let sealed = match &self.memory {
                Some((memory, from)) => {
                    let plain = memory.get(from + start..from + start + len).unwrap_or_default();
                    key.seal_into(header.path, header.number, head, plain, body)
                }
                None => key.seal_in_place(header.path, header.number, head, body),
            };
            // The buffers fit by construction, which is all that sealing asks for. Nothing leaves in the clear.
            debug_assert!(sealed.is_ok());
            if sealed.is_err() {
                body.fill(0);
            }
        }
    }
}

#[cfg(test)]
mod tests;
