//! What a plan says: whom to tell what, what has become of files, and how far everything is.

use std::ops::Range;

use haul_units::{BitRate, Bytes};

use super::piece::PieceId;
use crate::catalogue::{FileId, ServerId};

/// Why a server is told to send something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Nobody has been told before.
    Next,
    /// Taken from a server that would have sent it later.
    Taken(ServerId),
    /// Another one sends it too, and will be late.
    Twice(ServerId),
}

/// What the driver is to tell a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Send this range of this file, after what you have been told before. An empty file has an empty range.
    Send {
        /// By which its arrivals are told.
        piece: PieceId,
        /// Who is told.
        server: ServerId,
        /// Of which file.
        file: FileId,
        /// Which bytes.
        range: Range<u64>,
        /// Why.
        why: Why,
    },
    /// Stop before this byte; where that is the beginning of the piece, or behind it, do not send it at all. What is sent all the same
    /// may be told by `handle_arrived`.
    Shorten {
        /// Which piece.
        piece: PieceId,
        /// Who is told.
        server: ServerId,
        /// The first byte that it need not send.
        end: u64,
    },
    /// Send no faster than this, or again as fast as you can. The rate is of content, without what the transport adds.
    Limit {
        /// Who is told.
        server: ServerId,
        /// What it is to keep below.
        limit: Option<BitRate>,
    },
    /// There is room for this on the client's link, for others have been told to be slower. The rate is of content too.
    Room {
        /// Who is told.
        server: ServerId,
        /// What it may have soon.
        rate: BitRate,
    },
}

/// What has become of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// All of it has come.
    Complete(FileId),
    /// No server holds it any more.
    Lost(FileId),
}

/// How far everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status {
    /// All bytes of all files.
    pub total: Bytes,
    /// Bytes that have come, each counted once.
    pub arrived: Bytes,
    /// Bytes that came again, or were for nothing.
    pub wasted: Bytes,
    /// Bytes that somebody has been told to send and that have not come.
    pub in_flight: Bytes,
    /// Files that have not come.
    pub files_left: usize,
}

/// How one server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServerStatus {
    /// Can be given work.
    pub is_up: bool,
    /// Has been silent for too long.
    pub is_stalled: bool,
    /// What is expected of it.
    pub rate: BitRate,
    /// Bytes that came from it before they came from others.
    pub delivered: Bytes,
    /// Bytes that it has been told to send and that have not come.
    pub in_flight: Bytes,
}
