//! The files of keys: the own identity, the hosts that are trusted, the keys that are authorised and what for.

mod admission;
mod authorized;
mod error;
mod handshake;
mod identity;
mod kept;
mod known_hosts;
mod owner;
mod rights;
mod stamp;
pub mod strict;
pub mod table;
mod watch;

pub use admission::{Admitted, admit};
pub use authorized::{AuthorizedKeys, Entry, EntryError, Fault};
pub use error::KeysError;
pub use handshake::{Sparse, admission, may_handshake};
pub use identity::load_or_make;
pub use known_hosts::{Known, KnownHosts};
pub use rights::{Rights, RightsError, Service, is_root_name};
pub use watch::{KeyWatch, Stay};

use std::net::IpAddr;

use haul::{Identity, ResetKey};

/// With what a listener that is started again at the same place says to the clients of the process before it that their connections are gone. Two processes cannot listen at one place, so none can be
/// asked for the words of another; at a port that the system picks (0) nobody comes back.
pub fn reset_key(identity: &Identity, what: &str, ip: Option<IpAddr>, port: u16) -> Option<ResetKey> {
    let place = ip.map_or_else(|| "any".to_owned(), |ip| ip.to_string());
    (port != 0).then(|| ResetKey::of_identity(identity, &format!("{what} {place} {port}"))).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_a_reset_key_and_a_port_of_chance_has_none() {
        let identity = Identity::generate();
        assert!(reset_key(&identity, "pipe", None, 7000).is_some());
        assert!(reset_key(&identity, "pipe", None, 0).is_none());
    }
}
