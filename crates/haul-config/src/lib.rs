//! The configuration file: options that a command line need not have, for each host.
//!
//! ```text
//!   command line   before   this user's file   before   /etc/haul/config.toml   before   the option's own default
//!   in a file:     the host's own table, then patterns, the one with most letters first, then [defaults]
//! ```
//!
//! What a file says is put before the arguments of the command line, each as the option that it is named after, and parsed with them: an option means the same in both, and is checked by the same code.

mod command_line;
mod file;
mod found;
mod options;

pub use command_line::{CommandLine, Discord, Together, behind_name};
pub use file::{KEYS, LineError};
pub use found::{Check, Config, ConfigError, Held, Origin};
pub use options::{OptionError, check, definition};
