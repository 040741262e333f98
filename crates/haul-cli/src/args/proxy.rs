//! Arguments of `haul proxy`.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use haul::{ControllerChoice, Fingerprint};
use haul_peer::{PortRange, Rule, Target};
use haul_tunnel::proxy::{Forward, Listen, RemoteForward};

use super::mode::ModeParser;
use super::{AuditArgs, GuestArgs, Limit, STREAM_MODE, SilenceArgs, SshArgs};

/// The UDP port that `haul proxy serve` listens on unless told otherwise.
pub const PROXY_PORT: u16 = 7702;

/// Carry TCP connections across a long network
///
/// Programs connect to a port of this machine; their connections cross the network in one haul connection and go on to their target on the other side.
/// Each is a stream of its own: what is lost of one holds up no other, an end or a reset of one side is an end or a reset at the other, and
/// a reader that stands still stops its writer.
///
/// Over ssh, with ssh's letters: `haul proxy user@host -L 8080:localhost:80`. Nothing needs to run there but sshd, with haul installed; the far side ends with
/// this command. Between machines that are set up once: `haul proxy serve` beside the servers, `haul proxy connect` beside the clients.
#[derive(Debug, Args)]
#[command(
    override_usage = "haul proxy [OPTIONS] [USER@]HOST -L|-R|-D ...\n       haul proxy serve [OPTIONS] --to HOST:PORT\n       haul proxy connect [OPTIONS] REMOTE --listen PORT",
    after_help = PROXY_AFTER_HELP,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true
)]
pub struct ProxyArgs {
    /// One side of a pair that stays.
    #[command(subcommand)]
    pub command: Option<ProxyCommand>,
    /// Host to reach through ssh
    #[arg(value_name = "[USER@]HOST", required = true, value_hint = ValueHint::Hostname)]
    pub host: Option<OsString>,
    /// What is forwarded from here.
    #[command(flatten)]
    pub forwards: ForwardArgs,
    /// Listen on a port of the far host and connect to HOST:PORT from here; without HOST:PORT it is a SOCKS5 port there
    #[arg(short = 'R', value_name = "[BIND:]PORT[:HOST:HOSTPORT]")]
    pub remote: Vec<RemoteForward>,
    /// Run no command on the far host; haul never does, this is ssh's letter for it
    #[arg(short = 'N')]
    pub no_command: bool,
    /// UDP port or ports that the far side may use, where a firewall opens only those
    #[arg(long, value_name = "PORT[-PORT]")]
    pub udp_port: Option<PortRange>,
    /// How the connection behaves.
    #[command(flatten)]
    pub carriage: CarriageArgs,
    /// How to reach the far side.
    #[command(flatten)]
    pub ssh: SshArgs,
}

/// The sides of a pair.
#[derive(Debug, Subcommand)]
pub enum ProxyCommand {
    Serve(Box<ProxyServeArgs>),
    Connect(Box<ProxyConnectArgs>),
}

/// Serve the other side of a proxy: take haul connections, and connect to targets here
///
/// Lets in those whose keys `haul key authorize` has admitted (or anybody with --anyone), and connects them to the targets that are named, to nothing else. A client that names
/// no target gets the first `--to`.
#[derive(Debug, Args)]
#[command(override_usage = "haul proxy serve [OPTIONS] --to HOST:PORT", after_help = SERVE_AFTER_HELP)]
pub struct ProxyServeArgs {
    /// A target that clients may connect to; may be given several times, the first is the one for clients that name none
    #[arg(long, value_name = "HOST:PORT", required_unless_present = "allow")]
    pub to: Vec<Target>,
    /// More that clients may name: HOST:PORT, ADDRESS/BITS:PORT or *:PORT; the port may be * or a range
    #[arg(long, value_name = "HOST:PORT")]
    pub allow: Vec<Rule>,
    /// UDP port to listen on
    #[arg(short, long, default_value_t = PROXY_PORT)]
    pub port: u16,
    /// Local address to listen on
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    pub bind: Option<IpAddr>,
    /// Let anybody in, not only those whose keys are authorised here
    #[arg(long)]
    pub anyone: bool,
    /// Clients at once; further ones are told to try again later
    #[arg(long, value_name = "NUMBER", default_value_t = 1024, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_clients: u16,
    /// What they may take.
    #[command(flatten)]
    pub guests: GuestArgs,
    /// Who writes it down.
    #[command(flatten)]
    pub audit: AuditArgs,
    /// How the connections behave.
    #[command(flatten)]
    pub carriage: CarriageArgs,
}

