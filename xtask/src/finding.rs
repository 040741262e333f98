//! What a check reports.

/// One thing wrong, with the place where it is.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// `file:line`, or the name of a crate.
    pub place: String,
    /// What is wrong and what to do about it.
    pub message: String,
}
