//! Arguments of `haul rsync` and of `haul rsh`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use haul::ControllerChoice;

use super::{PortRange, STREAM_MODE, SilenceArgs, SshArgs};

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

/// Run a command on another host, as ssh would, with its streams over haul
///
/// For programs that take a remote shell: `rsync -e 'haul rsh'`, `GIT_SSH_COMMAND='haul rsh' git fetch`. It takes ssh's letters; ssh logs in. The
/// command's standard error and exit status come back; 255 means that haul itself failed.
#[derive(Debug, Args)]
#[command(override_usage = "haul rsh [OPTIONS] [USER@]HOST COMMAND...")]
pub struct RshArgs {
    /// Who logs in
    #[arg(short = 'l', value_name = "USER")]
    pub user: Option<OsString>,
    /// Port of the ssh server
    #[arg(short = 'p', value_name = "PORT")]
    pub ssh_port: Option<u16>,
    /// Do not read standard input
    #[arg(short = 'n')]
    pub no_input: bool,
    /// Ignored: no terminal is ever asked for
    #[arg(short = 'T')]
    pub no_terminal: bool,
    /// Ignored: X11 is never forwarded
    #[arg(short = 'x')]
    pub no_x11: bool,
    /// Ignored: the agent is never forwarded
    #[arg(short = 'a')]
    pub no_agent: bool,
    /// Print nothing but errors
    #[arg(short = 'q')]
    pub quiet: bool,
    /// ssh says more
    #[arg(short = 'v', action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Congestion control, as for `haul cp`; the default is quickstart
    #[arg(long, value_name = "MODE", default_value_t = STREAM_MODE, hide_default_value = true)]
    pub mode: ControllerChoice,
    /// UDP port or ports that the far side may use
    #[arg(long, value_name = "PORT[-PORT]")]
    pub udp_port: Option<PortRange>,
    #[command(flatten)]
    pub silence: SilenceArgs,
    /// Directory of haul's own keys; not used with ssh
    #[arg(long, value_name = "DIR", hide = true)]
    pub state: Option<PathBuf>,
    /// Where the command is to run
    #[arg(value_name = "[USER@]HOST", required = true)]
    pub host: OsString,
    /// The command
    #[arg(value_name = "COMMAND", required = true, num_args = 1.., trailing_var_arg = true, allow_hyphen_values = true)]
    pub command: Vec<OsString>,
    /// How to reach the far side.
    #[command(flatten)]
    pub ssh: SshArgs,
}

const RSYNC_AFTER_HELP: &str = "\
Examples:
  haul rsync -a --delete photos/ nas:photos/
  haul rsync -avP --mode modest host:big.img .
  rsync -a -e 'haul rsh' photos/ nas:photos/        the same, with rsync in charge

Exit status: rsync's; 2 if rsync cannot be started.";