/// Listen here for TCP connections, and carry them to a `haul proxy serve`
///
/// REMOTE is `HOST[:PORT]` or `haul://HOST[:PORT]` of a `haul proxy serve`, whose key must be known (`haul key trust`, or --key), or `USER@HOST` to be reached through ssh. When the connection breaks, its TCP
/// connections are reset, and it is made again for new ones.
#[derive(Debug, Args)]
#[command(
    override_usage = "haul proxy connect [OPTIONS] REMOTE --listen PORT",
    after_help = CONNECT_AFTER_HELP,
    group(clap::ArgGroup::new("ports").args(["listen", "local", "dynamic", "transparent"]).multiple(true).required(true))
)]
pub struct ProxyConnectArgs {
    /// The other side
    #[arg(value_name = "REMOTE", value_hint = ValueHint::Hostname)]
    pub remote: String,
    /// Listen on this TCP port for connections to the other side's target, or to that of --to
    #[arg(long, value_name = "[ADDRESS:]PORT")]
    pub listen: Vec<Listen>,
    /// The target for --listen; without it the other side's first one
    #[arg(long, value_name = "HOST:PORT", requires = "listen")]
    pub to: Option<Target>,
    /// Listen for connections that TPROXY rules of this gateway hand over, and carry each to where it was going (Linux, root)
    #[arg(long, value_name = "PORT")]
    pub transparent: Option<u16>,
    /// What is forwarded from here.
    #[command(flatten)]
    pub forwards: ForwardArgs,
    /// The other side's fingerprint, as it prints it; without this its key must be known
    #[arg(long, value_name = "FINGERPRINT")]
    pub key: Option<Fingerprint>,
    /// UDP port or ports that the far side may use, over ssh
    #[arg(long, value_name = "PORT[-PORT]")]
    pub udp_port: Option<PortRange>,
    /// How the connection behaves.
    #[command(flatten)]
    pub carriage: CarriageArgs,
    /// How to reach the far side, over ssh.
    #[command(flatten)]
    pub ssh: SshArgs,
}

/// ssh's forwards from this side.
#[derive(Debug, Args)]
pub struct ForwardArgs {
    /// Listen on a port here and connect to HOST:HOSTPORT from the far side
    #[arg(short = 'L', value_name = "[BIND:]PORT:HOST:HOSTPORT")]
    pub local: Vec<Forward>,
    /// Listen on a port here as a SOCKS5 server; names are resolved and connections made on the far side
    #[arg(short = 'D', value_name = "[BIND:]PORT")]
    pub dynamic: Vec<Listen>,
    /// Let other hosts use the ports that name no address to bind to
    #[arg(short, long)]
    pub gateway_ports: bool,
}

/// How the haul connection and its streams behave.
#[derive(Debug, Args)]
pub struct CarriageArgs {
    /// TCP connections that may be open at once; further ones wait here, and are refused on the serving side
    #[arg(long, value_name = "NUMBER", default_value_t = 16_000, value_parser = clap::value_parser!(u32).range(1..=16_000))]
    pub max_connections: u32,
    #[command(flatten)]
    pub silence: SilenceArgs,
    /// Limit the rate of what this side sends, per haul connection; a bare number is in Kbit/s
    #[arg(long, value_name = "LIMIT")]
    pub limit: Option<Limit>,
    /// Congestion control, as for `haul cp`; the default is quickstart
    #[arg(long, value_name = "MODE", value_parser = ModeParser, hide_possible_values = true, default_value_t = STREAM_MODE, hide_default_value = true)]
    pub mode: ControllerChoice,
    /// Directory of the identity key, the known hosts and the authorised keys
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Print events as lines of JSON on standard output
    #[arg(long)]
    pub json: bool,
    /// Log warnings and errors only
    #[arg(short, long)]
    pub quiet: bool,
    /// Log every connection; twice, and more
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

const PROXY_AFTER_HELP: &str = "\
Examples:
  haul proxy user@host -L 8080:localhost:80       localhost:8080 here is port 80 there
  haul proxy user@host -D 1080                    a SOCKS5 server that goes out from there
  haul proxy user@host -R 9000:localhost:9000     port 9000 there is port 9000 here
  haul proxy serve --to localhost:5432            beside a database
  haul proxy connect dbhost --listen 5432         beside its clients
It runs until it is interrupted.

Exit status: 0 ended by a signal, 2 wrong usage, or the connection failed or broke.";

const SERVE_AFTER_HELP: &str = "\
Examples:
  haul proxy serve --to localhost:80
  haul proxy serve --to db.local:5432 --allow '10.1.0.0/16:*' --allow '*:443'
  haul key authorize SHA256:... --name alice      lets a client in; its `haul key show` prints the fingerprint

Exit status: 0 ended by a signal, 2 wrong usage or failure.";

const CONNECT_AFTER_HELP: &str = "\
Examples:
  haul proxy connect dbhost --listen 5432                    to the target of `haul proxy serve` there
  haul proxy connect web:7702 --listen 0.0.0.0:8080 --key SHA256:...
  haul proxy connect office -L 8443:intra:443 -D 1080        where its --allow lets them
  haul proxy connect office --transparent 3129               on a gateway; see docs/use/proxy.md for its rules

Exit status: 0 ended by a signal, 2 wrong usage, or the first connection failed.";
