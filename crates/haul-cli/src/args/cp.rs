//! Arguments of `haul cp`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedI64ValueParser;
use haul::{ControllerChoice, PATHS_MAX};
use haul_files::Options;
use haul_peer::{Carriage, Family, SshOptions};

use super::{FileArgs, Limit, PortRange, SilenceArgs};

/// Copy files and trees between hosts
///
/// Like scp: `[user@]host:path` and `scp://[user@]host[:port]/path` are reached through ssh, which does the login; the data then goes over
/// UDP, encrypted, directly between the two machines. `haul://host[:port]/root/path` is a root that a daemon exports (see haul-serve(1)).
/// Anything else is a local path; one that contains a `:` needs `./` before it. `-` is standard input or standard output.
///
/// `gfarm:/path` is in the Gfarm file system, whose client must be installed (libgfarm.so.1), and `ram:/path` in a directory in the memory of the machine that is this user's
/// (/dev/shm/haul-UID); what does not fit there is refused before memory is full. Of another host's account they are `host:gfarm:/path` and `host:ram:/path`. A host called gfarm or ram is written
/// `scp://gfarm/path`.
///
/// A remote source may be a pattern: `*`, `?` and `[a-z]` in any part of its path are expanded over there (quote it, or the shell here tries
/// first). A name that exists as it is spelled wins over its reading as a pattern; a leading dot is matched by a dot only.
///
/// Each block has the BLAKE3 hash of what was read, which is checked where it arrives, in memory, just before it is written: "verified on arrival".
/// What the disk keeps of it is read back only with `--verify read-back`. A file appears under its name only when it is complete; an interrupted copy goes on where it was
/// when the same sources are copied to the same place again.
///
/// Until then what has arrived waits in a hidden directory in the target, `.haul-` and eight hexadecimal digits. A later copy of the same sources to the same
/// place goes on with it, however its command spells them. Other copies leave it alone and say that it is there; `--list-interrupted` shows
/// what is kept, `--discard` removes it: of a directory of this machine, or of another host as a target names it. Who may only read there cannot discard.
///
/// A file that is replaced is a new file under the old name: other hard links to the old one keep the old content, and a symbolic link in a tree at the
/// target is replaced, where scp would write through both; so an interrupt leaves the old file or the new one, and a link leads nowhere. It has
/// the mode of the old one and, where root copies, the owner, unless -p says otherwise. Where the directory may not be written to but the
/// file may, it is written in place.
///
/// `--mode quickstart` measures the path by its first packets. What it learns about the way to or from a host it keeps for a day, in the file
/// `paths` of the directory of keys (`~/.config/haul`, `/etc/haul` for root, or `--state DIR`), and the next such copy tries it. Delete the file to forget.
#[derive(Debug, Args)]
#[command(override_usage = "haul cp [OPTIONS] SOURCE... TARGET", after_help = CP_AFTER_HELP)]
pub struct CpArgs {
    /// What to copy (one or more), then where to
    #[arg(value_names = ["SOURCE", "TARGET"], num_args = 1.., required_unless_present_any = ["list_interrupted", "discard"], value_hint = clap::ValueHint::AnyPath)]
    pub operands: Vec<OsString>,
    /// What becomes of files.
    #[command(flatten)]
    pub files: FileArgs,
    /// Print what would be done, on standard output, and do nothing: nothing is written on either side
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// Connect again to a daemon that was restarted, or is gone, until so long after it was last heard, and go on; 0: never. The default is the time
    /// after which silence ends a connection: what an outage does not end, a restart does not end either
    #[arg(long, value_name = "SECONDS", default_value_t = 90, value_parser = clap::value_parser!(u64).range(0..=86_400))]
    pub reconnect: u64,
    /// Show the interrupted copies that are kept in a directory, here or on another host
    #[arg(long, value_name = "DIR", conflicts_with = "operands", value_hint = clap::ValueHint::AnyPath)]
    pub list_interrupted: Option<OsString>,
    /// Remove what interrupted copies have kept: all in DIR, here or on another host, or that of one copy, whose hidden directory it is
    #[arg(long, value_name = "DIR", conflicts_with_all = ["operands", "list_interrupted"], value_hint = clap::ValueHint::AnyPath)]
    pub discard: Option<OsString>,
    #[command(flatten)]
    pub silence: SilenceArgs,
    /// Limit the rate; a bare number is in Kbit/s, as with scp
    #[arg(short, long, value_name = "LIMIT")]
    pub limit: Option<Limit>,
    #[arg(long, value_name = "MODE", default_value_t, hide_default_value = true, help = mode_help())]
    pub mode: ControllerChoice,
    #[arg(long, value_name = "NUMBER", default_value_t = 1, hide_default_value = true, value_parser = paths_parser(), help = paths_help())]
    pub paths: u8,
    /// UDP port or ports that the far side may use, where a firewall opens only those
    #[arg(long, value_name = "PORT[-PORT]")]
    pub udp_port: Option<PortRange>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
    /// Say more; twice, and ssh says more too
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Print events as lines of JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Directory of the identity key and the known hosts, for haul:// targets
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// How to reach the far side.
    #[command(flatten)]
    pub ssh: SshArgs,
}

