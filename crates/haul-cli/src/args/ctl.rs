//! Arguments of `haul ctl`.

use clap::{Args, Subcommand};
use haul::ControllerChoice;

use super::Limit;
use super::mode::ModeParser;

/// List the copies and other transfers that run here for this user, and tell them to go slower, wait or stop
///
/// `haul cp` takes all orders; `haul fleet get` and `put`, `haul pipe`, `haul rsh` (and so `haul rsync`), `haul proxy` and a measurement by `haul perf` take `limit` and `stop`. A command takes orders at a socket in this user's runtime directory ($XDG_RUNTIME_DIR/haul, or /tmp/haul-UID), which nobody else may enter. It is told by the number of its process.
#[derive(Debug, Args)]
#[command(after_help = CTL_AFTER_HELP)]
pub struct CtlArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: CtlCommand,
}

/// The orders.
#[derive(Debug, Subcommand)]
pub enum CtlCommand {
    /// Show what runs
    List {
        /// As lines of JSON
        #[arg(long)]
        json: bool,
    },
    /// Change how fast a command may go; a bare number is in Kbit/s, `none` lifts the limit
    ///
    /// What a copy fetches goes no faster than the --limit that it began with. Of a pipe, a remote shell, a proxy and a measurement what this side sends is limited, of a fleet all servers together.
    Limit {
        /// The process of the command
        pid: u32,
        /// The rate, or `none`
        #[arg(value_name = "LIMIT")]
        rate: LimitOrNone,
    },
    /// Change how a copy that sends shares the path with others, the --mode of haul-cp(1)
    ///
    /// Of a copy that fetches, the other side's mode stays.
    Mode {
        /// The process of the copy
        pid: u32,
        /// The mode
        #[arg(value_name = "MODE", value_parser = ModeParser)]
        mode: ControllerChoice,
    },
    /// Let a copy wait; its connection stays
    Pause {
        /// The process of the copy
        pid: u32,
    },
    /// Let a copy go on
    Resume {
        /// The process of the copy
        pid: u32,
    },
    /// End a command as an interrupt does: what a copy or a fleet has brought is kept, and the same command goes on from there
    Stop {
        /// The process of the command
        pid: u32,
    },
}

/// A rate, or that there is none.
#[derive(Debug, Clone, Copy)]
pub struct LimitOrNone(pub Option<Limit>);

impl std::str::FromStr for LimitOrNone {
    type Err = <Limit as std::str::FromStr>::Err;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "none" { Ok(Self(None)) } else { text.parse().map(|limit| Self(Some(limit))) }
    }
}

const CTL_AFTER_HELP: &str = "\
Examples:
  haul ctl list               what runs
  haul ctl limit 4711 200M    no faster than 200 Mbit/s from now on
  haul ctl mode 4711 modest   give way to others from now on
  haul ctl pause 4711

Exit status: 0 done, 2 there is no such command, it does not answer, or cannot do that.";
