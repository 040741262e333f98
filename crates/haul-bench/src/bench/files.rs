//! Files to copy: made from a seed, so that what arrived can be compared byte by byte without the source.
//!
//! ```text
//!   ROOT/file               where it is one
//!   ROOT/tree/000/000000    where there are more, 1000 in a directory
//! ```

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::plan::FileSet;

/// Why files are not as they should be.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// The disk.
    #[error("{path}: {error}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// Other bytes, fewer, or more.
    #[error("{0} is not what was sent")]
    Different(PathBuf),
    /// More files than were made.
    #[error("{found} files are there, {wanted} were sent")]
    Count {
        /// How many there are.
        found: u64,
        /// How many there should be.
        wanted: u64,
    },
}

/// Makes them below a directory.
pub fn make(root: &Path, files: FileSet, seed: u64) -> Result<(), FilesError> {
    let mut buffer = vec![0; BUFFER_BYTES];
    for index in 0..files.count {
        let path = root.join(place(files, index));
        let failed = |error| FilesError::Io { path: path.clone(), error };
        if index % FILES_IN_A_DIRECTORY == 0 {
            fs::create_dir_all(path.parent().unwrap_or(root)).map_err(failed)?;
        }
        let mut file = File::create(&path).map_err(failed)?;
        let mut content = Content::of(seed, index);
        let mut left = files.size.0;
        while left > 0 {
            let part = &mut buffer[..left.min(BUFFER_BYTES as u64) as usize];
            content.fill(part);
            file.write_all(part).map_err(failed)?;
            left -= part.len() as u64;
        }
    }
    Ok(())
}

/// Whether exactly these files are below a directory, with the right bytes.
pub fn check(root: &Path, files: FileSet, seed: u64) -> Result<(), FilesError> {
    let (found, wanted) = (count(root)?, u64::from(files.count));
    if found != wanted {
        return Err(FilesError::Count { found, wanted });
    }
    let (mut is, mut should_be) = (vec![0; BUFFER_BYTES], vec![0; BUFFER_BYTES]);
    for index in 0..files.count {
        let path = root.join(place(files, index));
        let failed = |error| FilesError::Io { path: path.clone(), error };
        let mut file = File::open(&path).map_err(failed)?;
        if file.metadata().map_err(failed)?.len() != files.size.0 {
            return Err(FilesError::Different(path));
        }
        let mut content = Content::of(seed, index);
        let mut left = files.size.0;
        while left > 0 {
            let length = left.min(BUFFER_BYTES as u64) as usize;
            file.read_exact(&mut is[..length]).map_err(failed)?;
            content.fill(&mut should_be[..length]);
            if is[..length] != should_be[..length] {
                return Err(FilesError::Different(path));
            }
            left -= length as u64;
        }
    }
    Ok(())
}

/// What is to be copied, below the root.
pub fn top(files: FileSet) -> &'static str {
    if files.count == 1 { "file" } else { "tree" }
}

fn place(files: FileSet, index: u32) -> PathBuf {
    if files.count == 1 {
        PathBuf::from("file")
    } else {
        PathBuf::from(format!("tree/{:03}/{index:06}", index / FILES_IN_A_DIRECTORY))
    }
}

/// Files in a directory and all below it.
fn count(dir: &Path) -> Result<u64, FilesError> {
    let failed = |error| FilesError::Io { path: dir.to_owned(), error };
    let mut sum = 0;
    for entry in fs::read_dir(dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        sum += if entry.file_type().map_err(failed)?.is_dir() { count(&entry.path())? } else { 1 };
    }
    Ok(sum)
}

/// Bytes that do not compress: xorshift64* (Vigna, 2016).
struct Content(u64);

impl Content {
    fn of(seed: u64, index: u32) -> Self {
        // Any state but zero will do; states far from each other make unlike files.
        Self((seed << 32 | u64::from(index)).wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    fn fill(&mut self, buffer: &mut [u8]) {
        for bytes in buffer.chunks_mut(8) {
            self.0 ^= self.0 >> 12;
            self.0 ^= self.0 << 25;
            self.0 ^= self.0 >> 27;
            let word = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D).to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
    }
}

const BUFFER_BYTES: usize = 1 << 20;
const FILES_IN_A_DIRECTORY: u32 = 1000;

#[cfg(test)]
mod tests {
    use haul_units::Bytes;

    use super::*;

    #[test]
    fn what_was_made_is_right_and_every_difference_is_seen() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path();
        let files = FileSet { count: 1003, size: Bytes(5) };
        make(root, files, 7).expect("room");
        check(root, files, 7).expect("just made");
        assert!(matches!(check(root, files, 8), Err(FilesError::Different(_))), "another seed");
        let last = root.join("tree/001/001002");
        let content = fs::read(&last).expect("it is there");
        fs::write(&last, [&content[..], b"more"].concat()).expect("room");
        assert!(matches!(check(root, files, 7), Err(FilesError::Different(path)) if path == last));
        fs::remove_file(&last).expect("it is there");
        assert!(matches!(check(root, files, 7), Err(FilesError::Count { found: 1002, wanted: 1003 })));
    }

    #[test]
    fn a_large_file_differs_from_itself_nowhere() {
        let dir = tempfile::tempdir().expect("a directory");
        let files = FileSet { count: 1, size: Bytes((2 << 20) + 12) };
        make(dir.path(), files, 1).expect("room");
        check(dir.path(), files, 1).expect("just made");
        let mut content = fs::read(dir.path().join("file")).expect("it is there");
        assert_ne!(content[..1 << 20], content[1 << 20..2 << 20]);
        *content.last_mut().expect("not empty") ^= 1;
        fs::write(dir.path().join("file"), content).expect("room");
        assert!(check(dir.path(), files, 1).is_err());
    }
}
