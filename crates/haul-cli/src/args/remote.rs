//! Arguments of `haul remote`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use haul_serve::{Bounds, Errand};

/// The far side of a command that goes through ssh; to confine a login to it
///
/// `haul cp`, `perf`, `pipe`, `rsync` and `proxy` start it themselves by ssh, and it ends with them. By hand it is written into one place: ssh's file of authorised keys, where
/// `command=` makes it the only program that a key can start, and `restrict` forbids what else ssh offers. Its options then say what the holder of that key may do with haul.
#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct RemoteArgs {
    /// What the near side says first; without it, it is taken from SSH_ORIGINAL_COMMAND or standard input
    #[arg(hide = true)]
    pub greeting: Option<String>,
    /// What may be done: cp, perf, proxy, tunnel; with --root cp alone unless it is named, else everything
    #[arg(long, value_name = "SERVICE", value_delimiter = ',')]
    pub only: Vec<ErrandArg>,
    /// Directory outside of which copies neither read nor write; their paths start there, `~` and `/` too
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
    /// Copies may read only
    #[arg(long, requires = "root")]
    pub read_only: bool,
}

/// What a far side is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ErrandArg {
    /// A copy.
    Cp,
    /// A measurement.
    Perf,
    /// TCP connections in both directions.
    Proxy,
    /// A command and its standard streams: `haul pipe`, `rsh`, `rsync`.
    Tunnel,
}

impl RemoteArgs {
    /// What this login is confined to.
    pub fn bounds(&self) -> Bounds {
        let errand = |arg: &ErrandArg| match arg {
            ErrandArg::Cp => Errand::Cp,
            ErrandArg::Perf => Errand::Perf,
            ErrandArg::Proxy => Errand::Proxy,
            ErrandArg::Tunnel => Errand::Tunnel,
        };
        Bounds { only: self.only.iter().map(errand).collect(), root: self.root.clone(), read_only: self.read_only }
    }
}

const AFTER_HELP: &str = "\
A line of ~/.ssh/authorized_keys whose key may copy out of /data, and do nothing else:
  restrict,command=\"haul remote --only cp --root /data --read-only\" ssh-ed25519 AAAA... backup

What clients write below --root belongs to the account, without set-id bits. --only without --root leaves copies all files of the account, this file of authorised keys among them. A tunnel runs any command, so it cannot be confined to a directory.";
