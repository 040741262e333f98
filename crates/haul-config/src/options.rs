//! The options that a file can set, as the command line knows them.

use std::ffi::OsString;

use clap::{Arg, Args};

/// Whether a value can stand behind an option of a command, `operands` being what it cannot do without.
pub fn check<A: Args>(key: &str, value: &str, operands: &[OsString]) -> Result<(), String> {
    let arguments = named(operands, &[format!("--{key}={value}").into()]);
    definition::<A>().try_get_matches_from(arguments).map(|_| ()).map_err(|error| wrong(&error))
}

/// What a command takes, all that stands behind its name.
pub fn definition<A: Args>() -> clap::Command {
    // What every command takes stands among the arguments.
    let global = Arg::new("no-strict-modes").long("no-strict-modes").action(clap::ArgAction::SetTrue).hide(true);
    A::augment_args(clap::Command::new("haul")).arg(global)
}

/// A command line of these arguments, and others before them.
pub fn named(arguments: &[OsString], before: &[OsString]) -> Vec<OsString> {
    [&["haul".into()], before, arguments].concat()
}

/// The message alone, in one line.
pub fn wrong(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}
