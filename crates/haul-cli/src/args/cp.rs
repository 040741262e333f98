//! Arguments of `haul cp`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::RangedI64ValueParser;
use haul::{ControllerChoice, PATHS_MAX, Via};
use haul_copy::Sum;
use haul_files::{Delete, Keep, Options, Same};
use haul_peer::{Carriage, DaemonHost, Family, LimitByHours, SshOptions};

use super::mode::ModeParser;
use super::{BootstrapArgs, FileArgs, PortRange, SilenceArgs};

/// Copy files and trees between hosts
///
/// Like scp: `[user@]host:path` and `scp://[user@]host[:port]/path` are reached through ssh, which does the login; the data then goes over
/// UDP, encrypted, directly between the two machines. `haul://host[:port]/root/path` is a root that a daemon exports (see haul-serve(1)).
/// Anything else is a local path; one that contains a `:` needs `./` before it. `-` is standard input or standard output.
///
/// `gfarm:/path` is in the Gfarm file system, whose client must be installed (libgfarm.so.1), and `ram:/path` in a directory in the memory of the machine that is this user's
/// (/dev/shm/haul-UID); what does not fit there is refused before memory is full. Of another host's account they are `host:gfarm:/path` and `host:ram:/path`; `host:any:name` leaves the place to that host. A host called gfarm, ram or any is written
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
    #[arg(value_names = ["SOURCE", "TARGET"], num_args = 1.., value_hint = clap::ValueHint::AnyPath)]
    pub operands: Vec<OsString>,
    /// What becomes of files.
    #[command(flatten)]
    pub files: FileArgs,
    /// Skip files that the target already has with the same size, whatever their times
    #[arg(long, conflicts_with = "checksum")]
    pub size_only: bool,
    /// Skip files that the target already has with the same content, whatever their times: both sides read and hash (BLAKE3) what has the same size
    #[arg(long)]
    pub checksum: bool,
    /// Copy nothing: print what differs at the target in content (or with --size-only in size), and exit with 1 if anything does
    #[arg(long, conflicts_with_all = ["dry_run", "update", "skip_same", "manifest"])]
    pub compare: bool,
    /// Copy only what FILE lists, a path below the one source a line (`-`: standard input). The source is a directory, and what is listed keeps its path in the target; of a directory all that is in it comes
    /// only with -r. Names that lead out of the source (`..`) are refused
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub files_from: Option<PathBuf>,
    /// The paths in --files-from are divided by NUL, as find -print0 writes them
    #[arg(short = '0', long, requires = "files_from")]
    pub from0: bool,
    /// Remove in the copied directories of the target what their source does not have, once all has arrived. What is excluded stays; nothing is removed where the source could not be read whole. Try it with -n first
    #[arg(long, requires = "recursive", conflicts_with = "files_from")]
    pub delete: bool,
    /// Remove nothing if more than NUMBER names would go
    #[arg(long, value_name = "NUMBER", requires = "delete")]
    pub max_delete: Option<u64>,
    /// Keep extended attributes, as rsync does: those of `user`, and where root copies to root those of `security` and `trusted`. Others at the target go, on files too that are skipped as the same. Who may not set
    /// one leaves it out and says so
    #[arg(short = 'X', long)]
    pub xattrs: bool,
    /// Keep ACLs (POSIX), and with them modes, which they are a part of; rsync's letter: to scp it means an agent, which a copy here has no use for. Users and groups are numbers, as with -p
    #[arg(short = 'A', long)]
    pub acls: bool,
    /// Copy what symbolic links below the sources lead to, not the links
    #[arg(short = 'L', long)]
    pub copy_links: bool,
    /// Write the checksums of all that the copy brings, or finds there already, to FILE, for `b3sum --check` or `sha256sum --check` in the target. The files are read here once more for it
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run", value_hint = clap::ValueHint::FilePath)]
    pub manifest: Option<PathBuf>,
    /// What the checksums in --manifest are
    #[arg(long, value_enum, value_name = "HASH", default_value_t = SumArg::Blake3, requires = "manifest")]
    pub manifest_hash: SumArg,
    /// Append what happens to FILE, a line each with its time: files, what was removed, problems, the end
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub log_file: Option<PathBuf>,
    /// Try again so often, after 1 s, 2 s, 4 s and so on up to a minute, where the connection was lost or did not come about; each time goes on where the last one was
    #[arg(long, value_name = "NUMBER", default_value_t = 0, hide_default_value = true)]
    pub retries: u32,
    /// Compress (zstd) blocks on their way that become smaller by it, while the link is what is waited for and no processor. A far side that is too old for this takes and gives them as they are
    #[arg(long = "compress", value_enum, value_name = "WHEN")]
    pub packs: Option<CompressArg>,
    /// Run CMD by sh(1) once all is copied and verified as asked. HAUL_FILES, HAUL_BYTES, HAUL_TARGET and HAUL_STATUS are in its environment; where it fails, the exit status is 1. Not after a dry run
    #[arg(long, value_name = "CMD", value_hint = clap::ValueHint::CommandString)]
    pub on_success: Option<String>,
    /// Run CMD by sh(1) where the copy ended otherwise: HAUL_STATUS is the exit status, HAUL_ERROR the first error that ended it
    #[arg(long, value_name = "CMD", value_hint = clap::ValueHint::CommandString)]
    pub on_failure: Option<String>,
    /// rsync's word for --dead-after
    #[arg(long, value_name = "SECONDS", conflicts_with = "dead_after", value_parser = clap::value_parser!(u64).range(8..=3600))]
    pub timeout: Option<u64>,
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
    /// Limit the rate; a bare number is in Kbit/s, as with scp. By the time of day: `08:00-18:00=100M,otherwise=1G`, local time, over midnight too; the first window that it is in counts, and `none` is no limit
    #[arg(short, long, value_name = "LIMIT")]
    pub limit: Option<LimitByHours>,
    #[arg(long, value_name = "MODE", value_parser = ModeParser, hide_possible_values = true, default_value_t, hide_default_value = true, help = mode_help())]
    pub mode: ControllerChoice,
    #[arg(long, value_name = "NUMBER", default_value_t = 1, hide_default_value = true, value_parser = paths_parser(), help = paths_help())]
    pub paths: u8,
    #[arg(long, value_name = "WAY[,WAY]", value_delimiter = ',', conflicts_with_all = ["paths", "transport"], help = VIA_HELP)]
    pub via: Vec<Via>,
    /// UDP port or ports that the far side may use, where a firewall opens only those
    #[arg(long, value_name = "PORT[-PORT]")]
    pub udp_port: Option<PortRange>,
    /// Print nothing but errors
    #[arg(short, long)]
    pub quiet: bool,
    /// Say more; twice, and ssh says more too
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Say at the end where the time went: login, start-up, bulk, last block and so on. To a file too: the parts where OUT ends in .json; what this side's connection did, with the parts, as a picture in .svg or .png; a log of it in .qlog
    #[arg(long, value_name = "OUT", num_args = 0..=1, require_equals = true, value_hint = clap::ValueHint::FilePath)]
    #[expect(clippy::option_option, reason = "asked for or not, and with a file or without")]
    pub trace: Option<Option<PathBuf>>,
    /// Print events as lines of JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Directory of the identity key and the known hosts, for haul:// targets
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// How to reach the far side.
    #[command(flatten)]
    pub ssh: SshArgs,
    /// Where haul is missing there.
    #[command(flatten)]
    pub bootstrap: BootstrapArgs,
    /// What is left of scp's letters.
    #[command(flatten)]
    pub scp: ScpArgs,
}

