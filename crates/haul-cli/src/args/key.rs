//! Arguments of `haul key`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use haul::Fingerprint;
use haul_peer::keys::{Rights, Service, is_root_name};
use haul_peer::{Moment, Network, Rule};

use super::Limit;

/// Show and manage keys: this machine's own, trusted hosts, authorised users
///
/// For daemons and haul:// addresses only: copies through ssh make fresh keys each time and need none of this.
#[derive(Debug, Args)]
pub struct KeyArgs {
    /// Directory of the keys
    #[arg(long, value_name = "DIR", global = true)]
    pub state: Option<PathBuf>,
    /// What to do.
    #[command(subcommand)]
    pub command: KeyCommand,
}

/// What to do with keys.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Print the fingerprint of the own key, made if there is none
    Show,
    /// Trust a daemon's key
    Trust {
        /// The daemon's host, as in `haul://HOST[:PORT]/`
        #[arg(value_name = "HOST[:PORT]")]
        host: String,
        /// What `haul key show` prints there
        #[arg(value_parser = fingerprint)]
        fingerprint: Fingerprint,
        /// Put this key in the place of another one that is trusted for the host
        #[arg(long)]
        replace: bool,
    },
    /// Let the holder of a key use the daemon, the proxy and the pipes on this machine
    ///
    /// Without options for everything that they offer. What is named confines the key: once a service is named (by --only, or by an option that is about
    /// one), it may use no other. Given again for the same key, the options take the place of all earlier ones; without any they stay.
    #[command(after_help = AUTHORIZE_AFTER_HELP)]
    Authorize {
        /// What `haul key show` prints on the client
        #[arg(value_parser = fingerprint)]
        fingerprint: Fingerprint,
        /// Whose key it is
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
        /// What it may do.
        #[command(flatten)]
        rights: RightsArgs,
    },
    /// List the trusted hosts, and the authorised keys with what they may do
    List,
    /// Withdraw an authorised key, or the trust in a host
    Revoke {
        /// Fingerprint or name of the key, or the host
        #[arg(value_name = "FINGERPRINT|NAME|HOST[:PORT]")]
        what: String,
    },
}

/// What a key may do.
#[derive(Debug, Args)]
pub struct RightsArgs {
    /// Name of a root of the daemon that copies may use; may be given several times; without it all
    #[arg(long, value_name = "NAME", value_parser = root_name)]
    pub root: Vec<String>,
    /// Copies may read only, from whatever root
    #[arg(long)]
    pub read_only: bool,
    /// Services that may be used: cp, perf and relay (the daemon's), proxy, pipe
    #[arg(long, value_name = "SERVICE", value_delimiter = ',')]
    pub only: Vec<Service>,
    /// Target that `haul proxy serve` may connect to; may be given several times; without it all that it allows
    #[arg(long, value_name = "HOST:PORT")]
    pub proxy: Vec<Rule>,
    /// Network or address that the holder must come from; may be given several times
    #[arg(long, value_name = "NET")]
    pub from: Vec<Network>,
    /// The rate of each connection; a bare number is in Kbit/s
    #[arg(long, value_name = "RATE")]
    pub max_rate: Option<Limit>,
    /// The key is refused from then on: 2026-12-31 or 2026-12-31T18:00Z, in UTC
    #[arg(long, value_name = "DATE")]
    pub expires: Option<Moment>,
}

impl RightsArgs {
    /// The rights, if any were named.
    pub fn rights(&self) -> Option<Rights> {
        let mut services = self.only.clone();
        services.sort_unstable();
        services.dedup();
        let rights = Rights {
            services,
            roots: self.root.clone(),
            read_only: self.read_only,
            targets: self.proxy.clone(),
            from: self.from.clone(),
            max_rate: self.max_rate.map(|rate| rate.0),
            expires: self.expires,
        };
        (!rights.is_everything()).then_some(rights)
    }
}

const AUTHORIZE_AFTER_HELP: &str = "\
Examples:
  haul key authorize SHA256:... --name alice
  haul key authorize SHA256:... --name backup --root inbox --from 10.0.0.0/8
  haul key authorize SHA256:... --name guest --root pub --read-only --expires 2026-12-31

The same in a line of the file `authorized_keys`, whose options stand before the key: `root=pub,ro,expires=2026-12-31 SHA256:... guest`. A line that cannot be understood lets nobody in; `haul key list` names it.";

fn root_name(text: &str) -> Result<String, String> {
    if is_root_name(text) {
        Ok(text.to_owned())
    } else {
        Err("use letters, digits, '-', '_' and '.', as haul serve --root does".to_owned())
    }
}

fn fingerprint(text: &str) -> Result<Fingerprint, String> {
    text.parse().map_err(|_| "not a fingerprint: write SHA256: and 43 letters, as `haul key show` prints it".to_owned())
}
