//! The command line: one definition, from which parsing, help, man pages and completions all come.

mod audit;
mod bootstrap;
mod config;
mod cp;
#[cfg(unix)]
mod ctl;
#[cfg(unix)]
#[cfg(test)]
mod documents;
mod files;
#[cfg(unix)]
mod fleet;
mod guests;
mod key;
#[cfg(windows)]
mod left_out;
mod mode;
#[cfg(unix)]
mod pace;
mod perf;
mod pipe;
mod proxy;
mod remote;
#[cfg(unix)]
mod rsh;
#[cfg(unix)]
mod rsync;
mod serve;
mod silence;
#[cfg(unix)]
mod tcp;
mod tcp_mode;
mod trace;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as _, CommandFactory, FromArgMatches, Parser, Subcommand};
use clap_complete::Shell;
use haul::ControllerChoice;
pub use haul_peer::{Limit, PortRange};

#[cfg(unix)]
use crate::lab::args::LabArgs;

pub use audit::AuditArgs;
pub use bootstrap::BootstrapArgs;
pub use config::{ConfigArgs, ConfigCommand};
pub use cp::{CpArgs, SshArgs, UsualSshArgs, carriage_by};
#[cfg(unix)]
pub use ctl::{CtlArgs, CtlCommand};
pub use files::{FileArgs, VerifyArg};
#[cfg(unix)]
pub use fleet::{
    FleetArgs, FleetCommand, FleetDownArgs, FleetGetArgs, FleetListArgs, FleetPutArgs, FleetReportArgs, FleetStatusArgs,
    FleetUpArgs, GetPolicyArg, HostsArgs, JobArgs, KeptArgs, PutPolicyArg, ReplicasByArg,
};
pub use guests::GuestArgs;
pub use key::{KeyArgs, KeyCommand};
#[cfg(windows)]
pub use left_out::{
    LeftOut, LeftOut as CtlArgs, LeftOut as FleetArgs, LeftOut as LabArgs, LeftOut as PaceArgs, LeftOut as RshArgs,
    LeftOut as RsyncArgs, LeftOut as TcpArgs, arranged,
};
#[cfg(unix)]
pub use pace::{ClassArg, ClassArgs, PaceArgs, PaceCommand, QueueBy};
pub use perf::{MeshArgs, PerfArgs, PerfCommand};
pub use pipe::PipeArgs;
pub use proxy::{CarriageArgs, ForwardArgs, PROXY_PORT, ProxyArgs, ProxyCommand, ProxyConnectArgs, ProxyServeArgs};
pub use remote::{ErrandArg, RemoteArgs};
#[cfg(unix)]
pub use rsh::{RshArgs, arranged};
#[cfg(unix)]
pub use rsync::RsyncArgs;
pub use serve::ServeArgs;
pub use silence::SilenceArgs;
#[cfg(unix)]
pub use tcp::{ScopeArgs, TcpArgs, TcpCommand};
pub use tcp_mode::TcpMode;
pub use trace::TraceArgs;

/// Congestion control of what carries other programs' streams. Their connections live long, rest often and are asked for much at once: what the
/// first packets tell of the path spares each of them a second of search, and the queues on the way what a search overshoots.
const STREAM_MODE: ControllerChoice = ControllerChoice::Quickstart;

