//! Directories of this machine.
//!
//! Every name is used below an open directory and never followed as a link ([`openat`](rustix::fs::openat) with `O_NOFOLLOW`), so others who rename what they may lead
//! nothing astray. What a user or client spells is resolved by `resolve.rs`; where files are made is in `stage.rs`, how in `staging.rs`; what cannot be renamed to its place in `beside.rs`.

pub(super) mod at;
mod beside;
mod content;
mod interrupted;
mod meta;
mod private;
mod ram_disk;
mod read_back;
mod resolve;
mod stage;
mod staging;

use std::collections::HashMap;
use std::fs::File;
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex};

use haul_units::{Bytes, Cancel};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir};
use rustix::io::Errno;
use rustix::process::geteuid;

use self::at::{make_directory, open_to_read};
use super::{At, Attributes, Identity, Interrupted, Listed, MadeDirectory, Metadata, Part as _, Place, Space, Store, StoreError};
use crate::job::Access;
use crate::journal::Record;
use crate::locks::lock;
use haul_descriptors::open_at;
use haul_faults::{Stop, Why, WirePath};
use haul_names::{Scheme, base_name};
use haul_xattrs::{Attribute, Failed, Keep, Outcome, Reach, Wanted};

pub use resolve::Top;
pub use stage::Stage;

/// Bytes for the names of a directory that are read at once.
const LISTING_BYTES: usize = 64 << 10;
/// File systems that make up inode numbers as they go, so that a directory may come back with another one: FUSE, CIFS, SMB.
const NUMBERS_AT_WILL: [i64; 3] = [0x6573_5546, 0xff53_4d42, 0xfe53_4d42];

/// Directories of this machine, as far as somebody may use them.
pub struct Local {
    /// None: this process's own user.
    access: Option<Access>,
    /// What its paths may begin with.
    scheme: Scheme,
    /// Exported roots that are open.
    roots: Mutex<HashMap<String, Arc<OwnedFd>>>,
    /// Memory for names, used again.
    listing: Mutex<Vec<MaybeUninit<u8>>>,
}

impl Local {
    /// All that this process's user may do; relative paths start where the process is.
    pub fn own() -> Self {
        Self::new(None)
    }

    /// What a client may do.
    pub fn of(access: Access) -> Self {
        Self::new(Some(access))
    }

    fn new(access: Option<Access>) -> Self {
        Self { access, scheme: Scheme::Local, roots: Mutex::default(), listing: Mutex::default() }
    }

    /// Opens something, for what `flags` say.
    fn open_with(at: At<'_, Self>, flags: OFlags) -> Result<OwnedFd, StoreError> {
        match at {
            At::Top(top) => top.open(flags),
            At::In(dir, name) => Ok(open_at(dir, name, flags | OFlags::NOFOLLOW, Mode::empty())?),
        }
    }
}

impl Store for Local {
    type Top = Top;
    type Dir = OwnedFd;
    type File = File;
    type Stage = Stage;

    const KEEPS: bool = true;

    fn source(&self, spelled: &WirePath) -> Result<Top, Stop> {
        self.named_source(spelled)
    }

    /// And on which machine: two machines may copy the same path to the same place.
    fn identify(&self, spelled: &WirePath) -> Vec<u8> {
        let path = if self.scheme == Scheme::Local { spelled.to_path() } else { self.below_root(&spelled.0) };
        let real = path.canonicalize().or_else(|_| std::path::absolute(&path)).unwrap_or(path);
        // The content of a directory is another copy than the directory.
        let name = base_name(&spelled.0);
        [rustix::system::uname().nodename().to_bytes(), b"\0", real.as_os_str().as_bytes(), b"\0", &name].concat()
    }

    fn destination(&self, spelled: &WirePath, many: bool) -> Result<Place<OwnedFd>, Stop> {
        self.named_destination(spelled, many)
    }

    fn stat(&self, at: At<'_, Self>) -> Result<Metadata, StoreError> {
        let stat = match at {
            At::Top(top) => rustix::fs::fstat(top.open(OFlags::PATH)?)?,
            At::In(dir, name) => rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?,
        };
        Ok(meta::metadata(&stat))
    }

    fn directory(&self, at: At<'_, Self>, identity: Option<Identity>) -> Result<OwnedFd, StoreError> {
        let dir = Self::open_with(at, OFlags::PATH | OFlags::DIRECTORY)?;
        if let Some(identity) = identity
            && meta::identity(&rustix::fs::fstat(&dir)?) != identity
            && !numbers_at_will(&dir)
        {
            return Err(StoreError::Replaced);
        }
        Ok(dir)
    }

