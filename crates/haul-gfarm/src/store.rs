//! The store: names, directories, what lies where.

use std::ops::ControlFlow;
use std::sync::Arc;

use haul_files::journal::Record;
use haul_files::store::{
    At, Attributes, Checksum, FileKind, Identity, Listed, MadeDirectory, Metadata, Place, Replica, ReplicaState, Space, Store,
    is_reserved,
};
use haul_files::{Ownership, Stop, StoreError, WirePath};
use haul_units::{Bytes, Cancel};

use crate::error::{GfarmError, OpenError};
use crate::files::{GfarmFile, look, metadata};
use crate::here::Here;
use crate::library::{Library, RawReplica, c_string};
use crate::path::{GfarmDir, absolute, below, split};
use crate::service::{Listing, Service};
use crate::stage::GfarmStage;

/// Entries of a directory that are asked for at once: a few hundred kB.
const LISTED_AT_ONCE: usize = 1024;

/// The store.
pub struct Gfarm {
    service: Service,
    here: Here,
}

/// A source as it was spelled, from the root on.
pub struct GfarmTop(Vec<u8>);

impl Gfarm {
    /// Loads Gfarm's library, if this process has not, and asks the metadata server whether it lets us in. Its calls end when `cancel` is cancelled; so does this one, which may wait for half a minute
    /// for a server that does not answer.
    pub fn open(cancel: &Cancel) -> Result<Self, OpenError> {
        Ok(Self { service: Service::start(cancel.clone())?, here: Here::default() })
    }

    /// The path of something, and whether a link is followed there.
    fn path(at: At<'_, Self>) -> Result<(Vec<u8>, bool), StoreError> {
        Ok(match at {
            At::Top(GfarmTop(path)) => (path.clone(), true),
            At::In(dir, name) => (below(&dir.path, name)?, false),
        })
    }

    fn run<R: Send + 'static>(
        &self,
        path: &[u8],
        call: impl FnOnce(&mut Library, &std::ffi::CStr) -> Result<R, GfarmError> + Send + 'static,
    ) -> Result<R, StoreError> {
        let path = c_string(path)?;
        self.service.run(move |library| call(library, &path))
    }

    fn place(&self, spelled: &WirePath, many: bool) -> Result<Place<GfarmDir>, StoreOrStop> {
        let path = absolute(spelled)?;
        if path.split(|&b| b == b'/').any(is_reserved) {
            return Err(StoreError::Reserved.into());
        }
        let place = |path: &[u8], rename: Option<&[u8]>| Place {
            root: Arc::new(GfarmDir { path: path.to_vec() }),
            spelled: spelled.clone(),
            rename: rename.map(<[u8]>::to_vec),
            directory_only: rename.is_some() && spelled.0.ends_with(b"/"),
            confined: false,
            ownership: Ownership::Allow,
        };
        match look(&self.service, &path, true) {
            Ok(there) if metadata(&there).kind == FileKind::Directory => return Ok(place(&path, None)),
            Ok(_) | Err(StoreError::Missing) if many => {
                return Err(StoreOrStop::Stop(Stop::NeedsDirectory { path: spelled.clone() }));
            }
            Ok(_) | Err(StoreError::Missing) => {}
            Err(error) => return Err(error.into()),
        }
        let (parent, name) = split(&path).ok_or(StoreError::InTheWay)?;
        match metadata(&look(&self.service, parent, true)?).kind {
            FileKind::Directory => Ok(place(parent, Some(name))),
            _ => Err(StoreError::InTheWay.into()),
        }
    }
}

/// What keeps a destination from being used.
enum StoreOrStop {
    Store(StoreError),
    Stop(Stop),
}

impl From<StoreError> for StoreOrStop {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl Store for Gfarm {
    type Top = GfarmTop;
    type Dir = GfarmDir;
    type File = GfarmFile;
    type Stage = GfarmStage;

    const CALLED: &'static str = "gfarm:";

    fn source(&self, spelled: &WirePath) -> Result<GfarmTop, Stop> {
        let path = absolute(spelled);
        path.map(GfarmTop).map_err(|error| Stop::Destination { path: spelled.clone(), why: error.into() })
    }

    /// The same on every client of this Gfarm.
    fn identify(&self, spelled: &WirePath) -> Vec<u8> {
        let path = absolute(spelled).unwrap_or_else(|_| spelled.0.clone());
        // The content of a directory is another copy than the directory.
        let content: &[u8] = if spelled.0.ends_with(b"/.") { b"/." } else { b"" };
        [crate::SCHEME.as_bytes(), &path, content].concat()
    }

    fn destination(&self, spelled: &WirePath, many: bool) -> Result<Place<GfarmDir>, Stop> {
        self.place(spelled, many).map_err(|error| match error {
            StoreOrStop::Store(error) => Stop::Destination { path: spelled.clone(), why: error.into() },
            StoreOrStop::Stop(stop) => stop,
        })
    }

    fn stat(&self, at: At<'_, Self>) -> Result<Metadata, StoreError> {
        let (path, follow) = Self::path(at)?;
        Ok(metadata(&look(&self.service, &path, follow)?))
    }

