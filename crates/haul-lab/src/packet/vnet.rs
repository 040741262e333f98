//! The header that a TUN device puts before each packet: what is still to be done to it.
//!
//! Virtual I/O Device (VIRTIO) 1.2, 5.1.6, the legacy form of 10 bytes in the machine's byte order.

/// Length of the header.
pub const VNET_BYTES: usize = 10;
/// The checksum is to be completed: the field holds the sum over the pseudo header only.
pub const NEEDS_CSUM: u8 = 1;
pub const GSO_NONE: u8 = 0;
pub const GSO_TCPV4: u8 = 1;
pub const GSO_TCPV6: u8 = 4;
pub const GSO_UDP_L4: u8 = 5;

/// The header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vnet {
    pub flags: u8,
    pub gso_type: u8,
    /// Length of all headers, as a hint.
    pub headers: u16,
    /// Payload of each segment but the last.
    pub gso_size: u16,
    /// Where the checksum starts, and its field after that.
    pub csum_start: u16,
    pub csum_offset: u16,
}

impl Vnet {
    /// Reads it from the start of `bytes`.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let header: &[u8; VNET_BYTES] = bytes.first_chunk()?;
        let field = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        Some(Self {
            flags: header[0],
            gso_type: header[1],
            headers: field(2),
            gso_size: field(4),
            csum_start: field(6),
            csum_offset: field(8),
        })
    }

    /// Its bytes.
    pub fn to_bytes(self) -> [u8; VNET_BYTES] {
        let mut bytes = [0; VNET_BYTES];
        bytes[0] = self.flags;
        bytes[1] = self.gso_type;
        let fields = [self.headers, self.gso_size, self.csum_start, self.csum_offset];
        for (place, field) in bytes[2..].chunks_exact_mut(2).zip(fields) {
            place.copy_from_slice(&field.to_ne_bytes());
        }
        bytes
    }
}
