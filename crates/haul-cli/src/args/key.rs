//! Arguments of `haul key`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use haul::Fingerprint;

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
    /// Let the holder of a key use the daemon on this machine
    Authorize {
        /// What `haul key show` prints on the client
        #[arg(value_parser = fingerprint)]
        fingerprint: Fingerprint,
        /// Whose key it is
        #[arg(long, value_name = "TEXT")]
        name: Option<String>,
    },
    /// List the trusted hosts and the authorised keys
    List,
    /// Withdraw an authorised key, or the trust in a host
    Revoke {
        /// Fingerprint of the key, or the host
        #[arg(value_name = "FINGERPRINT|HOST[:PORT]")]
        what: String,
    },
}

fn fingerprint(text: &str) -> Result<Fingerprint, String> {
    text.parse().map_err(|_| "not a fingerprint: write SHA256: and 43 letters, as `haul key show` prints it".to_owned())
}
