//! A list of checksums of what a copy brought, or found there already, in the form of `b3sum` and `sha256sum`.
//!
//! The side that writes it reads its own files once more when all is done: the sources of a push, what has arrived of a pull. So a list of a push says what the sources have, and checked over there it says whether
//! the copy has that too. Names are those that the sources have below the target; a name that [`sum_line`] cannot write for the program that is to check it is an error that names it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest;
use haul_files::{Event, Fault, FileProblem, WirePath};
use haul_names::sum_line;
use thiserror::Error;

/// Bytes that are read at once.
const READ_BYTES: usize = 1 << 20;

/// Which checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sum {
    /// BLAKE3, for `b3sum`.
    Blake3,
    /// SHA-256, for `sha256sum`.
    Sha256,
}

/// What a manifest has failed by.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The list itself.
    #[error("{}", path.display())]
    List {
        /// Where it is.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file that it is to have.
    #[error("{path}: not in the manifest")]
    File {
        /// The file.
        path: WirePath,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// b3sum takes only names in UTF-8.
    #[error("{0}: not in the manifest: b3sum takes only names in UTF-8; sha256sum takes any")]
    NotUtf8(WirePath),
}

/// A list that is being made.
pub struct Manifest {
    path: PathBuf,
    list: File,
    /// What is to be in it: each name, and where the file is on this side.
    files: Mutex<BTreeMap<Vec<u8>, PathBuf>>,
}

impl Manifest {
    /// Makes the list, empty, or empties one that is there.
    pub fn create(path: &Path) -> Result<Self, ManifestError> {
        let list = File::create(path).map_err(|source| ManifestError::List { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), list, files: Mutex::default() })
    }

    /// Hears of the copy.
    pub fn event(&self, event: &Event<'_>) {
        if let Event::Content { name, here } = event {
            let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
            files.insert(name.to_vec(), (*here).to_owned());
        }
    }

    /// Reads what has come, all but files with problems, and writes the list. It goes on after a file that fails, and gives the first such error.
    pub fn write(&self, sum: Sum, problems: &[FileProblem]) -> Result<(), ManifestError> {
        let files = std::mem::take(&mut *self.files.lock().unwrap_or_else(PoisonError::into_inner));
        let failed = |source| ManifestError::List { path: self.path.clone(), source };
        let (mut out, mut first) = (BufWriter::new(&self.list), None);
        for (name, here) in files {
            if problems.iter().any(|problem| is_about(problem, &name, &here)) {
                continue;
            }
            match line_of(sum, &name, &here) {
                Ok(line) => out.write_all(&line).map_err(failed)?,
                Err(error) => drop(first.get_or_insert(error)),
            }
        }
        out.flush().and_then(|()| self.list.sync_all()).map_err(failed)?;
        first.map_or(Ok(()), Err)
    }
}

/// Whether a problem is one of this file: of the source by its own path; of the far side, which calls it otherwise, by the end of that.
fn is_about(problem: &FileProblem, name: &[u8], here: &Path) -> bool {
    let own = problem.path.0 == here.as_os_str().as_encoded_bytes();
    own || problem.fault != Fault::Source && problem.path.0.ends_with(name)
}

fn line_of(sum: Sum, name: &[u8], here: &Path) -> Result<Vec<u8>, ManifestError> {
    let path = || WirePath(name.to_vec());
    if sum == Sum::Blake3 && std::str::from_utf8(name).is_err() {
        return Err(ManifestError::NotUtf8(path()));
    }
    let hash = hash_of(sum, here).map_err(|source| ManifestError::File { path: path(), source })?;
    Ok(sum_line(&hash, name))
}

fn hash_of(sum: Sum, path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let (mut blake3, mut sha256) = (blake3::Hasher::new(), digest::Context::new(&digest::SHA256));
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => buffer.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        match sum {
            Sum::Blake3 => drop(blake3.update(read)),
            Sum::Sha256 => sha256.update(read),
        }
    }
    Ok(match sum {
        Sum::Blake3 => blake3.finalize().as_bytes().to_vec(),
        Sum::Sha256 => sha256.finish().as_ref().to_vec(),
    })
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::process::Command;

    use haul_files::Why;

    use super::*;

    fn told(manifest: &Manifest, dir: &Path, names: &[&[u8]]) {
        for name in names {
            let here = dir.join(OsStr::from_bytes(name));
            fs::write(&here, [b"content of ", *name].concat()).expect("a file");
            manifest.event(&Event::Content { name, here: &here });
        }
    }

    #[test]
    fn sha256sum_takes_every_name_and_finds_a_change() {
        let dir = tempfile::tempdir().expect("a directory");
        let list = dir.path().join("list");
        let manifest = Manifest::create(&list).expect("a list");
        let names: [&[u8]; 6] = [b"plain", b"two\nlines", b"back\\slash", b"\x1b[2J", b"\xff\xfe", b"cr\r"];
        told(&manifest, dir.path(), &names);
        manifest.write(Sum::Sha256, &[]).expect("written");
        let check =
            || Command::new("sha256sum").args(["--check", "--strict", "--quiet", "list"]).current_dir(dir.path()).output();
        let checked = check().expect("sha256sum");
        assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
        assert_eq!(fs::read(&list).expect("the list").split(|&byte| byte == b'\n').count(), names.len() + 1);
        fs::write(dir.path().join(OsStr::from_bytes(b"two\nlines")), "another").expect("a file");
        assert!(!check().expect("sha256sum").status.success());
    }

    #[test]
    fn what_has_a_problem_is_not_in_it_and_what_b3sum_cannot_read_is_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let list = dir.path().join("list");
        let manifest = Manifest::create(&list).expect("a list");
        told(&manifest, dir.path(), &[b"a", b"b", b"c", b"\xff"]);
        let problem = |path: &str, fault| FileProblem { path: WirePath(path.into()), fault, why: Why::Special };
        let own = dir.path().join("a");
        let problems = [problem(own.to_str().expect("UTF-8"), Fault::Source), problem("/far/b", Fault::Destination)];
        assert!(matches!(manifest.write(Sum::Blake3, &problems), Err(ManifestError::NotUtf8(_))));
        let hash = blake3::hash(b"content of c");
        assert_eq!(fs::read_to_string(&list).expect("the list"), format!("{hash}  c\n"));
    }
}
