//! Names in an open directory: opened, made, renamed and removed there, nothing followed.
//!
//! These are the system's own calls (`NtCreateFile` and its like): those of Win32 take paths, and a path may lead elsewhere by the time it is used.

use std::ffi::c_void;
use std::io;
use std::mem::{offset_of, size_of};
use std::os::windows::ffi::OsStringExt as _;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::{FromRawHandle as _, OwnedHandle};
use std::path::Path;
use std::ptr::null;

use haul_files::StoreError;
use windows_sys::Wdk::Foundation::OBJECT_ATTRIBUTES;
use windows_sys::Wdk::Storage::FileSystem::{
    FILE_CREATE, FILE_DIRECTORY_FILE, FILE_LINK_INFORMATION, FILE_NON_DIRECTORY_FILE, FILE_OPEN, FILE_OPEN_FOR_BACKUP_INTENT,
    FILE_OPEN_IF, FILE_OPEN_REPARSE_POINT, FILE_RENAME_INFORMATION, FILE_SYNCHRONOUS_IO_NONALERT, FileDispositionInformation,
    FileDispositionInformationEx, FileLinkInformation, FileRenameInformation, FileRenameInformationEx, NtCreateFile,
    NtFlushBuffersFile, NtSetInformationFile,
};
use windows_sys::Win32::Foundation::{
    HANDLE, NTSTATUS, OBJ_CASE_INSENSITIVE, RtlNtStatusToDosError, STATUS_DELETE_PENDING, STATUS_FILE_IS_A_DIRECTORY,
    STATUS_INVALID_INFO_CLASS, STATUS_INVALID_PARAMETER, STATUS_NOT_IMPLEMENTED, STATUS_NOT_SUPPORTED,
    STATUS_OBJECT_NAME_COLLISION, STATUS_OBJECT_NAME_INVALID, STATUS_OBJECT_NAME_NOT_FOUND, STATUS_SHARING_VIOLATION,
    UNICODE_STRING,
};
use windows_sys::Win32::Storage::FileSystem::{
    DELETE, FILE_ATTRIBUTE_HIDDEN, FILE_ATTRIBUTE_NORMAL, FILE_FLAG_BACKUP_SEMANTICS, FILE_GENERIC_READ, FILE_GENERIC_WRITE,
    FILE_LIST_DIRECTORY, FILE_NAME_NORMALIZED, FILE_READ_ATTRIBUTES, FILE_SHARE_DELETE, FILE_SHARE_READ, FILE_SHARE_WRITE,
    FILE_TRAVERSE, FILE_WRITE_ATTRIBUTES, GetFinalPathNameByHandleW, SYNCHRONIZE,
};
use windows_sys::Win32::System::IO::IO_STATUS_BLOCK;

use crate::handle::raw;
use crate::metadata;

/// A directory that is open, for access below it.
#[derive(Debug)]
pub struct Directory(pub(crate) OwnedHandle);

/// What a handle is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum For {
    /// Its metadata alone.
    Look,
    /// The times to be set.
    Attributes,
    /// Names below a directory.
    Below,
    Read,
    /// Past the system's cache.
    ReadDirectly,
    Write,
    /// A new name, or none.
    Rename,
}

/// What is to be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Anything,
    Directory,
    File,
}

/// What becomes of a name that is not there, or is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Make {
    /// It must be there.
    Open,
    /// It must not.
    New,
    /// Either.
    OpenOrNew,
    /// Either; a new one is hidden.
    OpenOrHidden,
}

/// A call that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failed(NTSTATUS);

impl Failed {
    pub(crate) fn is_busy(self) -> bool {
        self.0 == STATUS_SHARING_VIOLATION
    }

    pub(crate) fn is_taken(self) -> bool {
        self.0 == STATUS_OBJECT_NAME_COLLISION
    }

    pub(crate) fn is_missing(self) -> bool {
        self.0 == STATUS_OBJECT_NAME_NOT_FOUND
    }

    /// Its name goes as soon as all have let go of it.
    pub(crate) fn is_going(self) -> bool {
        self.0 == STATUS_DELETE_PENDING
    }

