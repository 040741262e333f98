//! The file engine's view of a connection.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use haul::{Block, BlockReceiver, BlockSender, Connection};
use haul_files::{BlockRx, BlockTx, Left, Transport};

use super::CLOSE_ABORTED;

/// A connection that carries the blocks of one copy.
pub struct ConnectionTransport(pub Connection);

impl Transport for ConnectionTransport {
    type Tx = OutgoingBlocks;
    type Rx = IncomingBlocks;

    fn open_blocks(&self) -> io::Result<OutgoingBlocks> {
        Ok(OutgoingBlocks { blocks: self.0.open_blocks()?, taken: AtomicU64::new(0) })
    }

    fn accept_blocks(&self) -> io::Result<IncomingBlocks> {
        Ok(IncomingBlocks(self.0.accept_blocks()?))
    }

    fn abort(&self, reason: &str) {
        self.0.close(CLOSE_ABORTED, reason);
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
