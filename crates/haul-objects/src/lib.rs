//! Objects: one flat name space in a directory of this machine, for servers that keep pieces of other things, such as the stripes of a fleet's files.
//!
//! ```text
//!   ROOT/3f/NAME     the object NAME, in one of 256 directories, by a hash of its name: millions of objects, and no large directory
//!   ROOT/.haul-..    the stages of what is being written
//! ```
//!
//! An object is a regular file, so what else reads directories can read them, and everything that [`Local`] promises holds: an object appears at once, whole and durable, or stays as it was.
//! There are no directories in it and no links; a name is one component of up to 255 bytes that is none of a stage's ([`StoreError::Reserved`]). Clients cannot choose owners or set-id bits.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use haul_files::store::{At, Attributes, Content, Part, Spot, Stage, Store};
//! use haul_objects::Objects;
//!
//! let dir = tempfile::tempdir()?;
//! let objects = Objects::open(dir.path())?;
//! let place = objects.destination(&haul_files::WirePath::default(), true).map_err(|stop| stop.to_string())?;
//! let (stage, _journal) = objects.stage(&place, &[7; 32], true, &haul_files::Cancel::new()).map_err(|stop| stop.to_string())?;
//! let (number, part) = stage.create(0o600)?;
//! part.write_at(b"second", 5)?;
//! part.write_at(b"first", 0)?;
//! let attributes = Attributes { final_mode: 0o644, ..Attributes::default() };
//! part.finish(&attributes, Some(0o644))?;
//! stage.sync(&[number])?;
//! stage.commit(number, &Spot { dir: &place.root, name: b"stripe 7", path: &|name| name.to_vec() }, &attributes)?;
//! stage.sync_names(None)?;
//! stage.remove()?;
//!
//! let mut content = Vec::new();
//! objects.open(At::In(&*place.root, b"stripe 7"))?.read_at(&mut content, 5, 6)?;
//! assert_eq!(content, b"second");
//! # Ok(())
//! # }
//! ```

use std::collections::BTreeSet;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haul_units::Cancel;

use haul_files::block::Hash;
use haul_files::journal::Record;
use haul_files::store::{
    At, Attributes, FEW, Identity, Listed, Local, MadeDirectory, Metadata, Place, Placed, ReadHow, Space, Spot, Stage, Store,
    StoreError, Written,
};
use haul_files::{Ownership, Stop, WirePath};
use haul_names::{is_plain_name, is_reserved};

/// Mode of the directories that objects are in.
const SHARD_MODE: u32 = 0o755;

/// The store.
pub struct Objects {
    local: Local,
    root: Arc<Root>,
}

/// The one directory that there is.
pub struct Root(Arc<OwnedFd>);

/// The stage of one copy.
pub struct ObjectStage {
    stage: <Local as Store>::Stage,
    root: Arc<Root>,
    /// Directories in which objects got names that are not synced.
    touched: Mutex<BTreeSet<u8>>,
}

impl Objects {
    /// The objects in a directory, which is there already.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let local = Local::own();
        let top = local.source(&directory.into()).map_err(|_| StoreError::Missing)?;
        let root = local.directory(At::Top(&top), None)?;
        Ok(Self { local, root: Arc::new(Root(Arc::new(root))) })
    }

    /// Removes an object, if it is there: durable with the next sync of the machine.
    pub fn remove(&self, name: &[u8]) -> Result<(), StoreError> {
        match self.root.shard(name) {
            Ok(shard) => match self.local.remove(&shard, name, false) {
                Err(StoreError::Missing) => Ok(()),
                removed => removed,
            },
            Err(StoreError::Missing) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn name<'a>(&self, at: At<'a, Self>) -> Result<(OwnedFd, &'a [u8]), StoreError> {
        let name = match at {
            At::Top(name) => &*name.0,
            At::In(_, name) => name,
        };
        Ok((self.root.shard(name)?, name))
    }
}

impl Root {
    /// The directory of an object.
    fn shard(&self, name: &[u8]) -> Result<OwnedFd, StoreError> {
        self.open(shard_of(checked(name)?))
    }

