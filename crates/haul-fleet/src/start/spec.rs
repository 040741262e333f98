//! What is to be started, and how.

use std::ffi::OsString;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use haul::TransportConfig;
use haul_peer::{PortRange, SshHost, SshOptions};

use super::hosts::HostSpec;

/// How many logins one machine is asked for at once, and how many the representative asks for: sshd turns away who comes while ten logins are under way (MaxStartups), and several names can be one machine.
pub const FAN_OUT: usize = 8;

/// What is to be started, and how.
#[derive(Debug, Clone)]
pub struct StartSpec {
    /// On which hosts; the first is the representative.
    pub hosts: Vec<HostSpec>,
    /// In which way.
    pub way: Way,
    /// How long all of it may take. Who has not come by then is left out.
    pub timeout: Duration,
    /// What is handed to ssh.
    pub ssh: SshOptions,
    /// UDP ports for whichever side listens; any, unless it is said.
    pub udp_port: Option<PortRange>,
    /// Directory of keys, where it is not the usual one; for daemons.
    pub state: Option<PathBuf>,
    /// How the connections behave; the members are told the same.
    pub transport: TransportConfig,
    /// Addresses of this host that members call back at; those by which the hosts are reached, unless it is said.
    pub call_back: Vec<IpAddr>,
    /// Members listen and the client dials, where the client cannot be reached from outside.
    pub dial_out: bool,
    /// The program that starts all members, for [`Way::Mpirun`] and [`Way::Srun`].
    pub launcher: Launcher,
}

/// In which way members are started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Way {
    /// The client logs in to each host by ssh.
    #[default]
    SshDirect,
    /// The client logs in to the first host by ssh, and that one to the others.
    Ssh,
    /// By one `mpirun`.
    Mpirun,
    /// By one `srun` of Slurm.
    Srun,
    /// They run already, as daemons.
    Daemon,
}

/// How `mpirun` or `srun` is called.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launcher {
    /// The program, where it is not found by its usual name.
    pub program: Option<OsString>,
    /// Words before ours.
    pub arguments: Vec<OsString>,
    /// The host to call it on, by ssh; this one, unless it is said.
    pub on: Option<SshHost>,
}

impl StartSpec {
    /// These hosts, in the way and the time that haul takes where its user says no more.
    pub fn new(hosts: Vec<HostSpec>) -> Self {
        Self {
            hosts,
            way: Way::default(),
            timeout: Duration::from_secs(30),
            ssh: SshOptions::default(),
            udp_port: None,
            state: None,
            transport: TransportConfig::default(),
            call_back: Vec::new(),
            dial_out: false,
            launcher: Launcher::default(),
        }
    }
}

impl Way {
    /// All of them, by the names that users write.
    const NAMES: [(&str, Self); 5] = [
        ("ssh-direct", Self::SshDirect),
        ("ssh", Self::Ssh),
        ("mpirun", Self::Mpirun),
        ("srun", Self::Srun),
        ("daemon", Self::Daemon),
    ];
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = Self::NAMES.iter().find(|(_, way)| way == self);
        f.write_str(named.map_or("", |(name, _)| name))
    }
}

/// What is no way to start a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write ssh-direct, ssh, mpirun, srun or daemon")]
pub struct WayError;

impl FromStr for Way {
    type Err = WayError;

    fn from_str(text: &str) -> Result<Self, WayError> {
        Self::NAMES.iter().find(|(name, _)| *name == text).map(|(_, way)| *way).ok_or(WayError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_have_names() {
        for (name, way) in Way::NAMES {
            assert_eq!((name.parse(), way.to_string()), (Ok(way), name.to_owned()));
        }
        assert_eq!("rsh".parse::<Way>(), Err(WayError));
    }
}
