//! In the place of the arguments of commands that are not there.

use std::ffi::OsString;

/// Not in haul for Windows
#[derive(Debug, Clone, clap::Args)]
pub struct LeftOut {
    /// Whatever was asked of it.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub words: Vec<OsString>,
}

/// Words stay as they are.
pub fn arranged(words: &[OsString], _definition: &clap::Command) -> Vec<OsString> {
    words.to_vec()
}
