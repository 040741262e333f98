//! The file engine's view of a connection.

use std::io;

use haul::{Block, BlockReceiver, BlockSender, Connection};
use haul_files::{BlockRx, BlockTx, Transport};

use super::CLOSE_ABORTED;

/// A connection that carries the blocks of one copy.
pub struct ConnectionTransport(pub Connection);

impl Transport for ConnectionTransport {
    type Tx = OutgoingBlocks;
    type Rx = IncomingBlocks;

    fn open_blocks(&self) -> io::Result<OutgoingBlocks> {
        Ok(OutgoingBlocks(self.0.open_blocks()?))
    }

    fn accept_blocks(&self) -> io::Result<IncomingBlocks> {
        Ok(IncomingBlocks(self.0.accept_blocks()?))
    }

    fn abort(&self, reason: &str) {
        self.0.close(CLOSE_ABORTED, reason);
    }
}

/// Blocks to the peer.
pub struct OutgoingBlocks(BlockSender);

impl BlockTx for OutgoingBlocks {
    fn buffer(&self) -> Vec<u8> {
        self.0.buffer()
    }

    fn send(&self, block: Vec<u8>) -> io::Result<()> {
        Ok(self.0.send(block).map(drop)?)
    }

    fn finish(&self) -> io::Result<()> {
        Ok(self.0.finish()?)
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
