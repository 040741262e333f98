//! Arguments of `haul config`.

use clap::{Args, Subcommand};

/// Show what the configuration file says, and what holds for a host
///
/// The file is `config.toml` in the directory of keys (`~/.config/haul`, `/etc/haul` for root); what it does not say, `/etc/haul/config.toml` may, for all users. Neither needs to be there. What counts most
/// comes first: the command line, this user's file, that of the machine, the option's own default; in a file the table of the host itself, then those of patterns (`*` and `?`), the one with most
/// letters first, then `[defaults]`. Keys are long options of `haul cp` without their dashes; `haul perf`, `pipe`, `proxy`, `rsh`, `rsync` and `fleet` take those that they have. How a host is logged in to (user, port, key, jump host) is the business
/// of ssh_config(5).
///
/// `places`, above the first table, is about this machine as others see it: where it stores what they send to `any:NAME`.
///
/// Nobody else may be able to write to the file: it can name programs to run.
#[derive(Debug, Args)]
#[command(after_help = CONFIG_AFTER_HELP, args_conflicts_with_subcommands = true)]
pub struct ConfigArgs {
    /// What holds for this host, and where each value comes from; without it, which files there are
    pub host: Option<String>,
    /// What else to do.
    #[command(subcommand)]
    pub command: Option<ConfigCommand>,
}

/// What else `haul config` does.
#[derive(Debug, Clone, Copy, Subcommand)]
pub enum ConfigCommand {
    /// Check the files; what is wrong is named by file and line, with exit status 2
    Check,
}

const CONFIG_AFTER_HELP: &str = "\
Keys: remote-haul, bootstrap, transport, relay, udp-port, mode, limit, paths, dead-after, reconnect, retries, on-success, on-failure.

Example of a file:
  places = [\"/scratch/me\", \"ram:\", \"gfarm:/home/me\"]

  [defaults]
  on-failure = \"mail -s \\\"copy to $HAUL_TARGET: $HAUL_STATUS\\\" me </dev/null\"

  [host.\"dtn*.example.org\"]
  udp-port = \"60000-60100\"
  limit = \"2G\"

  [host.cluster]
  remote-haul = \"~/bin/haul\"
  transport = \"ssh\"

Examples:
  haul config                             which files there are
  haul config dtn1.example.org            what holds for a copy to there
  haul config check                       whether all is sound";
