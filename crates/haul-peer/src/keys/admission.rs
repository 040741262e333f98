//! Who is let in: those whose keys are authorised, for what they are authorised.

use haul::{Connection, Fingerprint};
use tracing::{error, warn};

use super::AuthorizedKeys;
use super::rights::{Rights, Service};
use crate::greeting::Refusal;
use crate::moment::Moment;
use crate::state::StateDir;

/// A client that was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admitted {
    /// Its key.
    pub key: Fingerprint,
    /// What it goes by: the name of its key, or the key.
    pub name: String,
    /// What it may do.
    pub rights: Rights,
}

impl Admitted {
    /// Why a service is refused, if it is.
    pub fn refuses(&self, service: Service) -> Option<Refusal> {
        if self.rights.allows(service) {
            return None;
        }
        warn!(client = self.name, %service, "turned away: its key is not authorised for this");
        Some(Refusal {
            error: format!("this user's key is not authorised for {}", words(service)).into(),
            hint: Some("whoever runs haul there decides that (`haul key list` shows it)".into()),
        })
    }
}

/// Lets a client in, or says why not.
pub fn admit(state: &StateDir, connection: &Connection) -> Result<Admitted, Refusal> {
    let Some(key) = connection.peer_key().map(|key| key.fingerprint()) else {
        warn!("turned away: it shows no key");
        return Err(Refusal { error: "this side serves only clients that show a key".into(), hint: None });
    };
    let path = state.authorized_keys();
    let keys = AuthorizedKeys::load(path.clone()).map_err(|error| {
        error!(%error, remedy = error.remedy(), "turned away: the file of authorised keys cannot be used");
        Refusal { error: "the other side cannot use its authorised keys".into(), hint: Some("its log says why".into()) }
    })?;
    let hint = || Some(format!("on the other host, whoever runs haul there must say: haul key authorize {key}").into());
    let entry = match keys.find(key) {
        Some(Ok(entry)) => entry,
        Some(Err(fault)) => {
            error!(file = %path.display(), line = fault.line, reason = %fault.reason, %key, "turned away: its line is refused");
            return Err(Refusal { error: "this user's key is not authorised there".into(), hint: hint() });
        }
        None => {
            warn!(%key, "turned away: this key is not authorised (`haul key authorize {key}` would let it in)");
            return Err(Refusal { error: "this user's key is not authorised there".into(), hint: hint() });
        }
    };
    let name = if entry.name.is_empty() { key.to_string() } else { entry.name };
    if let Some(reason) = entry.rights.turns_away(connection.remote_addr().ip(), Moment::now()) {
        warn!(client = name, "turned away: {reason}");
        return Err(Refusal { error: format!("this user's key is not let in: {reason}").into(), hint: None });
    }
    Ok(Admitted { key, name, rights: entry.rights })
}

const fn words(service: Service) -> &'static str {
    match service {
        Service::Copy => "copies",
        Service::Perf => "measuring",
        Service::Proxy => "this proxy",
        Service::Pipe => "this pipe",
        Service::Relay => "relaying",
    }
}
