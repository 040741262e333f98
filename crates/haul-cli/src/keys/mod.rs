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