    /// Not this way: older systems, and file systems that are not NTFS.
    fn is_unknown(self) -> bool {
        matches!(self.0, STATUS_INVALID_INFO_CLASS | STATUS_INVALID_PARAMETER | STATUS_NOT_IMPLEMENTED | STATUS_NOT_SUPPORTED)
    }
}

impl From<Failed> for io::Error {
    fn from(failed: Failed) -> Self {
        // SAFETY: a pure function of a number.
        Self::from_raw_os_error(unsafe { RtlNtStatusToDosError(failed.0) } as i32)
    }
}

impl From<Failed> for StoreError {
    fn from(failed: Failed) -> Self {
        match failed.0 {
            STATUS_OBJECT_NAME_INVALID => Self::CannotBeNamed,
            STATUS_OBJECT_NAME_COLLISION | STATUS_FILE_IS_A_DIRECTORY => Self::InTheWay,
            STATUS_DELETE_PENDING => Self::Missing,
            _ => Self::from_io(&failed.into()),
        }
    }
}

impl Directory {
    /// Opens a directory by its path, links in it followed.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let access = FILE_LIST_DIRECTORY | FILE_TRAVERSE | FILE_READ_ATTRIBUTES | SYNCHRONIZE;
        let mut options = std::fs::OpenOptions::new();
        let file = options.access_mode(access).share_mode(SHARED).custom_flags(FILE_FLAG_BACKUP_SEMANTICS).open(path)?;
        if !file.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self(file.into()))
    }

    /// Another handle of the same directory.
    pub(crate) fn again(&self, purpose: For) -> Result<OwnedHandle, Failed> {
        create(self, &[], purpose, What::Directory, Make::Open, SHARED).map(|(handle, _)| handle)
    }

    /// Opens what has this name, or makes it; true where it was made. What leads elsewhere is an error.
    pub(crate) fn at(&self, name: &[u16], purpose: For, what: What, make: Make) -> Result<(OwnedHandle, bool), StoreError> {
        let (handle, is_new) = create(self, name, purpose, what, make, SHARED)?;
        match metadata::tag(&handle)? {
            None => Ok((handle, is_new)),
            Some(tag) if metadata::leads_elsewhere(tag) && purpose == For::Look => Ok((handle, is_new)),
            Some(tag) if metadata::leads_elsewhere(tag) => Err(StoreError::Link),
            // A file that is kept in another form (compressed, deduplicated, in a cloud): its content is what is behind it.
            Some(_) => Ok((create_through(self, name, purpose, what)?, is_new)),
        }
    }

    /// Opens what has exactly this name: in another spelling it is an error.
    pub(crate) fn spelled(&self, name: &[u16], purpose: For, what: What) -> Result<OwnedHandle, StoreError> {
        let (handle, _) = self.at(name, purpose, what, Make::Open)?;
        if is_spelled(&handle, name) { Ok(handle) } else { Err(StoreError::OtherSpelling) }
    }

    /// A file that nobody else has open, or will have; the last to use it.
    pub(crate) fn alone(&self, name: &[u16], make: Make) -> Result<OwnedHandle, Failed> {
        create(self, name, For::Write, What::File, make, 0).map(|(handle, _)| handle)
    }

    /// Removes what has this name: an empty directory, or anything else.
    pub(crate) fn remove(&self, name: &[u16], what: What) -> Result<(), Failed> {
        let (handle, _) = create(self, name, For::Rename, what, Make::Open, SHARED)?;
        remove(&handle)
    }

    /// Makes names in it durable, as far as the system does that for directories.
    pub(crate) fn flush(&self) {
        let Ok(handle) = self.again(For::Write) else { return };
        let mut status = IO_STATUS_BLOCK::default();
        // SAFETY: the handle is open, and the block is there until the call returns: handles are synchronous here.
        let _ = unsafe { NtFlushBuffersFile(raw(&handle), &raw mut status) };
    }
}

/// Others may do with it what they like.
const SHARED: u32 = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;

fn create(
    dir: &Directory,
    name: &[u16],
    purpose: For,
    what: What,
    make: Make,
    share: u32,
) -> Result<(OwnedHandle, bool), Failed> {
    create_with(dir, name, purpose, what, make, share, FILE_OPEN_REPARSE_POINT)
}

