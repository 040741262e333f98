//! Arguments of `haul serve`.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use haul::Announced;
use haul_files::Export;
use haul_peer::DAEMON_PORT;
use haul_serve::{Whom, parse_root};

use super::{AuditArgs, GuestArgs, Limit};

/// Run the daemon: export directories to those whose keys are authorised
///
/// Clients name what they want as `haul://host/NAME/path`. Nothing outside an exported directory can be reached, whatever the names or
/// symbolic links. The identity key is made on the first start; clients see its fingerprint and must trust it, and the daemon
/// serves only clients whose keys `haul key authorize` has admitted.
#[derive(Debug, Args)]
#[command(after_help = SERVE_AFTER_HELP)]
pub struct ServeArgs {
    /// Directory to export, read-only unless it ends in `:rw`; may be given several times
    ///
    /// What clients write belongs to the daemon's user and has no set-id bits, whatever they ask for with `haul cp -p`; with `:rw,owners` they choose both, as far as
    /// the daemon's user may.
    #[arg(long = "root", value_name = "NAME=PATH[:rw[,owners]]", required_unless_present_any = ["roots_file", "relay"], value_parser = parse_root)]
    pub roots: Vec<Export>,
    /// File of more roots, `NAME=PATH[:rw[,owners]]` a line; read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub roots_file: Option<PathBuf>,
    /// UDP address and port to listen on
    #[arg(long, value_name = "ADDR:PORT", default_value = "[::]:7700", value_parser = listen_address)]
    pub listen: SocketAddr,
    /// Address, or address and port, at which clients may find this machine too, or `none`; may be given several times
    ///
    /// Clients whose paths leave by several interfaces (`--via`) are told of it once they are admitted, and go there from where the address that they came to does not answer. Unless told,
    /// and where it listens on every address, it is those of the machine's interfaces: private ones to clients with private addresses alone.
    #[arg(long = "address", value_name = "ADDR[:PORT]", value_parser = further_address)]
    pub addresses: Vec<FurtherAddress>,
    /// Directory of the identity key and the authorised keys
    #[arg(long, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Become this user once the port is open and the identity key is read
    ///
    /// The user must be able to read `authorized_keys` in the state directory, and the roots.
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Limit the rate of each connection; a bare number is in Kbit/s
    #[arg(short, long, value_name = "LIMIT")]
    pub limit: Option<Limit>,
    /// Clients at once; further ones are told to try again later
    #[arg(long, value_name = "NUMBER", default_value_t = 512, value_parser = clap::value_parser!(u16).range(1..))]
    pub max_clients: u16,
    /// What they may take.
    #[command(flatten)]
    pub guests: GuestArgs,
    /// What is written down about them.
    #[command(flatten)]
    pub audit: AuditArgs,
    /// Let two machines behind NATs meet here, and forward between them what passes no other way: for keys that are authorised, or for anybody
    ///
    /// They say so with `haul cp --relay THISHOST ..`. What is forwarded is encrypted between the two; the relay has no key to it. It forwards between the two ends of a pair alone, which have both
    /// shown that they belong to it.
    #[arg(long, value_name = "keys|anybody", value_parser = whom)]
    pub relay: Option<Whom>,
    /// UDP port of the relay; the one after that of --listen unless it is said
    #[arg(long, value_name = "PORT", requires = "relay", value_parser = clap::value_parser!(u16).range(1..))]
    pub relay_port: Option<u16>,
    /// Pairs that the relay serves at once; of these a quarter may be of one key or from one address
    #[arg(long, value_name = "NUMBER", requires = "relay", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    pub relay_pairs: u16,
    /// Limit what the relay forwards of each pair; a bare number is in Kbit/s
    #[arg(long, value_name = "LIMIT", requires = "relay")]
    pub relay_limit: Option<Limit>,
    /// Log warnings and errors only
    #[arg(short, long)]
    pub quiet: bool,
    /// Log more
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

impl ServeArgs {
    /// What clients are told of this machine's addresses.
    pub fn announced(&self) -> Announced {
        let told = self.addresses.iter().filter_map(|address| address.0).collect();
        if self.addresses.is_empty() { Announced::Interfaces } else { Announced::These(told) }
    }
}

/// Whom the relay serves.
fn whom(text: &str) -> Result<Whom, &'static str> {
    match text {
        "keys" => Ok(Whom::Keys),
        "anybody" => Ok(Whom::Anybody),
        _ => Err("write keys or anybody"),
    }
}

/// An address and a port, or only one of them.
fn listen_address(text: &str) -> Result<SocketAddr, String> {
    let whole = text.parse::<SocketAddr>().ok();
    let port = || Some(SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), text.strip_prefix(':').unwrap_or(text).parse().ok()?));
    let address = || Some(SocketAddr::new(text.trim_matches(['[', ']']).parse().ok()?, DAEMON_PORT));
    whole
        .or_else(port)
        .or_else(address)
        .ok_or_else(|| "write an address and a port, for instance 192.0.2.1:7700 or [::]:7700".to_owned())
}

/// An address that clients are told; nothing for `none`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FurtherAddress(pub Option<SocketAddr>);

/// An address with a port, or without: then it is that of the daemon.
fn further_address(text: &str) -> Result<FurtherAddress, String> {
    if text == "none" {
        return Ok(FurtherAddress(None));
    }
    let alone = || Some(SocketAddr::new(text.trim_matches(['[', ']']).parse().ok()?, 0));
    let address = text.parse().ok().or_else(alone).filter(|address: &SocketAddr| !address.ip().is_unspecified());
    address.map(|address| FurtherAddress(Some(address))).ok_or_else(|| "write an address of this machine's, or `none`".to_owned())
}

const SERVE_AFTER_HELP: &str = "\
Examples:
  haul serve --root pub=/srv/pub --root inbox=/srv/inbox:rw
  haul key authorize SHA256:... --name alice      on this machine, with what `haul key show` prints on hers
  haul cp haul://thishost/pub/file .              on hers
  haul serve --relay keys                         lets authorised keys meet: haul cp --relay thishost file host:

Keys are looked at all the time: a connection ends within a second when its key is revoked or confined otherwise. SIGHUP has --roots-file read again, connections go on. To run it under systemd, use Type=notify; SIGTERM ends it cleanly. Where the kernel has Landlock, the daemon locks itself in to its roots and its state directory. Logs go to standard error; HAUL_LOG says what of them.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listens_where_it_is_told() {
        for (text, address) in
            [("192.0.2.1:9", "192.0.2.1:9"), ("9", "[::]:9"), (":9", "[::]:9"), ("::1", "[::1]:7700"), ("[::1]:9", "[::1]:9")]
        {
            assert_eq!(listen_address(text).map(|address| address.to_string()).as_deref(), Ok(address));
        }
        assert!(listen_address("localhost:9").is_err() && listen_address("70000").is_err());
    }

    #[test]
    fn is_found_where_it_says() {
        let told = |text: &str| further_address(text).map(|address| address.0.map(|address| address.to_string()));
        for (text, address) in [
            ("192.0.2.1", "192.0.2.1:0"),
            ("192.0.2.1:9", "192.0.2.1:9"),
            ("2001:db8::1", "[2001:db8::1]:0"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert_eq!(told(text), Ok(Some(address.to_owned())));
        }
        assert_eq!(told("none"), Ok(None));
        assert!(told("[::]").is_err() && told("0.0.0.0:9").is_err() && told("host").is_err());
    }
}
