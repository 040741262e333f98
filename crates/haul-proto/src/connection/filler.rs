//! Trains of filler: padding that measures a path before the application has anything to say, where the controller asks for it.

use haul_units::{Bytes, Time};

use super::sealing::Row;
use super::{Connection, Transmit};
use crate::path::SentRun;
use crate::recovery::Content;
use crate::wire::{CONTROL_HEADER_BYTES, Frame, Header, PacketKind, TAG_BYTES};

/// Packets of one run.
const RUN_PACKETS: usize = 64;

impl Connection {
    /// A train of filler, or a part of one, that is due on a path.
    pub(super) fn poll_filler(&mut self, now: Time, index: usize, train: &mut [u8]) -> Option<Transmit> {
        let (due, bytes) = self.filler(index)?;
        let path = self.paths.get_mut(index).filter(|_| due <= now)?;
        let packet = usize::from(path.mtu.current());
        let packets = (bytes.as_u64() as usize / packet).min(RUN_PACKETS).min(train.len() / packet);
        let keys = self.keys.as_mut()?;
        self.encoded.clear();
        Frame::Filler.encode(&mut self.encoded);
        self.encoded.resize(packet - CONTROL_HEADER_BYTES - TAG_BYTES, 0);
        let (first, payload) = (path.next_number, self.encoded.len());
        let header = Header { destination: self.remote, path: path.id, epoch: 0, number: first, kind: PacketKind::Control };
        let row = Row { header, at: 0, payload, len: packets * payload, memory: None };
        (0..packets).for_each(|index| row.place_in(index, &self.encoded, train));
        row.defer(&mut keys.sealer, &mut self.unsealed);
        path.next_number += packets as u64;
        let len = packets * packet;
        let content = Content::Control(Box::default());
        let run = SentRun { first, count: packets as u8, content, packet: packet as u16, last_packet: packet as u16 };
        path.on_filler_sent(now, len as u64, packets as u64, run);
        Some(Transmit { path: path.id, remote: path.peer.current(), len, segment: packet, ecn: path.ecn.mark() })
    }

    /// When filler is due on some path, if nothing else leaves before.
    pub(super) fn note_filler_due(&mut self) {
        for index in 0..self.paths.len() {
            let due = self.filler(index).map_or(Time::NEVER, |(due, _)| due);
            self.paths[index].paced_until = due;
        }
    }

    /// The filler that a path's controller asks for: only where the application allows it, and where no limit makes a measurement useless.
    fn filler(&self, index: usize) -> Option<(Time, Bytes)> {
        let allowed = self.config.filler && self.rate_limit_each().is_none();
        let path = self.paths.get(index).filter(|path| allowed && path.peer.is_proved())?;
        let (due, bytes) = path.controller.filler()?;
        let room = bytes.min(Bytes(path.window_room()));
        (room >= Bytes(path.mtu.current().into())).then_some((due, room))
    }
}
