//! A list of checksums of what a copy brought, or found there already, in the form of `b3sum` and `sha256sum`.
//!
//! The side that writes it reads its own files once more when all is done: the sources of a push, what has arrived of a pull. So a list of a push says what the sources have, and checked over there it says whether
//! the copy has that too. Names are those that the sources have below the target; a name that [`sum_line`] cannot write for the program that is to check it is an error that names it.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write as _};
use std::iter;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest;
use haul_files::{Event, Fault, FileProblem, MAX_PROBLEMS, WirePath};
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
    heard: Mutex<Heard>,
}

/// What was told of the copy.
#[derive(Default)]
struct Heard {
    /// What is to be in the list: each name, and where the file is on this side.
    files: BTreeMap<Vec<u8>, PathBuf>,
    /// What had problems, as these name it, and who was at fault.
    failed: HashSet<(Vec<u8>, Fault)>,
}

impl Manifest {
    /// Makes the list, empty, or empties one that is there.
    pub fn create(path: &Path) -> Result<Self, ManifestError> {
        let list = File::create(path).map_err(|source| ManifestError::List { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), list, heard: Mutex::default() })
    }

    /// Hears of the copy.
    pub fn event(&self, event: &Event<'_>) {
        let heard = || self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Content { name, here } => drop(heard().files.insert(name.to_vec(), (*here).to_owned())),
            Event::Problem(FileProblem { path, fault, .. }) => {
                let mut heard = heard();
                // A peer may tell of any number of them, but there are not many more than files.
                if heard.failed.len() < heard.files.len() + MAX_PROBLEMS {
                    heard.failed.insert((path.0.clone(), *fault));
                }
            }
            _ => {}
        }
    }

    /// Reads what has come, all but files with problems, and writes the list. It goes on after a file that fails, and gives the first such error.
    pub fn write(&self, sum: Sum, problems: &[FileProblem]) -> Result<(), ManifestError> {
        let Heard { files, mut failed } = std::mem::take(&mut *self.heard.lock().unwrap_or_else(PoisonError::into_inner));
        // They are the first ones only. Where they are all, nothing else counts: what failed before the copy was tried again may have come since.
        if problems.len() < MAX_PROBLEMS {
            failed.clear();
        }
        failed.extend(problems.iter().map(|problem| (problem.path.0.clone(), problem.fault)));
        let without = Failed::among(&files, &failed);
        let failed = |source| ManifestError::List { path: self.path.clone(), source };
        let (mut out, mut first) = (BufWriter::new(&self.list), None);
        for (name, here) in &files {
            if without.has(name, here) {
                continue;
            }
            match line_of(sum, name, here) {
                Ok(line) => out.write_all(&line).map_err(failed)?,
                Err(error) => drop(first.get_or_insert(error)),
            }
        }
        out.flush().and_then(|()| self.list.sync_all()).map_err(failed)?;
        first.map_or(Ok(()), Err)
    }
}

/// The files that have problems.
struct Failed<'a> {
    /// By their paths on this side.
    paths: HashSet<&'a [u8]>,
    /// By their names in the list.
    names: HashSet<&'a [u8]>,
}

impl<'a> Failed<'a> {
    /// A problem of this side has the file's own path. The far side calls it otherwise, by the name below the target: of the ends of that path the longest that is the name of a file.
    fn among(files: &BTreeMap<Vec<u8>, PathBuf>, problems: &'a HashSet<(Vec<u8>, Fault)>) -> Self {
        let own: HashSet<&[u8]> = files.values().map(|here| here.as_os_str().as_encoded_bytes()).collect();
        let (mut paths, mut names) = (HashSet::new(), HashSet::new());
        for (path, fault) in problems {
            if own.contains(&**path) {
                paths.insert(&**path);
            } else if *fault != Fault::Source {
                names.extend(ends(path).find(|end| files.contains_key(*end)));
            }
        }
        Self { paths, names }
    }

    fn has(&self, name: &[u8], here: &Path) -> bool {
        self.names.contains(name) || self.paths.contains(here.as_os_str().as_encoded_bytes())
    }
}

/// A path, and what is left of it without its first components, the longest first.
fn ends(path: &[u8]) -> impl Iterator<Item = &[u8]> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    iter::once(path).chain(slashes.filter_map(|(at, _)| path.get(at + 1..)))
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

    /// Names in the list.
    fn listed(list: &Path) -> Vec<String> {
        let list = fs::read_to_string(list).expect("the list");
        list.lines().filter_map(|line| Some(line.split_once("  ")?.1.to_owned())).collect()
    }

    fn far(path: impl Into<Vec<u8>>) -> FileProblem {
        FileProblem { path: WirePath(path.into()), fault: Fault::Destination, why: Why::Special }
    }

    #[test]
    fn a_problem_is_of_the_file_with_the_whole_name_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let list = dir.path().join("list");
        for sub in ["d", "e"] {
            fs::create_dir(dir.path().join(sub)).expect("a directory");
        }
        let manifest = Manifest::create(&list).expect("a list");
        told(&manifest, dir.path(), &[b"catalog", b"log", b"d/log", b"d/x", b"e/x", b"x"]);
        let own = dir.path().join("e/x");
        let problems = [far("/in/catalog"), far("/in/d/log"), far(own.to_str().expect("UTF-8"))];
        manifest.write(Sum::Blake3, &problems).expect("written");
        assert_eq!(listed(&list), ["d/x", "log", "x"]);
    }

    #[test]
    fn problems_beyond_those_of_the_report_count_too() {
        let dir = tempfile::tempdir().expect("a directory");
        let list = dir.path().join("list");
        let manifest = Manifest::create(&list).expect("a list");
        let problems: Vec<_> = (0..MAX_PROBLEMS).map(|number| far(format!("/in/gone/{number}"))).collect();
        told(&manifest, dir.path(), &[b"came", b"failed"]);
        for problem in problems.iter().chain([&far("/in/failed")]) {
            manifest.event(&Event::Problem(problem));
        }
        manifest.write(Sum::Blake3, &problems).expect("written");
        assert_eq!(listed(&list), ["came"]);
    }

    #[test]
    fn what_failed_before_the_copy_was_tried_again_may_have_come() {
        let dir = tempfile::tempdir().expect("a directory");
        let list = dir.path().join("list");
        let manifest = Manifest::create(&list).expect("a list");
        told(&manifest, dir.path(), &[b"a", b"b"]);
        for problem in [far("/in/a"), far("/in/b")] {
            manifest.event(&Event::Problem(&problem));
        }
        manifest.write(Sum::Blake3, &[far("/in/b")]).expect("written");
        assert_eq!(listed(&list), ["a"]);
    }
}
