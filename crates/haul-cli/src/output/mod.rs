//! What the user sees of a copy: bars on a terminal, a line now and then in a log, JSON for programs, nothing when quiet.
//!
//! Counted is what has *arrived*: written at the destination, not merely handed to the network. Standard output belongs to the data
//! (`-` as the target) and to JSON; everything for people goes to standard error. Both are reached through `terminal` alone.

mod bars;
#[cfg(unix)]
mod fleet;
mod json;
mod lines;
mod monitor;
mod proxy;
mod ticker;
mod would;

pub use crate::terminal::{
    PeerOutput, clear, colours, err as print_line, err_in_place, err_wrapped as print_wrapped, for_program, out as print_out,
    out_all, out_bytes, out_json, out_lines, out_wrapped, shown, unwritten,
};
#[cfg(unix)]
pub use fleet::{JobTally, print_absent, show as show_job};
pub use json::print as print_event;
pub use monitor::{Watched, start as monitor};
pub use proxy::ProxyReport;
pub use ticker::Ticker;
pub use would::print as print_would;

use crate::exit::Failure;
use crate::terminal;

/// What is said to the first interrupt, where something has arrived.
const STOPPING: &str = "stopping, and keeping what has arrived; interrupt again to end at once";
/// What an interrupted command says of what it can go on with.
pub const KEPT: &str = "; what has arrived is kept, and the same command goes on from there";

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
            _ if terminal::is_terminal() && !dumb => Self::Bars,
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

/// Prints a text behind `error:`.
pub fn print_error(text: &str) {
    terminal::err_labelled("error:", "\x1b[1;31m", text);
}

/// Says how many files, links or directories were not copied, if any.
pub fn print_not_copied(count: u64) {
    match count {
        0 => {}
        1 => print_error("1 file, link or directory was not copied"),
        many => print_error(&format!("{many} files, links or directories were not copied")),
    }
}

/// Prints a line behind `note:`: worth knowing, nothing wrong.
pub fn print_note(text: &str) {
    terminal::err_labelled("note:", "\x1b[1;36m", text);
}

/// Prints a line behind `hint:`.
pub fn print_hint(text: &str) {
    terminal::err_labelled("hint:", "\x1b[1;36m", text);
}
