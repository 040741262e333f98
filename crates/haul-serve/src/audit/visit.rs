//! What is said of one client, from its coming to its going.

use std::sync::Arc;
use std::time::Instant;

use haul::Connection;
use haul_peer::keys::Service;
use haul_units::PeerText;

use super::{Audit, Entry, Event};
use crate::clock;

/// One client's connection.
pub struct Visit {
    audit: Arc<Audit>,
    number: u64,
    connection: Connection,
    came: Instant,
    name: Option<PeerText>,
    service: Option<String>,
    turned_away: bool,
}

impl Visit {
    /// It has come.
    pub fn begin(audit: &Arc<Audit>, number: u64, connection: &Connection) -> Self {
        Self {
            audit: Arc::clone(audit),
            number,
            connection: connection.clone(),
            came: clock::now(),
            name: None,
            service: None,
            turned_away: false,
        }
    }

    /// It goes by this name.
    pub fn is(&mut self, name: &str) {
        self.name = Some(name.into());
    }

    /// It wants this.
    pub fn wants(&mut self, service: Service) {
        self.service = Some(service.to_string());
    }

    /// An event about it, to be filled in and written.
    pub fn entry(&self, event: Event) -> Entry {
        Entry {
            connection: Some(self.number),
            client: self.name.clone(),
            key: self.connection.peer_key().map(|key| key.fingerprint().to_string()),
            service: self.service.clone(),
            ..Entry::of(event)
        }
        .at(self.connection.remote_addr())
    }

    /// Writes one.
    pub fn write(&self, entry: Entry) {
        self.audit.write(entry);
    }

    /// It has a place.
    pub fn admitted(&self, version: &PeerText) {
        self.write(Entry { version: Some(version.clone()), ..self.entry(Event::Admitted) });
    }

    /// It was turned away.
    pub fn refused(&mut self, why: impl Into<PeerText>) {
        self.turned_away = true;
        self.write(self.entry(Event::Refused).because(why));
    }

    /// It is gone; for a reason, if this side had one.
    pub fn ended(self, why: Option<String>) {
        if self.turned_away {
            return;
        }
        let entry = self.entry(Event::Ended).took(clock::now().saturating_duration_since(self.came));
        self.write(match why {
            Some(why) => entry.because(why),
            None => entry,
        });
    }
}
