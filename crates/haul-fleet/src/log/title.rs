//! What a log is about.

/// What a log says of its job at its start.
#[derive(Debug, Clone, Default)]
pub struct JobTitle {
    /// What it is: `get`, `put`.
    pub kind: String,
    /// In the user's words: sources, destination.
    pub about: Vec<String>,
    /// Members, in the order of the job.
    pub members: Vec<String>,
}
