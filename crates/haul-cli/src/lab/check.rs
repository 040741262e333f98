//! `haul lab wan check`.
use super::args::CheckArgs;
use crate::exit::{Exit, Failure};

/// Prints the table.
pub fn run(_args: &CheckArgs) -> Result<Exit, Failure> {
    Ok(Exit::Done)
}
