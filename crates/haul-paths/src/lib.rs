//! Which path of a connection carries what: decisions alone, without a socket or a clock.
//!
//! ```text
//!   kin      do two paths share a bottleneck?            by the queueing delays that their packets met at the same time
//!   roster   who carries data?                           one path until the flow has proved long; then one more at a time; of those that share a bottleneck one
//!   turns    whose turn is it?                           the order in which paths are asked to take a train
//! ```
//!
//! A transport tells a [`Roster`] what it sends ([`Roster::on_sent`], [`Roster::on_idle`]) and which delays its packets met ([`Roster::on_delay`]), and asks it before each train
//! for the [`Turns`] of its paths. Why one path of those that share a bottleneck: there several carry no more than one, and take from others what several flows take.

mod kin;
mod roster;
mod turns;

pub use kin::Verdict;
pub use roster::{Candidate, Load, Roster};
pub use turns::Turns;

/// Paths of a connection, at most.
pub const PATHS_MAX: usize = 8;
