//! The scan: walks the sources and announces what it finds, without recursion.
//!
//! A directory is read to its end before the next one, its files announced as they come and its subdirectories put on a stack; so one descriptor is open
//! for reading at a time, whatever the depth, and the width of a directory costs no memory. Symbolic links below a source are announced as links.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use haul_units::Bytes;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;

use super::{Origin, Sender, SourceFile};
use crate::descriptors::open_at;
use crate::error::{CopyError, Why, WirePath};
use crate::meta;
use crate::observe::Event;
use crate::protocol::{Entry, Kind, Message, ROOT, Stamp};
use crate::resolve::Top;
use crate::transport::Transport;

/// Entries after which a batch is sent; it starts at one, so that data flows at once.
const MAX_BATCH: usize = 512;
const LISTING_BYTES: usize = 64 << 10;

/// Announces all sources.
pub(super) fn run<T: Transport>(sender: &Sender<'_, T>) -> Result<(), CopyError> {
    let mut scan = Scan {
        sender,
        links: HashMap::new(),
        found: Vec::new(),
        announced: 0,
        batch: 1,
        files: 0,
        bytes: 0,
        listing: vec![MaybeUninit::uninit(); LISTING_BYTES],
    };
    for (index, origin) in sender.job.tops.iter().enumerate() {
        match origin {
            Origin::Named(top) => scan.top(index, top)?,
            Origin::Stream(_) => {
                let name = WirePath(b"stdin".to_vec());
                let mtime = Stamp::default();
                let kind = Kind::Stream { linked: false, replaces: None };
                let entry = Entry { id: 0, parent: ROOT, name, mode: 0o666, mtime, uid: u32::MAX, gid: u32::MAX, kind };
                let state = crate::journal::Source { size: 0, mtime, version: 0 };
                let entry = sender.announce(entry)?;
                scan.files += 1;
                scan.keep(SourceFile { entry, state, top: Some(index), retried: false })?;
            }
        }
    }
    scan.flush(true)?;
    sender.session.send(&Message::ScanDone)?;
    sender.plan.scanned();
    Ok(())
}

struct Scan<'a, T: Transport> {
    sender: &'a Sender<'a, T>,
    /// Files with several names, by device and inode.
    links: HashMap<(u64, u64), u64>,
    /// Files announced in the current batch.
    found: Vec<Arc<SourceFile>>,
    announced: usize,
    batch: usize,
    files: u64,
    bytes: u64,
    listing: Vec<MaybeUninit<u8>>,
}

