//! What was changed on this machine, and what was there before.
//!
//! An entry is written, and on its way to the disk's file system, before its change is made; it is crossed out after the change is taken back. So whenever the program is killed, every change that is in force has its
//! entry. An entry whose change is not in force does no harm: taking back looks at what is there first. The journal is in /run: a restart of the machine takes it and all changes away.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use haul_units::Network;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use crate::error::TcpError;
use crate::kernel::netns::Namespace;
use crate::kernel::route::Route;

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Change {
    /// The default of a namespace.
    Default { namespace: Namespace, before: String, law: String },
    /// The routes to a network.
    Routes { namespace: Namespace, network: Network, before: Vec<Route>, law: String },
    /// A program at a cgroup, pinned below this number.
    Cgroup { id: u32, dir: PathBuf, namespace: Option<Namespace>, network: Option<Network>, law: String },
    /// A cgroup for one program, of this process.
    Run { dir: PathBuf, process: u32, law: String },
}

/// All of them, in the order in which they were made.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Journal {
    /// The programs that are loaded, or were to be.
    pub(crate) loaded: Option<String>,
    pub(crate) changes: Vec<Change>,
    #[serde(skip)]
    file: PathBuf,
    /// Nobody else changes anything while it is held.
    #[serde(skip)]
    _lock: Option<File>,
}

impl Journal {
    /// To change something: waits for whoever is at it.
    pub(crate) fn open(dir: &Path) -> Result<Self, TcpError> {
        let lock = lock(dir)?;
        Ok(Self { _lock: Some(lock), ..Self::read(dir)? })
    }

    /// To look.
    pub(crate) fn read(dir: &Path) -> Result<Self, TcpError> {
        let file = dir.join("journal.json");
        match fs::read(&file) {
            Ok(text) => {
                let journal: Self =
                    serde_json::from_slice(&text).map_err(|source| TcpError::Unreadable { path: file.clone(), source })?;
                Ok(Self { file, ..journal })
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self { file, ..Self::default() }),
            Err(source) => Err(TcpError::Journal { path: file, source }),
        }
    }

    /// Writes a change down that is about to be made.
    pub(crate) fn add(&mut self, change: Change) -> Result<(), TcpError> {
        self.changes.push(change);
        self.write()
    }

    /// Whole or not at all: under another name first.
    pub(crate) fn write(&self) -> Result<(), TcpError> {
        let failed = |source| TcpError::Journal { path: self.file.clone(), source };
        let text = serde_json::to_vec_pretty(self).map_err(|error| failed(error.into()))?;
        let fresh = self.file.with_extension("new");
        let mut file = File::create(&fresh).map_err(failed)?;
        file.write_all(&text).and_then(|()| file.sync_all()).map_err(failed)?;
        fs::rename(&fresh, &self.file).map_err(failed)
    }

    /// Nothing is changed any more.
    pub(crate) fn remove(&self) -> Result<(), TcpError> {
        match fs::remove_file(&self.file) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => Err(TcpError::Journal { path: self.file.clone(), source }),
            _ => Ok(()),
        }
    }
}

/// Waits until nobody else changes what is kept in a directory, which is made; they wait as long as the file is held.
pub(crate) fn lock(dir: &Path) -> Result<File, TcpError> {
    let failed = |source| TcpError::Journal { path: dir.to_owned(), source };
    fs::create_dir_all(dir).map_err(failed)?;
    let lock = File::options().create(true).truncate(false).write(true).open(dir.join("lock")).map_err(failed)?;
    flock(&lock, FlockOperation::LockExclusive).map_err(|errno| failed(errno.into()))?;
    Ok(lock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut journal = Journal::open(dir.path()).expect("a journal");
        assert!(journal.changes.is_empty());
        let change = Change::Cgroup {
            id: 3,
            dir: "/sys/fs/cgroup/x".into(),
            namespace: None,
            network: Some("10.0.0.0/8".parse().expect("a network")),
            law: "haul_fair".into(),
        };
        journal.add(change.clone()).expect("written");
        assert_eq!(Journal::read(dir.path()).expect("a journal").changes, [change]);
        journal.remove().expect("removed");
        assert!(Journal::read(dir.path()).expect("none").changes.is_empty());
    }

    #[test]
    fn what_is_no_journal_is_said_to_be_none() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("journal.json"), "{\"changes\":[{\"other\":1}]}").expect("written");
        assert!(matches!(Journal::read(dir.path()), Err(TcpError::Unreadable { .. })));
    }
}