/// Moves large data across long, fast, lossy networks
///
/// Over its own encrypted transport on UDP, which keeps a path full at any distance and does not take random loss for congestion. There is
/// nothing that must be configured: no bandwidth, no round-trip time, no port.
#[derive(Debug, Parser)]
#[command(name = "haul", version, after_help = AFTER_HELP, propagate_version = false, disable_help_subcommand = true)]
pub struct Cli {
    /// Use files of keys whatever their owners and modes are
    #[arg(long, global = true, hide = true)]
    no_strict_modes: bool,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Installed under the name hcp, the program is `haul cp`; as hperf, `haul perf`; as ssh, `haul rsh`.

Keys are read only from files, and from a directory, that belong to this user or to root and that nobody else can write to. Where a file system has no owners and modes, every command takes --no-strict-modes.

Exit status: 0 all done and verified as asked, 1 some files were not, 2 wrong usage or failure, 130 interrupted.";

/// The commands; those that have no description here bring their own.
#[derive(Debug, Subcommand)]
pub enum Command {
    Cp(Box<CpArgs>),
    Ctl(CtlArgs),
    Fleet(FleetArgs),
    Pipe(Box<PipeArgs>),
    Proxy(Box<ProxyArgs>),
    Rsync(RsyncArgs),
    Rsh(Box<RshArgs>),
    Serve(ServeArgs),
    Key(KeyArgs),
    Config(ConfigArgs),
    Perf(Box<PerfArgs>),
    Tcp(TcpArgs),
    Pace(Box<PaceArgs>),
    Trace(TraceArgs),
    Lab(Box<LabArgs>),
    /// Write the manual pages
    #[command(hide = true)]
    Man {
        /// Directory for one file per command; without it, the page of haul(1) goes to standard output
        dir: Option<PathBuf>,
    },
    /// Print a completion script
    #[command(hide = true)]
    Completions {
        /// The shell to print it for
        shell: Shell,
        /// The name that the program is installed under
        #[arg(long, value_name = "NAME", default_value = "haul", value_parser = ["haul", "hcp", "hperf"])]
        name: String,
    },
    Remote(RemoteArgs),
}

/// Parses the arguments, the program's name included: it may be a command's own name.
pub fn parse(args: Vec<OsString>) -> Result<Command, clap::Error> {
    parse_any(args).map_err(crate::manners::without_misleading_tip).map_err(crate::manners::in_words)
}

fn parse_any(args: Vec<OsString>) -> Result<Command, clap::Error> {
    // An operand of the others may be called like that.
    let args = if matches!(called(&args), Some("hcp" | "hperf" | "ssh")) { args } else { spelled_out(args) };
    match called(&args) {
        Some("hcp") => {
            let matches = hcp().try_get_matches_from(args)?;
            complete(Command::Cp(Box::new(CpArgs::from_arg_matches(&matches)?)), hcp)
        }
        Some("hperf") => {
            let matches = hperf().try_get_matches_from(args)?;
            Ok(Command::Perf(Box::new(PerfArgs::from_arg_matches(&matches)?)))
        }
        Some("ssh") => cli(&shell_words(&args, 1)),
        _ if args.get(1).is_some_and(|word| word == "rsh") => cli(&shell_words(&args, 2)),
        _ => complete(cli(&args)?, || {
            let mut haul = haul();
            haul.build();
            haul.find_subcommand("cp").cloned().unwrap_or(haul)
        }),
    }
}

/// Whether this is `haul rsh`, by whatever name.
pub fn is_shell(args: &[OsString]) -> bool {
    let rsh = args.get(1).is_some_and(|word| word == "rsh");
    called(args).map_or(rsh, |name| name == "ssh" || rsh && !matches!(name, "hcp" | "hperf"))
}

/// The name by which the program was called.
fn called(args: &[OsString]) -> Option<&str> {
    let name = args.first().and_then(|name| Path::new(name).file_name()).and_then(|name| name.to_str());
    name.map(|name| name.strip_suffix(std::env::consts::EXE_SUFFIX).unwrap_or(name))
}

/// `haul help COMMAND` and `haul version`, as the options that they are elsewhere.
fn spelled_out(mut args: Vec<OsString>) -> Vec<OsString> {
    match args.get(1).and_then(|word| word.to_str()) {
        Some("help") => {
            args.remove(1);
            args.push("--help".into());
        }
        Some("version") if args.len() == 2 => args[1] = "--version".into(),
        _ => {}
    }
    args
}

/// Commands by [`spelled_out`] alone: the definition does not know them.
const SPELLED_OUT: [&str; 2] = ["help", "version"];

/// With these among the commands that an unknown first word is like.
fn with_tip_of_spelled_out(mut error: clap::Error, first: Option<&OsString>) -> clap::Error {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand) else { return error };
    let wrong = wrong.as_str();
    if first.and_then(|word| word.to_str()) != Some(wrong) || SPELLED_OUT.contains(&wrong) {
        return error;
    }
    let with_these = haul().subcommands(SPELLED_OUT.map(clap::Command::new));
    let Err(better) = with_these.try_get_matches_from(["haul", wrong]) else { return error };
    if let Some(similar) = better.get(ContextKind::SuggestedSubcommand) {
        error.insert(ContextKind::SuggestedSubcommand, similar.clone());
    }
    error
}