    fn open(&self, shard: u8) -> Result<OwnedFd, StoreError> {
        Local::own().directory(At::In(&*self.0, shard_name(shard).as_bytes()), None)
    }

    /// The same, made where it is missing.
    fn make_shard(&self, name: &[u8]) -> Result<(u8, OwnedFd), StoreError> {
        let shard = shard_of(checked(name)?);
        Ok((shard, Local::own().make_directory(&self.0, shard_name(shard).as_bytes(), SHARD_MODE)?.dir))
    }
}

impl Store for Objects {
    type Top = WirePath;
    type Dir = Root;
    type File = File;
    type Stage = ObjectStage;

    const CALLED: &'static str = "a store of objects";

    /// The name of an object, or nothing for all of them.
    fn source(&self, spelled: &WirePath) -> Result<WirePath, Stop> {
        Ok(WirePath(bare(spelled).to_vec()))
    }

    fn destination(&self, spelled: &WirePath, many: bool) -> Result<Place<Root>, Stop> {
        let name = bare(spelled);
        if many && !name.is_empty() {
            return Err(Stop::NeedsDirectory { path: spelled.clone() });
        }
        if !name.is_empty() {
            checked(name).map_err(|error| Stop::Destination { path: spelled.clone(), why: error.into() })?;
        }
        Ok(Place {
            root: self.root.clone(),
            spelled: spelled.clone(),
            rename: (!name.is_empty()).then(|| name.to_vec()),
            directory_only: false,
            confined: true,
            ownership: Ownership::Mask,
        })
    }

    fn stat(&self, at: At<'_, Self>) -> Result<Metadata, StoreError> {
        if matches!(at, At::Top(name) if name.0.is_empty()) {
            return self.local.stat(At::In(&*self.root.0, b"."));
        }
        let (shard, name) = self.name(at)?;
        self.local.stat(At::In(&shard, name))
    }

    fn directory(&self, at: At<'_, Self>, _identity: Option<Identity>) -> Result<Root, StoreError> {
        match at {
            At::Top(name) if name.0.is_empty() => Ok(Root(self.root.0.clone())),
            _ => Err(StoreError::Missing),
        }
    }

    fn list(&self, _dir: &Root, each: &mut dyn FnMut(Listed<'_>) -> ControlFlow<()>) -> Result<(), StoreError> {
        let mut broken = false;
        for shard in 0..=u8::MAX {
            let dir = match self.root.open(shard) {
                Ok(dir) => dir,
                Err(StoreError::Missing) => continue,
                Err(error) => return Err(error),
            };
            self.local.list(&dir, &mut |entry| {
                let flow = each(entry);
                broken = flow.is_break();
                flow
            })?;
            if broken {
                break;
            }
        }
        Ok(())
    }

    fn open(&self, at: At<'_, Self>) -> Result<File, StoreError> {
        let (shard, name) = self.name(at)?;
        self.local.open(At::In(&shard, name))
    }

    fn read_link(&self, _dir: &Root, _name: &[u8]) -> Result<Vec<u8>, StoreError> {
        Err(StoreError::UNSUPPORTED)
    }

    fn make_directory(&self, _dir: &Root, _name: &[u8], _mode: u32) -> Result<MadeDirectory<Root>, StoreError> {
        Err(StoreError::UNSUPPORTED)
    }

    fn set_mode(&self, _dir: &Root, _mode: u32) -> Result<(), StoreError> {
        Err(StoreError::UNSUPPORTED)
    }

    /// Its root is not a client's to change.
    fn finish_directory(&self, _dir: &Root, _attributes: &Attributes) -> Result<(), StoreError> {
        Ok(())
    }

    fn stage(
        &self,
        place: &Place<Root>,
        job: &[u8; 32],
        resume: bool,
        cancel: &Cancel,
    ) -> Result<(ObjectStage, Vec<Record>), Stop> {
        let place = Place {
            root: Arc::clone(&self.root.0),
            spelled: place.spelled.clone(),
            rename: None,
            directory_only: false,
            confined: place.confined,
            ownership: place.ownership,
        };
        let (stage, records) = self.local.stage(&place, job, resume, cancel)?;
        Ok((ObjectStage { stage, root: self.root.clone(), touched: Mutex::default() }, records))
    }

    fn space(&self, _dir: &Root) -> Result<Space, StoreError> {
        self.local.space(&self.root.0)
    }
}

impl Stage for ObjectStage {
    type Dir = Root;
    type Part = File;

