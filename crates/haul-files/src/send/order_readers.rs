//! The readers of what is ordered.
//!
//! After each piece is read, and before it is sent, its file is compared with what the scan saw: so all that leaves belongs to the content that was announced, and an
//! order that fails leaves nothing wrong behind.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::Sender;
use super::orders::{Job, Opened, Orders};
use super::read::Failed;
use super::source::SourceFile;
use crate::block::{self, MAX_CONTENT, Piece};
use crate::clock::{self, timed};
use crate::locks::lock;
use crate::protocol::{Message, OrderEnd};
use crate::report::Waits;
use crate::store::{Content, Store};
use crate::transport::{BlockTx, Left, Transport};
use haul_faults::{CopyError, Why};

impl<T: Transport, S: Store> Sender<'_, T, S> {
    /// Works off the orders; one call a thread.
    pub(super) fn read_orders(&self, orders: &Orders<S::File>, tx: &T::Tx) -> Result<(), CopyError> {
        let mut reader = Reader { sender: self, orders, tx, waits: Waits::default(), departures: Departures::start() };
        let result = reader.work();
        *lock(&self.waits) += reader.waits;
        result
    }
}

struct Reader<'a, T: Transport, S: Store> {
    sender: &'a Sender<'a, T, S>,
    orders: &'a Orders<S::File>,
    tx: &'a T::Tx,
    waits: Waits,
    departures: Departures,
}

/// How fast blocks leave.
struct Departures {
    at: Instant,
    left: u64,
    /// Bytes a second, of late; none before the first have left.
    rate: Option<f64>,
    /// What may wait in the transport.
    allowed: u64,
}

/// What was given to the transport leaves, whatever is ordered then: it is to be little, and enough that the transport never has to wait. What leaves in so long ..
const AHEAD: Duration = Duration::from_millis(50);
/// .. or two blocks.
const LEAST_AHEAD: u64 = 2 * MAX_CONTENT as u64;
/// That is looked at again after half of the time in which it should have come to that, and after this at the earliest: nobody wakes up for less ..
const SOONEST: Duration = Duration::from_millis(2);
/// .. and at the latest after half of what may wait: so much leaves unseen if the path has just become twice as fast.
const LATEST: Duration = Duration::from_millis(25);

impl Departures {
    fn start() -> Self {
        Self { at: clock::now(), left: 0, rate: None, allowed: LEAST_AHEAD }
    }

    /// How long to wait before another block is given to the transport, or this is asked again; nothing if it may be now.
    fn wait(&mut self, so_far: Left, now: Instant) -> Option<Duration> {
        let passed = now - self.at;
        if passed >= AHEAD {
            let rate = so_far.left.saturating_sub(self.left) as f64 / passed.as_secs_f64();
            self.allowed = LEAST_AHEAD.max((rate * AHEAD.as_secs_f64()) as u64);
            (self.at, self.left, self.rate) = (now, so_far.left, (rate > 0.0).then_some(rate));
        }
        let beyond = (so_far.taken - so_far.left + 1).checked_sub(self.allowed).filter(|beyond| *beyond > 0)?;
        let half = self.rate.map_or(SOONEST, |rate| Duration::try_from_secs_f64(beyond as f64 / rate / 2.0).unwrap_or(LATEST));
        Some(half.clamp(SOONEST, LATEST))
    }
}