/// `haul rsh` with its options before the host, wherever the `taken` words and more had them.
fn shell_words(args: &[OsString], taken: usize) -> Vec<OsString> {
    let definition = RshArgs::augment_args(clap::Command::new("rsh"));
    let mut words: Vec<OsString> = vec!["haul".into(), "rsh".into()];
    words.extend(arranged(args.get(taken..).unwrap_or_default(), &definition));
    words
}

/// The command of `haul`, with what holds for all of them put into force.
fn cli(args: &[OsString]) -> Result<Command, clap::Error> {
    let cli = Cli::try_parse_from(args).map_err(|error| with_tip_of_spelled_out(error, args.get(1)))?;
    if cli.no_strict_modes {
        haul_peer::keys::strict::relax();
    }
    Ok(cli.command)
}

/// Options may stand between the operands, so these are counted when all are there.
fn complete(command: Command, definition: impl FnOnce() -> clap::Command) -> Result<Command, clap::Error> {
    match &command {
        Command::Cp(args) if args.copies() && args.operands.len() < 2 => {
            Err(definition().error(ErrorKind::TooFewValues, "one or more sources are needed, then the target"))
        }
        _ => Ok(command),
    }
}

/// The definition of `haul`.
pub fn haul() -> clap::Command {
    Cli::command()
}

/// The definition of `hcp`.
pub fn hcp() -> clap::Command {
    CpArgs::augment_args(clap::Command::new("hcp"))
        .bin_name("hcp")
        .override_usage("hcp [OPTIONS] SOURCE... TARGET")
        .version(env!("CARGO_PKG_VERSION"))
}

