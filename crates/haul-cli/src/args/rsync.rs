//! Arguments of `haul rsync`.

use std::ffi::OsString;

use clap::Args;
use haul::ControllerChoice;

/// Run rsync with haul as its remote shell
///
/// The system's rsync does the work, with all of its options; its connection to the other host goes over haul instead of ssh's single TCP
/// connection. ssh still logs in, so hosts, keys and jumps are those of its configuration; haul must be installed on the other host too.
///
/// The options of haul below may stand anywhere among rsync's; everything else is handed to rsync as it is. A remote shell of your own,
/// `-e 'ssh -p 2222'`, becomes `haul rsh -p 2222`. A daemon's modules (`host::module`) are reached by way of the remote shell as well.
#[derive(Debug, Args)]
#[command(disable_help_flag = true, override_usage = "haul rsync [OPTIONS] [RSYNC-OPTIONS] SOURCE... TARGET", after_help = RSYNC_AFTER_HELP)]
pub struct RsyncArgs {
    /// Print help; -h is rsync's
    #[arg(long, action = clap::ArgAction::Help)]
    pub help: Option<bool>,
    /// Congestion control, as for `haul cp`; the default is quickstart
    #[arg(long, value_name = "MODE", value_parser = known_mode)]
    pub mode: Option<OsString>,
    /// UDP port or ports that the far side may use, where a firewall opens only those
    #[arg(long, value_name = "PORT[-PORT]")]
    pub udp_port: Option<OsString>,
    /// What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes
    #[arg(long, value_name = "WAY")]
    pub transport: Option<OsString>,
    /// `haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way
    #[arg(long, value_name = "HOST[:PORT]")]
    pub relay: Option<OsString>,
    /// Give the connection up when nothing has come from the other side for so long (90)
    #[arg(long, value_name = "SECONDS")]
    pub dead_after: Option<OsString>,
    /// haul's path on the far side, where its PATH does not have it
    #[arg(long, value_name = "PATH")]
    pub remote_haul: Option<OsString>,
    /// Options, sources and target, as rsync takes them
    #[arg(value_name = "RSYNC-ARGUMENTS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub rest: Vec<OsString>,
}

fn known_mode(text: &str) -> Result<OsString, String> {
    text.parse::<ControllerChoice>().map(|mode| mode.to_string().into()).map_err(|error| error.to_string())
}

const RSYNC_AFTER_HELP: &str = "\
Examples:
  haul rsync -a --delete photos/ nas:photos/
  haul rsync -avP --mode modest host:big.img .
  rsync -a -e 'haul rsh' photos/ nas:photos/        the same, with rsync in charge

Exit status: rsync's; 2 if rsync cannot be started.";
