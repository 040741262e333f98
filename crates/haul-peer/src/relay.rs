//! A meeting of two ends behind NATs, by way of a daemon that both can reach: what is said for it, and to whom.
//!
//! ```text
//!   near                           relay (a daemon)                 far
//!     === ask for a pair, by a key that is let in ===  grants.rs
//!     === which relay, a ticket, where we are seen ============>  through ssh: messages.rs
//!     --- makes itself known -->         <-- makes itself known ---   post.rs, as haul-relay says
//!     <=== where the other one is seen =========================  through ssh
//!     --- hole punching, each to where the other one is seen ----->
//! ```
//! The relay gives tickets for its own datagrams, and learns nothing of the connection's keys, nor of the secret that their hole punching is proved with.

mod far;
mod grants;
mod messages;
mod post;

pub(crate) use far::attend;
pub use grants::{Grant, PROTOCOL, RelayAsk, RelayReply};
pub(crate) use messages::{Meeting, Met};
pub(crate) use post::{Heard, PUNCH_INTERVAL, Post};
