//! Who is let in: those whose keys are authorised.

use haul::Connection;
use tracing::{error, warn};

use super::AuthorizedKeys;
use crate::session::Refusal;
use crate::state::StateDir;

/// The name of an authorised client, or why it is not let in.
pub fn admit(state: &StateDir, connection: &Connection) -> Result<String, Refusal> {
    let Some(key) = connection.peer_key().map(|key| key.fingerprint()) else {
        warn!("turned away: it shows no key");
        return Err(Refusal { error: "this side serves only clients that show a key".to_owned(), hint: None });
    };
    let path = state.authorized_keys();
    let keys = AuthorizedKeys::load(path.clone()).map_err(|error| {
        error!(file = %path.display(), %error, "turned away: the file of authorised keys cannot be read");
        Refusal { error: "the other side cannot read its authorised keys".to_owned(), hint: Some("its log says why".to_owned()) }
    })?;
    match keys.name_of(key) {
        Some(name) if name.is_empty() => Ok(key.to_string()),
        Some(name) => Ok(name),
        None => {
            warn!(%key, "turned away: this key is not authorised (`haul key authorize {key}` would let it in)");
            let hint = format!("on the other host, whoever runs haul there must say: haul key authorize {key}");
            Err(Refusal { error: "this user's key is not authorised there".to_owned(), hint: Some(hint) })
        }
    }
}
