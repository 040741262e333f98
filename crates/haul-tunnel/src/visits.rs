//! Who comes to a listener: for those who keep a record of it.
//!
//! Each client that says what it wants is a [`Visitor`]; what becomes of it is told to a [`Visits`] in order: refused, or admitted, then each thing carried, then ended. Strangers whose keys no line has come
//! no further than the handshake, and are told of by their key.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use haul::{Connection, PeerTrust, PublicKey};
use haul_peer::Refusal;
use haul_units::PeerText;

use crate::clock;

/// A client of a listener.
pub struct Visitor {
    /// Tells the connections of one listener apart.
    pub number: u64,
    /// The connection to it.
    pub connection: Connection,
}

/// What becomes of a client.
pub enum Visit<'a> {
    /// It was turned away.
    Refused {
        /// What it was told.
        why: &'a dyn Display,
    },
    /// It was let in.
    Admitted {
        /// The name of its key in the file of authorised keys.
        name: Option<&'a str>,
        /// The version of its program.
        version: &'a PeerText,
    },
    /// Something of its was carried to where it wanted to go, or not.
    Carried {
        /// The name of its key.
        name: Option<&'a str>,
        /// Where to.
        to: &'a dyn Display,
        /// Bytes that went to the client.
        sent: u64,
        /// Bytes that came from it.
        received: u64,
        /// Why it did not end in order.
        cut: Option<&'a dyn Display>,
    },
    /// It is gone that was let in.
    Ended {
        /// The name of its key.
        name: Option<&'a str>,
        /// After so long.
        took: Duration,
        /// Bytes that went to it.
        sent: u64,
        /// Bytes that came from it.
        received: u64,
    },
}

/// Hears of clients, in the thread or task that serves them: it must not wait.
pub trait Visits: Send + Sync {
    /// What has become of one.
    fn visit(&self, visitor: &Visitor, visit: &Visit<'_>);

    /// One has come whose key is in no line.
    fn stranger(&self, key: &PublicKey);
}

impl Visits for () {
    fn visit(&self, _: &Visitor, _: &Visit<'_>) {}

    fn stranger(&self, _: &PublicKey) {}
}

/// The same trust, and who hears of those whom it turns away.
pub fn overheard(trust: PeerTrust, visits: &Arc<dyn Visits>) -> PeerTrust {
    let PeerTrust::Callback(trusts) = trust else { return trust };
    let visits = Arc::clone(visits);
    PeerTrust::Callback(Arc::new(move |key| {
        let trusted = trusts(key);
        if !trusted {
            visits.stranger(key);
        }
        trusted
    }))
}

/// What is kept of one client. Its end is told when this is dropped.
pub struct Record {
    visits: Arc<dyn Visits>,
    visitor: Visitor,
    admitted: Mutex<Option<Admitted>>,
    sent: AtomicU64,
    received: AtomicU64,
}

struct Admitted {
    name: Option<String>,
    since: Instant,
}

impl Record {
    /// Of a client that has come.
    pub fn begin(visits: &Arc<dyn Visits>, connection: &Connection) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let visitor = Visitor { number: NEXT.fetch_add(1, Ordering::Relaxed), connection: connection.clone() };
        let (sent, received) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { visits: Arc::clone(visits), visitor, admitted: Mutex::default(), sent, received }
    }

    pub fn refused(&self, refusal: &Refusal) {
        self.visits.visit(&self.visitor, &Visit::Refused { why: &refusal.error });
    }

    /// It said nothing that makes sense.
    pub fn asked_nothing(&self, error: &dyn Display) {
        self.visits.visit(&self.visitor, &Visit::Refused { why: &format_args!("it asked for nothing: {error}") });
    }

    pub fn admitted(&self, name: Option<&str>, version: &PeerText) {
        let admitted = Admitted { name: name.map(str::to_owned), since: clock::now() };
        *self.admitted.lock().unwrap_or_else(PoisonError::into_inner) = Some(admitted);
        self.visits.visit(&self.visitor, &Visit::Admitted { name, version });
    }

    /// Bytes went to the client and came from it.
    pub fn moved(&self, sent: u64, received: u64) {
        self.sent.fetch_add(sent, Ordering::Relaxed);
        self.received.fetch_add(received, Ordering::Relaxed);
    }

    pub fn carried(&self, to: &dyn Display, sent: u64, received: u64, cut: Option<&dyn Display>) {
        self.moved(sent, received);
        let admitted = self.admitted.lock().unwrap_or_else(PoisonError::into_inner);
        let name = admitted.as_ref().and_then(|admitted| admitted.name.as_deref());
        self.visits.visit(&self.visitor, &Visit::Carried { name, to, sent, received, cut });
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let Some(Admitted { name, since }) = self.admitted.get_mut().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        let took = clock::now().saturating_duration_since(since);
        let (sent, received) = (*self.sent.get_mut(), *self.received.get_mut());
        self.visits.visit(&self.visitor, &Visit::Ended { name: name.as_deref(), took, sent, received });
    }
}
