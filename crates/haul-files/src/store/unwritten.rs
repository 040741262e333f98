//! A store that is looked at and never written to: what a copy of it would do is found out by doing it here.
//!
//! Reads go to the store below. Directories that would be made are [`Dir::Absent`], and so is all that is in them; stages, links and attributes come to nothing. No content can be written: a receiver of this store wants none.

use std::ops::ControlFlow;
use std::sync::Arc;

use haul_units::Cancel;

use super::{
    At, Attributes, Content, FileKind, Identity, Listed, MadeDirectory, Metadata, Part, Place, Placed, ReadHow, Space, Spot,
    Stage, Store, StoreError, Written,
};
use crate::block::Hash;
use crate::journal::Record;
use crate::stamp::Stamp;
use haul_faults::{Stop, WirePath};
use haul_xattrs::{Attribute, Failed, Keep, Outcome, Wanted};

/// The store below, unwritten.
pub(crate) struct Unwritten<'a, S>(pub(crate) &'a S);

/// A directory of it.
pub(crate) enum Dir<D> {
    There(Arc<D>),
    /// It would have been made.
    Absent,
}

/// Nothing is made in it.
pub(crate) struct Nowhere<D>(std::marker::PhantomData<fn() -> D>);

/// There is none.
pub(crate) enum NoPart {}

/// What a directory that is not there would be.
const ABSENT: Metadata = Metadata {
    kind: FileKind::Directory,
    size: 0,
    data: 0,
    mode: 0o700,
    uid: u32::MAX,
    gid: u32::MAX,
    mtime: Stamp { secs: 0, nanos: 0 },
    changed: (0, 0),
    names: 1,
    identity: Identity { device: 0, inode: 0 },
};

/// The same name in the store below.
fn below<'a, S: Store>(at: At<'a, Unwritten<'_, S>>) -> Result<At<'a, S>, StoreError> {
    match at {
        At::Top(top) => Ok(At::Top(top)),
        At::In(Dir::There(dir), name) => Ok(At::In(&**dir, name)),
        At::In(Dir::Absent, _) => Err(StoreError::Missing),
    }
}

impl<S: Store> Store for Unwritten<'_, S> {
    type Top = S::Top;
    type Dir = Dir<S::Dir>;
    type File = S::File;
    type Stage = Nowhere<S::Dir>;

    const KEEPS: bool = S::KEEPS;
    const CALLED: &'static str = S::CALLED;

    fn source(&self, spelled: &WirePath) -> Result<S::Top, Stop> {
        self.0.source(spelled)
    }

    fn destination(&self, spelled: &WirePath, many: bool) -> Result<Place<Self::Dir>, Stop> {
        self.0.destination(spelled, many).map(place)
    }

    fn stat(&self, at: At<'_, Self>) -> Result<Metadata, StoreError> {
        self.0.stat(below(at)?)
    }

    fn directory(&self, at: At<'_, Self>, identity: Option<Identity>) -> Result<Self::Dir, StoreError> {
        match below(at).and_then(|at| self.0.directory(at, identity)) {
            Ok(dir) => Ok(Dir::There(Arc::new(dir))),
            Err(StoreError::Missing) if identity.is_none() => Ok(Dir::Absent),
            Err(error) => Err(error),
        }
    }

    fn list(&self, dir: &Self::Dir, each: &mut dyn FnMut(Listed<'_>) -> ControlFlow<()>) -> Result<(), StoreError> {
        match dir {
            Dir::There(dir) => self.0.list(dir, each),
            Dir::Absent => Ok(()),
        }
    }

    fn open(&self, at: At<'_, Self>) -> Result<S::File, StoreError> {
        self.0.open(below(at)?)
    }

    fn read_link(&self, dir: &Self::Dir, name: &[u8]) -> Result<Vec<u8>, StoreError> {
        match dir {
            Dir::There(dir) => self.0.read_link(dir, name),
            Dir::Absent => Err(StoreError::Missing),
        }
    }

    fn make_directory(&self, dir: &Self::Dir, name: &[u8], _mode: u32) -> Result<MadeDirectory<Self::Dir>, StoreError> {
        match self.stat(At::In(dir, name)) {
            Ok(metadata) if metadata.kind == FileKind::Directory => {
                let dir = self.directory(At::In(dir, name), Some(metadata.identity))?;
                Ok(MadeDirectory { dir, metadata, created: false })
            }
            Ok(_) => Err(StoreError::InTheWay),
            Err(StoreError::Missing) => Ok(MadeDirectory { dir: Dir::Absent, metadata: ABSENT, created: true }),
            Err(error) => Err(error),
        }
    }

    fn remove(&self, _dir: &Self::Dir, _name: &[u8], _is_directory: bool) -> Result<(), StoreError> {
        Ok(())
    }

    fn set_mode(&self, _dir: &Self::Dir, _mode: u32) -> Result<(), StoreError> {
        Ok(())
    }

    fn finish_directory(&self, _dir: &Self::Dir, _attributes: &Attributes) -> Result<(), StoreError> {
        Ok(())
    }

    fn stage(
        &self,
        _place: &Place<Self::Dir>,
        _job: &[u8; 32],
        _resume: bool,
        _cancel: &Cancel,
    ) -> Result<(Self::Stage, Vec<Record>), Stop> {
        Ok((Nowhere(std::marker::PhantomData), Vec::new()))
    }

    fn extended(&self, at: At<'_, Self>, keep: Keep) -> Result<Vec<Attribute>, Failed> {
        below(at).map_or(Ok(Vec::new()), |at| self.0.extended(at, keep))
    }

    fn set_extended(&self, dir: &Self::Dir, name: &[u8], wanted: &Wanted<'_>) -> Result<Outcome, Failed> {
        match dir {
            Dir::There(dir) => self.0.set_extended(dir, name, &Wanted { writes: false, ..*wanted }),
            Dir::Absent => Ok(Outcome::default()),
        }
    }

    fn space(&self, dir: &Self::Dir) -> Result<Space, StoreError> {
        match dir {
            Dir::There(dir) => self.0.space(dir),
            Dir::Absent => Err(StoreError::Missing),
        }
    }

    fn must_fit(&self) -> bool {
        self.0.must_fit()
    }
}

