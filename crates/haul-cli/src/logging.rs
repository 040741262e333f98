//! Where diagnostics go: to standard error, as much as asked for.
//!
//! Whatever a value holds, it stays one line and nothing that a terminal obeys: a peer cannot forge an entry.

use std::fmt;
use std::io;

use haul_units::push_printable;
use tracing_subscriber::field::MakeExt as _;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::output;

/// The longest value that is logged, in bytes.
const MAX_VALUE: usize = 8 << 10;

/// Who reads the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Somebody who runs a command: nothing unless asked for.
    Person,
    /// Whoever looks after a daemon.
    Operator,
}

/// Starts the log. `HAUL_LOG` wins over `RUST_LOG`, and that over the options.
pub fn start(audience: Audience, verbose: u8, quiet: bool) {
    let level = match (audience, quiet, verbose) {
        (Audience::Person, _, 0) => LevelFilter::OFF,
        (Audience::Person, _, _) | (Audience::Operator, false, 1) => LevelFilter::DEBUG,
        (Audience::Operator, true, _) => LevelFilter::WARN,
        (Audience::Operator, false, 0) => LevelFilter::INFO,
        (Audience::Operator, false, _) => LevelFilter::TRACE,
    };
    let filter = ["HAUL_LOG", "RUST_LOG"].into_iter().find_map(asked).unwrap_or_else(|| Targets::new().with_default(level));
    let colours = output::colours();
    let fields = debug_fn(|writer, field, value| write!(writer, "{}", shown_field(field.name(), value))).delimited(" ");
    let log = tracing_subscriber::fmt::layer().with_writer(io::stderr).with_ansi(colours).with_target(false).fmt_fields(fields);
    let registry = tracing_subscriber::registry().with(filter);
    // The journal of systemd writes the time itself. A second start, as in tests, changes nothing.
    let started = if std::env::var_os("JOURNAL_STREAM").is_some() {
        registry.with(log.without_time()).try_init()
    } else {
        registry.with(log).try_init()
    };
    drop(started);
}

/// The filter that a variable holds; one that cannot be understood is said to be, and counts for nothing.
fn asked(variable: &str) -> Option<Targets> {
    let text = std::env::var(variable).ok().filter(|text| !text.is_empty())?;
    text.parse().inspect_err(|error| output::print_line(&format!("{variable}: {error}; it counts for nothing"))).ok()
}

/// One field of an entry, or of a span around it.
fn shown_field(name: &str, value: &dyn fmt::Debug) -> String {
    let mut shown = if name == "message" { String::new() } else { format!("{name}=") };
    let most = shown.len() + MAX_VALUE;
    if !push_printable(&mut shown, format!("{value:?}").as_bytes(), most) {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_one_line() {
        let forged = format_args!("gone\n2026-01-01 INFO all is well\u{1b}[2J");
        assert_eq!(shown_field("message", &forged), "gone\\n2026-01-01 INFO all is well\\u{1b}[2J");
        assert_eq!(shown_field("error", &"a\nb"), "error=\"a\\nb\"");
        assert!(shown_field("error", &"x".repeat(3 * MAX_VALUE)).len() < MAX_VALUE + 100);
    }
}
