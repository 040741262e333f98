//! `haul tcp install`: a systemd unit that switches on at each start what is on now.

use haul_tcp::{Tcp, unit};

use crate::exit::{Exit, Failure};
use crate::output;

/// Writes the unit, prints it, or takes it away.
pub fn run(tcp: &Tcp, print: bool, remove: bool) -> Result<Exit, Failure> {
    if remove {
        let was_there = unit::remove()?;
        output::print_out(&if was_there {
            format!("{} is removed; what is on stays on until `haul tcp off`", unit::UNIT)
        } else {
            "no unit is installed".to_owned()
        });
        return Ok(Exit::Done);
    }
    let commands = tcp.commands()?;
    if commands.is_empty() {
        return Err(Failure::new("nothing is on that could be installed").hint("switch it on first: `haul tcp on MODE`"));
    }
    let program = std::env::current_exe().map_err(|error| Failure::new(format!("the path of this program: {error}")))?;
    let text = unit::text(&program, &commands);
    if print {
        output::out_lines(&text);
        return Ok(Exit::Done);
    }
    unit::install(&text)?;
    output::print_out(&format!("{}: switches on at each start what is on now", unit::UNIT));
    Ok(Exit::Done)
}
