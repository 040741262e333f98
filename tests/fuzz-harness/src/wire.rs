//! Decoders of the data phase.

use haul_proto::handshake::wire::is_handshake;
use haul_proto::wire::{Frame, Header, data_destination, parse_reset};

use crate::feed::Feed;

/// The clear header of a packet, and how a datagram is told apart.
pub fn packet_header(data: &[u8]) {
    let kinds = [is_handshake(data), data_destination(data).is_some(), parse_reset(data).is_some()];
    assert!(kinds.into_iter().filter(|is| *is).count() <= 1, "a datagram is of two kinds at once");
    let Some(header) = Header::parse(data) else { return };
    assert_eq!(data_destination(data), Some(header.destination));
    let mut out = vec![0; header.bytes()];
    assert_eq!(header.encode(&mut out), out.len());
    assert_eq!(Header::parse(&out), Some(header));
}

/// The frames of a control packet.
pub fn frames(data: &[u8]) {
    let decoded: Vec<Frame> = Frame::decode_all(data).map_while(Result::ok).collect();
    let mut encoded = Vec::new();
    for frame in &decoded {
        frame.encode(&mut encoded);
    }
    let again: Result<Vec<Frame>, _> = Frame::decode_all(&encoded).collect();
    assert_eq!(again, Ok(decoded));
}

/// Acknowledgement reports, which say the most in the fewest bytes.
pub fn ack(data: &[u8]) {
    let mut feed = Feed(data);
    let mut packet = Vec::new();
    while !feed.0.is_empty() {
        packet.push(2);
        packet.extend_from_slice(feed.run());
    }
    for frame in Frame::decode_all(&packet).map_while(Result::ok) {
        let Frame::Ack(ack) = &frame else { continue };
        let mut above = None;
        for run in &ack.runs {
            assert!(ack.lowest <= *run.start() && run.start() <= run.end() && *run.end() <= ack.largest, "{ack:?}");
            assert!(above.is_none_or(|above| run.end() + 1 < above), "runs touch or are out of order: {ack:?}");
            above = Some(*run.start());
        }
    }
    frames(&packet);
}
