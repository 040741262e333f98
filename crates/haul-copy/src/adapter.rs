//! The file engine's view of a connection.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use haul::{Block, BlockReceiver, BlockSender, Connection};
use haul_files::block::MAX_BLOCK;
use haul_files::{BlockRx, BlockTx, Left, Transport};
use haul_squeeze::{is_packed, unpack};
use haul_units::BitRate;

use super::CLOSE_ABORTED;
use super::squeeze::Squeeze;
use crate::clock;
use crate::parts::Marks;

/// A connection that carries the blocks of one copy.
pub struct ConnectionTransport {
    connection: Connection,
    /// What it sends at most, whoever asks.
    most: Option<BitRate>,
    /// Packed blocks are taken, and made once the peer takes them too; none: they are malformed.
    packing: Option<Arc<AtomicBool>>,
    /// Where is noted when blocks come and go.
    marks: Arc<Marks>,
}

impl ConnectionTransport {
    /// One that sends as fast as it goes.
    pub fn new(connection: Connection) -> Self {
        Self::bounded(connection, None)
    }

    /// One that is never told to send faster than `most`, which bounds the connection already.
    pub fn bounded(connection: Connection, most: Option<BitRate>) -> Self {
        Self { connection, most, packing: None, marks: Arc::default() }
    }

    /// Takes packed blocks, and makes some, while the peer takes them.
    #[must_use]
    pub fn packing(self, packing: Option<Arc<AtomicBool>>) -> Self {
        Self { packing, ..self }
    }

    /// Notes there when blocks come and go.
    pub(crate) fn noting(self, marks: Arc<Marks>) -> Self {
        Self { marks, ..self }
    }
}

impl Transport for ConnectionTransport {
    type Tx = OutgoingBlocks;
    type Rx = IncomingBlocks;

    fn open_blocks(&self) -> io::Result<OutgoingBlocks> {
        let blocks = self.connection.open_blocks()?;
        let squeeze = self.packing.clone().map(|willing| Squeeze::new(self.connection.clone(), willing));
        Ok(OutgoingBlocks { blocks, taken: AtomicU64::new(0), squeeze, marks: Arc::clone(&self.marks) })
    }

    fn accept_blocks(&self) -> io::Result<IncomingBlocks> {
        let (unpacks, marks) = (self.packing.is_some(), Arc::clone(&self.marks));
        Ok(IncomingBlocks { blocks: self.connection.accept_blocks()?, unpacks, marks })
    }

    fn limit(&self, rate: Option<BitRate>) {
        self.connection.set_rate_limit([self.most, rate].into_iter().flatten().min());
    }

    fn take_room(&self, rate: BitRate) {
        self.connection.take_room(rate);
    }

    fn silence(&self) -> io::Result<Option<Duration>> {
        match self.connection.end() {
            Some(over) => Err(over.into()),
            None => Ok(Some(self.connection.stats().silence)),
        }
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
    squeeze: Option<Squeeze>,
    marks: Arc<Marks>,
}

impl BlockTx for OutgoingBlocks {
    fn buffer(&self) -> Vec<u8> {
        self.blocks.buffer()
    }

    fn send(&self, block: Vec<u8>) -> io::Result<()> {
        let block = match &self.squeeze {
            Some(squeeze) => squeeze.squeezed(block, || self.left(), || self.blocks.buffer()),
            None => block,
        };
        let length = block.len() as u64;
        if self.taken.load(Ordering::Relaxed) == 0 {
            self.marks.hands_over(clock::now());
        }
        self.blocks.send(block)?;
        self.taken.fetch_add(length, Ordering::Relaxed);
        Ok(())
    }

    fn left(&self) -> Option<Left> {
        let taken = self.taken.load(Ordering::Relaxed);
        Some(Left { taken, left: self.blocks.sent()?.min(taken) })
    }

