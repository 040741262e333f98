//! What the engine needs of a transport: an ordered control stream and blocks in any order.
//!
//! ```text
//!   control  <------------------ frames, in order ------------------>
//!   blocks   sender  == self-describing messages, any order ==>  receiver
//! ```
//!
//! A block is at most [`MAX_BLOCK`](crate::block::MAX_BLOCK) bytes. The engine never relies on the order of blocks, nor on the order between blocks and control.

use std::io::{self, Read, Write};
use std::sync::Arc;
use std::time::Duration;

use haul_units::BitRate;

use crate::block::{self, MalformedBlock, Piece};

/// The sending end of the blocks of one copy.
pub trait BlockTx: Send + Sync {
    /// An empty buffer to fill and hand to [`send`](Self::send); with the capacity of an earlier block where there is one.
    fn buffer(&self) -> Vec<u8>;
    /// Sends one block; waits while the transport can take no more.
    fn send(&self, block: Vec<u8>) -> io::Result<()>;
    /// Bytes of blocks that were sent, and how many of these have left; none where the transport does not tell.
    fn left(&self) -> Option<Left> {
        None
    }
    /// Says that no block follows and waits until the peer's transport has all of them.
    fn finish(&self) -> io::Result<()>;
}

/// How far a transport is with what it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Left {
    /// Bytes that it has taken.
    pub taken: u64,
    /// Bytes of these that have left, each counted once.
    pub left: u64,
}

/// The receiving end of the blocks of one copy. Several threads may wait in [`recv`](Self::recv).
pub trait BlockRx: Send + Sync {
    /// The content of a block; dropping it gives the transport its memory back.
    type Block: AsRef<[u8]> + Send + Sync;
    /// Whether the content of all pieces is known to be what their hashes say, because who hands them over inside this process has compared it: then
    /// the receiver does not do it again.
    const CHECKED: bool = false;
    /// The next block in whatever order they arrive; `None` (again and again) once the sender has finished and all were taken.
    fn recv(&self) -> io::Result<Option<Self::Block>>;
    /// The pieces of a block with their content, in order: what [`block::open`] finds in it, unless it comes from inside this process in another form.
    fn pieces(block: &Self::Block) -> Result<Vec<(Piece, &[u8])>, MalformedBlock> {
        block::open(block.as_ref())
    }
}

/// Opens the block stream in either direction, and ends everything.
pub trait Transport: Send + Sync + 'static {
    /// Blocks to the peer.
    type Tx: BlockTx;
    /// Blocks from the peer.
    type Rx: BlockRx;
    /// Opens the blocks towards the peer; once a copy.
    fn open_blocks(&self) -> io::Result<Self::Tx>;
    /// Takes the blocks that the peer opened; waits for them.
    fn accept_blocks(&self) -> io::Result<Self::Rx>;
    /// Sends no faster than this from now on, besides what bounds it anyway; none: that bound is lifted. A transport that cannot goes on as it did.
    fn limit(&self, _rate: Option<BitRate>) {}
    /// The peer's link has room for this: where less is sent now, it may be sent soon. A transport that cannot goes on as it did.
    fn take_room(&self, _rate: BitRate) {}
    /// How long nothing has come from the peer; none where it cannot vanish without this side being told. An error once the connection is over.
    fn silence(&self) -> io::Result<Option<Duration>> {
        Ok(None)
    }
    /// Ends the connection: every call that waits in the control halves or in the blocks returns an error soon. May be called more than once, from any thread.
    fn abort(&self, reason: &str);
}

/// One connection as the engine sees it.
///
/// What is written to `control_out` counts as sent once `flush` returns; the engine flushes after the last message, and the owner of
/// the connection lets it arrive (waits for acknowledgement) before closing.
pub struct Link<T> {
    /// Control frames from the peer.
    pub control_in: Box<dyn Read + Send>,
    /// Control frames to the peer.
    pub control_out: Box<dyn Write + Send>,
    /// The blocks and the emergency exit.
    pub transport: Arc<T>,
}
