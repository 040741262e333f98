//! What a copy tells, in words for people and as events for programs: haul's own programs show these, and others may.
//!
//! ```text
//!   Tally, PathProbe -> Look (ten times a second) -> text::line, events::progress
//!   Report           -> Outcome (at the end)      -> summary, Outcome::to_json
//! ```
//!
//! Nothing here prints, and nothing knows an option: whoever shows it decides where it goes and what to advise.

pub mod events;
mod kept;
mod look;
mod outage;
mod rates;
mod summary;
pub mod text;
mod would;

pub use kept::{KeptIn, age};
pub use look::Look;
pub use outage::outage_words;
pub use rates::Rates;
pub use summary::{Outcome, one_path_line, path_line, summary};
pub use would::{would_event, would_line};
