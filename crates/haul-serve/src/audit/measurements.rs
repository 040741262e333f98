//! What is said of the clients of `haul perf -s`, who have no names and whose keys say nothing.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use haul_peer::chain;
use haul_peer::keys::Service;
use haul_perf::{Visit, Visits};

use super::{Audit, Entry, Event, Strangers};

/// Writes down who measures, and passes it on.
pub struct Measurements<V> {
    audit: Arc<Audit>,
    strangers: Strangers,
    /// Those that were let in and have not ended.
    present: Mutex<HashSet<u64>>,
    next: V,
}

impl<V> Measurements<V> {
    /// For `next` as well.
    pub fn before(next: V, audit: &Arc<Audit>) -> Self {
        Self { audit: Arc::clone(audit), strangers: Strangers::of(audit), present: Mutex::default(), next }
    }
}

impl<V: Visits> Visits for Measurements<V> {
    fn visit(&self, number: u64, from: SocketAddr, visit: &Visit<'_>) {
        let entry = |event| {
            let service = Some(Service::Perf.to_string());
            Entry { connection: Some(number), service, ..Entry::of(event) }.at(from)
        };
        let mut present = self.present.lock().unwrap_or_else(PoisonError::into_inner);
        let was_let_in = match visit {
            Visit::Asked(_) => present.insert(number),
            _ => present.remove(&number),
        };
        drop(present);
        match visit {
            Visit::Asked(ask) => self.audit.write(Entry { version: Some(ask.version.clone()), ..entry(Event::Admitted) }),
            Visit::Measured(measured) => {
                measured.totals.iter().for_each(|total| self.audit.write(entry(Event::Measured).measured(total)));
            }
            Visit::TurnedAway(refusal) => self.strangers.refused(entry(Event::Refused).because(refusal.error.clone())),
            Visit::Failed(error) if !was_let_in => self.strangers.refused(entry(Event::Refused).because(chain(*error))),
            Visit::Failed(error) => {
                self.audit.write(Entry { result: Some("failed"), ..entry(Event::Measured) }.because(chain(*error)));
            }
        }
        self.next.visit(number, from, visit);
    }
}
