//! `haul lab wan check`: whether the emulator tells the truth, as a table.

use std::time::Duration;

use haul_lab::check::{self, CheckRow, Extent};
use haul_units::Cancel;

use super::args::CheckArgs;
use super::commands::COMMANDS;
use super::model;
use super::print::{print, write};
use crate::exit::{Exit, Failure};

/// Prints the table.
pub fn run(args: &CheckArgs) -> Result<Exit, Failure> {
    let markdown = args.markdown;
    check::needed()?;
    if args.model {
        return model::run(if args.quick { Extent::Quick } else { Extent::Whole }, markdown);
    }
    print(&check::head(markdown))?;
    let row = |row: CheckRow| write(&row.line(markdown));
    // An interrupt ends this process, and the emulator with it.
    check::run(COMMANDS, Duration::from_secs(args.time.into()), &Cancel::new(), row)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, FromArgMatches as _};
    use haul_lab::{LinkChanges, QueueSize};
    use haul_units::{BitRate, Ratio};

    use super::*;
    use crate::lab::args::LinkArgs;

    #[test]
    fn a_link_is_shown_as_options_that_make_it() {
        let link = LinkChanges {
            rate: Some(BitRate::mbps(100)),
            rtt: Some(Duration::from_millis(20)),
            queue: Some(QueueSize::Bdp(0.5)),
            loss: Some(Ratio::percent(0.1)),
            burst_loss: Some(8.0),
            reorder: Some(Ratio::percent(1.0)),
            duplicate: Some(Ratio::percent(10.0)),
            jitter: Some(Duration::from_millis(5)),
            ..LinkChanges::default()
        };
        let row = CheckRow { what: "", link: link.clone(), mtu: None, configured: "", measured: String::new() };
        let command = LinkArgs::augment_args(clap::Command::new("up").no_binary_name(true));
        let matches = command.try_get_matches_from(row.options().split(' ')).expect("understood");
        assert_eq!(LinkArgs::from_arg_matches(&matches).expect("understood").changes(), link);
    }
}