/// The definition of `hperf`.
pub fn hperf() -> clap::Command {
    PerfArgs::augment_args(clap::Command::new("hperf"))
        .bin_name("hperf")
        .override_usage("hperf [OPTIONS] [USER@]HOST\n       hperf -s [OPTIONS]\n       hperf -c HOST[:PORT] [OPTIONS]\n       hperf mesh [OPTIONS] HOST...")
        .version(env!("CARGO_PKG_VERSION"))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Command, clap::Error> {
        parse(line.split(' ').map(OsString::from).collect())
    }

    #[test]
    fn the_definition_is_sound() {
        haul().debug_assert();
        hcp().debug_assert();
        hperf().debug_assert();
    }

    /// A terminal breaks lines where it ends; one that is broken before that is broken twice.
    #[test]
    fn no_sentence_of_a_help_is_broken_by_hand() {
        fn look(command: &clap::Command, broken: &mut Vec<String>) {
            let texts = [command.get_after_help(), command.get_after_long_help()].into_iter().flatten().map(ToString::to_string);
            for text in texts {
                let lines: Vec<&str> = text.lines().collect();
                let goes_on = |line: &str| line.starts_with(|c: char| c.is_lowercase() || c == '`');
                let pairs = lines.windows(2).filter(|pair| !pair[0].is_empty() && !pair[0].starts_with(' ') && goes_on(pair[1]));
                broken.extend(pairs.map(|pair| format!("{}: {} / {}", command.get_name(), pair[0], pair[1])));
            }
            command.get_subcommands().for_each(|command| look(command, broken));
        }
        let mut broken = Vec::new();
        look(&haul(), &mut broken);
        assert!(broken.is_empty(), "{}", broken.join("\n"));
    }

    #[test]
    fn acts_by_the_name_it_was_called() {
        assert!(matches!(parsed("haul cp a b"), Ok(Command::Cp(_))));
        assert!(matches!(parsed("/usr/bin/hcp a b"), Ok(Command::Cp(_))));
        assert!(matches!(parsed("hperf -c host"), Ok(Command::Perf(_))));
        assert!(matches!(parsed("haul perf me@host -R"), Ok(Command::Perf(_))));
        assert!(matches!(parsed("some-link key show"), Ok(Command::Key(_))));
    }

    #[test]
    fn help_and_version_are_commands_too() {
        let shown = |line: &str| parsed(line).map(|_| ()).expect_err("it shows something and ends");
        assert_eq!(shown("haul version").kind(), ErrorKind::DisplayVersion);
        assert_eq!(shown("haul version").to_string(), shown("haul --version").to_string());
        for (line, options) in
            [("haul help", "haul --help"), ("haul help cp", "haul cp --help"), ("haul help perf mesh", "haul perf mesh --help")]
        {
            assert_eq!(shown(line).kind(), ErrorKind::DisplayHelp, "{line}");
            assert_eq!(shown(line).to_string(), shown(options).to_string(), "{line}");
        }
        assert!(matches!(parsed("hcp help far:"), Ok(Command::Cp(_))));
    }

    #[test]
    fn takes_the_letters_of_scp() {
        let line = "hcp -r -p -q -v -P 2222 -i key -i key2 -J jump -F config -o A=b -o C=d -4 -l 1000 -S prog -- -a b:c";
        let Ok(Command::Cp(args)) = parsed(line) else { panic!("refused") };
        assert!(args.files.recursive && args.files.preserve && args.quiet && args.ssh.usual.ipv4);
        assert_eq!(args.ssh.port, Some(2222));
        assert_eq!(args.ssh.identity.len(), 2);
        assert_eq!(args.ssh.usual.option, ["A=b", "C=d"]);
        assert_eq!(args.limit, Some(haul_peer::LimitByHours::always(Some(haul_units::BitRate::mbps(1)))));
        assert_eq!(args.operands, ["-a", "b:c"]);
    }

    #[test]
    fn each_letter_of_scp_is_taken() {
        let line = "hcp -346ABCOpqRrsTv -c aes128-ctr -D server -F file -i key -J jump -l 1 -o A=b -P 1 -S ssh a b:c";
        // scp itself knows no -4 with -6.
        let Ok(Command::Cp(args)) = parsed(&line.replace("346", "34")) else { panic!("refused") };
        let options = args.ssh_options().option;
        assert_eq!(options, ["A=b", "BatchMode=yes", "Compression=yes", "Ciphers=aes128-ctr"]);
        assert_eq!(args.scp.refused(), Some("-D"));
        // rsync's letters, the first of which scp has for an agent.
        assert_eq!(args.options().keep, haul_files::Keep { xattrs: false, acls: true });
        let Ok(Command::Cp(both)) = parsed("hcp -rpXA a b:c") else { panic!("refused") };
        assert_eq!(both.options().keep, haul_files::Keep { xattrs: true, acls: true });
        let Ok(Command::Cp(plain)) = parsed("hcp -O -s -T a b:c") else { panic!("refused") };
        assert!(plain.ssh_options().option.is_empty() && plain.scp.refused().is_none());
    }

    #[test]
    fn options_may_stand_between_operands() {
        let Ok(Command::Cp(args)) = parsed("haul cp a -r b -q c:") else { panic!("refused") };
        assert!(args.files.recursive && args.quiet && args.operands == ["a", "b", "c:"]);
    }

    #[test]
    fn refuses_what_it_does_not_offer() {
        for line in
            ["hcp -Z a b", "hcp a", "hcp", "haul", "haul cp -4 -6 a b", "haul cp -P x a b", "haul move a b", "haul cp -l 0 a b"]
        {
            assert!(parsed(line).is_err(), "{line}");
        }
    }

    #[test]
    fn a_tip_is_given_where_it_helps() {
        let said = |line: &str| parsed(line).expect_err("it is wrong").to_string();
        assert!(said("haul cp --recursve a b:").contains("'--recursive'"));
        assert!(said("haul key lst").contains("'list'"));
        for (line, meant) in [("perff", "perf"), ("hlep", "help"), ("verion", "version"), ("hlep cp", "help")] {
            let said = said(&format!("haul {line}"));
            assert!(said.contains(&format!("tip: a similar subcommand exists: '{meant}'")), "{line}: {said}");
        }
        // Only as the first word are they commands, and neither is like itself.
        for line in ["haul key hlep", "haul version x", "haul help help"] {
            assert!(!said(line).contains("tip:"), "{line}: {}", said(line));
        }
        for line in
            ["haul cp -Z a b:", "haul perf --rtt 5 far", "haul lab wan run --rat 1G -- x", "hcp -Z a b:", "haul rsh -Z far"]
        {
            assert!(!said(line).contains("as a value"), "{line}: {}", said(line));
        }
    }

    #[test]
    fn the_help_has_what_people_call_and_nothing_else() {
        let help = haul().render_long_help().to_string();
        assert!(help.contains("serve") && help.contains("perf") && !help.contains("\n  completions"), "{help}");
    }
}
