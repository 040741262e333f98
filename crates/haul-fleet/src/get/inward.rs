//! The link to the receiver inside this process that writes the destination.
//!
//! The control stream is a pair of sockets. Blocks are handed over as they came, with a table of pieces beside them: nothing is copied, and what is not needed of a block is simply not in
//! the table. Their content was compared with its hashes where it came in, so the receiver does not do it again.

use std::collections::VecDeque;
use std::io;
use std::net::Shutdown;
use std::ops::Range;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use haul_files::block::{MalformedBlock, Piece};
use haul_files::{BlockRx, BlockTx, Link, Transport};

/// Blocks that wait for the receiver; its two writers have one each besides.
const MAX_WAITING: usize = 8;

/// A block on its way to the receiver.
pub(super) struct Inbound<B> {
    pub(super) block: B,
    /// What of it is needed, and where that stands in it.
    pub(super) pieces: Vec<(Piece, Range<usize>)>,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Inbound<B> {
    fn as_ref(&self) -> &[u8] {
        self.block.as_ref()
    }
}

/// The receiver's end.
pub(super) struct Inward<B>(Arc<Shared<B>>);

/// The driver's end.
pub(super) struct Outward<B> {
    shared: Arc<Shared<B>>,
    /// Control, both ways.
    pub(super) control: UnixStream,
}

struct Shared<B> {
    state: Mutex<State<B>>,
    changed: Condvar,
    /// To end the control stream with.
    control: UnixStream,
}

struct State<B> {
    blocks: VecDeque<Inbound<B>>,
    finished: bool,
    broken: bool,
}

/// The receiver is gone.
pub(super) struct Gone;

/// Both ends.
pub(super) fn pair<B>() -> io::Result<(Outward<B>, Link<Inward<B>>)> {
    let (ours, theirs) = UnixStream::pair()?;
    let state = Mutex::new(State { blocks: VecDeque::new(), finished: false, broken: false });
    let shared = Arc::new(Shared { state, changed: Condvar::new(), control: theirs.try_clone()? });
    let link = Link {
        control_in: Box::new(theirs.try_clone()?),
        control_out: Box::new(theirs),
        transport: Arc::new(Inward(shared.clone())),
    };
    Ok((Outward { shared, control: ours }, link))
}

impl<B> Shared<B> {
    fn lock(&self) -> MutexGuard<'_, State<B>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<B>>) -> MutexGuard<'a, State<B>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        self.lock().broken = true;
        self.changed.notify_all();
        // Fails where it is closed already.
        let _ = self.control.shutdown(Shutdown::Both);
    }
}

impl<B> Outward<B> {
    /// Hands a block over; waits while the receiver has enough.
    pub(super) fn put(&self, block: Inbound<B>) -> Result<(), Gone> {
        let mut state = self.shared.lock();
        while state.blocks.len() >= MAX_WAITING && !state.broken {
            state = self.shared.wait(state);
        }
        if state.broken {
            return Err(Gone);
        }
        state.blocks.push_back(block);
        drop(state);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Whether a block would have to wait.
    pub(super) fn is_full(&self) -> bool {
        self.shared.lock().blocks.len() >= MAX_WAITING
    }

    /// No block follows.
    pub(super) fn finish(&self) {
        self.shared.lock().finished = true;
        self.shared.changed.notify_all();
    }
}

/// Ends it all, as if the sender were gone: what has been handed over is still written.
impl<B> Drop for Outward<B> {
    fn drop(&mut self) {
        self.shared.end();
    }
}

impl<B: AsRef<[u8]> + Send + Sync + 'static> Transport for Inward<B> {
    type Tx = Nowhere;
    type Rx = Self;

    fn open_blocks(&self) -> io::Result<Nowhere> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn accept_blocks(&self) -> io::Result<Self> {
        Ok(Self(self.0.clone()))
    }

    fn abort(&self, _reason: &str) {
        self.0.end();
    }
}

impl<B: AsRef<[u8]> + Send + Sync> BlockRx for Inward<B> {
    type Block = Inbound<B>;
    const CHECKED: bool = true;

    fn recv(&self) -> io::Result<Option<Inbound<B>>> {
        let mut state = self.0.lock();
        loop {
            if let Some(block) = state.blocks.pop_front() {
                drop(state);
                self.0.changed.notify_all();
                return Ok(Some(block));
            }
            if state.broken {
                return Err(io::ErrorKind::ConnectionReset.into());
            }
            if state.finished {
                return Ok(None);
            }
            state = self.0.wait(state);
        }
    }

    fn pieces(block: &Inbound<B>) -> Result<Vec<(Piece, &[u8])>, MalformedBlock> {
        let content = block.block.as_ref();
        let piece = |(piece, range): &(Piece, Range<usize>)| Some((*piece, content.get(range.clone())?));
        block.pieces.iter().map(piece).collect::<Option<_>>().ok_or(MalformedBlock)
    }
}

/// The receiver sends no blocks.
pub(super) struct Nowhere;

impl BlockTx for Nowhere {
    fn buffer(&self) -> Vec<u8> {
        Vec::new()
    }

    fn send(&self, _block: Vec<u8>) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn finish(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(offset: u64, length: u32) -> Piece {
        Piece { file: 1, offset, length, whole: false, hash: [0; 32] }
    }

    #[test]
    fn what_is_not_needed_of_a_block_is_not_there() {
        let (outward, link) = pair::<Vec<u8>>().expect("sockets");
        let rx = link.transport.accept_blocks().expect("a receiver");
        let pieces = vec![(piece(7, 3), 0..3), (piece(90, 4), 5..9)];
        assert!(outward.put(Inbound { block: b"abc--defg".to_vec(), pieces }).is_ok());
        let beyond = vec![(piece(0, 3), 7..10)];
        assert!(outward.put(Inbound { block: b"abc--defg".to_vec(), pieces: beyond }).is_ok());
        outward.finish();
        let block = rx.recv().expect("open").expect("a block");
        let content: Vec<&[u8]> = Inward::pieces(&block).expect("well made").into_iter().map(|(_, content)| content).collect();
        assert_eq!(content, [&b"abc"[..], b"defg"]);
        let block = rx.recv().expect("open").expect("a block");
        assert!(Inward::pieces(&block).is_err());
        assert!(rx.recv().expect("open").is_none());
    }

    #[test]
    fn what_was_handed_over_before_a_break_is_still_there_and_nobody_waits() {
        let (outward, link) = pair::<Vec<u8>>().expect("sockets");
        let rx = link.transport.accept_blocks().expect("a receiver");
        for _ in 0..MAX_WAITING {
            assert!(outward.put(Inbound { block: Vec::new(), pieces: Vec::new() }).is_ok());
        }
        assert!(outward.is_full());
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| outward.put(Inbound { block: Vec::new(), pieces: Vec::new() }));
            outward.shared.end();
            assert!(waits.join().expect("no panic").is_err());
        });
        drop(outward);
        for _ in 0..MAX_WAITING {
            assert!(rx.recv().expect("still there").is_some());
        }
        assert!(rx.recv().is_err());
    }
}
