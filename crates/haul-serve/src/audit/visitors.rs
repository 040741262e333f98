//! What is said of the clients of haul-tunnel: of `haul pipe -l` and `haul proxy serve`.

use std::sync::Arc;

use haul::PublicKey;
use haul_peer::keys::Service;
use haul_tunnel::{Visit, Visitor, Visits};

use super::{Audit, Entry, Event, Strangers};

/// Writes down who comes to a listener of haul-tunnel.
pub struct Visitors {
    audit: Arc<Audit>,
    service: Service,
    /// Whether those who are turned away are strangers, and not holders of authorised keys.
    anyone: bool,
    strangers: Strangers,
}

impl Visitors {
    /// To this service, for holders of authorised keys or for `anyone`.
    pub fn to(service: Service, anyone: bool, audit: &Arc<Audit>) -> Self {
        Self { audit: Arc::clone(audit), service, anyone, strangers: Strangers::of(audit) }
    }

    fn entry(&self, event: Event, visitor: &Visitor, name: Option<&str>) -> Entry {
        Entry {
            connection: Some(visitor.number),
            client: name.map(Into::into),
            key: visitor.connection.peer_key().map(|key| key.fingerprint().to_string()),
            service: Some(self.service.to_string()),
            ..Entry::of(event)
        }
        .at(visitor.connection.remote_addr())
    }
}

impl Visits for Visitors {
    fn visit(&self, visitor: &Visitor, visit: &Visit<'_>) {
        let entry = |event, name| self.entry(event, visitor, name);
        self.audit.write(match *visit {
            Visit::Refused { why } => {
                let refused = entry(Event::Refused, None).because(why.to_string());
                if self.anyone {
                    return self.strangers.refused(refused);
                }
                refused
            }
            Visit::Admitted { name, version } => Entry { version: Some(version.clone()), ..entry(Event::Admitted, name) },
            Visit::Carried { name, to, sent, received, cut } => {
                let carried = Entry {
                    to: Some(to.to_string().into()),
                    sent_bytes: Some(sent),
                    received_bytes: Some(received),
                    result: Some(if cut.is_some() { "failed" } else { "done" }),
                    ..entry(Event::Carried, name)
                };
                match cut {
                    Some(cut) => carried.because(cut.to_string()),
                    None => carried,
                }
            }
            Visit::Ended { name, took, sent, received } => {
                let ended = entry(Event::Ended, name).took(took);
                Entry { sent_bytes: Some(sent), received_bytes: Some(received), ..ended }
            }
        });
    }

    fn stranger(&self, key: &PublicKey) {
        self.strangers.unknown(key);
    }
}
