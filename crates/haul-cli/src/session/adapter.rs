//! The file engine's view of a connection.

use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use haul::{Block, BlockReceiver, BlockSender, Connection, SendStream};
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

/// The sending half of the control stream: lent to the engine, and kept to see it off.
#[derive(Clone)]
pub struct ControlOut(Arc<Mutex<SendStream>>);

impl ControlOut {
    /// Shares a stream.
    pub fn new(stream: SendStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// Ends the stream.
    pub fn finish(&self) -> io::Result<()> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).finish()?)
    }

    /// Ends the stream, if it has not been, and waits until the peer has all of it.
    pub fn see_off(&self) -> io::Result<()> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.finish()?;
        Ok(stream.wait_acknowledged()?)
    }
}

impl Write for ControlOut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

/// Reads one line of at most `limit` bytes, byte by byte: what follows it belongs to somebody else.
pub fn read_line(reader: &mut impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        reader.read_exact(&mut byte)?;
        match byte {
            [b'\n'] => return Ok(line),
            _ if line.len() == limit => return Err(io::Error::new(io::ErrorKind::InvalidData, "the greeting is too long")),
            [byte] => line.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_where_it_ends() {
        let mut stream = &b"{}\nrest"[..];
        assert_eq!(read_line(&mut stream, 10).expect("a line"), b"{}");
        assert_eq!(stream, b"rest");
    }

    #[test]
    fn a_line_without_end_is_refused() {
        assert_eq!(read_line(&mut &b"abcdef\n"[..], 5).expect_err("long").kind(), io::ErrorKind::InvalidData);
        assert_eq!(read_line(&mut &b"abc"[..], 5).expect_err("cut").kind(), io::ErrorKind::UnexpectedEof);
    }
}
