//! `haul lab wan status`: counts and rates of each direction.

use haul_lab::emulator::NamedWan;

use super::args::StatusArgs;
use super::print::print;
use crate::exit::{Exit, Failure};

/// Prints it.
pub fn run(args: &StatusArgs) -> Result<Exit, Failure> {
    let status = NamedWan::new(&args.name.wan()).measured()?;
    if args.json {
        let json = serde_json::to_value(&status).map_err(Failure::new)?;
        return print(&format!("{json}\n"));
    }
    print(&status.table())
}
