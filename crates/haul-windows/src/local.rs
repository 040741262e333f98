//! Directories of this machine.

mod kept;
mod resolve;

use std::collections::HashMap;
use std::ffi::c_void;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use haul_files::journal::Record;
use haul_files::store::{
    At, Attributes, FileKind, Identity, Interrupted, Listed, MadeDirectory, Metadata, Place, Space, Store, StoreError,
};
use haul_files::{Access, Cancel, Stop, WirePath};
use haul_names::base_name;
use haul_units::Bytes;
use windows_sys::Wdk::Storage::FileSystem::{FileFsSizeInformation, NtQueryVolumeInformationFile};
use windows_sys::Wdk::System::SystemServices::FILE_FS_SIZE_INFORMATION;
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;

use crate::at::{self, Directory, For, Make, What};
use crate::file::{File, set_time};
use crate::handle::raw;
use crate::listing::each_name;
use crate::stage::Stage;
use crate::{metadata, names};

pub use resolve::Top;

/// Directories of this machine, as far as somebody may use them.
pub struct Local {
    /// None: this process's own user.
    pub(crate) access: Option<Access>,
    /// Exported roots that are open.
    pub(crate) roots: Mutex<HashMap<String, Arc<Directory>>>,
}

impl Local {
    /// All that this process's user may do; relative paths start where the process is.
    pub fn own() -> Self {
        Self { access: None, roots: Mutex::default() }
    }

    /// What a client may do.
    pub fn of(access: Access) -> Self {
        Self { access: Some(access), roots: Mutex::default() }
    }

    /// There is none: Windows has no file system in memory.
    pub fn ram_disk() -> Result<Self, Stop> {
        Err(Stop::Unavailable("ram: Windows has no file system in memory".into()))
    }

    /// Gives something another name.
    pub fn rename(&self, from: (&Directory, &[u8]), to: (&Directory, &[u8])) -> Result<(), StoreError> {
        let new = names::to_make(to.1).ok_or(StoreError::CannotBeNamed)?;
        let handle = from.0.spelled(&existing(from.1)?, For::Rename, What::Anything)?;
        match to.0.at(&new, For::Look, What::Anything, Make::Open) {
            // The same in another spelling, or a directory, which nothing replaces.
            Ok((there, _)) if metadata::identity(&there)? == metadata::identity(&handle)? => {}
            Ok((there, _)) if metadata::metadata(&there)?.kind == FileKind::Directory => return Err(StoreError::InTheWay),
            Ok((there, _)) => drop((there, to.0.spelled(&new, For::Look, What::Anything)?)),
            Err(StoreError::Missing) => {}
            Err(error) => return Err(error),
        }
        Ok(at::rename(&handle, to.0, &new, true)?)
    }
}

impl Store for Local {
    type Top = Top;
    type Dir = Directory;
    type File = File;
    type Stage = Stage;

    fn source(&self, spelled: &WirePath) -> Result<Top, Stop> {
        self.named_source(spelled)
    }

    /// And on which machine: two machines may copy the same path to the same place.
    fn identify(&self, spelled: &WirePath) -> Vec<u8> {
        let path = spelled.to_path();
        let real = path.canonicalize().or_else(|_| std::path::absolute(&path)).unwrap_or(path);
        let machine = std::env::var_os("COMPUTERNAME").unwrap_or_default();
        // The content of a directory is another copy than the directory.
        [machine.as_encoded_bytes(), b"\0", real.as_os_str().as_encoded_bytes(), b"\0", &base_name(&spelled.0)].concat()
    }

    fn destination(&self, spelled: &WirePath, many: bool) -> Result<Place<Directory>, Stop> {
        self.named_destination(spelled, many)
    }

    fn stat(&self, at: At<'_, Self>) -> Result<Metadata, StoreError> {
        let handle = match at {
            At::Top(top) => top.open(For::Look)?,
            At::In(dir, b".") => dir.again(For::Look)?,
            At::In(dir, name) => dir.spelled(&existing(name)?, For::Look, What::Anything)?,
        };
        metadata::metadata(&handle)
    }

    fn directory(&self, at: At<'_, Self>, identity: Option<Identity>) -> Result<Directory, StoreError> {
        let dir = match at {
            At::Top(top) => top.directory()?,
            At::In(dir, name) => Directory(dir.spelled(&existing(name)?, For::Below, What::Directory)?),
        };
        match identity {
            Some(identity) if metadata::identity(&dir.0)? != identity => Err(StoreError::Replaced),
            _ => Ok(dir),
        }
    }