/// Letters that scp has besides: those that mean something to a login by ssh, and those that scripts give and that mean nothing here.
#[derive(Debug, Default, Clone, Args)]
#[command(next_help_heading = "Letters of scp")]
pub struct ScpArgs {
    /// Ask for nothing: no password, no passphrase
    #[arg(short = 'B')]
    pub batch: bool,
    /// Ciphers of the login (ssh's -c); what encrypts the data is not chosen
    #[arg(short = 'c', value_name = "CIPHERS")]
    pub ciphers: Option<OsString>,
    /// Compress the login (ssh's -C); data is sent as it is
    #[arg(short = 'C')]
    pub compress: bool,
    /// Nothing: protocols of scp, and a check of names that is always made
    #[arg(short = 'O', visible_short_aliases = ['s', 'T'], action = clap::ArgAction::Count)]
    pub nothing: u8,
    /// From one host to another by way of this one: not offered, and said so where there are two
    #[arg(short = '3', hide = true)]
    pub through_here: bool,
    /// The same from host to host.
    #[arg(short = 'R', hide = true)]
    pub from_there: bool,
    /// An sftp server of this machine.
    #[arg(short = 'D', value_name = "PATH", hide = true)]
    pub sftp_server: Option<OsString>,
}

impl ScpArgs {
    /// What they are in the form of ssh_config(5).
    fn options(&self) -> impl Iterator<Item = OsString> {
        let set = |given: bool, option: &str| given.then(|| OsString::from(option));
        let ciphers = self.ciphers.as_ref().map(|ciphers| {
            let mut option = OsString::from("Ciphers=");
            option.push(ciphers);
            option
        });
        let others = [set(self.batch, "BatchMode=yes"), set(self.compress, "Compression=yes")];
        others.into_iter().flatten().chain(ciphers)
    }

