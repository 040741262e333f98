//! Who fetches the files, and by which commands.

use std::fmt::Write as _;
use std::process::Command;

use haul_lab::Side;

use super::places::{ARRIVED, DISK, FTP_PORT, HERE, address};
use crate::bench::{Programs, Site};

/// Who fetches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetcher {
    /// `haul fleet get`, dynamic.
    Fleet,
    /// The same by the paper's policy.
    RoundRobin,
    /// `globus-url-copy` from a list of files, one connection for each server.
    Gridftp,
    /// An rsync for each server.
    Rsyncs,
    /// A `haul cp` for each server.
    Copies,
}

impl Fetcher {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fleet => "haul fleet get",
            Self::RoundRobin => "haul fleet get --policy round-robin",
            Self::Gridftp => "globus-url-copy -cc",
            Self::Rsyncs => "one rsync for each server",
            Self::Copies => "one haul cp for each server",
        }
    }

    /// A program that must be there, and how it is installed.
    pub const fn needs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Fleet | Self::RoundRobin | Self::Copies => &[("sshd", "apt-get install openssh-server")],
            Self::Rsyncs => &[("rsync", "apt-get install rsync"), ("sshd", "apt-get install openssh-server")],
            Self::Gridftp => &[
                ("globus-url-copy", "apt-get install globus-gass-copy-progs"),
                ("globus-gridftp-server", "apt-get install globus-gridftp-server-progs"),
            ],
        }
    }

    /// What is to be run at once on the client, for these servers; files of `server` are named by `files`.
    pub fn commands(
        self,
        site: &dyn Site,
        programs: &Programs,
        servers: usize,
        set: &str,
        files: &dyn Fn(usize) -> Vec<String>,
    ) -> Vec<Command> {
        let haul = programs.haul();
        let homes = ["CONFIG", "STATE"].map(|what| format!("XDG_{what}_HOME={DISK}/near"));
        let near = || {
            let mut command = site.command(Side::B, "env".as_ref());
            command.args(&homes);
            command
        };
        let config = format!("{DISK}/ssh_config");
        match self {
            Self::Fleet | Self::RoundRobin => {
                let hosts: Vec<String> = (0..servers).map(|server| format!("s{}", server + 1)).collect();
                let mut command = near();
                command.arg(haul).args(["fleet", "get", "--json", "-F", &config, "-H", &hosts.join(",")]);
                command.arg("--remote-haul").arg(haul);
                if self == Self::RoundRobin {
                    command.args(["--policy", "round-robin"]);
                }
                command.args(["-r", &format!("{HERE}/{set}"), ARRIVED]);
                vec![command]
            }
            Self::Copies => {
                let one = |server: usize| {
                    let mut command = near();
                    command.arg(haul).args(["cp", "-q", "-F", &config]).arg("--remote-haul").arg(haul);
                    command.args(["-r", &format!("s{}:{HERE}/{set}/.", server + 1), &arrived(server)]);
                    command
                };
                (0..servers).map(one).collect()
            }
            Self::Rsyncs => {
                let one = |server: usize| {
                    let mut command = site.command(Side::B, "rsync".as_ref());
                    command.args(["-r", "--whole-file", "--inplace", "-e", &format!("ssh -F {config}")]);
                    command.args([&format!("s{}:{HERE}/{set}/", server + 1), &arrived(server)]);
                    command
                };
                (0..servers).map(one).collect()
            }
            Self::Gridftp => {
                let mut list = String::new();
                // File by file from server to server: each of the connections then meets another one first.
                let all: Vec<Vec<String>> = (0..servers).map(files).collect();
                for at in 0..all.iter().map(Vec::len).max().unwrap_or(0) {
                    for (server, names) in all.iter().enumerate() {
                        let Some(name) = names.get(at) else { continue };
                        let address = address(server);
                        let _ = writeln!(list, "ftp://{address}:{FTP_PORT}{HERE}/{set}/{name} file://{ARRIVED}/{name}");
                    }
                }
                let script = format!(
                    "mount --bind {DISK}/hosts /etc/hosts\ncat >{DISK}/list <<LIST\n{list}LIST\nexec globus-url-copy -fast -p 4 -cc {servers} -cd -f {DISK}/list"
                );
                let mut command = site.command(Side::B, "env".as_ref());
                command.arg(format!("GLOBUS_HOSTNAME={}", site.address(Side::B))).args(["unshare", "-m", "sh", "-c", &script]);
                vec![command]
            }
        }
    }
}

/// Where the files of one server go that are fetched for themselves.
fn arrived(server: usize) -> String {
    format!("{ARRIVED}/s{}/", server + 1)
}