    fn list(&self, dir: &OwnedFd, each: &mut dyn FnMut(Listed<'_>) -> ControlFlow<()>) -> Result<(), StoreError> {
        let fd = open_to_read(dir)?;
        let mut listing = std::mem::take(&mut *lock(&self.listing));
        listing.resize(LISTING_BYTES, MaybeUninit::uninit());
        let mut entries = RawDir::new(&fd, &mut listing);
        let result = loop {
            let entry = match entries.next() {
                None => break Ok(()),
                Some(Err(errno)) => break Err(errno.into()),
                Some(Ok(entry)) => entry,
            };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let metadata = || Ok(meta::metadata(&rustix::fs::statat(&fd, name, AtFlags::SYMLINK_NOFOLLOW)?));
            if each(Listed { name: name.to_bytes(), metadata: &metadata }).is_break() {
                break Ok(());
            }
        };
        *lock(&self.listing) = listing;
        result
    }

    fn open(&self, at: At<'_, Self>) -> Result<File, StoreError> {
        Self::open_with(at, OFlags::RDONLY | OFlags::NONBLOCK).map(File::from)
    }

    fn read_link(&self, dir: &OwnedFd, name: &[u8]) -> Result<Vec<u8>, StoreError> {
        Ok(rustix::fs::readlinkat(dir, name, Vec::new())?.into_bytes())
    }

    fn make_directory(&self, dir: &OwnedFd, name: &[u8], mode: u32) -> Result<MadeDirectory<OwnedFd>, StoreError> {
        make_directory(dir, name, mode)
    }

    fn remove(&self, dir: &OwnedFd, name: &[u8], is_directory: bool) -> Result<(), StoreError> {
        let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
        Ok(rustix::fs::unlinkat(dir, name, flags)?)
    }

    fn set_mode(&self, dir: &OwnedFd, mode: u32) -> Result<(), StoreError> {
        // fchmod(2) takes no O_PATH descriptor, and fchmodat2(2) is younger than the systems that haul runs on.
        Ok(rustix::fs::chmod(format!("/proc/self/fd/{}", dir.as_raw_fd()), meta::mode(mode))?)
    }

    fn finish_directory(&self, dir: &OwnedFd, attributes: &Attributes) -> Result<(), StoreError> {
        Ok(content::apply(&open_to_read(dir)?, attributes, attributes.mode)?)
    }

    fn finish_file(
        &self,
        dir: &OwnedFd,
        name: &[u8],
        identity: Identity,
        attributes: &Attributes,
    ) -> Result<Metadata, StoreError> {
        let file = self.open(At::In(dir, name))?;
        if meta::identity(&rustix::fs::fstat(&file)?) != identity {
            return Err(StoreError::Replaced);
        }
        file.finish(attributes, Some(attributes.final_mode))
    }

    fn stage(&self, place: &Place<OwnedFd>, job: &[u8; 32], resume: bool, cancel: &Cancel) -> Result<(Stage, Vec<Record>), Stop> {
        match Stage::open(&place.root, &place.spelled, job, resume, cancel) {
            Err(Stop::Destination { why, .. }) if is_forbidden(&why) && resolve::is_written_over(place) => {
                // The file is written over from elsewhere, so the directory that it is in belongs to the job.
                let fail = |why: Why| Stop::Destination { path: place.spelled.clone(), why };
                let stat = rustix::fs::fstat(&place.root).map_err(|errno| fail(errno.into()))?;
                let mut hasher = blake3::Hasher::new();
                hasher.update(job).update(&stat.st_dev.to_le_bytes()).update(&stat.st_ino.to_le_bytes());
                let elsewhere = std::env::var_os("TMPDIR").map_or_else(|| "/var/tmp".into(), std::path::PathBuf::from);
                let root = open_at(CWD, &elsewhere, OFlags::DIRECTORY | OFlags::PATH, Mode::empty()).map_err(|_| fail(why))?;
                let spelled = WirePath::from(elsewhere.as_path());
                Stage::open(&Arc::new(root), &spelled, hasher.finalize().as_bytes(), resume, cancel)
            }
            result => result,
        }
    }

    fn extended(&self, at: At<'_, Self>, keep: Keep) -> Result<Vec<Attribute>, Failed> {
        // What a daemon's clients see of a file is what every user may.
        let reach = match &self.access {
            None | Some(Access::Account { .. }) if geteuid().is_root() => Reach::All,
            _ => Reach::User,
        };
        haul_xattrs::read(Self::open_with(at, OFlags::PATH).map_err(failed)?, keep, reach)
    }

    fn set_extended(&self, dir: &OwnedFd, name: &[u8], wanted: &Wanted<'_>) -> Result<Outcome, Failed> {
        haul_xattrs::apply(Self::open_with(At::In(dir, name), OFlags::PATH).map_err(failed)?, wanted)
    }

    fn must_fit(&self) -> bool {
        self.scheme == Scheme::Ram
    }

    fn has_stage(&self, dir: &OwnedFd, job: &[u8; 32]) -> bool {
        Stage::is_there(dir, job)
    }

    fn interrupted(&self, dir: &OwnedFd, own: &str) -> Vec<Interrupted> {
        interrupted::others(dir, own)
    }

    fn space(&self, dir: &OwnedFd) -> Result<Space, StoreError> {
        // Not every system takes an O_PATH descriptor here.
        let stat = rustix::fs::fstatvfs(open_to_read(dir)?)?;
        let bytes = |blocks: u64| Bytes(blocks.saturating_mul(stat.f_frsize));
        Ok(Space { free: bytes(stat.f_bavail), total: bytes(stat.f_blocks) })
    }
}

/// The thing could not be opened.
fn failed(error: StoreError) -> Failed {
    let number = if let Why::Os(number) = Why::from(error) { number } else { Errno::IO.raw_os_error() };
    Failed { name: Vec::new(), number }
}

fn is_forbidden(why: &Why) -> bool {
    [Errno::ACCESS, Errno::PERM].iter().any(|&errno| *why == Why::from(errno))
}

fn numbers_at_will(fd: &OwnedFd) -> bool {
    rustix::fs::fstatfs(fd).is_ok_and(|stat| NUMBERS_AT_WILL.contains(&stat.f_type))
}