impl CpArgs {
    /// How long after a daemon was last heard to connect to it again.
    pub const fn reconnect(&self) -> Duration {
        Duration::from_secs(self.reconnect)
    }
}

impl CpArgs {
    /// As the engine takes them.
    pub fn options(&self) -> Options {
        Options { dry_run: self.dry_run, ..self.files.options() }
    }

    /// Whether something is to be copied, not only looked after.
    pub const fn copies(&self) -> bool {
        self.list_interrupted.is_none() && self.discard.is_none()
    }
}

/// Help of the option `--mode`.
pub fn mode_help() -> String {
    format!("How to share the path with others: {}. The default is {}", ControllerChoice::names(), ControllerChoice::default())
}

/// Help of the option `--paths`.
pub fn paths_help() -> String {
    format!(
        "Send from so many ports to the far side's one, 1 to {PATHS_MAX}: for networks that send flows different ways. Those that share a bottleneck are one flow to others"
    )
}

/// Numbers that the option `--paths` takes.
pub fn paths_parser() -> RangedI64ValueParser<u8> {
    RangedI64ValueParser::new().range(1..=PATHS_MAX.into())
}

/// What is handed to ssh.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Options for ssh")]
pub struct SshArgs {
    /// Port of the ssh server
    #[arg(short = 'P', value_name = "PORT")]
    pub port: Option<u16>,
    /// File with the private key to log in with
    #[arg(short, value_name = "KEY")]
    pub identity: Vec<PathBuf>,
    /// Log in by way of another host
    #[arg(short = 'J', value_name = "JUMP")]
    pub jump: Option<OsString>,
    /// What every command has.
    #[command(flatten)]
    pub usual: UsualSshArgs,
}

/// What is handed to ssh by every command, in the same letters.
#[derive(Debug, Default, Clone, Args)]
pub struct UsualSshArgs {
    /// Configuration file for ssh
    #[arg(short = 'F', value_name = "CONFIG")]
    pub config: Option<PathBuf>,
    /// Option in the form of ssh_config(5)
    #[arg(short, value_name = "OPTION")]
    pub option: Vec<OsString>,
    /// Use IPv4 only
    #[arg(short = '4', conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6')]
    pub ipv6: bool,
    /// Program to use in place of ssh
    #[arg(short = 'S', value_name = "PROGRAM")]
    pub program: Option<OsString>,
    /// haul's path on the far side, where its PATH does not have it
    #[arg(long, value_name = "PATH")]
    pub remote_haul: Option<OsString>,
    /// What carries the data: udp, tcp, ssh (its own connection), or auto: the first of these that passes
    #[arg(long, value_name = "WAY", default_value_t, hide_default_value = true)]
    pub transport: Carriage,
}

impl SshArgs {
    /// For the library that starts it.
    pub fn options(&self, quiet: bool, verbose: bool) -> SshOptions {
        let usual = self.usual.clone();
        SshOptions {
            family: usual.family(),
            program: usual.program,
            config: usual.config,
            port: self.port,
            identity: self.identity.clone(),
            jump: self.jump.clone(),
            option: usual.option,
            remote_haul: usual.remote_haul,
            carriage: usual.transport,
            quiet,
            verbose,
        }
    }
}

impl UsualSshArgs {
    /// Which addresses may be used.
    pub const fn family(&self) -> Family {
        Family::of(self.ipv4, self.ipv6)
    }
}

const CP_AFTER_HELP: &str = "\
Examples:
  haul cp big.tar host:/data/             one file to another machine
  haul cp -r host:results ./              a tree from there
  haul cp 'host:logs/*.log' .             what matches there
  haul cp -rp --skip-same photos nas:     again later: only what changed
  haul cp -rp --update photos nas:        the same, and what is newer there stays
  haul cp -rpn --skip-same photos nas:    what that would copy
  tar c dir | haul cp - host:dir.tar      from standard input
  haul cp haul://host/pub/big.tar .       from a daemon
  haul cp -r host:results gfarm:/home/me  into Gfarm, from another machine
  haul cp --list-interrupted /data        what was interrupted there
  haul cp --discard host:/data            what it has kept there, removed

Exit status: 0 all copied and verified as asked, 1 some files were not, 2 wrong usage or failure, 130 interrupted.";
