//! What one report of a run says.

use serde_json::Value;

/// Its text, and how it stands to its goals.
#[derive(Debug, Default)]
pub struct Section {
    pub text: String,
    pub met: usize,
    pub missed: Vec<String>,
    pub unmeasured: Vec<String>,
    /// Rows in which somebody else was faster.
    pub behind: Vec<String>,
    /// Of the machine, by name.
    pub facts: Value,
}
