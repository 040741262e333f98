//! The audit log of a listener: who came, with which key, from where, for what, how much it was, and how it ended.
//!
//! One line of JSON an event, or one entry of systemd's journal; the fields are those of [`Entry`]. What a peer chose (paths, reasons) is a [`PeerText`](haul_units::PeerText) before it is a field, so it is
//! bounded and on one line whatever it holds, and JSON's own escapes are the second fence.
//!
//! A line that cannot be written is lost, and the service goes on: a daemon that stopped would be stopped by whoever can fill the disk, any client with a writable root among them. The
//! ordinary log says so once; the first line that can be written again says how many are missing (`lost_before`).

mod entry;
mod error;
mod file;
mod journal;
mod measurements;
mod strangers;
mod visit;
mod visitors;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fmt, io};

use tracing::{error, info};

pub use self::entry::{Entry, Event, Way};
pub use self::error::AuditError;
use self::file::LogFile;
use self::journal::Journal;
pub use self::measurements::Measurements;
pub use self::strangers::Strangers;
pub use self::visit::Visit;
pub use self::visitors::Visitors;
use crate::clock;

/// Where an audit log is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditTo {
    /// Lines of JSON, appended to this file.
    File(PathBuf),
    /// Entries with fields of the journal that hears here.
    Journal(PathBuf),
}

/// Where events go; nowhere, if nobody asked for it.
#[derive(Debug, Default)]
pub struct Audit {
    log: Option<Mutex<Log>>,
}

#[derive(Debug)]
struct Log {
    place: Place,
    /// Events that could not be written since the last one that was.
    lost: u64,
}

#[derive(Debug)]
enum Place {
    File(LogFile),
    Journal(Journal),
}

impl Audit {
    /// Opens what was asked for, if anything was. `later` is the user that this process is going to become.
    ///
    /// # Errors
    ///
    /// When it cannot be opened, or others could write to it.
    pub fn open(to: Option<&AuditTo>, later: Option<u32>) -> Result<Self, AuditError> {
        let place = match to {
            None => return Ok(Self::default()),
            Some(AuditTo::File(path)) => LogFile::open(path, later).map(Place::File)?,
            Some(AuditTo::Journal(socket)) => Journal::open(socket).map(Place::Journal)?,
        };
        Ok(Self::at(place))
    }

    fn at(place: Place) -> Self {
        Self { log: Some(Mutex::new(Log { place, lost: 0 })) }
    }

    /// The directory in which a file is made again when the log is rotated.
    pub fn directory(&self) -> Option<PathBuf> {
        match &self.lock()?.place {
            Place::File(file) => Some(file.directory().to_owned()),
            Place::Journal(_) => None,
        }
    }

    /// The listener is up: whose key it has, where it listens.
    pub fn started(&self, address: std::net::SocketAddr, key: haul::Fingerprint) -> Running<'_> {
        let version = Some(env!("CARGO_PKG_VERSION").into());
        self.write(Entry { key: Some(key.to_string()), version, ..Entry::of(Event::Started).at(address) });
        Running { audit: self, since: clock::now() }
    }

    /// That no client may see or write what is said about clients.
    ///
    /// # Errors
    ///
    /// When a root holds the log's directory.
    pub fn refuse_below<'a>(&self, roots: impl IntoIterator<Item = &'a Path>) -> Result<(), AuditError> {
        let Some(directory) = self.directory() else { return Ok(()) };
        match roots.into_iter().find(|root| directory.starts_with(root)) {
            None => Ok(()),
            Some(root) => Err(AuditError::Exported { root: root.to_owned() }),
        }
    }

    /// Opens the file again if another one has its name, or none has: it has been rotated.
    pub fn open_again(&self) {
        let Some(mut log) = self.lock() else { return };
        if let Place::File(file) = &mut log.place
            && let Err(error) = file.open_again()
        {
            error!(%error, "the audit log goes on in the file that is open");
        }
    }

    /// Writes one event.
    pub fn write(&self, entry: Entry) {
        let Some(mut log) = self.lock() else { return };
        // Behind the lock, so that the times of the lines do not go back.
        let mut entry = entry.stamped();
        entry.lost_before = (log.lost > 0).then_some(log.lost);
        match log.place.put(&entry) {
            Ok(()) if log.lost > 0 => {
                info!(lost = log.lost, "the audit log can be written again");
                log.lost = 0;
            }
            Ok(()) => {}
            Err(error) => {
                if log.lost == 0 {
                    error!(%error, place = %log.place, "the audit log cannot be written: events are lost from here on");
                }
                log.lost += 1;
            }
        }
    }

    fn lock(&self) -> Option<MutexGuard<'_, Log>> {
        self.log.as_ref().map(|log| log.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A listener that is up. That it ends is written when this is dropped.
pub struct Running<'a> {
    audit: &'a Audit,
    since: std::time::Instant,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.audit.write(Entry::of(Event::Stopped).took(clock::now().saturating_duration_since(self.since)));
    }
}

impl Place {
    fn put(&mut self, entry: &Entry) -> io::Result<()> {
        match self {
            Self::File(file) => file.put(entry),
            Self::Journal(journal) => journal.put(entry),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(file) => file.path().display().fmt(f),
            Self::Journal(_) => f.write_str("the journal"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};

    use super::*;

    fn lost(audit: &Audit) -> u64 {
        audit.lock().unwrap().lost
    }

    #[test]
    fn a_full_disk_loses_lines_and_the_next_one_says_how_many() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("audit");
        let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
        let audit = Audit::at(Place::File(LogFile::of(path.clone(), full)));
        audit.write(Entry::of(Event::Started));
        audit.write(Entry::of(Event::Reloaded));
        assert_eq!(lost(&audit), 2);
        // The file of that name is another one: as after a rotation.
        audit.open_again();
        audit.write(Entry::of(Event::Stopped));
        assert_eq!(lost(&audit), 0);
        audit.write(Entry::of(Event::Stopped));
        let text = fs::read_to_string(path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 2 && lines[0].contains(r#""lost_before":2"#) && !lines[1].contains("lost_before"), "{text}");
    }

    #[test]
    fn nobody_asked_for_it() {
        let audit = Audit::default();
        audit.write(Entry::of(Event::Started));
        audit.open_again();
        assert!(audit.refuse_below([Path::new("/")]).is_ok());
    }
}
