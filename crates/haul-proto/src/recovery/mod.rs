//! The sending half of a path's recovery: what is in flight, what is acknowledged, what is lost.

mod loss;
mod sent;

pub use loss::{LossDetector, Lost};
pub use sent::{AckOutcome, Content, Run, SentRing};