    fn name(&self) -> &str {
        self.stage.name()
    }

    fn identity(&self) -> Option<Identity> {
        self.stage.identity()
    }

    fn is_unused(&self) -> bool {
        self.stage.is_unused()
    }

    fn append(&self, records: &[Record]) -> Result<(), StoreError> {
        self.stage.append(records)
    }

    fn create(&self, mode: u32) -> Result<(u64, File), StoreError> {
        self.stage.create(mode)
    }

    fn reopen(&self, part: u64) -> Result<File, StoreError> {
        self.stage.reopen(part)
    }

    fn discard(&self, part: u64) {
        self.stage.discard(part);
    }

    fn sync(&self, parts: &[u64]) -> Result<(), StoreError> {
        self.stage.sync(parts)
    }

    fn read_back(
        &self,
        what: &Written<'_, Root>,
        pieces: &[(u64, u32, Hash)],
        buffer: &mut Vec<u8>,
    ) -> Result<ReadHow, StoreError> {
        let shard;
        let what = match *what {
            Written::Unfinished(part) => Written::Unfinished(part),
            Written::Part(part, mode) => Written::Part(part, mode),
            Written::Placed(root, name) => {
                shard = root.shard(name)?;
                Written::Placed(&shard, name)
            }
        };
        self.stage.read_back(&what, pieces, buffer)
    }

    fn commit(&self, part: u64, to: &Spot<'_, Root>, attributes: &Attributes) -> Result<Placed, StoreError> {
        let (shard, dir) = self.root.make_shard(to.name)?;
        let path = |name: &[u8]| [shard_name(shard).as_bytes(), b"/", name].concat();
        let placed = self.stage.commit(part, &Spot { dir: &Arc::new(dir), name: to.name, path: &path }, attributes)?;
        lock(&self.touched).insert(shard);
        Ok(placed)
    }

    fn symlink(&self, _to: &Spot<'_, Root>, _target: &[u8], _attributes: &Attributes) -> Result<(), StoreError> {
        Err(StoreError::UNSUPPORTED)
    }

    fn link(&self, _dir: &Root, _name: &[u8], _to: &Spot<'_, Root>) -> Result<(), StoreError> {
        Err(StoreError::UNSUPPORTED)
    }

    fn sync_names(&self, changed: Option<&[Arc<Root>]>) -> Result<(), StoreError> {
        let touched = std::mem::take(&mut *lock(&self.touched));
        if changed.is_none() || touched.len() > FEW {
            return self.stage.sync_names(None);
        }
        let shards = touched.into_iter().map(|shard| self.root.open(shard).map(Arc::new));
        let mut dirs = shards.collect::<Result<Vec<_>, _>>()?;
        // In which the directories of the objects may be new.
        dirs.push(self.root.0.clone());
        self.stage.sync_names(Some(&dirs))
    }

    fn remove(&self) -> Result<bool, StoreError> {
        self.stage.remove()
    }
}

/// A name as an object may have it.
fn checked(name: &[u8]) -> Result<&[u8], StoreError> {
    if is_reserved(name) {
        return Err(StoreError::Reserved);
    }
    if is_plain_name(name) { Ok(name) } else { Err(StoreError::OutsideRoot) }
}

/// Without the slashes around it.
fn bare(spelled: &WirePath) -> &[u8] {
    let mut name = &*spelled.0;
    while let Some(rest) = name.strip_prefix(b"/").or_else(|| name.strip_suffix(b"/")) {
        name = rest;
    }
    if name == b"." { b"" } else { name }
}

fn shard_of(name: &[u8]) -> u8 {
    blake3::hash(name).as_bytes()[0]
}

fn shard_name(shard: u8) -> String {
    format!("{shard:02x}")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