impl<T: Transport, S: Store> Reader<'_, T, S> {
    fn work(&mut self) -> Result<(), CopyError> {
        let (sender, orders) = (self.sender, self.orders);
        loop {
            self.let_leave()?;
            let Some(job) = timed(&mut self.waits.plan, || orders.next(|| sender.check()))? else { break };
            let over = match job {
                Job::Batch(files) => self.batch(&files)?,
                Job::Piece(number, file, content, offset, length) => {
                    let sent = self.piece(number, &file, content, offset, length)?;
                    orders.done(number, sent).into_iter().collect()
                }
            };
            if !over.is_empty() {
                sender.session.send(&Message::OrderEnds(over))?;
            }
        }
        Ok(())
    }

    /// Waits while the transport has enough to send: what is not given to it can still be ordered otherwise.
    fn let_leave(&mut self) -> Result<(), CopyError> {
        let Self { sender, tx, waits, departures, .. } = self;
        timed(&mut waits.transport, || {
            while let Some(wait) = tx.left().and_then(|so_far| departures.wait(so_far, clock::now())) {
                sender.check()?;
                thread::park_timeout(wait);
            }
            Ok(())
        })
    }

    fn batch(&mut self, files: &[(u64, Arc<SourceFile>)]) -> Result<Vec<OrderEnd>, CopyError> {
        let mut block = self.tx.buffer();
        let content: u64 = files.iter().map(|(_, file)| file.state.size).sum();
        block.reserve(content as usize + files.len() * 56 + 8);
        let mut pieces = Vec::with_capacity(files.len());
        let mut done = Vec::with_capacity(files.len());
        for (number, file) in files {
            let (start, size) = (block.len(), file.state.size as usize);
            let read = timed(&mut self.waits.read, || {
                let open = self.sender.open(file).map_err(why)?;
                read_unchanged(&open, file, &mut block, 0, size)
            });
            if let Err(why) = read {
                block.truncate(start);
                done.push((*number, Err(why)));
                continue;
            }
            let verify = self.sender.job.options.verify.hashes();
            let hash = timed(&mut self.waits.hash, || block::hash(block.get(start..).unwrap_or_default(), verify));
            pieces.push(Piece { file: file.entry.id, offset: 0, length: size as u32, whole: true, hash });
            done.push((*number, Ok(size as u64)));
        }
        self.emit(block, &pieces)?;
        Ok(done.into_iter().filter_map(|(number, sent)| self.orders.done(number, sent)).collect())
    }

    /// Sends a piece of a file, without its holes; how many bytes that were, or why it could not be read.
    fn piece(
        &mut self,
        number: u64,
        file: &Arc<SourceFile>,
        content: Option<Arc<Opened<S::File>>>,
        offset: u64,
        length: usize,
    ) -> Result<Result<u64, Why>, CopyError> {
        let content = match content.map_or_else(|| self.open(file), Ok) {
            Ok(content) => content,
            Err(why) => return Ok(Err(why)),
        };
        self.orders.opened(number, &content);
        let (mut at, end, mut sent) = (offset, offset + length as u64, 0);
        while at < end {
            let run = if content.sparse {
                let (start, stop) = content.file.data_after(at).unwrap_or((file.state.size, file.state.size));
                if start >= end {
                    self.orders.skip(number, start);
                    break;
                }
                (start.max(at), stop.min(end))
            } else {
                (at, end)
            };
            let mut block = self.tx.buffer();
            block.reserve((run.1 - run.0) as usize + 64);
            let read = || read_unchanged(&content.file, file, &mut block, run.0, (run.1 - run.0) as usize);
            if let Err(why) = timed(&mut self.waits.read, read) {
                return Ok(Err(why));
            }
            let verify = self.sender.job.options.verify.hashes();
            let hash = timed(&mut self.waits.hash, || block::hash(&block, verify));
            let piece = Piece { file: file.entry.id, offset: run.0, length: block.len() as u32, whole: false, hash };
            self.emit(block, &[piece])?;
            sent += u64::from(piece.length);
            at = run.1;
        }
        if content.sparse && !content.file.metadata().is_ok_and(|there| there.source() == file.state) {
            // Its holes may be none any more.
            return Ok(Err(Why::Changed));
        }
        Ok(Ok(sent))
    }

    fn open(&mut self, file: &SourceFile) -> Result<Arc<Opened<S::File>>, Why> {
        timed(&mut self.waits.read, || {
            let open = self.sender.open(file).map_err(why)?;
            let there = open.metadata()?;
            if there.source() != file.state {
                return Err(Why::Changed);
            }
            Ok(Arc::new(Opened { file: open, sparse: there.data < there.size }))
        })
    }

    fn emit(&mut self, mut block: Vec<u8>, pieces: &[Piece]) -> Result<(), CopyError> {
        if pieces.is_empty() {
            return Ok(());
        }
        block::seal(&mut block, pieces);
        timed(&mut self.waits.transport, || self.tx.send(block)).map_err(CopyError::Connection)
    }
}

/// Appends a range of a file that is what was announced, before as after.
fn read_unchanged(open: &impl Content, file: &SourceFile, block: &mut Vec<u8>, offset: u64, length: usize) -> Result<(), Why> {
    let read = open.read_at(block, offset, length)?;
    if read < length || open.metadata()?.source() != file.state { Err(Why::Changed) } else { Ok(()) }
}

fn why(failed: Failed) -> Why {
    if let Failed::Why(why) = failed { why } else { Why::Changed }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_waits_in_the_transport_and_what_leaves_in_a_moment_may() {
        let mut departures = Departures::start();
        let at = |ms| departures.at + Duration::from_millis(ms);
        let (early, later, last) = (at(1), at(100), at(200));
        let mib = |mib: u64| mib << 20;
        let so_far = |taken, left| Left { taken: mib(taken), left: mib(left) };
        assert!(departures.wait(so_far(1, 0), early).is_none());
        // Nobody knows yet how fast it leaves.
        assert_eq!(departures.wait(so_far(2, 0), early), Some(SOONEST));
        // 100 MiB in 100 ms: 50 may wait.
        assert!(departures.wait(so_far(149, 100), later).is_none() && departures.wait(so_far(150, 100), later).is_some());
        // Nothing has left since: two blocks again.
        assert!(departures.wait(so_far(102, 100), last).is_some() && departures.wait(so_far(101, 100), last).is_none());
    }

    #[test]
    fn it_is_looked_at_when_about_enough_has_left() {
        let mut departures = Departures::start();
        let start = departures.at;
        let (mut given, mut left, mut looks) = (2_u64 << 20, 0, 0);
        let mut now = start;
        // 10 MB/s for a minute: a block leaves in a tenth of a second, and the transport never runs empty.
        while now < start + Duration::from_secs(60) {
            let passed = ((now - start).as_secs_f64() * 10e6) as u64;
            assert!(passed < given, "nothing was left to send");
            left = passed.max(left);
            match departures.wait(Left { taken: given, left }, now) {
                None => given += MAX_CONTENT as u64,
                Some(wait) => {
                    looks += 1;
                    now += wait;
                }
            }
        }
        assert!((600..6000).contains(&looks), "{looks} looks for 572 blocks");
    }
}