    fn finish(&self) -> io::Result<()> {
        self.marks.handed_all(clock::now());
        self.blocks.finish()?;
        self.marks.all_arrived(clock::now());
        Ok(())
    }
}

/// Blocks from the peer.
pub struct IncomingBlocks {
    blocks: BlockReceiver,
    unpacks: bool,
    marks: Arc<Marks>,
}

impl BlockRx for IncomingBlocks {
    type Block = IncomingBlock;

    fn recv(&self) -> io::Result<Option<IncomingBlock>> {
        let Some(block) = self.blocks.recv()? else {
            self.marks.ends(clock::now());
            return Ok(None);
        };
        self.marks.comes(clock::now());
        // One that cannot be unpacked, or was not to be packed, stays as it is: no block, which is for the engine to say.
        let unpacked = (self.unpacks && is_packed(&block)).then(|| unpack(&block, MAX_BLOCK));
        Ok(Some(IncomingBlock(match unpacked {
            Some(Ok(bytes)) => Content::Unpacked(bytes),
            _ => Content::Plain(block),
        })))
    }
}

/// A block; its memory goes back to the transport when dropped.
pub struct IncomingBlock(Content);

enum Content {
    Plain(Block),
    /// Its memory is whose who took it, and not more than that of one block.
    Unpacked(Vec<u8>),
}

impl AsRef<[u8]> for IncomingBlock {
    fn as_ref(&self) -> &[u8] {
        match &self.0 {
            Content::Plain(block) => block,
            Content::Unpacked(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use haul_squeeze::Packer;

    use super::*;
    use crate::server::tests::connected;

    fn packed(block: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        assert!(Packer::default().pack(block, &mut out));
        out
    }

    fn block(length: usize) -> Vec<u8> {
        let mut block = vec![b'a'; length];
        let piece = haul_files::block::Piece { file: 1, offset: 0, length: length as u32, whole: true, hash: [0; 32] };
        haul_files::block::seal(&mut block, &[piece]);
        block
    }

    /// What comes of a block that a peer sends, whether packed ones are taken or not.
    fn received(sent: &[u8], unpacks: bool) -> Option<usize> {
        let (_server, there, client) = connected();
        let out = ConnectionTransport::new(client).open_blocks().unwrap();
        out.send(sent.to_vec()).unwrap();
        let transport = ConnectionTransport::new(there).packing(unpacks.then(Arc::default));
        let got = transport.accept_blocks().unwrap().recv().unwrap().unwrap();
        let pieces = IncomingBlocks::pieces(&got).ok()?;
        Some(pieces.iter().map(|(_, content)| content.len()).sum())
    }

    #[test]
    fn a_packed_block_is_taken_by_who_has_offered_that_and_by_nobody_else() {
        let plain = block(100_000);
        assert_eq!((received(&plain, false), received(&plain, true)), (Some(100_000), Some(100_000)));
        let small = packed(&plain);
        assert_eq!((received(&small, true), received(&small, false)), (Some(100_000), None));
        let bomb = packed(&vec![0; 64 << 20]);
        assert_eq!(received(&bomb, true), None, "longer than a block");
        assert_eq!(received(&packed(&small.repeat(9)), true), None, "packed twice");
        let (cut, end) = small.split_at(small.len() - 9);
        assert_eq!(received(&[cut, &end[1..]].concat(), true), None, "a byte is missing");
    }

    /// A peer that has not said that it unpacks gets what it understands.
    #[test]
    fn nothing_is_packed_for_who_has_not_said_that_he_takes_it() {
        let (_server, _there, client) = connected();
        let (willing, plain) = (Arc::new(AtomicBool::new(false)), block(500_000));
        let squeeze = Squeeze::new(client, Arc::clone(&willing));
        let asked = std::cell::Cell::new(false);
        let left = || {
            asked.set(true);
            Some(Left { taken: u64::MAX, left: 0 })
        };
        assert!(squeeze.squeezed(plain.clone(), left, Vec::new) == plain && !asked.get());
        willing.store(true, Ordering::Relaxed);
        assert!(squeeze.squeezed(plain.clone(), left, Vec::new) == plain && asked.get(), "the link is not waited for");
    }
}
