//! The files of keys: the own identity, the hosts that are trusted, the keys that are authorised.

mod admission;
mod authorized;
mod identity;
mod known_hosts;
pub mod table;

pub use admission::admit;
pub use authorized::AuthorizedKeys;
pub use identity::load_or_make;
pub use known_hosts::{Known, KnownHosts};

use std::sync::Arc;

use haul::PeerTrust;

/// Whose handshake a server takes: with `anyone` even that of clients without a key, else that of every key. Which keys may stay is decided after
/// it by [`admit`], so that a refusal can be explained.
pub fn may_knock(anyone: bool) -> PeerTrust {
    if anyone { PeerTrust::Anyone } else { PeerTrust::Callback(Arc::new(|_| true)) }
}
