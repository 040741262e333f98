//! What travels in the data phase: the packet header, the control frames, the acknowledgement report.
//!
//! ```text
//!  0        1        2        3        4                 8                                16                20                28
//! +--------+--------+--------+--------+-----------------+--------------------------------+-----------------+-----------------+-- - -
//! | type   | path   | epoch  | 0      | connection id   | packet number                  | stream id       | stream offset   | ..
//! +--------+--------+--------+--------+-----------------+--------------------------------+-----------------+-----------------+-- - -
//! |<------------------------- every data-phase packet: 16 bytes ------------------------>|<- data packets: 28 bytes ------>|
//! ```
//! The header is clear and is the AAD of the packet's AEAD; after it come the ciphertext and its 16-byte tag. Numbers are big-endian, at
//! fixed offsets, the packet number whole: a receiver finds a packet's place with three loads and decrypts straight into it. A control
//! packet's payload is a sequence of [`Frame`]s. Handshake packets have bit 7 of the first byte set and are described in
//! [`crate::handshake`].

pub mod ack;
mod error;
mod frame;
mod header;
mod stream;
mod varint;

pub use error::DecodeError;
pub use frame::Frame;
pub(crate) use header::encode_reset;
pub use header::{CONTROL_HEADER_BYTES, DATA_HEADER_BYTES, Header, PacketKind, data_destination, data_path};
pub use header::{RESET_BYTES, parse_reset};
pub use stream::{Side, StreamId, StreamKind};

/// Bytes that the AEAD adds to each packet.
pub const TAG_BYTES: usize = 16;

/// UDP payload that every path carries. // RFC 9000 14.1
pub(crate) const BASE_BYTES: u16 = 1200;
