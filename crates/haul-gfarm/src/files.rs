//! Open files: read from whatever replica answers, written at one server.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex};

use haul_files::StoreError;
use haul_files::protocol::Stamp;
use haul_files::store::{Attributes, Content, FileKind, Identity, Metadata, Part};

use crate::error::GfarmError;
use crate::library::{Mode, RawReplica, Stat, c_string};
use crate::service::{Open, Service, lock};

/// What an inode number of Gfarm is told apart by: "gfarm".
const DEVICE: u64 = 0x0067_6661_726d;
/// Bits for nanoseconds, of which a second has less than 2^30.
const NANO_BITS: u32 = 30;
/// `GFARM_S_IFMT` and what it selects.
const TYPE: u32 = 0o170_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;
const SYMLINK: u32 = 0o120_000;

/// What the engine is told of a thing.
pub(crate) fn metadata(stat: &Stat) -> Metadata {
    let kind = match stat.mode & TYPE {
        REGULAR => FileKind::File,
        DIRECTORY => FileKind::Directory,
        SYMLINK => FileKind::Symlink,
        _ => FileKind::Special,
    };
    let changed = (stat.changed.0 as u64) << NANO_BITS | u64::from(stat.changed.1);
    Metadata {
        kind,
        size: stat.size,
        data: stat.size,
        mode: stat.mode & 0o7777,
        uid: u32::MAX,
        gid: u32::MAX,
        mtime: Stamp { secs: stat.modified.0, nanos: stat.modified.1 },
        changed: (stat.generation as i64, changed),
        names: stat.links,
        identity: Identity { device: DEVICE, inode: stat.inode },
    }
}

/// What has a path.
pub(crate) fn look(service: &Service, path: &[u8], follow: bool) -> Result<Stat, StoreError> {
    let path = c_string(path)?;
    service.run(move |library| library.stat(&path, follow))
}

/// A file that is read.
pub struct GfarmFile {
    service: Service,
    path: Vec<u8>,
    /// The path was a user's, and may be a link.
    follow: bool,
    /// What it was when it was opened.
    stat: Stat,
    open: Mutex<Arc<Open>>,
}

impl GfarmFile {
    pub(crate) fn open(service: &Service, path: Vec<u8>, follow: bool) -> Result<Self, StoreError> {
        let stat = look(service, &path, follow)?;
        match metadata(&stat).kind {
            FileKind::File => {}
            FileKind::Symlink => return Err(StoreError::Link),
            FileKind::Directory | FileKind::Special => return Err(StoreError::InTheWay),
        }
        let open = Self::open_same(service, &path, &stat)?;
        Ok(Self { service: service.clone(), path, follow, stat, open: Mutex::new(Arc::new(open)) })
    }

    /// Opens the path, which must still lead to this file: opening follows links.
    fn open_same(service: &Service, path: &[u8], stat: &Stat) -> Result<Open, StoreError> {
        let open = Open::file(service, path, Mode::Read)?;
        let now = open.with(|library, file| library.stat_open(file))??;
        if now.inode == stat.inode { Ok(open) } else { Err(StoreError::Replaced) }
    }

    /// Reads from another server than the one that has failed: whichever of those with a good replica answers first.
    fn read_elsewhere(&self, error: GfarmError, buffer: &mut Vec<u8>, offset: u64, length: usize) -> Result<usize, StoreError> {
        let path = c_string(&self.path)?;
        let replicas = self.service.run(move |library| library.replicas(&path))?;
        let start = buffer.len();
        for host in usable(&replicas, self.stat.generation) {
            tracing::info!(host = %host.to_string_lossy(), "a replica does not answer: reading another one");
            let Ok(open) = Self::open_same(&self.service, &self.path, &self.stat) else { continue };
            if open.with(move |library, file| library.choose_host(file, &host))?.is_err() {
                continue;
            }
            if let Ok(read) = open.read(buffer, offset, length)? {
                *lock(&self.open) = Arc::new(open);
                return Ok(read);
            }
            buffer.truncate(start);
        }
        Err(error.into())
    }
}

/// Servers with all of this generation of a file, that are up.
fn usable(replicas: &[RawReplica], generation: u64) -> Vec<CString> {
    let good = replicas.iter().filter(|one| !one.down && !one.incomplete && !one.obsolete && one.generation == generation);
    good.filter_map(|one| CString::new(one.host.as_bytes()).ok()).collect()
}

impl Content for GfarmFile {
    /// Asked by its path: of an open file, the metadata server tells what it was.
    fn metadata(&self) -> Result<Metadata, StoreError> {
        Ok(metadata(&look(&self.service, &self.path, self.follow)?))
    }

