//! What is handed to ssh.

use std::ffi::OsString;
use std::path::PathBuf;

use super::Family;
use crate::bootstrap::Bootstrap;
use crate::carriage::Carriage;
use crate::operand::DaemonHost;

/// How ssh is to be called; the default is as a user calls it who gives no options.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SshOptions {
    /// The program; `ssh` where none is named.
    pub program: Option<OsString>,
    /// Configuration file (`-F`).
    pub config: Option<PathBuf>,
    /// Port of the ssh server (`-p`); one in the host's address wins.
    pub port: Option<u16>,
    /// Files with private keys to log in with (`-i`).
    pub identity: Vec<PathBuf>,
    /// The host to log in by way of (`-J`).
    pub jump: Option<OsString>,
    /// Options in the form of ssh_config(5) (`-o`).
    pub option: Vec<OsString>,
    /// Which addresses may be used, by ssh and over UDP.
    pub family: Family,
    /// haul's path on the far side, where its PATH does not have it.
    pub remote_haul: Option<OsString>,
    /// What a far side gets that has no haul of this version; nothing, unless it is said.
    pub bootstrap: Option<Bootstrap>,
    /// ssh is to print errors only (`-q`).
    pub quiet: bool,
    /// ssh is to say more (`-v`).
    pub verbose: bool,
    /// What is to carry the connection once it has logged in, or that with a daemon.
    pub carriage: Carriage,
    /// A daemon by which the two sides meet where UDP reaches neither from outside; none, unless it is said.
    pub relay: Option<DaemonHost>,
}
