//! The clear header of a data-phase packet, and the stateless reset.

use super::stream::StreamId;
use crate::ConnectionId;

/// Header of a control packet, and the part that every data-phase packet begins with.
pub const CONTROL_HEADER_BYTES: usize = 16;
/// Header of a data packet.
pub const DATA_HEADER_BYTES: usize = 28;
/// A stateless reset: type, three zero bytes, connection id, token.
pub const RESET_BYTES: usize = 24;

const KIND_MASK: u8 = 0b11;
const KIND_DATA: u8 = 0;
const KIND_CONTROL: u8 = 1;
const FLAG_FIN: u8 = 0b100;
const FLAG_END: u8 = 0b1000;
const RESET: u8 = 0x3f;

/// What a packet carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketKind {
    /// Bytes of one stream.
    Data {
        /// Which stream.
        stream: StreamId,
        /// Where the bytes belong in it.
        offset: u64,
        /// The stream ends after them (ordered streams).
        fin: bool,
        /// A block ends after them (placed streams).
        end: bool,
    },
    /// Control frames.
    Control,
}

/// The clear header of a data-phase packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The receiver's number for the connection.
    pub destination: ConnectionId,
    /// The path whose packet-number space this is.
    pub path: u8,
    /// Which keys protect it, modulo 256.
    pub epoch: u8,
    /// Packet number, whole.
    pub number: u64,
    /// What it carries.
    pub kind: PacketKind,
}

impl Header {
    /// Length of this header on the wire.
    pub const fn bytes(&self) -> usize {
        match self.kind {
            PacketKind::Data { .. } => DATA_HEADER_BYTES,
            PacketKind::Control => CONTROL_HEADER_BYTES,
        }
    }

    /// Writes the header at the front of `out`, which has room for it, and returns its length.
    pub fn encode(&self, out: &mut [u8]) -> usize {
        let (kind, len) = match self.kind {
            PacketKind::Data { stream, offset, fin, end } => {
                out[16..20].copy_from_slice(&stream.0.to_be_bytes());
                out[20..28].copy_from_slice(&offset.to_be_bytes());
                let flags = if fin { FLAG_FIN } else { 0 } | if end { FLAG_END } else { 0 };
                (KIND_DATA | flags, DATA_HEADER_BYTES)
            }
            PacketKind::Control => (KIND_CONTROL, CONTROL_HEADER_BYTES),
        };
        out[..4].copy_from_slice(&[kind, self.path, self.epoch, 0]);
        out[4..8].copy_from_slice(&self.destination.0.to_be_bytes());
        out[8..16].copy_from_slice(&self.number.to_be_bytes());
        len
    }

    /// Reads a header from the front of `packet`; `None` for anything that is no data-phase packet.
    #[inline]
    pub fn parse(packet: &[u8]) -> Option<Self> {
        let head = packet.first_chunk::<CONTROL_HEADER_BYTES>()?;
        let kind = match (head[0], head[0] & KIND_MASK) {
            (first, KIND_DATA) if first & !(KIND_MASK | FLAG_FIN | FLAG_END) == 0 => {
                let head = packet.first_chunk::<DATA_HEADER_BYTES>()?;
                PacketKind::Data {
                    stream: StreamId(be_u32(&head[16..20])),
                    offset: be_u64(&head[20..28]),
                    fin: first & FLAG_FIN != 0,
                    end: first & FLAG_END != 0,
                }
            }
            (KIND_CONTROL, _) => PacketKind::Control,
            _ => return None,
        };
        Some(Self {
            destination: ConnectionId(be_u32(&head[4..8])),
            path: head[1],
            epoch: head[2],
            number: be_u64(&head[8..16]),
            kind,
        })
    }
}

/// The connection that a data-phase packet is for: the fast path of a demultiplexer. `None` for handshake packets and for
/// what is too short to be anything.
#[inline]
pub fn data_destination(datagram: &[u8]) -> Option<ConnectionId> {
    let head = datagram.first_chunk::<8>()?;
    (head[0] < RESET).then(|| ConnectionId(be_u32(&head[4..8])))
}

/// The path that a data-phase packet came by, in the words of its clear header: nothing vouches for it.
#[inline]
pub fn data_path(datagram: &[u8]) -> Option<u8> {
    data_destination(datagram).and_then(|_| datagram.get(1).copied())
}

/// A stateless reset: tells the peer that its connection id names nothing here.
pub fn encode_reset(destination: ConnectionId, token: &[u8; 16]) -> [u8; RESET_BYTES] {
    let mut out = [0; RESET_BYTES];
    out[0] = RESET;
    out[4..8].copy_from_slice(&destination.0.to_be_bytes());
    out[8..].copy_from_slice(token);
    out
}

/// The id and the token of a stateless reset. The id is the one that the *sender of the reset* does not know.
pub fn parse_reset(datagram: &[u8]) -> Option<(ConnectionId, [u8; 16])> {
    let bytes: &[u8; RESET_BYTES] = datagram.try_into().ok()?;
    let token = *bytes.last_chunk::<16>()?;
    (bytes[0] == RESET).then(|| (ConnectionId(be_u32(&bytes[4..8])), token))
}

fn be_u32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u32::from(byte))
}

fn be_u64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_kind() -> impl Strategy<Value = PacketKind> {
        prop_oneof![
            Just(PacketKind::Control),
            (any::<u32>(), any::<u64>(), any::<bool>(), any::<bool>())
                .prop_map(|(stream, offset, fin, end)| { PacketKind::Data { stream: StreamId(stream), offset, fin, end } }),
        ]
    }

    proptest! {
        #[test]
        fn round_trips(cid: u32, path: u8, epoch: u8, number: u64, kind in any_kind()) {
            let header = Header { destination: ConnectionId(cid), path, epoch, number, kind };
            let mut out = [0xaa; 64];
            let len = header.encode(&mut out);
            prop_assert_eq!(len, header.bytes());
            prop_assert_eq!(Header::parse(&out), Some(header));
            prop_assert_eq!(data_destination(&out), Some(ConnectionId(cid)));
            prop_assert_eq!(Header::parse(&out[..len - 1]), None);
        }

        #[test]
        fn whatever_arrives_does_not_panic(bytes: Vec<u8>) {
            let _ = (Header::parse(&bytes), data_destination(&bytes), parse_reset(&bytes));
        }
    }

    #[test]
    fn a_reset_is_no_data_packet() {
        let reset = encode_reset(ConnectionId(7), &[3; 16]);
        assert_eq!(parse_reset(&reset), Some((ConnectionId(7), [3; 16])));
        assert_eq!(data_destination(&reset), None);
        assert_eq!(Header::parse(&reset), None);
    }
}
