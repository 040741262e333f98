//! What the user sees of a copy: bars on a terminal, a line now and then in a log, JSON for programs, nothing when quiet.
//!
//! Counted is what has *arrived*: written at the destination, not merely handed to the network. Standard output belongs to the data
//! (`-` as the target) and to JSON; everything for people goes to standard error.

mod bars;
mod json;
mod lines;
mod monitor;
mod summary;
mod tally;
mod verdict;

use std::io::{self, IsTerminal as _, Write as _};

pub use json::print as print_event;
pub use monitor::{Monitor, Watched};
pub use summary::{Outcome, path_line, summary};
pub use tally::Tally;
pub use verdict::{Conditions, verdict};

use crate::exit::Failure;

/// How much to show, and to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Errors only.
    Quiet,
    /// Bars that move.
    Bars,
    /// A line every few seconds.
    Lines,
    /// Lines of JSON on standard output.
    Json,
}

impl Style {
    /// What the options ask for; bars only where there is a terminal to draw on.
    pub fn choose(quiet: bool, json: bool) -> Self {
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        match (json, quiet) {
            (true, _) => Self::Json,
            (_, true) => Self::Quiet,
            _ if io::stderr().is_terminal() && !dumb => Self::Bars,
            _ => Self::Lines,
        }
    }
}

/// Prints a failure to standard error.
pub fn print_failure(failure: &Failure) {
    print_error(&failure.message);
    if let Some(hint) = &failure.hint {
        print_hint(hint);
    }
}

/// Prints a line behind `error:`.
pub fn print_error(text: &str) {
    print_labelled("error:", "\x1b[1;31m", text);
}

/// Prints a line behind `note:`: worth knowing, nothing wrong.
pub fn print_note(text: &str) {
    print_labelled("note:", "\x1b[1;36m", text);
}

/// Prints a line behind `hint:`.
pub fn print_hint(text: &str) {
    print_labelled("hint:", "\x1b[1;36m", text);
}

/// Prints a line to standard error; a closed one is nobody's loss.
pub fn print_line(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

fn print_labelled(label: &str, colour: &str, text: &str) {
    if colours() { print_line(&format!("{colour}{label}\x1b[0m {text}")) } else { print_line(&format!("{label} {text}")) }
}

/// Whether standard error is for coloured text. See no-color.org: set and not empty means no.
fn colours() -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    !unwanted && !dumb && io::stderr().is_terminal()
}
