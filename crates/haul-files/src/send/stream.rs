//! Reading a stream that may have nothing to say for as long as it likes.
//!
//! A thread of its own waits for it, which is not one of the copy's: a copy that ends meanwhile leaves it behind, and it ends with the stream's next word.

use std::io::{self, Read};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;

use crate::block::MAX_CONTENT;
use crate::clock::POLL;
use crate::job::Stream;
use haul_faults::CopyError;

/// What the thread has read, and into what.
type Filled = (Vec<u8>, io::Result<()>);

/// The stream, with its thread.
pub(super) struct StreamReader {
    empty: SyncSender<Vec<u8>>,
    filled: Receiver<Filled>,
}

impl StreamReader {
    /// Starts the thread.
    pub(super) fn start(stream: Stream<dyn Read + Send>) -> Result<Self, CopyError> {
        let (empty, blocks) = mpsc::sync_channel::<Vec<u8>>(1);
        let (done, filled) = mpsc::sync_channel(1);
        let read = move || {
            for mut block in blocks {
                let result = fill(&mut *stream.lock(), &mut block);
                if done.send((block, result)).is_err() {
                    return;
                }
            }
        };
        let started = thread::Builder::new().name("haul-stream".into()).spawn(read);
        started.map_err(|source| CopyError::System { doing: "starting a thread", source })?;
        Ok(Self { empty, filled })
    }

    /// Fills an empty block with the next [`MAX_CONTENT`] bytes, fewer only at the stream's end. `check` says meanwhile whether anybody wants them.
    pub(super) fn fill(
        &self,
        block: &mut Vec<u8>,
        check: impl Fn() -> Result<(), CopyError>,
    ) -> Result<io::Result<()>, CopyError> {
        let gone = || Ok(Err(io::Error::other("the thread that reads the stream has ended")));
        if self.empty.send(std::mem::take(block)).is_err() {
            return gone();
        }
        loop {
            match self.filled.recv_timeout(POLL) {
                Ok((filled, result)) => {
                    *block = filled;
                    return Ok(result);
                }
                Err(RecvTimeoutError::Disconnected) => return gone(),
                Err(RecvTimeoutError::Timeout) => check()?,
            }
        }
    }
}

fn fill(stream: &mut (dyn Read + Send), block: &mut Vec<u8>) -> io::Result<()> {
    block.reserve(MAX_CONTENT + 64);
    stream.take(MAX_CONTENT as u64).read_to_end(block).map(drop)
}
