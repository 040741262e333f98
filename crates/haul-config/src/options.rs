//! The options that a file can set, as the command line knows them.

use std::ffi::OsString;

use clap::{Arg, Args};
use thiserror::Error;

/// What a command's parser says of its arguments: the message alone, in one line.
#[derive(Debug, Error)]
#[error("{}", message(.0))]
pub struct OptionError(clap::Error);

impl From<clap::Error> for OptionError {
    fn from(error: clap::Error) -> Self {
        Self(error)
    }
}

/// Whether a value can stand behind an option of a command, `operands` being what it cannot do without.
pub fn check<A: Args>(key: &str, value: &str, operands: &[OsString]) -> Result<(), OptionError> {
    let arguments = named(operands, &[format!("--{key}={value}").into()]);
    definition::<A>().try_get_matches_from(arguments)?;
    Ok(())
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

fn message(error: &clap::Error) -> String {
    let text = error.to_string();
    let first = text.lines().next().unwrap_or_default();
    first.strip_prefix("error: ").unwrap_or(first).to_owned()
}
