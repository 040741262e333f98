//! Open files: reading to where the content belongs in a block, writing from where it arrived.

use std::fs::File;
use std::os::fd::AsFd;

use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::meta;
use crate::store::{Attributes, Content, Metadata, Part, StoreError};
use haul_xattrs::{Failed, Outcome, Wanted};

impl Content for File {
    fn metadata(&self) -> Result<Metadata, StoreError> {
        Ok(meta::metadata(&rustix::fs::fstat(self)?))
    }

    fn read_at(&self, buffer: &mut Vec<u8>, offset: u64, length: usize) -> Result<usize, StoreError> {
        let start = buffer.len();
        buffer.reserve(length);
        while buffer.len() - start < length {
            let done = buffer.len() - start;
            let Some(spare) = buffer.spare_capacity_mut().get_mut(..length - done) else { break };
            let read = match rustix::io::pread(self, spare, offset + done as u64) {
                Ok((read, _)) => read.len(),
                Err(Errno::INTR) => continue,
                Err(errno) => return Err(errno.into()),
            };
            if read == 0 {
                break;
            }
            // SAFETY: `pread` has initialised the first `read` bytes after the old length, and they are within the capacity.
            unsafe { buffer.set_len(start + done + read) };
        }
        Ok(buffer.len() - start)
    }

    fn data_after(&self, offset: u64) -> Option<(u64, u64)> {
        match rustix::fs::seek(self, SeekFrom::Data(offset)) {
            Ok(data) => Some((data, rustix::fs::seek(self, SeekFrom::Hole(data)).unwrap_or(u64::MAX))),
            Err(Errno::NXIO) => None,
            // The file system knows no holes.
            Err(_) => Some((offset, u64::MAX)),
        }
    }
}

impl Part for File {
    fn set_size(&self, size: u64) -> Result<(), StoreError> {
        Ok(rustix::fs::ftruncate(self, size)?)
    }

    fn write_at(&self, mut content: &[u8], mut offset: u64) -> Result<(), StoreError> {
        while !content.is_empty() {
            match rustix::io::pwrite(self, content, offset) {
                Ok(0) => return Err(StoreError::FAILED),
                Ok(written) => {
                    content = content.get(written..).unwrap_or_default();
                    offset += written as u64;
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn finish(&self, attributes: &Attributes, mode: Option<u32>) -> Result<Metadata, StoreError> {
        apply(self, attributes, mode)?;
        Content::metadata(self)
    }

    fn set_extended(&self, wanted: &Wanted<'_>) -> Result<Outcome, Failed> {
        haul_xattrs::apply(self, wanted)
    }
}

/// Gives a file its owner, mode and time, in this order: each undoes a part of the one after it.
pub(super) fn apply(fd: impl AsFd, attributes: &Attributes, mode: Option<u32>) -> Result<(), Errno> {
    if let Some((uid, gid)) = attributes.owner {
        let (uid, gid) = meta::owner(uid, gid);
        rustix::fs::fchown(&fd, uid, gid)?;
    }
    if let Some(mode) = mode {
        rustix::fs::fchmod(&fd, meta::mode(mode))?;
    }
    if let Some(mtime) = attributes.mtime {
        rustix::fs::futimens(&fd, &meta::timestamps(mtime))?;
    }
    Ok(())
}