    fn list(&self, dir: &Directory, each: &mut dyn FnMut(Listed<'_>) -> ControlFlow<()>) -> Result<(), StoreError> {
        each_name(dir, &mut |name| {
            let metadata = || {
                let (handle, _) = dir.at(name, For::Look, What::Anything, Make::Open)?;
                metadata::metadata(&handle)
            };
            each(Listed { name: &at::bytes_of(name), metadata: &metadata })
        })
    }

    fn open(&self, at: At<'_, Self>) -> Result<File, StoreError> {
        File::new(match at {
            At::Top(top) => top.open(For::Read)?,
            At::In(dir, name) => dir.spelled(&existing(name)?, For::Read, What::Anything)?,
        })
    }

    /// Links are seen, and neither read nor made.
    fn read_link(&self, _dir: &Directory, _name: &[u8]) -> Result<Vec<u8>, StoreError> {
        Err(StoreError::UNSUPPORTED)
    }

    fn make_directory(&self, dir: &Directory, name: &[u8], _mode: u32) -> Result<MadeDirectory<Directory>, StoreError> {
        let name = names::to_make(name).ok_or(StoreError::CannotBeNamed)?;
        let (handle, created) = match dir.at(&name, For::Below, What::Directory, Make::OpenOrNew) {
            Err(error) if error == haul_faults::Errno::NOTDIR.into() => return Err(StoreError::InTheWay),
            made => made?,
        };
        if !created {
            drop(dir.spelled(&name, For::Look, What::Directory)?);
        }
        // What was opened counts from here on: others may put something else under the name.
        let metadata = metadata::metadata(&handle)?;
        Ok(MadeDirectory { dir: Directory(handle), metadata, created })
    }

    fn set_mode(&self, _dir: &Directory, _mode: u32) -> Result<(), StoreError> {
        Ok(())
    }

    fn remove(&self, dir: &Directory, name: &[u8], is_directory: bool) -> Result<(), StoreError> {
        let name = existing(name)?;
        drop(dir.spelled(&name, For::Look, What::Anything)?);
        Ok(dir.remove(&name, if is_directory { What::Directory } else { What::Anything })?)
    }

    fn finish_directory(&self, dir: &Directory, attributes: &Attributes) -> Result<(), StoreError> {
        if attributes.mtime.is_none() {
            return Ok(());
        }
        set_time(&dir.again(For::Attributes)?, attributes)
    }

    fn stage(
        &self,
        place: &Place<Directory>,
        job: &[u8; 32],
        resume: bool,
        cancel: &Cancel,
    ) -> Result<(Stage, Vec<Record>), Stop> {
        Stage::open(&place.root, &place.spelled, job, resume, cancel)
    }

    fn has_stage(&self, dir: &Directory, job: &[u8; 32]) -> bool {
        Stage::is_there(dir, job)
    }

    fn interrupted(&self, dir: &Directory, own: &str) -> Vec<Interrupted> {
        kept::others(dir, own)
    }

    fn space(&self, dir: &Directory) -> Result<Space, StoreError> {
        let (mut found, mut status) = (FILE_FS_SIZE_INFORMATION::default(), IO_STATUS_BLOCK::default());
        let length = size_of::<FILE_FS_SIZE_INFORMATION>() as u32;
        // SAFETY: the structure is that of the class, and outlives the call.
        at::check(unsafe {
            let found = (&raw mut found).cast::<c_void>();
            NtQueryVolumeInformationFile(raw(&dir.0), &raw mut status, found, length, FileFsSizeInformation)
        })?;
        let unit = u64::from(found.SectorsPerAllocationUnit) * u64::from(found.BytesPerSector);
        let bytes = |units: i64| Bytes(u64::try_from(units).unwrap_or(0).saturating_mul(unit));
        Ok(Space { free: bytes(found.AvailableAllocationUnits), total: bytes(found.TotalAllocationUnits) })
    }
}

/// A name that may be there.
fn existing(name: &[u8]) -> Result<Vec<u16>, StoreError> {
    names::to_open(name).ok_or(StoreError::CannotBeNamed)
}
