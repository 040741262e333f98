//! Reading back: past the page cache (`O_DIRECT`), or where the file system does not do that through the cache, which is told to drop it first.

use std::fs::File;
use std::os::fd::OwnedFd;

use rustix::fs::{Advice, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::meta;
use super::stage::{Stage, part_name};
use crate::block::{MAX_CONTENT, Sent};
use crate::store::{ReadHow, StoreError, Written};
use haul_descriptors::open_at;

/// Direct reading wants offsets, lengths and addresses at multiples of the disk's blocks: no disk has larger ones.
const ALIGNMENT: usize = 4096;

/// Memory to read into, used again and again.
pub(super) struct ReadBackBuffer<'a>(pub(super) &'a mut Vec<u8>);

impl ReadBackBuffer<'_> {
    /// Reads back a part file that is on disk, or what was made at its place.
    pub(super) fn written(&mut self, stage: &Stage, what: &Written<'_, OwnedFd>, pieces: &[Sent]) -> Result<ReadHow, StoreError> {
        match *what {
            Written::Unfinished(part) => {
                let open = |flags| stage.open_part(part, OFlags::RDONLY | flags);
                rustix::fs::fdatasync(open(OFlags::empty())?)?;
                self.check(open, pieces)
            }
            Written::Part(part, mode) => {
                let open = |flags| stage.open_part(part, OFlags::RDONLY | flags);
                match self.check(open, pieces) {
                    Err(error) if error == Errno::ACCESS.into() => {
                        // Its mode keeps its owner out: for the time of reading, in a directory that nobody else enters, it does not.
                        let name = part_name(part);
                        rustix::fs::chmodat(&stage.dir, &*name, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
                        let how = self.check(open, pieces);
                        rustix::fs::chmodat(&stage.dir, &*name, meta::mode(mode), AtFlags::empty())?;
                        how
                    }
                    how => how,
                }
            }
            Written::Placed(dir, name) => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
                let result = self.check(|more| open_at(dir, name, flags | more, Mode::empty()).map(File::from), pieces);
                if result == Err(StoreError::Damaged) {
                    let _ = rustix::fs::unlinkat(dir, name, AtFlags::empty());
                }
                result
            }
        }
    }

    /// Room for a piece wherever it begins, at an address that direct reading takes.
    fn aligned(&mut self) -> &mut [u8] {
        self.0.resize(MAX_CONTENT + 3 * ALIGNMENT, 0);
        let start = self.0.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        self.0.get_mut(start..start + MAX_CONTENT + 2 * ALIGNMENT).unwrap_or_default()
    }

    /// Whether `file` has this piece.
    fn has(&mut self, file: &File, (offset, length, hash): &Sent) -> Result<bool, Errno> {
        let buffer = self.aligned();
        let before = *offset as usize % ALIGNMENT;
        let end = before + *length as usize;
        let whole = buffer.get_mut(..end.next_multiple_of(ALIGNMENT)).ok_or(Errno::INVAL)?;
        let mut read = 0;
        while read < end {
            let rest = whole.get_mut(read..).unwrap_or_default();
            match rustix::io::pread(file, rest, offset - before as u64 + read as u64) {
                // Its end, or a read that ends within a block: only there can a file end.
                Ok(n) if n % ALIGNMENT != 0 || n == 0 => {
                    read += n;
                    break;
                }
                Ok(n) => read += n,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        let content = whole.get(before..end).unwrap_or_default();
        Ok(read >= end && blake3::hash(content).as_bytes() == hash)
    }

    /// Whether all pieces are there, and how that was found out. `open` opens the file with more flags.
    fn check(&mut self, open: impl Fn(OFlags) -> Result<File, Errno>, pieces: &[Sent]) -> Result<ReadHow, StoreError> {
        match open(OFlags::DIRECT).and_then(|file| self.has_all(&file, pieces)) {
            Ok(true) => return Ok(ReadHow::Direct),
            Ok(false) => return Err(StoreError::Damaged),
            // Not there, or not at such offsets.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno.into()),
        }
        let file = open(OFlags::empty())?;
        // A file system that keeps nothing else than its cache takes the advice and drops nothing.
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
        if self.has_all(&file, pieces)? { Ok(ReadHow::Uncached) } else { Err(StoreError::Damaged) }
    }

    fn has_all(&mut self, file: &File, pieces: &[Sent]) -> Result<bool, Errno> {
        for piece in pieces {
            if !self.has(file, piece)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
