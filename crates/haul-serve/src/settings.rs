//! What a daemon is to be.

use std::net::{Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use haul::Announced;
use haul_files::Export;
use haul_peer::{DAEMON_PORT, Guests};
use haul_perf::Told;
use haul_units::BitRate;

use crate::audit::AuditTo;
use crate::relay::RelaySettings;

/// What a daemon is to be.
pub struct Settings {
    /// What it exports.
    pub roots: Vec<Export>,
    /// A file of more roots, a line each as [`parse_root`](crate::parse_root) reads it. None by default.
    pub roots_file: Option<PathBuf>,
    /// Where it listens; by default on every address, at the port of haul's daemons. `[::]` is all of IPv4 too.
    pub listen: SocketAddr,
    /// What clients are told of its addresses whose paths leave by several interfaces. By default, if it listens on every address, those of the machine's interfaces.
    pub addresses: Announced,
    /// Where its key and the authorised keys are; by default where [`StateDir::find`](haul_peer::StateDir::find) says.
    pub state: Option<PathBuf>,
    /// The user that it becomes for good once its port is open and its key is read; by default it stays who it is.
    pub user: Option<String>,
    /// The most that each connection may send or be sent. No limit by default.
    pub limit: Option<BitRate>,
    /// How many clients there may be, and what they may take.
    pub guests: Guests,
    /// Where it writes who came. Nowhere by default.
    pub audit: Option<AuditTo>,
    /// What it is as a relay between two that reach each other no other way. By default it is none.
    pub relay: Option<RelaySettings>,
    /// How the lines read that a client gets who measures and asks for the server's own output. None by default: there is no such output.
    pub describe: Option<fn(&Told) -> String>,
}

impl Settings {
    /// Everything by default, no roots.
    pub fn new(guests: Guests) -> Self {
        Self {
            roots: Vec::new(),
            roots_file: None,
            listen: SocketAddr::from((Ipv6Addr::UNSPECIFIED, DAEMON_PORT)),
            addresses: Announced::default(),
            state: None,
            user: None,
            limit: None,
            guests,
            audit: None,
            relay: None,
            describe: None,
        }
    }
}