/// What is behind a reparse point that leads nowhere else.
fn create_through(dir: &Directory, name: &[u16], purpose: For, what: What) -> Result<OwnedHandle, Failed> {
    create_with(dir, name, purpose, what, Make::Open, SHARED, 0).map(|(handle, _)| handle)
}

fn create_with(
    dir: &Directory,
    name: &[u16],
    purpose: For,
    what: What,
    make: Make,
    share: u32,
    more: u32,
) -> Result<(OwnedHandle, bool), Failed> {
    const FILE_NO_INTERMEDIATE_BUFFERING: u32 = 8;
    /// `IO_STATUS_BLOCK.Information` of `NtCreateFile`.
    const FILE_CREATED: usize = 2;
    let access = SYNCHRONIZE
        | match purpose {
            For::Look => FILE_READ_ATTRIBUTES,
            For::Attributes => FILE_READ_ATTRIBUTES | FILE_WRITE_ATTRIBUTES,
            For::Below => FILE_LIST_DIRECTORY | FILE_TRAVERSE | FILE_READ_ATTRIBUTES,
            For::Read | For::ReadDirectly => FILE_GENERIC_READ,
            For::Write => FILE_GENERIC_READ | FILE_GENERIC_WRITE | DELETE,
            For::Rename => FILE_READ_ATTRIBUTES | FILE_WRITE_ATTRIBUTES | DELETE,
        };
    let mut options = FILE_SYNCHRONOUS_IO_NONALERT | FILE_OPEN_FOR_BACKUP_INTENT | more;
    options |= match what {
        What::Anything => 0,
        What::Directory => FILE_DIRECTORY_FILE,
        What::File => FILE_NON_DIRECTORY_FILE,
    };
    if purpose == For::ReadDirectly {
        options |= FILE_NO_INTERMEDIATE_BUFFERING;
    }
    let disposition = match make {
        Make::Open => FILE_OPEN,
        Make::New => FILE_CREATE,
        Make::OpenOrNew | Make::OpenOrHidden => FILE_OPEN_IF,
    };
    let attributes = if make == Make::OpenOrHidden { FILE_ATTRIBUTE_HIDDEN } else { FILE_ATTRIBUTE_NORMAL };
    // Names are of at most 255 units.
    let bytes = size_of_val(name) as u16;
    let object = UNICODE_STRING { Length: bytes, MaximumLength: bytes, Buffer: name.as_ptr().cast_mut() };
    let object = OBJECT_ATTRIBUTES {
        Length: size_of::<OBJECT_ATTRIBUTES>() as u32,
        RootDirectory: raw(&dir.0),
        ObjectName: &raw const object,
        Attributes: OBJ_CASE_INSENSITIVE,
        SecurityDescriptor: null(),
        SecurityQualityOfService: null(),
    };
    let (mut handle, mut status): (HANDLE, _) = (std::ptr::null_mut(), IO_STATUS_BLOCK::default());
    // SAFETY: all that is pointed to outlives the call; the name is read only.
    let result = unsafe {
        let (handle, status) = (&raw mut handle, &raw mut status);
        NtCreateFile(handle, access, &raw const object, status, null(), attributes, share, disposition, options, null(), 0)
    };
    check(result)?;
    // SAFETY: the call has opened it, and nobody else has it.
    Ok((unsafe { OwnedHandle::from_raw_handle(handle) }, status.Information == FILE_CREATED))
}

/// Whether an open file has this very name, and not another that the file system takes for the same. Yes, where the system does not tell.
fn is_spelled(handle: &OwnedHandle, name: &[u16]) -> bool {
    let mut path = vec![0_u16; 1024];
    for _ in 0..2 {
        // SAFETY: the buffer has that many units.
        let length =
            unsafe { GetFinalPathNameByHandleW(raw(handle), path.as_mut_ptr(), path.len() as u32, FILE_NAME_NORMALIZED) };
        match length as usize {
            0 => return true,
            length if length < path.len() => {
                path.truncate(length);
                return path.rsplit(|&unit| unit == u16::from(b'\\')).next() == Some(name);
            }
            length => path.resize(length + 1, 0),
        }
    }
    true
}

