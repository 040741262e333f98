//! The disk in memory that files are copied on, and who copies there.
//!
//! The disk is mounted in the emulator's own mount namespace, below what is a disk of its own already: nobody else sees it, and it goes with the
//! emulator.

use std::process::Command;

use haul_lab::Side;

use super::setup::Bench;
use crate::bench::files;
use crate::bench::plan::FileSet;
use crate::bench::process::{Running, ScriptError};

/// Where the disk is.
pub const DISK: &str = "/run/netns/bench";
/// Where `haul cp` writes where its time went.
pub const PARTS: &str = "/run/netns/bench/parts.json";

/// A server that is ready, and the command that copies `DISK/source/TOP` to `DISK/arrived/TOP`.
pub struct Copier {
    /// On host b.
    pub server: Running,
    /// On host a.
    pub client: Command,
    /// How both were set up, besides the command itself.
    pub note: String,
}

/// What is to be copied.
pub fn source(files: FileSet) -> String {
    format!("{DISK}/source/{}", files::top(files))
}

/// Runs lines of the shell on host b.
pub fn shell(bench: &Bench<'_>, script: &str) -> Result<(), ScriptError> {
    let mut command = bench.site.command(Side::B, "sh".as_ref());
    command.args(["-ec", script]);
    run(command)
}

/// Runs a program to its end; what it said last, where it failed.
pub fn run(mut command: Command) -> Result<(), ScriptError> {
    let output = command.output()?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().last().unwrap_or("it does not say why").trim_start_matches("error: ").to_owned();
    Err(ScriptError::Failed { said })
}