    fn directory(&self, at: At<'_, Self>, identity: Option<Identity>) -> Result<GfarmDir, StoreError> {
        let (path, follow) = Self::path(at)?;
        let there = metadata(&look(&self.service, &path, follow)?);
        if identity.is_some_and(|identity| identity != there.identity) {
            return Err(StoreError::Replaced);
        }
        match there.kind {
            FileKind::Directory => Ok(GfarmDir { path }),
            FileKind::Symlink => Err(StoreError::Link),
            FileKind::File | FileKind::Special => Err(StoreError::InTheWay),
        }
    }

    fn list(&self, dir: &GfarmDir, each: &mut dyn FnMut(Listed<'_>) -> ControlFlow<()>) -> Result<(), StoreError> {
        let listing = Listing::open(&self.service, &dir.path)?;
        loop {
            let found = listing.next(LISTED_AT_ONCE)?;
            if found.is_empty() {
                return Ok(());
            }
            for (name, stat) in found {
                if matches!(&*name, b"." | b"..") {
                    continue;
                }
                if each(Listed { name: &name, metadata: &|| Ok(metadata(&stat)) }).is_break() {
                    return Ok(());
                }
            }
        }
    }

    fn open(&self, at: At<'_, Self>) -> Result<GfarmFile, StoreError> {
        let (path, follow) = Self::path(at)?;
        GfarmFile::open(&self.service, path, follow)
    }

    fn read_link(&self, dir: &GfarmDir, name: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.run(&below(&dir.path, name)?, |library, path| library.read_link(path))
    }

    fn make_directory(&self, dir: &GfarmDir, name: &[u8], mode: u32) -> Result<MadeDirectory<GfarmDir>, StoreError> {
        let (path, mode) = (below(&dir.path, name)?, self.service.masked(mode));
        let (created, stat) = self.run(&path, move |library, path| {
            let created = match library.make_directory(path, mode) {
                Ok(()) => true,
                Err(error) if error.is_taken() => false,
                Err(error) => return Err(error),
            };
            Ok((created, library.stat(path, false)?))
        })?;
        let metadata = metadata(&stat);
        match metadata.kind {
            FileKind::Directory => Ok(MadeDirectory { dir: GfarmDir { path }, metadata, created }),
            FileKind::Symlink => Err(StoreError::Link),
            FileKind::File | FileKind::Special => Err(StoreError::InTheWay),
        }
    }

    fn set_mode(&self, dir: &GfarmDir, mode: u32) -> Result<(), StoreError> {
        self.run(&dir.path, move |library, path| library.set_mode(path, mode))
    }

    fn finish_directory(&self, dir: &GfarmDir, attributes: &Attributes) -> Result<(), StoreError> {
        let (mode, mtime) = (attributes.mode, attributes.mtime);
        self.run(&dir.path, move |library, path| {
            if let Some(mode) = mode {
                library.set_mode(path, mode)?;
            }
            mtime.map_or(Ok(()), |mtime| library.set_times(path, (mtime.secs, mtime.nanos)))
        })
    }

    fn stage(
        &self,
        place: &Place<GfarmDir>,
        job: &[u8; 32],
        resume: bool,
        cancel: &Cancel,
    ) -> Result<(GfarmStage, Vec<Record>), Stop> {
        GfarmStage::open(&self.service, &place.root.path, &place.spelled, job, resume, cancel)
    }

    fn has_stage(&self, dir: &GfarmDir, job: &[u8; 32]) -> bool {
        GfarmStage::is_there(&self.service, &dir.path, job)
    }

    /// Of all servers together. One file has room on one of them.
    fn space(&self, dir: &GfarmDir) -> Result<Space, StoreError> {
        let (used, left) = self.run(&dir.path, |library, path| library.space(path))?;
        let bytes = |kib: u64| Bytes(kib.saturating_mul(1024));
        Ok(Space { free: bytes(left), total: bytes(used.saturating_add(left)) })
    }

    fn locate(&self, at: At<'_, Self>) -> Result<Option<Vec<Replica>>, StoreError> {
        let (path, _) = Self::path(at)?;
        let replicas = self.run(&path, |library, path| library.replicas(path))?;
        Ok(Some(replicas.into_iter().map(replica).collect()))
    }

    /// Where it has replicas, and none of them is on a storage server of this machine.
    fn is_elsewhere(&self, at: At<'_, Self>) -> bool {
        let replicas = self.locate(at).ok().flatten().unwrap_or_default();
        let mut ready = replicas.iter().filter(|replica| replica.state == ReplicaState::Ready).peekable();
        ready.peek().is_some() && !ready.any(|replica| self.here.has(&replica.host))
    }

    /// What Gfarm has computed as the file was written from its beginning to its end; files that were written in another order have none.
    fn checksum(&self, at: At<'_, Self>) -> Result<Option<Checksum>, StoreError> {
        let (path, _) = Self::path(at)?;
        let found = self.run(&path, |library, path| library.checksum(path))?;
        let known = !found.sum.is_empty() && !found.being_written;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(known.then(|| Checksum { algorithm: text(found.kind), hex: text(found.sum) }))
    }
}

fn replica(raw: RawReplica) -> Replica {
    let state = match raw {
        RawReplica { down: true, .. } => ReplicaState::Down,
        RawReplica { obsolete: true, .. } => ReplicaState::Obsolete,
        RawReplica { incomplete: true, .. } => ReplicaState::Incomplete,
        RawReplica { .. } => ReplicaState::Ready,
    };
    Replica { host: raw.host, generation: raw.generation, state }
}
