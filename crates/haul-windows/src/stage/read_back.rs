//! Reading back: past the system's cache, where the file system does that, after what was written has been flushed.

use haul_files::block::{Hash, MAX_CONTENT};
use haul_files::store::{ReadHow, StoreError, Written};

use super::Stage;
use crate::at::{Directory, For, What};
use crate::file::File;
use crate::names;

/// A piece that was written: offset, length, hash.
type Sent = (u64, u32, Hash);

/// Direct reading wants offsets, lengths and addresses at multiples of the disk's blocks: no disk has larger ones.
const ALIGNMENT: usize = 4096;

impl Stage {
    /// Reads back a part file, or what was made at its place.
    pub(super) fn read_back_written(
        &self,
        what: &Written<'_, Directory>,
        pieces: &[Sent],
        buffer: &mut Vec<u8>,
    ) -> Result<ReadHow, StoreError> {
        match *what {
            Written::Unfinished(part) => {
                self.open_part(part, For::Write)?.sync()?;
                check(|purpose| self.open_part(part, purpose), pieces, buffer)
            }
            Written::Part(part, _mode) => check(|purpose| self.open_part(part, purpose), pieces, buffer),
            Written::Placed(dir, name) => {
                let name = names::to_open(name).ok_or(StoreError::CannotBeNamed)?;
                let result = check(|purpose| File::new(dir.spelled(&name, purpose, What::File)?), pieces, buffer);
                if result == Err(StoreError::Damaged) {
                    let _ = dir.remove(&name, What::File);
                }
                result
            }
        }
    }
}

/// Whether all pieces are there, and how that was found out.
fn check(open: impl Fn(For) -> Result<File, StoreError>, pieces: &[Sent], buffer: &mut Vec<u8>) -> Result<ReadHow, StoreError> {
    let (file, how) = match open(For::ReadDirectly) {
        Ok(file) => (file, ReadHow::Direct),
        Err(StoreError::Unsupported(_)) => (open(For::Read)?, ReadHow::Uncached),
        Err(error) => return Err(error),
    };
    for piece in pieces {
        if !has(&file, piece, buffer)? {
            return Err(StoreError::Damaged);
        }
    }
    Ok(how)
}

/// Whether `file` has this piece, wherever it begins.
fn has(file: &File, (offset, length, hash): &Sent, buffer: &mut Vec<u8>) -> Result<bool, StoreError> {
    buffer.resize(MAX_CONTENT + 3 * ALIGNMENT, 0);
    let start = buffer.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
    let before = *offset as usize % ALIGNMENT;
    let end = before + *length as usize;
    let whole = buffer.get_mut(start..start + end.next_multiple_of(ALIGNMENT)).ok_or(StoreError::FAILED)?;
    let mut read = 0;
    while read < end {
        let rest = whole.get_mut(read..).unwrap_or_default();
        match file.read_once(rest, offset - before as u64 + read as u64)? {
            // Its end, or a read that ends within a block: only there can a file end.
            n if n % ALIGNMENT != 0 || n == 0 => {
                read += n;
                break;
            }
            n => read += n,
        }
    }
    Ok(read >= end && blake3::hash(whole.get(before..end).unwrap_or_default()).as_bytes() == hash)
}
