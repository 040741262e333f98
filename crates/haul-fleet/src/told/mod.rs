//! What a job tells, in words for people and as events for programs; as `haul_copy::told` has it for a copy.
//!
//! Nothing here prints: whoever shows a job takes from a [`JobTally`] what it has heard, ten times a second for instance, and puts it where it belongs.

pub mod events;
mod look;
mod status;
mod tally;
pub mod text;

pub use look::{Look, Said};
pub use status::{since, status_event, status_table};
pub use tally::JobTally;
