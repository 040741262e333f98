//! `haul lab wan check --model`: the simulator's TCP beside the kernel's, as a table.

use haul_lab::check::{Extent, ModelTable, run_model};
use haul_units::Cancel;

use super::commands::COMMANDS;
use super::print::{print, write};
use crate::exit::{Exit, Failure};

/// Prints the table; partial where a row is not within the tolerance.
pub fn run(extent: Extent, markdown: bool) -> Result<Exit, Failure> {
    let mut table = ModelTable::new(markdown);
    print(&table.head())?;
    // An interrupt ends this process, and the emulator with it.
    let lacking = run_model(extent, COMMANDS, &Cancel::new(), |row| write(&table.row(row)))?;
    for algorithm in lacking {
        print(&format!("{algorithm:<6}not compared: this kernel has no {algorithm}\n"))?;
    }
    print(&table.end())?;
    Ok(if table.is_within() { Exit::Done } else { Exit::Partial })
}
