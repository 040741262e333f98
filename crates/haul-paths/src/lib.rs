//! Which path of a connection carries what: decisions alone, without a socket or a clock.
//!
//! ```text
//!   kin      do two paths share a bottleneck?            by the queueing delays that their packets met at the same time
//!   roster   who carries data?                           one path until the flow has proved long; then one more at a time; of those that share a bottleneck one
//!   turns    whose turn is it?                           the order in which paths are asked to take a train
//!   scheduler  by which rule?                            the ones there are, by name
//!   via      by which ways does the user want to leave?  interfaces and addresses, spare ones, metered ones
//!   leave    from where do paths leave now?              what to do as interfaces come and go
//!   duty     what is a path for at present?           data, spare, nothing: the client's word
//!   allowance  how much may a metered path carry?        a limit shared out between both ends
//!   address  where does a path lead?                     how the peer's address is proved, and a change of it followed
//!   server_addresses  where else can the server be reached?  what it tells, and which of that is believed
//!   mtu      how large may its packets be?              the search for the largest that arrives
//!   witness  what has it shown of itself?              whether a queue stood where packets were lost
//!   familiar  how far is its network?                what earlier connections have measured, for the first timer
//!   whereabouts  where may the server be?                the addresses of one that was greeted another way
//! ```
//!
//! A transport tells a [`Roster`] what it sends ([`Roster::on_sent`], [`Roster::on_idle`]) and which delays its packets met ([`Roster::on_delay`]), and asks it before each train
//! for the [`Turns`] of its paths. Why one path of those that share a bottleneck: there several carry no more than one, and take from others what several flows take.

mod address;
mod allowance;
mod duty;
mod familiar;
mod kin;
pub mod leave;
mod mtu;
mod roster;
mod scheduler;
mod server_addresses;
mod turns;
mod via;
mod whereabouts;
mod witness;

pub use address::{CHALLENGE_BYTES, CONTROL_BYTES, PeerAddress, Proof};
pub use allowance::Allowance;
pub use duty::{Duty, Standing, Told};
pub use familiar::Familiar;
pub use kin::Verdict;
pub use leave::Leave;
pub use mtu::MtuDiscovery;
pub use roster::{Load, Roster};
pub use scheduler::{Scheduler, UnknownScheduler};
pub use server_addresses::{
    ADDRESS_BYTES, Announced, SERVER_ADDRESSES_MAX, ServerAddresses, address_from_bytes, address_to_bytes, announced,
};
pub use turns::{Candidate, Turns};
pub use via::{Class, Exit, Via, ViaSyntaxError};
pub use whereabouts::Whereabouts;
pub use witness::{Evidence, Witness};

/// Paths of a connection, at most.
pub const PATHS_MAX: usize = 8;
