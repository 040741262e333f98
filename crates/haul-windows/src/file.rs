//! Open files.

use std::os::windows::fs::FileExt as _;
use std::os::windows::io::{AsHandle as _, OwnedHandle};

use haul_files::StoreError;
use haul_files::store::{Attributes, Content, Metadata, Part};

use crate::metadata::{self, time_of};

/// A file that is open.
#[derive(Debug)]
pub struct File {
    pub(crate) handle: OwnedHandle,
    file: std::fs::File,
}

impl File {
    pub(crate) fn new(handle: OwnedHandle) -> Result<Self, StoreError> {
        let file = handle.try_clone().map_err(|error| StoreError::from_io(&error))?.into();
        Ok(Self { handle, file })
    }

    pub(crate) fn sync(&self) -> Result<(), StoreError> {
        self.file.sync_all().map_err(|error| StoreError::from_io(&error))
    }

    /// Reads once at an offset; nothing where the file ends.
    pub(crate) fn read_once(&self, buffer: &mut [u8], offset: u64) -> Result<usize, StoreError> {
        /// `ERROR_HANDLE_EOF`
        const AT_END: i32 = 38;
        match self.file.seek_read(buffer, offset) {
            Err(error) if error.raw_os_error() == Some(AT_END) => Ok(0),
            result => result.map_err(|error| StoreError::from_io(&error)),
        }
    }

    /// Fills a buffer from an offset on; fewer bytes only where the file ends.
    fn read_all(&self, buffer: &mut [u8], offset: u64) -> Result<usize, StoreError> {
        let mut done = 0;
        while let Some(rest) = buffer.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match self.read_once(rest, offset + done as u64)? {
                0 => break,
                read => done += read,
            }
        }
        Ok(done)
    }
}

impl Content for File {
    fn metadata(&self) -> Result<Metadata, StoreError> {
        metadata::metadata(&self.handle)
    }

    fn read_at(&self, buffer: &mut Vec<u8>, offset: u64, length: usize) -> Result<usize, StoreError> {
        let start = buffer.len();
        buffer.resize(start + length, 0);
        let read = self.read_all(buffer.get_mut(start..).unwrap_or_default(), offset);
        buffer.truncate(start + *read.as_ref().unwrap_or(&0));
        read
    }
}

impl Part for File {
    fn set_size(&self, size: u64) -> Result<(), StoreError> {
        self.file.set_len(size).map_err(|error| StoreError::from_io(&error))
    }

    fn write_at(&self, mut content: &[u8], mut offset: u64) -> Result<(), StoreError> {
        while !content.is_empty() {
            match self.file.seek_write(content, offset) {
                Ok(0) => return Err(StoreError::FAILED),
                Ok(written) => {
                    content = content.get(written..).unwrap_or_default();
                    offset += written as u64;
                }
                Err(error) => return Err(StoreError::from_io(&error)),
            }
        }
        Ok(())
    }

    fn finish(&self, attributes: &Attributes, _mode: Option<u32>) -> Result<Metadata, StoreError> {
        set_time(&self.handle, attributes)?;
        Content::metadata(self)
    }
}

/// Gives what is open its time of modification: all that is kept of attributes.
pub(crate) fn set_time(handle: &OwnedHandle, attributes: &Attributes) -> Result<(), StoreError> {
    let Some(time) = attributes.mtime.and_then(time_of) else { return Ok(()) };
    let file: std::fs::File = handle.as_handle().try_clone_to_owned().map_err(|error| StoreError::from_io(&error))?.into();
    file.set_times(std::fs::FileTimes::new().set_modified(time)).map_err(|error| StoreError::from_io(&error))
}
