//! Parts of files over streams.
//!
//! Over blocks, block `i` is the bytes from `i` MiB on, each of 1 MiB but the last; so they are written where they belong as they come, and the stream must carry
//! nothing else.

use std::ffi::{c_int, c_void};
use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::FromRawFd as _;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use super::blocks::{Receiver, Sender};
use super::stream::Stream;
use crate::failure::{Code, Failure, Outcome, invalid, system, wrong_state};
use crate::waiting::{Gate, Patience, now};

/// The application's function that hears of progress.
pub type ProgressFn = unsafe extern "C" fn(context: *mut c_void, done: i64, total: i64) -> c_int;

/// Bytes of a block of a file.
const BLOCK: usize = 1 << 20;
/// Bytes read or written at once on an ordered stream.
const PIECE: usize = 256 << 10;
/// Between two calls of the application's function.
const TELL_EVERY: Duration = Duration::from_millis(100);

/// A part of a file, and who hears of it.
pub struct Part {
    /// Not ours to close.
    file: ManuallyDrop<File>,
    offset: u64,
    size: Option<u64>,
    tell: Option<ProgressFn>,
    context: *mut c_void,
    total: i64,
    told: Option<Instant>,
}

impl Part {
    /// # Safety
    /// `offset` is null or a number, `tell` takes `context`.
    pub unsafe fn new(fd: c_int, offset: *const i64, size: i64, tell: Option<ProgressFn>, context: *mut c_void) -> Outcome<Self> {
        if fd < 0 {
            return Err(invalid(format!("{fd} is no descriptor")));
        }
        // SAFETY: the caller's promise.
        let offset = unsafe { offset.as_ref() }.ok_or_else(|| invalid("a null pointer where an offset is wanted"))?;
        let offset = u64::try_from(*offset).map_err(|_| invalid(format!("an offset of {offset}")))?;
        let size = if size == -1 { None } else { Some(u64::try_from(size).map_err(|_| invalid(format!("a size of {size}")))?) };
        if size.is_some_and(|size| offset.checked_add(size).is_none_or(|end| end > i64::MAX as u64)) {
            return Err(invalid("an offset and a size beyond what a file can have"));
        }
        // SAFETY: it is used inside this call, and not closed by it.
        let file = ManuallyDrop::new(unsafe { File::from_raw_fd(fd) });
        let total = size.map_or(-1, |size| size as i64);
        Ok(Self { file, offset, size, tell, context, total, told: None })
    }

    /// Finds how much there is, where all of the file is meant and the system says.
    pub fn measure(&mut self) -> Outcome<()> {
        if self.size.is_none() {
            let length = self.file.metadata().map_err(|error| system("the file cannot be looked at", &error))?.len();
            self.total = if length > 0 { length.saturating_sub(self.offset) as i64 } else { -1 };
        }
        Ok(())
    }

    /// What is left after `done` bytes, a block at most.
    fn next(&self, done: u64, at_most: usize) -> usize {
        self.size.map_or(at_most, |size| size.saturating_sub(done).min(at_most as u64) as usize)
    }

    /// Fills `buffer` from the file, less at its end only.
    fn read(&self, buffer: &mut [u8], done: u64) -> Outcome<usize> {
        let mut filled = 0;
        while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
            match self.file.read_at(room, self.offset + done + filled as u64) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(system("the file cannot be read", &error)),
            }
        }
        Ok(filled)
    }

    fn write(&self, bytes: &[u8], at: u64) -> Outcome<()> {
        let place = self
            .offset
            .checked_add(at)
            .filter(|place| place.checked_add(bytes.len() as u64).is_some_and(|end| i64::try_from(end).is_ok()));
        let place = place.ok_or_else(|| Failure::new(Code::Protocol, "the peer sends beyond what a file can have"))?;
        self.file.write_all_at(bytes, place).map_err(|error| system("the file cannot be written", &error))
    }

    pub fn tell(&mut self, done: u64, is_over: bool) -> Outcome<()> {
        let Some(tell) = self.tell else { return Ok(()) };
        if !is_over && self.told.is_some_and(|told| told.elapsed() < TELL_EVERY) {
            return Ok(());
        }
        self.told = Some(now());
        // SAFETY: the application's promise: its function takes its context.
        let stop = unsafe { tell(self.context, done as i64, self.total) };
        if stop != 0 && !is_over {
            return Err(Failure::new(Code::Cancelled, format!("stopped by the application after {done} bytes")));
        }
        Ok(())
    }
}

