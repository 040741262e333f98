//! What frames take on an Ethernet line, and the frame that no switch passes on.
//!
//! Sources: IEEE 802.3 (3.1 preamble, 4.4.2 interpacket gap and minimum frame, annex 31B PAUSE); the idea to fill gaps with PAUSE frames is PSPacer's (Takano et al.,
//! PFLDnet 2005).

use haul_units::Bytes;

/// Destination, source and type.
pub const HEADER: usize = 14;
/// What a line carries beside a frame: preamble and delimiter (8), check sequence (4), interpacket gap (12).
pub const AROUND: Bytes = Bytes(24);
/// The least that a frame takes on the line.
pub const LEAST: Bytes = Bytes(84);
/// The most that a frame takes where packets have up to 1500 bytes.
pub const MOST: Bytes = Bytes(1500 + HEADER as u64 + AROUND.0);

/// What a packet of the network layer takes on the line.
pub const fn on_line(packet: Bytes) -> Bytes {
    let bytes = packet.0.saturating_add(HEADER as u64 + AROUND.0);
    if bytes < LEAST.0 { LEAST } else { Bytes(bytes) }
}

/// A frame that takes `gap` on the line, without its check sequence: PAUSE for no time, so whoever it stops goes on at once. Switches and hosts take it and pass it on
/// to nobody. Less than [`LEAST`] cannot be filled, more than [`MOST`] not by one frame: it has as much as a frame can.
pub fn write_pause(gap: Bytes, source: [u8; 6], frame: &mut Vec<u8>) {
    let length = gap.0.clamp(LEAST.0, MOST.0) - AROUND.0;
    frame.clear();
    frame.extend_from_slice(&PAUSE_GROUP);
    frame.extend_from_slice(&source);
    frame.extend_from_slice(&MAC_CONTROL.to_be_bytes());
    frame.extend_from_slice(&PAUSE_OPCODE.to_be_bytes());
    // The time, in units of 512 bits: none. What follows is padding.
    frame.resize(usize::try_from(length).unwrap_or(HEADER), 0);
}

/// Whether a frame is one that ends at the first switch.
pub fn is_pause(frame: &[u8]) -> bool {
    frame.get(..6) == Some(&PAUSE_GROUP) && frame.get(12..16) == Some(&[0x88, 0x08, 0x00, 0x01])
}

/// Reserved for one line: bridges do not forward it (IEEE 802.1D 7.12.6).
const PAUSE_GROUP: [u8; 6] = [0x01, 0x80, 0xC2, 0x00, 0x00, 0x01];
const MAC_CONTROL: u16 = 0x8808;
const PAUSE_OPCODE: u16 = 0x0001;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_frame_fills_what_it_shall() {
        let mut frame = Vec::new();
        for gap in [84, 85, 1000, 1538] {
            write_pause(Bytes(gap), [2, 0, 0, 0, 0, 7], &mut frame);
            assert_eq!(on_line(Bytes((frame.len() - HEADER) as u64)), Bytes(gap));
            assert!(is_pause(&frame));
        }
        write_pause(Bytes(9000), [0; 6], &mut frame);
        assert_eq!(frame.len(), 1514);
    }

    #[test]
    fn the_smallest_packets_are_padded() {
        assert_eq!(on_line(Bytes(0)), LEAST);
        assert_eq!(on_line(Bytes(46)), LEAST);
        assert_eq!(on_line(Bytes(47)), Bytes(85));
        assert_eq!(on_line(Bytes(1500)), MOST);
        assert!(!is_pause(&[0; 13]));
    }
}