    fn read_at(&self, buffer: &mut Vec<u8>, offset: u64, length: usize) -> Result<usize, StoreError> {
        let (open, start) = (lock(&self.open).clone(), buffer.len());
        match open.read(buffer, offset, length)? {
            Ok(read) => Ok(read),
            Err(error) if error.is_of_one_server() => {
                buffer.truncate(start);
                self.read_elsewhere(error, buffer, offset, length)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// How long the parts of a stage are, as far as they were written: what Gfarm says of one must not be less.
pub(crate) type Sizes = Arc<Mutex<HashMap<u64, u64>>>;

/// A file in a stage.
pub struct GfarmPart {
    service: Service,
    path: Vec<u8>,
    number: u64,
    sizes: Sizes,
    /// Open as it was last needed. Opening for writing makes a new generation, so what is only read is opened for that.
    open: Mutex<Option<(Mode, Arc<Open>)>>,
}

impl GfarmPart {
    /// One that was just made.
    pub(crate) fn new(service: &Service, path: Vec<u8>, number: u64, sizes: &Sizes, open: Open) -> Self {
        lock(sizes).insert(number, 0);
        let open = Mutex::new(Some((Mode::Write, Arc::new(open))));
        Self { service: service.clone(), path, number, sizes: sizes.clone(), open }
    }

    /// One that is there already.
    pub(crate) fn existing(service: &Service, path: Vec<u8>, number: u64, sizes: &Sizes) -> Result<Self, StoreError> {
        let size = look(service, &path, false)?.size;
        lock(sizes).entry(number).or_insert(size);
        Ok(Self { service: service.clone(), path, number, sizes: sizes.clone(), open: Mutex::new(None) })
    }

    fn opened(&self, mode: Mode) -> Result<Arc<Open>, StoreError> {
        let mut open = lock(&self.open);
        match &*open {
            Some((has, file)) if *has == mode || *has == Mode::Write => Ok(file.clone()),
            _ => {
                let file = Arc::new(Open::file(&self.service, &self.path, mode)?);
                *open = Some((mode, file.clone()));
                Ok(file)
            }
        }
    }

    /// Takes the part, open for writing. The mode that an earlier run gave it may forbid that: where it gets one again, it has another until then.
    fn take_open(&self, gets_mode: bool) -> Result<Arc<Open>, StoreError> {
        if let Some((Mode::Write, open)) = lock(&self.open).take() {
            return Ok(open);
        }
        if gets_mode {
            let path = c_string(&self.path)?;
            self.service.run(move |library| library.set_mode(&path, 0o600))?;
        }
        Ok(Arc::new(Open::file(&self.service, &self.path, Mode::Write)?))
    }
}

impl Content for GfarmPart {
    fn metadata(&self) -> Result<Metadata, StoreError> {
        Ok(metadata(&look(&self.service, &self.path, false)?))
    }

    fn read_at(&self, buffer: &mut Vec<u8>, offset: u64, length: usize) -> Result<usize, StoreError> {
        Ok(self.opened(Mode::Read)?.read(buffer, offset, length)??)
    }
}

impl Part for GfarmPart {
    fn set_size(&self, size: u64) -> Result<(), StoreError> {
        self.opened(Mode::Write)?.with(move |library, file| library.truncate(file, size))??;
        lock(&self.sizes).insert(self.number, size);
        Ok(())
    }

    fn write_at(&self, content: &[u8], offset: u64) -> Result<(), StoreError> {
        self.opened(Mode::Write)?.write(content, offset)?;
        let end = offset.saturating_add(content.len() as u64);
        let mut sizes = lock(&self.sizes);
        let size = sizes.entry(self.number).or_default();
        *size = end.max(*size);
        Ok(())
    }

    /// Synced here, where it is open: [`sync`](haul_files::store::Stage::sync) has nothing left to do. What an earlier run has written, or what was closed so that others could be open, is opened for it.
    fn finish(&self, attributes: &Attributes, mode: Option<u32>) -> Result<Metadata, StoreError> {
        self.take_open(mode.is_some())?.with(|library, file| {
            library.sync(file)?;
            library.close(file)
        })??;
        let (path, mtime) = (c_string(&self.path)?, attributes.mtime);
        let stat = self.service.run(move |library| {
            if let Some(mode) = mode {
                library.set_mode(&path, mode)?;
            }
            if let Some(mtime) = mtime {
                library.set_times(&path, (mtime.secs, mtime.nanos))?;
            }
            library.stat(&path, false)
        })?;
        let expected = lock(&self.sizes).get(&self.number).copied();
        if expected != Some(stat.size) {
            tracing::warn!(?expected, size = stat.size, "gfarm has another size than was written");
            return Err(StoreError::Damaged);
        }
        Ok(metadata(&stat))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replica(host: &str, generation: u64, flags: [bool; 3]) -> RawReplica {
        let [down, incomplete, obsolete] = flags;
        RawReplica { host: host.into(), generation, down, incomplete, obsolete }
    }

    #[test]
    fn only_whole_replicas_of_this_content_are_read() {
        let replicas = [
            replica("good", 3, [false; 3]),
            replica("down", 3, [true, false, false]),
            replica("incomplete", 3, [false, true, false]),
            replica("obsolete", 3, [false, false, true]),
            replica("old", 2, [false; 3]),
            replica("too", 3, [false; 3]),
        ];
        assert_eq!(usable(&replicas, 3), [c"good".to_owned(), c"too".to_owned()]);
    }
}