/// How many bytes went, and why no more.
pub type Transferred = (u64, Outcome<()>);

/// Piece by piece, each `one` from where the last one ended, until one is empty.
fn piecewise(part: &mut Part, mut one: impl FnMut(&Part, u64) -> Outcome<u64>) -> Transferred {
    let mut done = 0;
    let result = loop {
        match one(part, done) {
            Ok(0) => break Ok(()),
            Ok(moved) => done += moved,
            Err(failure) => break Err(failure),
        }
        if let Err(failure) = part.tell(done, false) {
            break Err(failure);
        }
    };
    (done, result)
}

pub fn send_ordered(part: &mut Part, gate: &Gate, patience: Patience, stream: &Stream) -> Transferred {
    let mut buffer = vec![0; PIECE];
    piecewise(part, |part, done| {
        let wanted = part.next(done, PIECE);
        let read = part.read(buffer.get_mut(..wanted).unwrap_or_default(), done)?;
        if read == 0 {
            return Ok(0);
        }
        Ok(stream.send(gate, patience, buffer.get(..read).unwrap_or_default())? as u64)
    })
}

pub fn send_blocks(part: &mut Part, gate: &Gate, patience: Patience, sender: &Sender) -> Transferred {
    if sender.use_for_good() {
        return (0, Err(wrong_state("blocks were sent on this stream: a file wants one of its own")));
    }
    let (done, result) = piecewise(part, |part, done| {
        let mut buffer = sender.get_open()?.buffer();
        buffer.resize(part.next(done, BLOCK), 0);
        let read = part.read(&mut buffer, done)?;
        buffer.truncate(read);
        if read > 0 {
            sender.send(gate, patience, &mut Some(buffer.into()))?;
        }
        Ok(read as u64)
    });
    (done, result.and_then(|()| sender.finish()))
}

pub fn receive_ordered(part: &mut Part, gate: &Gate, patience: Patience, stream: &Stream) -> Transferred {
    let mut buffer = vec![0; PIECE];
    piecewise(part, |part, done| {
        let room = buffer.get_mut(..part.next(done, PIECE)).unwrap_or_default();
        if room.is_empty() {
            return Ok(0);
        }
        let read = gate.wait(patience, |cx| stream.poll_receive(cx, room))?;
        part.write(room.get(..read).unwrap_or_default(), done)?;
        Ok(read as u64)
    })
}

pub fn receive_blocks(part: &mut Part, gate: &Gate, patience: Patience, receiver: &Receiver) -> Transferred {
    let (mut done, mut end) = (0, 0);
    let mut one = |done: &mut u64| -> Outcome<bool> {
        let Some(block) = receiver.receive(gate, patience)? else { return Ok(false) };
        let strange = || Failure::new(Code::Protocol, "the peer sends blocks that are no file's");
        let at = block.index().checked_mul(BLOCK as u64).filter(|_| block.len() <= BLOCK).ok_or_else(strange)?;
        let block_end = at.checked_add(block.len() as u64).ok_or_else(strange)?;
        if part.size.is_some_and(|size| block_end > size) {
            return Err(Failure::new(Code::Protocol, "the peer sends more than was asked for"));
        }
        part.write(&block, at)?;
        end = end.max(block_end);
        *done += block.len() as u64;
        part.tell(*done, false)?;
        Ok(true)
    };
    let result = loop {
        match one(&mut done) {
            Ok(true) => {}
            // Every block has come once: what was written has no gaps if it is as long as it reaches.
            Ok(false) if done == end && part.size.is_none_or(|size| size == done) => break Ok(()),
            Ok(false) => {
                break Err(Failure::new(
                    Code::Protocol,
                    format!("the peer has sent {done} bytes that are not the file asked for"),
                ));
            }
            Err(failure) => break Err(failure),
        }
    };
    (done, result)
}
