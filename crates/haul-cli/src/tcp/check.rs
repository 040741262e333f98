//! `haul tcp check`: what a path needs of this machine.

use haul_tcp::{limits, obstacle, round_trip};
use haul_units::{BitRate, Bytes};

use crate::exit::{Exit, Failure};
use crate::output;

/// Prints it; what is missing comes with the command that mends it.
pub fn run(host: &str, port: u16, rate: BitRate) -> Result<Exit, Failure> {
    let (address, round_trip) = round_trip(host, port)?;
    output::print_out(&format!("{host} ({}): round trip {:.1} ms", address.ip(), round_trip.as_secs_f64() * 1e3));
    let mut lacks = false;
    for limit in limits(rate, round_trip)? {
        let most = Bytes(limit.has[2]);
        if limit.is_met() {
            output::print_out(&format!("{}: {most}, enough for {rate} ({} needed)", limit.key, limit.needs));
        } else {
            lacks = true;
            output::print_out(&format!("{}: {most} is too small for {rate}: {} needed", limit.key, limit.needs));
            output::print_out(&format!("  {}", limit.command()));
        }
    }
    if lacks {
        output::print_out(
            "the sender needs tcp_wmem, the receiver tcp_rmem: both ends are looked at by `haul tcp check` at each",
        );
    }
    match obstacle() {
        Ok(()) => output::print_out("haul's congestion control can be loaded here"),
        Err(error) => {
            lacks = true;
            let failure = Failure::from(error);
            output::print_out(&format!("haul's congestion control cannot be loaded here: {}", failure.message));
            if let Some(hint) = failure.hint {
                output::print_out(&format!("  {hint}"));
            }
        }
    }
    Ok(if lacks { Exit::Partial } else { Exit::Done })
}
