//! What is wrong with bytes that are not what they should be.

/// Why bytes are not a control packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The packet ends inside a field.
    #[error("a frame ends early")]
    Truncated,
    /// A number is larger than its field allows.
    #[error("a number in a frame is out of range")]
    Overflow,
    /// A frame type that was not negotiated.
    #[error("unknown frame type {0}")]
    UnknownFrame(u8),
    /// An acknowledgement that contradicts itself.
    #[error("an acknowledgement contradicts itself")]
    BadAck,
}