/// The same place, unwritten.
pub(crate) fn place<D>(place: Place<D>) -> Place<Dir<D>> {
    let Place { root, spelled, rename, directory_only, confined, ownership } = place;
    Place { root: Arc::new(Dir::There(root)), spelled, rename, directory_only, confined, ownership }
}

impl<D: Send + Sync + 'static> Stage for Nowhere<D> {
    type Dir = Dir<D>;
    type Part = NoPart;

    fn name(&self) -> &'static str {
        ""
    }

    fn identity(&self) -> Option<Identity> {
        None
    }

    fn is_unused(&self) -> bool {
        true
    }

    fn append(&self, _records: &[Record]) -> Result<(), StoreError> {
        Ok(())
    }

    fn create(&self, _mode: u32) -> Result<(u64, NoPart), StoreError> {
        Err(StoreError::FAILED)
    }

    fn reopen(&self, _part: u64) -> Result<NoPart, StoreError> {
        Err(StoreError::Missing)
    }

    fn discard(&self, _part: u64) {}

    fn sync(&self, _parts: &[u64]) -> Result<(), StoreError> {
        Ok(())
    }

    fn read_back(
        &self,
        _what: &Written<'_, Self::Dir>,
        _pieces: &[(u64, u32, Hash)],
        _buffer: &mut Vec<u8>,
    ) -> Result<ReadHow, StoreError> {
        Err(StoreError::FAILED)
    }

    fn commit(&self, _part: u64, _to: &Spot<'_, Self::Dir>, _attributes: &Attributes) -> Result<Placed, StoreError> {
        Err(StoreError::FAILED)
    }

    fn symlink(&self, _to: &Spot<'_, Self::Dir>, _target: &[u8], _attributes: &Attributes) -> Result<(), StoreError> {
        Ok(())
    }

    fn link(&self, _dir: &Self::Dir, _name: &[u8], _to: &Spot<'_, Self::Dir>) -> Result<(), StoreError> {
        Ok(())
    }

    fn sync_names(&self, _changed: Option<&[Arc<Self::Dir>]>) -> Result<(), StoreError> {
        Ok(())
    }

    fn remove(&self) -> Result<bool, StoreError> {
        Ok(false)
    }
}

impl Content for NoPart {
    fn metadata(&self) -> Result<Metadata, StoreError> {
        match *self {}
    }

    fn read_at(&self, _buffer: &mut Vec<u8>, _offset: u64, _length: usize) -> Result<usize, StoreError> {
        match *self {}
    }
}

impl Part for NoPart {
    fn set_size(&self, _size: u64) -> Result<(), StoreError> {
        match *self {}
    }

    fn write_at(&self, _content: &[u8], _offset: u64) -> Result<(), StoreError> {
        match *self {}
    }

    fn finish(&self, _attributes: &Attributes, _mode: Option<u32>) -> Result<Metadata, StoreError> {
        match *self {}
    }
}
