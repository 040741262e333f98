//! Arguments about a far side without haul.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use haul_peer::Stay;

/// What a far side gets that has no haul of this version.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "A far side without haul")]
pub struct BootstrapArgs {
    /// Where the far side has no haul of this version, send it one over ssh: into ~/.cache/haul there to stay, or to be gone at once with `once`
    ///
    /// It goes to ~/.cache/haul/VERSION-HASH/haul (or below XDG_CACHE_HOME), for this user alone; its SHA-256 is compared there each time before it is run. The next command with --bootstrap finds it. `--bootstrap=once` leaves nothing on the far
    /// side's disk. A haul of this version in the far side's PATH, or the one of --remote-haul, is taken first. Without this option haul asks, if there is a terminal to ask on.
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "keep", hide_possible_values = true)]
    pub bootstrap: Option<StayArg>,
    /// The static haul to send, or a directory with one for each kind of machine
    ///
    /// Without it: this program, where it is static, and those in ../lib/haul/static beside its directory.
    #[arg(long, value_name = "PATH", requires = "bootstrap", value_hint = clap::ValueHint::AnyPath)]
    pub bootstrap_from: Option<PathBuf>,
}

/// How long it stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum StayArg {
    /// Until somebody removes it
    Keep,
    /// It is removed before it has done anything
    Once,
}

impl From<StayArg> for Stay {
    fn from(arg: StayArg) -> Self {
        match arg {
            StayArg::Keep => Self::Keep,
            StayArg::Once => Self::Once,
        }
    }
}
