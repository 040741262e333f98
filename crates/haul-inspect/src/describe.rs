//! A captured packet in words.

use std::fmt::Write as _;

use haul_proto::wire::{Header, PacketKind};

use crate::{Content, Inspector};

/// What is in a packet, in a line: where it goes by its clear header, then its frames, or the stream, offset and length of its data. What none of the inspectors opens is described
/// as far as it is clear.
pub fn describe(packet: &[u8], inspectors: &[Inspector]) -> String {
    let Some(header) = Header::parse(packet) else {
        let is_handshake = packet.first().is_some_and(|first| first & 0x80 != 0);
        let what = if is_handshake { "handshake" } else { "something else" };
        return format!("{what}, {} bytes", packet.len());
    };
    let mut text =
        format!("to {:08x} path {} epoch {} number {} ", header.destination.0, header.path, header.epoch, header.number);
    if let PacketKind::Data { stream, offset, fin, end } = header.kind {
        let _ = write!(text, "stream {} offset {offset} ", stream.0);
        text.push_str(if fin { "fin " } else { "" });
        text.push_str(if end { "end " } else { "" });
    }
    let opened = inspectors.iter().find_map(|inspector| inspector.open(packet));
    let _ = match opened.map(|opened| opened.content) {
        Some(Content::Data(bytes)) => write!(text, "{} bytes", bytes.len()),
        Some(Content::Frames(frames)) => write!(text, "{frames:?}"),
        None => write!(text, "sealed, {} bytes with the header", packet.len()),
    };
    text
}

#[cfg(test)]
mod tests {
    use haul_proto::{ConnectionId, StreamId};

    use super::*;

    #[test]
    fn what_no_key_opens_is_shown_as_far_as_it_is_clear() {
        let kind = PacketKind::Data { stream: StreamId(4), offset: 99, fin: true, end: false };
        let mut packet = [0; 50];
        Header { destination: ConnectionId(0xab), path: 1, epoch: 2, number: 3, kind }.encode(&mut packet);
        let sealed = "to 000000ab path 1 epoch 2 number 3 stream 4 offset 99 fin sealed, 50 bytes with the header";
        assert_eq!(describe(&packet, &[]), sealed);
        assert_eq!(describe(&[0x80; 30], &[]), "handshake, 30 bytes");
        assert_eq!(describe(&[0x3f; 3], &[]), "something else, 3 bytes");
    }
}
