//! Arguments of `haul pipe`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use haul::ControllerChoice;

use super::mode::ModeParser;
use super::{AuditArgs, Limit, PortRange, STREAM_MODE, SilenceArgs, SshArgs};

/// Connect standard input and output to a program on another host
///
/// Like netcat, over haul's own encrypted transport: one side listens (`haul pipe -l PORT`), the other connects (`haul pipe HOST PORT`), and
/// what one reads on standard input the other writes to standard output, both ways at once. The end of the input is passed on; each side
/// ends when both directions have. Both hosts' keys are checked: the connecting side must trust the listening one (`haul key trust`), the
/// listening side lets in those whose keys are authorised there (`haul key authorize`), or everybody with --anyone.
///
/// With `[user@]HOST -- COMMAND` nothing needs to listen: ssh logs in, the command is run there by the user's shell, and its standard input and output
/// are piped across. Its standard error and its exit status come back.
#[derive(Debug, Args)]
#[command(
    override_usage = "haul pipe -l [OPTIONS] [PORT]\n       haul pipe [OPTIONS] HOST PORT\n       haul pipe [OPTIONS] [USER@]HOST -- COMMAND...",
    after_help = PIPE_AFTER_HELP
)]
pub struct PipeArgs {
    /// A host and a port, or a port alone with -l
    #[arg(value_name = "HOST PORT", num_args = 0..=2)]
    pub operands: Vec<String>,
    /// What to run on the host, by way of ssh
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<OsString>,
    /// Listen instead of connecting
    #[arg(short, long)]
    pub listen: bool,
    /// With -l: when one connection is over, wait for the next
    #[arg(short, long, requires = "listen")]
    pub keep: bool,
    /// Address to listen on
    #[arg(short = 's', long, value_name = "ADDRESS", requires = "listen")]
    pub source: Option<std::net::IpAddr>,
    /// With -l: let anybody in, not only those whose keys are authorised here
    #[arg(long, requires = "listen")]
    pub anyone: bool,
    /// The listening side's fingerprint, as it prints it; without this its key must be known
    #[arg(long, value_name = "FINGERPRINT", conflicts_with = "listen")]
    pub key: Option<haul::Fingerprint>,
    /// Who writes it down, with -l.
    #[command(flatten)]
    pub audit: AuditArgs,
    /// Do not read standard input
    #[arg(short, long)]
    pub detach: bool,
    /// Pass on the end of standard input; it always is, this is netcat's letter for it
    #[arg(short = 'N')]
    pub shutdown: bool,
    /// Limit the rate; a bare number is in Kbit/s
    #[arg(long, value_name = "LIMIT")]
    pub limit: Option<Limit>,
    /// Congestion control, as for `haul cp`; the default is quickstart
    #[arg(long, value_name = "MODE", value_parser = ModeParser, hide_possible_values = true, default_value_t = STREAM_MODE, hide_default_value = true)]
    pub mode: ControllerChoice,
    /// UDP port or ports that the far side may use, with a command
    #[arg(long, value_name = "PORT[-PORT]", requires = "command")]
    pub udp_port: Option<PortRange>,
    #[command(flatten)]
    pub silence: SilenceArgs,
    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
    /// Print what was moved, and how fast; twice, and ssh says more too
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print one line of JSON on standard error when it is over
    #[arg(long)]
    pub json: bool,
    /// Directory of the identity key, the known hosts and the authorised keys
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// How to reach the far side.
    #[command(flatten)]
    pub ssh: SshArgs,
}

const PIPE_AFTER_HELP: &str = "\
Examples:
  haul pipe -l 9000 > backup.tar                 on one host
  tar c dir | haul pipe other 9000               on another
  tar c dir | haul pipe host -- tar xC /data     the same with ssh alone
  haul pipe host -- zfs send pool@now | zfs receive pool/copy

Exit status: that of COMMAND; else 0 all moved, 2 wrong usage or failure, 130 interrupted.";
