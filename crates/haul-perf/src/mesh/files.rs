//! The files of a mesh's results: those of an earlier mesh are never written over.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::matrix::Matrix;
use crate::document::pretty;

/// Results that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}", path.display())]
pub struct FilesError {
    /// What was to be written.
    path: PathBuf,
    /// What the system says.
    source: io::Error,
}

/// The files of the results, made and empty.
#[derive(Debug)]
pub struct ResultFiles(Vec<(PathBuf, File)>);

impl ResultFiles {
    /// PREFIX.csv, .json and .html, or PREFIX-2 and so on where there is one of them. They are made before anything is measured: what cannot be written is known then.
    pub fn free(prefix: &Path) -> Result<Self, FilesError> {
        let paths = |number: u32| {
            ENDINGS.map(|ending| {
                let mut path = prefix.as_os_str().to_owned();
                path.push(if number == 1 { format!(".{ending}") } else { format!("-{number}.{ending}") });
                PathBuf::from(path)
            })
        };
        let free = (1..10_000).map(paths).find(|paths| paths.iter().all(|path| path.symlink_metadata().is_err()));
        let open = |path: PathBuf| File::create_new(&path).map(|file| (path, file));
        let opened = free.into_iter().flatten().map(open).collect::<io::Result<_>>();
        opened.map(Self).map_err(|source| FilesError { path: prefix.to_owned(), source })
    }

    /// Removes them: nothing was measured.
    pub fn remove(self) {
        for (path, _) in self.0 {
            let _ = fs::remove_file(path);
        }
    }

    /// Writes them; `wrote` hears of each.
    pub fn write(self, matrix: &Matrix, wrote: impl Fn(&Path)) -> Result<(), FilesError> {
        let contents = [matrix.csv(), pretty(&matrix.document()) + "\n", matrix.page()];
        for ((path, mut file), content) in self.0.into_iter().zip(contents) {
            match file.write_all(content.as_bytes()) {
                Ok(()) => wrote(&path),
                Err(source) => return Err(FilesError { path, source }),
            }
        }
        Ok(())
    }
}

const ENDINGS: [&str; 3] = ["csv", "json", "html"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_never_written_over() {
        let dir = tempfile::tempdir().expect("a directory");
        let prefix = dir.path().join("mesh");
        fs::write(prefix.with_extension("json"), "measured for hours").expect("room");
        let names = |results: ResultFiles| -> Vec<String> {
            results.0.iter().map(|(path, _)| path.file_name().expect("a name").to_string_lossy().into_owned()).collect()
        };
        ResultFiles::free(&prefix).expect("room").remove();
        assert!(!dir.path().join("mesh-2.csv").exists(), "where nothing was measured nothing is left");
        let results = ResultFiles::free(&prefix).expect("room");
        assert_eq!(names(results), ["mesh-2.csv", "mesh-2.json", "mesh-2.html"]);
        assert_eq!(fs::read_to_string(prefix.with_extension("json")).expect("there"), "measured for hours");
        assert!(!prefix.with_extension("csv").exists(), "what was not used is left");
        assert!(ResultFiles::free(&dir.path().join("nowhere/mesh")).is_err());
    }
}
