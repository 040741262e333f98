//! Reports of jobs, from their logs: tables, charts, and one page that needs nothing else.
//!
//! What is read may have been written by anybody: lines are short or left out, numbers are bounded, and names are made printable when they are read and escaped where they are written.

mod charts;
mod error;
mod escape;
mod page;
mod read;
mod record;
mod tables;
mod timeline;

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use haul_plot::Figure;

pub use error::ReportError;
pub use record::{ClientPoint, JobRecord, MemberPoint, MemberRecord, Span};

/// What the logs in a directory say.
#[derive(Debug, Clone, Default)]
pub struct LogReport {
    /// The jobs, in the order of their numbers.
    pub jobs: Vec<JobRecord>,
}

impl LogReport {
    /// Reads a log, or all logs in a directory.
    pub fn read(dir: &Path) -> Result<Self, ReportError> {
        read::read(dir).map(|jobs| Self { jobs })
    }

    /// Reads several, each as [`read`](Self::read) does. Jobs of one name get another, for their charts.
    pub fn read_all(dirs: &[PathBuf]) -> Result<Self, ReportError> {
        let mut jobs: Vec<JobRecord> = Vec::new();
        for dir in dirs {
            for mut job in read::read(dir)? {
                let (name, mut nth) = (job.name.clone(), 1);
                while jobs.iter().any(|other| other.name == job.name) {
                    nth += 1;
                    job.name = format!("{name}-{nth}");
                }
                jobs.push(job);
            }
        }
        Ok(Self { jobs })
    }

    /// Tables of text: each job with its members; with several jobs, the rate against the number of members.
    pub fn tables(&self) -> String {
        tables::text(&self.jobs)
    }

    /// The charts that there are data for, with a name for a file.
    pub fn charts(&self) -> Vec<(String, Figure)> {
        charts::all(&self.jobs)
    }

    /// All of it as one page of HTML, without scripts and without anything from elsewhere.
    pub fn page(&self) -> Result<String, ReportError> {
        page::page(&self.jobs, &self.charts())
    }

    /// Writes `report.html`, `report.txt` and each chart as SVG and PNG into a directory, which is made if it is not there. Gives the paths.
    pub fn write(&self, dir: &Path) -> Result<Vec<PathBuf>, ReportError> {
        fs::create_dir_all(dir).map_err(|source| ReportError::Io { path: dir.to_owned(), source })?;
        let mut files =
            vec![("report.html".to_owned(), self.page()?.into_bytes()), ("report.txt".to_owned(), self.tables().into_bytes())];
        for (name, figure) in self.charts() {
            files.push((format!("{name}.svg"), figure.svg()?.into_bytes()));
            files.push((format!("{name}.png"), figure.png()?));
        }
        for job in &self.jobs {
            let timeline = timeline::of(job);
            files.push((format!("{}-timeline.svg", job.name), timeline.svg()?.into_bytes()));
            files.push((format!("{}-timeline.png", job.name), timeline.png()?));
        }
        let mut written = Vec::new();
        for (name, content) in files {
            let path = dir.join(name);
            replace(&path, &content).map_err(|source| ReportError::Io { path: path.clone(), source })?;
            written.push(path);
        }
        Ok(written)
    }
}

/// A new file takes the name: a link that has it is not followed.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    match fs::remove_file(&name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).open(&name)?.write_all(content)?;
    fs::rename(&name, path)
}
