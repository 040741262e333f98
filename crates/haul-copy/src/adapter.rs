//! The file engine's view of a connection.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use haul::{Block, BlockReceiver, BlockSender, Connection};
use haul_files::{BlockRx, BlockTx, Left, Transport};
use haul_units::BitRate;

use super::CLOSE_ABORTED;

/// A connection that carries the blocks of one copy.
pub struct ConnectionTransport {
    connection: Connection,
    /// What it sends at most, whoever asks.
    most: Option<BitRate>,
}

impl ConnectionTransport {
    /// One that sends as fast as it goes.
    pub const fn new(connection: Connection) -> Self {
        Self { connection, most: None }
    }

    /// One that is never told to send faster than `most`, which bounds the connection already.
    pub const fn bounded(connection: Connection, most: Option<BitRate>) -> Self {
        Self { connection, most }
    }
}

impl Transport for ConnectionTransport {
    type Tx = OutgoingBlocks;
    type Rx = IncomingBlocks;

    fn open_blocks(&self) -> io::Result<OutgoingBlocks> {
        Ok(OutgoingBlocks { blocks: self.connection.open_blocks()?, taken: AtomicU64::new(0) })
    }

    fn accept_blocks(&self) -> io::Result<IncomingBlocks> {
        Ok(IncomingBlocks(self.connection.accept_blocks()?))
    }

    fn limit(&self, rate: Option<BitRate>) {
        self.connection.set_rate_limit([self.most, rate].into_iter().flatten().min());
    }

    fn abort(&self, reason: &str) {
        self.connection.close(CLOSE_ABORTED, reason);
    }
}

/// Blocks to the peer.
pub struct OutgoingBlocks {
    blocks: BlockSender,
    /// Bytes given to it.
    taken: AtomicU64,
}

impl BlockTx for OutgoingBlocks {
    fn buffer(&self) -> Vec<u8> {
        self.blocks.buffer()
    }

    fn send(&self, block: Vec<u8>) -> io::Result<()> {
        let length = block.len() as u64;
        self.blocks.send(block)?;
        self.taken.fetch_add(length, Ordering::Relaxed);
        Ok(())
    }

    fn left(&self) -> Option<Left> {
        let taken = self.taken.load(Ordering::Relaxed);
        Some(Left { taken, left: self.blocks.sent()?.min(taken) })
    }

    fn finish(&self) -> io::Result<()> {
        Ok(self.blocks.finish()?)
    }
}

/// Blocks from the peer.
pub struct IncomingBlocks(BlockReceiver);

impl BlockRx for IncomingBlocks {
    type Block = IncomingBlock;

    fn recv(&self) -> io::Result<Option<IncomingBlock>> {
        Ok(self.0.recv()?.map(IncomingBlock))
    }
}

/// A block; its memory goes back to the transport when dropped.
pub struct IncomingBlock(Block);

impl AsRef<[u8]> for IncomingBlock {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}
