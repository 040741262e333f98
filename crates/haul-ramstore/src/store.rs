//! The calls of the engine.

use std::ops::ControlFlow;
use std::sync::Arc;

use haul_files::journal::Record;
use haul_files::store::{At, Attributes, Identity, Listed, MadeDirectory, Metadata, Part as _, Place, Space};
use haul_files::{Ownership, Stop, Store, StoreError, WirePath};
use haul_units::Cancel;

use crate::node::{Body, lock};
use crate::ram::{Operation, Ram, RamDir, RamFile, components};
use crate::stage::RamStage;

impl Store for Ram {
    type Top = WirePath;
    type Dir = RamDir;
    type File = RamFile;
    type Stage = RamStage;

    const CALLED: &'static str = "the store in memory";

    fn source(&self, spelled: &WirePath) -> Result<WirePath, Stop> {
        Ok(spelled.clone())
    }

    fn destination(&self, spelled: &WirePath, many: bool) -> Result<Place<RamDir>, Stop> {
        let place = |node, rename| Place {
            root: Arc::new(RamDir(node)),
            spelled: spelled.clone(),
            rename,
            directory_only: false,
            confined: false,
            ownership: Ownership::Allow,
        };
        match self.find(&spelled.0) {
            Ok(node) if node.is_directory() => return Ok(place(node, None)),
            _ if many => return Err(Stop::NeedsDirectory { path: spelled.clone() }),
            _ => {}
        }
        let parent = components(&spelled.0).and_then(|parts| {
            let (name, above) = parts.split_last().ok_or(StoreError::Missing)?;
            Ok((self.find(&above.join(&b'/'))?, name.to_vec()))
        });
        match parent {
            Ok((parent, name)) if parent.is_directory() => Ok(place(parent, Some(name))),
            Ok(_) => Err(Stop::Destination { path: spelled.clone(), why: StoreError::InTheWay.into() }),
            Err(error) => Err(Stop::Destination { path: spelled.clone(), why: error.into() }),
        }
    }

    fn stat(&self, at: At<'_, Self>) -> Result<Metadata, StoreError> {
        self.begin(Operation::Stat)?;
        Ok(self.at(at)?.metadata())
    }

    fn directory(&self, at: At<'_, Self>, identity: Option<Identity>) -> Result<RamDir, StoreError> {
        self.begin(Operation::Directory)?;
        let node = self.at(at)?;
        if !node.is_directory() {
            return Err(StoreError::InTheWay);
        }
        if identity.is_some_and(|identity| identity != node.identity()) {
            return Err(StoreError::Replaced);
        }
        Ok(RamDir(node))
    }

    fn list(&self, dir: &RamDir, each: &mut dyn FnMut(Listed<'_>) -> ControlFlow<()>) -> Result<(), StoreError> {
        self.begin(Operation::List)?;
        for (name, node) in dir.0.children() {
            if each(Listed { name: &name, metadata: &|| Ok(node.metadata()) }).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn open(&self, at: At<'_, Self>) -> Result<RamFile, StoreError> {
        self.begin(Operation::Open)?;
        Ok(RamFile { ram: self.clone(), node: self.at(at)?, read_only: false })
    }

    fn read_link(&self, dir: &RamDir, name: &[u8]) -> Result<Vec<u8>, StoreError> {
        self.begin(Operation::ReadLink)?;
        match &lock(&dir.0.child(name)?.inside).body {
            Body::Symlink(target) => Ok(target.clone()),
            _ => Err(StoreError::InTheWay),
        }
    }

    fn make_directory(&self, dir: &RamDir, name: &[u8], mode: u32) -> Result<MadeDirectory<RamDir>, StoreError> {
        self.begin(Operation::MakeDirectory)?;
        let (node, created) = match dir.0.child(name) {
            Ok(node) if node.is_directory() => (node, false),
            Ok(_) => return Err(StoreError::InTheWay),
            Err(_) => {
                let node = self.make(Body::directory(), mode);
                self.give(dir, name, node.clone(), None)?;
                (node, true)
            }
        };
        Ok(MadeDirectory { metadata: node.metadata(), dir: RamDir(node), created })
    }

    fn set_mode(&self, dir: &RamDir, mode: u32) -> Result<(), StoreError> {
        self.begin(Operation::SetMode)?;
        lock(&dir.0.inside).mode = mode;
        Ok(())
    }

    fn finish_directory(&self, dir: &RamDir, attributes: &Attributes) -> Result<(), StoreError> {
        self.begin(Operation::FinishDirectory)?;
        dir.0.apply(attributes, attributes.mode, self.tick());
        Ok(())
    }

    fn finish_file(
        &self,
        dir: &RamDir,
        name: &[u8],
        identity: Identity,
        attributes: &Attributes,
    ) -> Result<Metadata, StoreError> {
        let file = RamFile { ram: self.clone(), node: dir.0.child(name)?, read_only: false };
        if file.node.identity() == identity {
            file.finish(attributes, Some(attributes.final_mode))
        } else {
            Err(StoreError::Replaced)
        }
    }

    fn stage(
        &self,
        place: &Place<RamDir>,
        job: &[u8; 32],
        resume: bool,
        _cancel: &Cancel,
    ) -> Result<(RamStage, Vec<Record>), Stop> {
        let fail = |error: StoreError| Stop::Destination { path: place.spelled.clone(), why: error.into() };
        self.begin(Operation::Stage).map_err(fail)?;
        let key = (place.root.0.identity(), *job);
        let kept = lock(&self.0.state).stages.entry(key).or_default().clone();
        RamStage::take(self, kept, key, resume).ok_or_else(|| Stop::Busy { path: place.spelled.clone() })
    }

    fn space(&self, _dir: &RamDir) -> Result<Space, StoreError> {
        self.begin(Operation::Stat)?;
        Ok(self.space_now())
    }
}