    /// A letter that cannot mean anything here, and would change what is copied from where.
    pub const fn refused(&self) -> Option<&'static str> {
        if self.sftp_server.is_some() { Some("-D") } else { None }
    }
}

/// Values of the option `--compress`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum CompressArg {
    /// Where it gains
    Auto,
}

/// Values of the option `--manifest-hash`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum SumArg {
    /// For `b3sum`. The default
    Blake3,
    /// For `sha256sum`
    Sha256,
}

impl From<SumArg> for Sum {
    fn from(argument: SumArg) -> Self {
        match argument {
            SumArg::Blake3 => Self::Blake3,
            SumArg::Sha256 => Self::Sha256,
        }
    }
}

impl CpArgs {
    /// The silence after which the connection is given up.
    pub fn silence(&self) -> Duration {
        self.timeout.map_or_else(|| self.silence.timeout(), Duration::from_secs)
    }

    /// How long after a daemon was last heard to connect to it again.
    pub const fn reconnect(&self) -> Duration {
        Duration::from_secs(self.reconnect)
    }
}

impl CpArgs {
    /// As the engine takes them.
    pub fn options(&self) -> Options {
        let same = match (self.size_only, self.checksum || self.compare) {
            (true, _) => Same::Size,
            (false, true) => Same::Content,
            (false, false) => Same::Time,
        };
        let delete = self.delete.then_some(Delete { most: self.max_delete });
        let keep = Keep { xattrs: self.xattrs, acls: self.acls };
        Options { same, delete, keep, follow: self.copy_links, dry_run: self.looks_only(), ..self.files.options() }
    }

    /// What may be sent at each time of the day.
    pub fn limit(&self) -> LimitByHours {
        self.limit.clone().unwrap_or_default()
    }

    /// How to reach the far side, for the library that starts ssh.
    pub fn ssh_options(&self) -> SshOptions {
        let mut options = self.ssh.options(self.quiet, self.verbose > 1);
        options.option.extend(self.scp.options());
        options
    }

    /// Whether nothing is to be written.
    pub const fn looks_only(&self) -> bool {
        self.dry_run || self.compare
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

/// Help of the option `--via`.
pub const VIA_HELP: &str = "Leave by these interfaces or addresses, a path for each, and follow them as they come and go: eth0, 192.0.2.7, or all. eth1:backup carries data only \
     while no other way works; wwan0:metered=BYTES too, and no more than that. Over UDP alone";

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
    /// `haul serve --relay` by which the two sides meet where NATs let UDP in at neither, and which forwards what passes no other way
    #[arg(long, value_name = "HOST[:PORT]", value_parser = DaemonHost::parse)]
    pub relay: Option<DaemonHost>,
}

/// Paths that leave by interfaces are UDP's: what carries around it leaves as the routing table says.
pub fn carriage_by(via: &[Via], asked: Carriage) -> Carriage {
    if via.is_empty() { asked } else { Carriage::Udp }
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
            relay: usual.relay,
            bootstrap: None,
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
  haul cp -r --compare photos nas:        whether all is there, with this content
  haul cp -rpn --delete src/. nas:src     what a mirror of src would copy and remove
  git ls-files -z | haul cp -0 --files-from - . host:src
  tar c dir | haul cp - host:dir.tar      from standard input
  haul cp haul://host/pub/big.tar .       from a daemon
  haul cp -r host:results gfarm:/home/me  into Gfarm, from another machine
  haul cp --list-interrupted /data        what was interrupted there
  haul cp --discard host:/data            what it has kept there, removed

What holds for a host each time may stand in a file: haul-config(1).

Exit status: 0 all copied and verified as asked, 1 some files were not, 2 wrong usage or failure, 130 interrupted.";