impl<T: Transport> Scan<'_, T> {
    fn top(&mut self, index: usize, top: &Top) -> Result<(), CopyError> {
        let fail = |why| self.sender.problem(top.spelled.clone(), why);
        let fd = match top.open(OFlags::PATH) {
            Ok(fd) => fd,
            Err(why) => return fail(why),
        };
        let stat = match rustix::fs::fstat(&fd) {
            Ok(stat) => stat,
            Err(errno) => return fail(errno.into()),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if self.sender.job.options.recursive => {
                let entry = self.announce(entry_of(ROOT, &top.name, &stat, Kind::Directory))?;
                self.sender.dirs.add_source(entry.id, top);
                self.walk(entry.id)
            }
            FileType::Directory => fail(Why::DirectoryWithoutRecursive),
            FileType::RegularFile => {
                self.file(ROOT, &top.name, &stat, Some(index), || top.open(OFlags::RDONLY | OFlags::NONBLOCK))
            }
            // Only met where links are not followed: an exported root.
            FileType::Symlink => fail(Why::OutsideRoot),
            _ => fail(Why::Special),
        }
    }

    fn walk(&mut self, top: u64) -> Result<(), CopyError> {
        let mut stack = vec![top];
        while let Some(id) = stack.pop() {
            if let Err(errno) = self.directory(id, &mut stack)? {
                self.sender.problem(WirePath(self.sender.dirs.display(id, b"")), errno.into())?;
            }
        }
        Ok(())
    }

    /// One directory; the inner error is its own.
    fn directory(&mut self, id: u64, stack: &mut Vec<u64>) -> Result<Result<(), Errno>, CopyError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = self.sender.dirs.open(id).and_then(|fd| open_at(&*fd, c".", flags, Mode::empty()));
        let fd = match opened {
            Ok(fd) => fd,
            Err(errno) => return Ok(Err(errno)),
        };
        let mut listing = std::mem::take(&mut self.listing);
        let mut entries = RawDir::new(&fd, &mut listing);
        let result = loop {
            let entry = match entries.next() {
                None => break Ok(()),
                Some(Err(errno)) => break Err(errno),
                Some(Ok(entry)) => entry,
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.sender.check()?;
            match rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => self.child(&fd, id, name, &stat, stack)?,
                Err(errno) => self.fail(id, name.to_bytes(), errno.into())?,
            }
        };
        self.listing = listing;
        Ok(result)
    }

    fn child(
        &mut self,
        fd: &OwnedFd,
        parent: u64,
        name: &std::ffi::CStr,
        stat: &Stat,
        stack: &mut Vec<u64>,
    ) -> Result<(), CopyError> {
        let bytes = name.to_bytes();
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                self.file(parent, bytes, stat, None, || Ok(rustix::fs::openat(fd, name, flags, Mode::empty())?))
            }
            FileType::Directory => {
                let entry = self.announce(entry_of(parent, bytes, stat, Kind::Directory))?;
                self.sender.dirs.add(entry.id, parent, bytes);
                stack.push(entry.id);
                Ok(())
            }
            FileType::Symlink => match rustix::fs::readlinkat(fd, name, Vec::new()) {
                Ok(target) => {
                    let kind = Kind::Symlink { target: WirePath(target.into_bytes()) };
                    self.announce(entry_of(parent, bytes, stat, kind)).map(drop)
                }
                Err(errno) => self.fail(parent, bytes, errno.into()),
            },
            _ => self.fail(parent, bytes, Why::Special),
        }
    }

    fn file(
        &mut self,
        parent: u64,
        name: &[u8],
        stat: &Stat,
        top: Option<usize>,
        open: impl FnOnce() -> Result<OwnedFd, Why>,
    ) -> Result<(), CopyError> {
        let linked = stat.st_nlink > 1;
        let inode = (stat.st_dev, stat.st_ino);
        if let Some(&to) = self.links.get(&inode).filter(|_| linked && !self.sender.job.in_order) {
            return self.announce(entry_of(parent, name, stat, Kind::HardLink { to })).map(drop);
        }
        let kind = match kind_of(stat, open) {
            Ok(kind) => kind,
            Err(why) => return self.fail_file(parent, name, top, why),
        };
        let entry = self.announce_file(entry_of(parent, name, stat, kind), stat, top)?;
        if linked {
            self.links.insert(inode, entry);
        }
        Ok(())
    }

    fn announce_file(&mut self, entry: Entry, stat: &Stat, top: Option<usize>) -> Result<u64, CopyError> {
        let entry = self.sender.announce(entry)?;
        let id = entry.id;
        self.files += 1;
        self.bytes += meta::data(stat);
        self.keep(SourceFile { entry, state: meta::source(stat), top, retried: false })?;
        Ok(id)
    }

    fn keep(&mut self, file: SourceFile) -> Result<(), CopyError> {
        let file = Arc::new(file);
        if self.sender.plan.waits_for_wants(&file) {
            self.sender.plan.expect_want(file);
        } else if matches!(file.entry.kind, Kind::Stream { .. }) || file.state.size > 0 || self.sender.job.in_order {
            self.found.push(file);
        }
        self.count()
    }

    fn announce(&mut self, entry: Entry) -> Result<Entry, CopyError> {
        let entry = self.sender.announce(entry)?;
        self.count()?;
        Ok(entry)
    }

    fn count(&mut self) -> Result<(), CopyError> {
        self.announced += 1;
        if self.announced >= self.batch { self.flush(false) } else { Ok(()) }
    }

    fn flush(&mut self, complete: bool) -> Result<(), CopyError> {
        self.batch = (self.batch * 2).min(MAX_BATCH);
        self.announced = 0;
        self.sender.flush()?;
        let (files, bytes) = (self.files, Bytes(self.bytes));
        self.sender.session.observer.event(Event::Found { files, bytes, complete });
        self.sender.plan.add(self.found.drain(..), || self.sender.check())
    }

    fn fail_file(&self, parent: u64, name: &[u8], top: Option<usize>, why: Why) -> Result<(), CopyError> {
        match top.and_then(|index| self.sender.job.tops.get(index)) {
            Some(Origin::Named(top)) => self.sender.problem(top.spelled.clone(), why),
            _ => self.fail(parent, name, why),
        }
    }

    fn fail(&self, parent: u64, name: &[u8], why: Why) -> Result<(), CopyError> {
        self.sender.problem(WirePath(self.sender.dirs.display(parent, name)), why)
    }
}

/// What a regular file is announced as. One that says it is empty is asked for a byte: those of procfs, and of some FUSE file systems, say so and
/// have content.
fn kind_of(stat: &Stat, open: impl FnOnce() -> Result<OwnedFd, Why>) -> Result<Kind, Why> {
    if meta::size(stat) == 0 && has_content(&open()?)? {
        return Ok(Kind::Stream { linked: stat.st_nlink > 1, replaces: None });
    }
    Ok(file_kind(stat, None))
}

fn has_content(fd: &OwnedFd) -> Result<bool, Errno> {
    let mut byte = [0];
    loop {
        match rustix::io::pread(fd, &mut byte, 0) {
            Err(Errno::INTR) => {}
            read => return Ok(read? > 0),
        }
    }
}

/// A regular file that is as long as it says.
pub(super) fn file_kind(stat: &Stat, replaces: Option<u64>) -> Kind {
    let source = meta::source(stat);
    Kind::File { size: source.size, data: meta::data(stat), version: source.version, linked: stat.st_nlink > 1, replaces }
}

/// An entry, its id left open.
pub(super) fn entry_of(parent: u64, name: &[u8], stat: &Stat, kind: Kind) -> Entry {
    Entry {
        id: 0,
        parent,
        name: WirePath(name.to_vec()),
        mode: meta::mode_bits(stat),
        mtime: meta::mtime(stat),
        uid: stat.st_uid,
        gid: stat.st_gid,
        kind,
    }
}
