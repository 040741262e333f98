//! The directory of the sockets, and who is asked there.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::Pid;

use crate::line::{hear, say};
use crate::message::{Order, Status};

/// How long a command may take to answer: it does so at once, or hangs.
const PATIENCE: Duration = Duration::from_secs(2);
/// What the names of sockets end in.
const SUFFIX: &str = ".sock";

/// Commands cannot be found or told.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// Others may write to the directory, or it is somebody else's.
    #[error("{}: is not a directory of this user alone; if it is his: chmod 700", .0.display())]
    NotOurs(PathBuf),
    /// The directory cannot be used.
    #[error("{}", path.display())]
    Dir {
        /// The directory.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There is no such command.
    #[error("no command of this user that takes orders has the process {0}")]
    NoSuch(u32),
    /// It does not answer as it should.
    #[error("process {pid} does not answer")]
    Silent {
        /// The process.
        pid: u32,
        /// What happened.
        #[source]
        source: io::Error,
    },
}

/// A directory of sockets that is this user's alone.
#[derive(Debug, Clone)]
pub struct ControlDir(PathBuf);

impl ControlDir {
    /// This user's: `haul` in the directory that the system gives him while he is logged in, or else a directory of his in `/tmp`. It is made where it is not there.
    pub fn of_user(runtime_dir: Option<&Path>) -> Result<Self, ControlError> {
        let uid = rustix::process::geteuid().as_raw();
        let given = runtime_dir.map_or_else(|| format!("/run/user/{uid}").into(), Path::to_owned);
        let usual = given.is_dir().then(|| given.join("haul"));
        Self::at(usual.unwrap_or_else(|| format!("/tmp/haul-{uid}").into()))
    }

    /// This directory, if it is this user's alone.
    pub fn at(path: PathBuf) -> Result<Self, ControlError> {
        let failed = |source| ControlError::Dir { path: path.clone(), source };
        match DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
            _ => {}
        }
        let there = fs::symlink_metadata(&path).map_err(failed)?;
        if !there.is_dir() || there.uid() != rustix::process::geteuid().as_raw() || there.mode() & 0o077 != 0 {
            return Err(ControlError::NotOurs(path));
        }
        Ok(Self(path))
    }

    pub(crate) fn socket(&self, pid: u32) -> PathBuf {
        self.0.join(format!("{pid}{SUFFIX}"))
    }

    /// The commands that answer, by their processes.
    pub fn list(&self) -> Result<Vec<Status>, ControlError> {
        let failed = |source| ControlError::Dir { path: self.0.clone(), source };
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.0).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            let pid = name.to_str().and_then(|name| name.strip_suffix(SUFFIX)?.parse().ok());
            // One that ends at this moment is no error.
            found.extend(pid.and_then(|pid| self.tell(pid, &Order::Status).ok()));
        }
        found.sort_by_key(|status| status.pid);
        Ok(found)
    }

    /// Tells a command something; how it does then.
    pub fn tell(&self, pid: u32, order: &Order) -> Result<Status, ControlError> {
        let path = self.socket(pid);
        let silent = |source| ControlError::Silent { pid, source };
        let stream = match UnixStream::connect(&path) {
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                // Its command died without a word. While there is a process of this number its socket may be one that does not listen yet, or that was made since the other was called.
                if !is_there(pid) {
                    let _ = fs::remove_file(&path);
                }
                return Err(ControlError::NoSuch(pid));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(ControlError::NoSuch(pid)),
            stream => stream.map_err(silent)?,
        };
        let patient = stream.set_read_timeout(Some(PATIENCE)).and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
        let status: Status = patient.and_then(|()| say(&stream, order)).and_then(|()| hear(&stream)).map_err(silent)?;
        Ok(Status { pid, ..status })
    }
}

/// Whether there is a process of this number.
fn is_there(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| rustix::process::test_kill_process(pid) != Err(Errno::SRCH))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    #[test]
    fn a_directory_that_others_may_use_is_not_used() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("haul");
        let dir = ControlDir::at(path.clone()).expect("made");
        assert_eq!(fs::metadata(&path).expect("there").mode() & 0o777, 0o700);
        assert!(dir.list().expect("empty").is_empty());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o770)).expect("a mode");
        assert!(matches!(ControlDir::at(path.clone()), Err(ControlError::NotOurs(_))));
        let link = place.path().join("link");
        symlink(place.path(), &link).expect("a link");
        assert!(matches!(ControlDir::at(link), Err(ControlError::NotOurs(_))), "whatever it leads to");
        assert!(matches!(dir.tell(1, &Order::Status), Err(ControlError::NoSuch(1))));
    }
}
