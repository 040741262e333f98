//! Those who would be clients and are nobody's: few lines, however many come. Whoever can connect could fill the disk else.

use std::sync::{Arc, Mutex, PoisonError};

use haul::PublicKey;
use haul_peer::keys::Sparse;

use super::{Audit, Entry, Event};
use crate::clock;

/// Strangers at one listener.
pub struct Strangers {
    audit: Arc<Audit>,
    sparse: Mutex<Sparse>,
}

impl Strangers {
    /// None has come.
    pub fn of(audit: &Arc<Audit>) -> Self {
        Self { audit: Arc::clone(audit), sparse: Mutex::new(Sparse::new(clock::now())) }
    }

    /// One has come, with this key that is in no line.
    pub fn unknown(&self, key: &PublicKey) {
        let entry = Entry::of(Event::Refused).because("this key is not authorised");
        self.refused(Entry { key: Some(key.fingerprint().to_string()), ..entry });
    }

    /// One was turned away; written if there is room for a line about one.
    pub fn refused(&self, entry: Entry) {
        if let Some(missed) = self.sparse.lock().unwrap_or_else(PoisonError::into_inner).next(clock::now()) {
            self.audit.write(Entry { others: (missed > 0).then_some(missed), ..entry });
        }
    }
}
