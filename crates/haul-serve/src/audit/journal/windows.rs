//! No such journal.

use std::io;
use std::path::Path;

use crate::audit::{AuditError, Entry};

/// There is none.
#[derive(Debug)]
pub enum Journal {}

impl Journal {
    /// An error.
    pub fn open(place: &Path) -> Result<Self, AuditError> {
        Err(AuditError::NoJournal { socket: place.to_owned(), source: io::ErrorKind::Unsupported.into() })
    }

    /// Sends an entry.
    pub fn put(&self, _entry: &Entry) -> io::Result<()> {
        match *self {}
    }
}
