//! haul as a user runs it: two hosts made of network namespaces, a router between them, a real sshd, real files.
//!
//! ```text
//!   near 10.77.1.2 ---- 10.77.1.1  between  10.77.2.1 ---- 10.77.2.2 far (sshd, or haul serve)
//! ```
//!
//! A test asks for a [`Lab`] and gets one of its own, or nothing where there is no root: then it says so and passes, unless `CI` is set, where it
//! fails. All that a lab made goes away with it, also when the test panics; what a killed test left behind goes at the start of the next.

mod clock;
mod daemon;
mod echo;
mod gfarm;
mod lab;
mod modes;
mod nats;
mod net;
mod number;
mod program;
mod random;
mod room;
mod sites;
mod sshd;
mod tmpfs;
pub mod tree;
mod turn;

pub use clock::{Stopwatch, eventually, pause};
pub use daemon::{Daemon, key, own_key};
pub use echo::{echo, is_echoed, listens_on};
pub use gfarm::Gfarm;
pub use lab::Lab;
pub use modes::Modes;
pub use nats::{FULL_PORTS, Nat, Nats, Serving};
pub use net::Host;
pub use number::number;
pub use program::{Finished, Running, example, haul_binary};
pub use random::Random;
pub use sites::Sites;
pub use tmpfs::Tmpfs;
