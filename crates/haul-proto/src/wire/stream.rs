//! Names of streams.

use std::fmt;

/// What a stream is like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StreamKind {
    /// Ordered bytes both ways.
    Bidirectional,
    /// Ordered bytes from the side that opened it.
    Unidirectional,
    /// Bytes with offsets, delivered in any order, from the side that opened it.
    Placed,
}

impl StreamKind {
    /// All kinds, in the order of their bits.
    pub const ALL: [Self; 3] = [Self::Bidirectional, Self::Unidirectional, Self::Placed];

    /// The two bits on the wire.
    pub const fn to_bits(self) -> u8 {
        self as u8
    }

    /// The kind of two bits.
    pub fn from_bits(bits: u8) -> Option<Self> {
        Self::ALL.get(usize::from(bits)).copied()
    }
}

/// Which end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// It connected.
    Client,
    /// It accepted.
    Server,
}

impl Side {
    /// The other end.
    pub const fn peer(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// A stream of a connection: bit 0 tells who opened it (0: the client), bits 1 and 2 its kind, the rest counts. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u32);

impl StreamId {
    /// Streams of one kind that one side can open in the life of a connection.
    pub const MAX_COUNT: u32 = 1 << 29;

    /// The `index`-th stream of this kind opened by `opener`.
    pub const fn new(opener: Side, kind: StreamKind, index: u32) -> Self {
        Self(index << 3 | (kind.to_bits() as u32) << 1 | matches!(opener, Side::Server) as u32)
    }

    /// Who opened it.
    pub const fn opener(self) -> Side {
        if self.0 & 1 == 0 { Side::Client } else { Side::Server }
    }

    /// Its kind; `None` if the bits name none.
    pub fn kind(self) -> Option<StreamKind> {
        StreamKind::from_bits((self.0 >> 1 & 0b11) as u8)
    }

    /// Which one of its kind and opener.
    pub const fn index(self) -> u32 {
        self.0 >> 3
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "stream {}", self.0)
    }
}
