//! A meeting of two ends behind NATs, by way of a daemon that both can reach: what is said for it, and to whom.
//!
//! ```text
//!   near                           relay (a daemon)                 far
//!     === ask for a pair, by a key that is let in ===  grants.rs
//!     === which relay, a ticket, where we are seen ============>  through ssh: words.rs
//!     --- makes itself known -->         <-- makes itself known ---   post.rs, as haul-relay says
//!     <=== where the other one is seen =========================  through ssh
//!     --- knocks, each at the other's NAT ----------------------->
//! ```
//! The relay gives tickets for its own datagrams, and learns nothing of the connection's keys, nor of the secret that the two ends knock with.

mod far;
mod grants;
mod post;
mod words;

pub(crate) use far::attend;
pub use grants::{Grant, PROTOCOL, RelayAsk, RelayReply};
pub(crate) use post::{Heard, KNOCK, Post};
pub(crate) use words::{Meeting, Met};
