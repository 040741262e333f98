//! Reading back: whether the disk gives what was written ([`Verify::ReadBack`]).
//!
//! After the sync and before a file gets its name, its pieces are read past the page cache (`O_DIRECT`), or where the file system does not do that through
//! the cache, which is told to drop them first; and compared with the hashes that came with them. Holes are not read. A file that differs never
//! gets its name, and is a problem.

use std::fs::File;
use std::sync::atomic::Ordering;

use rustix::fs::{Advice, AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::Receiver;
use super::stage::part_name;
use super::tree::Meta;
use crate::block::{Hash, MAX_CONTENT};
use crate::error::{Why, WirePath};
use crate::job::Verify;
use crate::meta;
use crate::observe::Event;
use crate::resolve::path_of;
use crate::transport::Transport;

/// A piece that was written: offset, length, hash.
pub(super) type Sent = (u64, u32, Hash);

/// Pieces that a copy remembers until their files are complete (48 MiB); then the files with many are read back in parts.
const MAX_REMEMBERED: usize = 1 << 20;
/// Fewest pieces that are worth a sync of their own.
pub(super) const FEWEST_AT_ONCE: usize = 1 << 10;
/// Direct reading wants offsets, lengths and addresses at multiples of the disk's blocks: no disk has larger ones.
const ALIGNMENT: usize = 4096;

/// How a file was read.
#[derive(Clone, Copy)]
enum How {
    Direct,
    Uncached,
}

/// Memory to read into, used again and again.
#[derive(Default)]
pub(super) struct ReadBackBuffer(Vec<u8>);

impl ReadBackBuffer {
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
    fn check(&mut self, open: impl Fn(OFlags) -> Result<File, Errno>, pieces: &[Sent]) -> Result<How, Why> {
        match open(OFlags::DIRECT).and_then(|file| self.has_all(&file, pieces)) {
            Ok(true) => return Ok(How::Direct),
            Ok(false) => return Err(Why::ReadBackMismatch),
            // Not there, or not at such offsets.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => {}
            Err(errno) => return Err(errno.into()),
        }
        let file = open(OFlags::empty())?;
        // A file system that keeps nothing else than its cache takes the advice and drops nothing.
        rustix::fs::fadvise(&file, 0, None, Advice::DontNeed)?;
        if self.has_all(&file, pieces)? { Ok(How::Uncached) } else { Err(Why::ReadBackMismatch) }
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

impl<T: Transport> Receiver<'_, T> {
    /// The pieces to remember, if they are to be read back.
    pub(super) fn to_read_back(&self, pieces: impl IntoIterator<Item = Sent>) -> Vec<Sent> {
        if self.options.verify != Verify::ReadBack {
            return Vec::new();
        }
        // What has no hash is of a run that hashed nothing, and then it does not count, or of a file without content.
        let pieces: Vec<Sent> = pieces.into_iter().filter(|(_, length, _)| *length > 0).collect();
        self.remembered.fetch_add(pieces.len(), Ordering::Relaxed);
        pieces
    }

    /// Whether files with many pieces should not wait for their end.
    pub(super) fn remembers_too_much(&self) -> bool {
        self.remembered.load(Ordering::Relaxed) > MAX_REMEMBERED
    }

    /// Reads back a part file that is on disk.
    pub(super) fn read_back(
        &self,
        buffer: &mut ReadBackBuffer,
        path: &WirePath,
        part: u64,
        meta: &Meta,
        pieces: &[Sent],
    ) -> Result<(), Why> {
        self.remembered.fetch_sub(pieces.len(), Ordering::Relaxed);
        if self.session.observer.wants_files() {
            self.session.observer.event(Event::ReadingBack { path: &path_of(path.0.clone()) });
        }
        let how = match buffer.check(|flags| self.tree.stage.reopen(part, OFlags::RDONLY | flags), pieces) {
            Err(why) if why == Why::from(Errno::ACCESS) => {
                // Its mode keeps its owner out: for the time of reading, in a directory that nobody else enters, it does not.
                let (dir, name) = (&self.tree.stage.dir, part_name(part));
                rustix::fs::chmodat(dir, &*name, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
                let how = buffer.check(|flags| self.tree.stage.reopen(part, OFlags::RDONLY | flags), pieces);
                rustix::fs::chmodat(dir, &*name, meta::mode(meta.final_mode), AtFlags::empty())?;
                how
            }
            how => how,
        }?;
        let count = match how {
            How::Direct => &self.counts.direct_files,
            How::Uncached => &self.counts.uncached_files,
        };
        count.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Reads back what was copied to another file system at its place there. What differs does not stay.
    pub(super) fn read_back_there(
        &self,
        buffer: &mut ReadBackBuffer,
        name: &[u8],
        parent: u64,
        pieces: &[Sent],
    ) -> Result<(), Why> {
        if pieces.is_empty() {
            return Ok(());
        }
        let dir = self.tree.dirs.open(parent)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let open = |more| rustix::fs::openat(&*dir, name, flags | more, Mode::empty()).map(File::from);
        let result = buffer.check(open, pieces).map(drop);
        if result == Err(Why::ReadBackMismatch) {
            let _ = rustix::fs::unlinkat(&*dir, name, AtFlags::empty());
        }
        result
    }

    /// Reads back pieces of a file that is not complete, so that they need not be remembered.
    pub(super) fn read_back_early(&self, part: u64, pieces: &[Sent]) -> Result<(), Why> {
        self.remembered.fetch_sub(pieces.len(), Ordering::Relaxed);
        let open = |flags| self.tree.stage.reopen(part, OFlags::RDONLY | flags);
        rustix::fs::fdatasync(open(OFlags::empty())?)?;
        ReadBackBuffer::default().check(open, pieces).map(drop)
    }
}