/// Gives an open file a name in a directory, in the place of anything but a directory, at once.
pub(crate) fn rename(handle: &OwnedHandle, dir: &Directory, name: &[u16], replace: bool) -> Result<(), Failed> {
    const FILE_RENAME_REPLACE_IF_EXISTS: u32 = 1;
    // What has the name may be open: it goes on without one.
    const FILE_RENAME_POSIX_SEMANTICS: u32 = 2;
    const FILE_RENAME_IGNORE_READONLY_ATTRIBUTE: u32 = 0x40;
    let replacing = FILE_RENAME_REPLACE_IF_EXISTS | FILE_RENAME_IGNORE_READONLY_ATTRIBUTE;
    let flags = FILE_RENAME_POSIX_SEMANTICS | if replace { replacing } else { 0 };
    let offset = offset_of!(FILE_RENAME_INFORMATION, FileName);
    match set(handle, FileRenameInformationEx, &with_name(flags, dir, name, offset)) {
        Err(failed) if failed.is_unknown() => {
            set(handle, FileRenameInformation, &with_name(u32::from(replace), dir, name, offset))
        }
        result => result,
    }
}

/// Gives an open file one more name, in the place of anything but a directory.
pub(crate) fn link(handle: &OwnedHandle, dir: &Directory, name: &[u16]) -> Result<(), Failed> {
    set(handle, FileLinkInformation, &with_name(1, dir, name, offset_of!(FILE_LINK_INFORMATION, FileName)))
}

/// Removes the name of an open file, or an empty directory.
pub(crate) fn remove(handle: &OwnedHandle) -> Result<(), Failed> {
    const FILE_DISPOSITION_DELETE: u32 = 1;
    // At once, whoever has it open.
    const FILE_DISPOSITION_POSIX_SEMANTICS: u32 = 2;
    const FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE: u32 = 0x10;
    let flags = FILE_DISPOSITION_DELETE | FILE_DISPOSITION_POSIX_SEMANTICS | FILE_DISPOSITION_IGNORE_READONLY_ATTRIBUTE;
    match set(handle, FileDispositionInformationEx, &flags.to_le_bytes()) {
        Err(failed) if failed.is_unknown() => set(handle, FileDispositionInformation, &[1]),
        result => result,
    }
}

/// `FILE_RENAME_INFORMATION` and `FILE_LINK_INFORMATION`, which are alike: flags, a directory, the length of a name in bytes, the name.
fn with_name(flags: u32, dir: &Directory, name: &[u16], offset: usize) -> Vec<u8> {
    let mut bytes = vec![0; offset];
    bytes[..4].copy_from_slice(&flags.to_le_bytes());
    let root = raw(&dir.0) as usize;
    let at = offset_of!(FILE_RENAME_INFORMATION, RootDirectory);
    bytes[at..at + size_of::<usize>()].copy_from_slice(&root.to_le_bytes());
    let at = offset_of!(FILE_RENAME_INFORMATION, FileNameLength);
    bytes[at..at + 4].copy_from_slice(&(size_of_val(name) as u32).to_le_bytes());
    bytes.extend(name.iter().flat_map(|unit| unit.to_le_bytes()));
    // At least as long as the structure with its padding.
    bytes.resize(bytes.len().max(size_of::<FILE_RENAME_INFORMATION>()), 0);
    bytes
}

fn set(handle: &OwnedHandle, class: i32, information: &[u8]) -> Result<(), Failed> {
    // As aligned as the structures are.
    let mut aligned = vec![0_u64; information.len().div_ceil(size_of::<u64>())];
    // SAFETY: there is room for as many bytes, and the two do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(information.as_ptr(), aligned.as_mut_ptr().cast::<u8>(), information.len()) };
    let mut status = IO_STATUS_BLOCK::default();
    let (pointer, length) = (aligned.as_ptr().cast::<c_void>(), information.len() as u32);
    // SAFETY: the structure is that of the class, and all that is pointed to outlives the call.
    check(unsafe { NtSetInformationFile(raw(handle), &raw mut status, pointer, length, class) })
}

pub(crate) fn check(status: NTSTATUS) -> Result<(), Failed> {
    if status >= 0 { Ok(()) } else { Err(Failed(status)) }
}

/// A name of the system as bytes: UTF-8, or what is nearest where it is no UTF-16.
pub(crate) fn bytes_of(name: &[u16]) -> Vec<u8> {
    std::ffi::OsString::from_wide(name).into_encoded_bytes()
}
