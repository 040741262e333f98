//! The names in a directory.

use std::mem::offset_of;
use std::ops::ControlFlow;

use haul_files::StoreError;
use windows_sys::Win32::Foundation::{ERROR_NO_MORE_FILES, GetLastError};
use windows_sys::Win32::Storage::FileSystem::{FILE_ID_BOTH_DIR_INFO, FileIdBothDirectoryInfo, GetFileInformationByHandleEx};

use crate::at::{Directory, For};
use crate::handle::raw;

/// Bytes for the names of a directory that are read at once.
const LISTING_BYTES: usize = 64 << 10;

/// Calls `each` with the names in a directory, but `.` and `..`, until it breaks.
pub(crate) fn each_name(dir: &Directory, each: &mut dyn FnMut(&[u16]) -> ControlFlow<()>) -> Result<(), StoreError> {
    // Where a listing has come to belongs to a handle.
    let handle = dir.again(For::Below)?;
    let mut buffer = vec![0_u64; LISTING_BYTES / size_of::<u64>()];
    loop {
        // SAFETY: the buffer is as aligned as the structures in it, and has that many bytes.
        let done = unsafe {
            GetFileInformationByHandleEx(raw(&handle), FileIdBothDirectoryInfo, buffer.as_mut_ptr().cast(), LISTING_BYTES as u32)
        };
        if done == 0 {
            // SAFETY: a number of this thread.
            return match unsafe { GetLastError() } {
                ERROR_NO_MORE_FILES => Ok(()),
                code => Err(StoreError::from_io(&std::io::Error::from_raw_os_error(code as i32))),
            };
        }
        for name in names_of(&buffer) {
            if !matches!(&*name, [46] | [46, 46]) && each(&name).is_break() {
                return Ok(());
            }
        }
    }
}

/// The names in a run of `FILE_ID_BOTH_DIR_INFO`.
fn names_of(buffer: &[u64]) -> Vec<Vec<u16>> {
    let bytes: Vec<u8> = buffer.iter().flat_map(|word| word.to_le_bytes()).collect();
    let number = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?) as usize);
    let (mut names, mut at) = (Vec::new(), 0);
    loop {
        let name = || {
            let length = number(at + offset_of!(FILE_ID_BOTH_DIR_INFO, FileNameLength))?;
            let start = at + offset_of!(FILE_ID_BOTH_DIR_INFO, FileName);
            let name = bytes.get(start..start + length)?;
            Some(name.chunks_exact(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect())
        };
        names.extend(name());
        match number(at) {
            Some(0) | None => return names,
            Some(next) => at += next,
        }
    }
}
