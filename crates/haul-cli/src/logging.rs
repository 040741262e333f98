//! Where diagnostics go: to standard error, as much as asked for.

use std::io::{self, IsTerminal as _};

use tracing_subscriber::EnvFilter;

/// Who reads the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Somebody who runs a command: nothing unless asked for.
    Person,
    /// Whoever looks after a daemon.
    Operator,
}

/// Starts the log. `RUST_LOG` wins over the options.
pub fn start(audience: Audience, verbose: u8, quiet: bool) {
    let level = match (audience, quiet, verbose) {
        (Audience::Person, _, 0) => "off",
        (Audience::Person, _, _) | (Audience::Operator, false, 1) => "debug",
        (Audience::Operator, true, _) => "warn",
        (Audience::Operator, false, 0) => "info",
        (Audience::Operator, false, _) => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let colours = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(colours).with_target(false);
    // The journal of systemd writes the time itself. A second start, as in tests, changes nothing.
    let started = if std::env::var_os("JOURNAL_STREAM").is_some() { log.without_time().try_init() } else { log.try_init() };
    drop(started);
}
