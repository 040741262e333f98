//! The tools that are measured.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A program, or one way to use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// haul, memory to memory, in the mode that users get: fair.
    Haul,
    /// The same in its mode quickstart.
    HaulQuickstart,
    /// The same in its mode modest.
    HaulModest,
    /// The same in its mode aggressive.
    HaulAggressive,
    /// The kernel's TCP with CUBIC, by iperf3.
    Cubic,
    /// The kernel's TCP with BBR, by iperf3.
    Bbr,
    /// The kernel's TCP with Reno, by iperf3.
    Reno,
    /// UDT 4.
    Udt,
    /// SRT in its file mode.
    Srt,
    /// QUIC by quinn, with its CUBIC.
    QuicCubic,
    /// QUIC by quinn, with its BBR.
    QuicBbr,
    /// `haul cp` over ssh.
    HaulCp,
    /// `haul cp --mode quickstart` over ssh to a host to which it has copied before: the second run.
    HaulCpAgain,
    /// `haul cp` to a daemon that knows its key: no login, as GridFTP has none.
    HaulCpDaemon,
    /// `haul cp --transport tcp`: as where a firewall drops UDP.
    HaulCpTcp,
    /// `haul cp --transport ssh`: as where a firewall lets nothing but ssh pass.
    HaulCpSsh,
    /// scp.
    Scp,
    /// mscp: SFTP over several connections of ssh, which is what is used today where a firewall drops UDP.
    Mscp,
    /// rsync over ssh.
    Rsync,
    /// tar, piped through ssh into tar.
    Tar,
    /// sftp, with more requests under way than it has by itself.
    Sftp,
    /// GridFTP with parallel streams of CUBIC, in clear text and without login.
    Gridftp,
    /// GridFTP with parallel streams of BBR, in clear text and without login.
    GridftpBbr,
}

/// What a tool moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Bytes, from memory to memory.
    Memory,
    /// Files, from RAM disk to RAM disk.
    Files,
}

/// How each is called on the command line, and what a person reads.
const NAMES: &[(Tool, &str, &str)] = &[
    (Tool::Haul, "haul", "haul"),
    (Tool::HaulQuickstart, "haul-quickstart", "haul, quickstart"),
    (Tool::HaulModest, "haul-modest", "haul, modest"),
    (Tool::HaulAggressive, "haul-aggressive", "haul, aggressive"),
    (Tool::Cubic, "cubic", "TCP CUBIC"),
    (Tool::Bbr, "bbr", "TCP BBR"),
    (Tool::Reno, "reno", "TCP Reno"),
    (Tool::Udt, "udt", "UDT 4"),
    (Tool::Srt, "srt", "SRT, file mode"),
    (Tool::QuicCubic, "quic-cubic", "QUIC (quinn), CUBIC"),
    (Tool::QuicBbr, "quic-bbr", "QUIC (quinn), BBR"),
    (Tool::HaulCp, "haul-cp", "haul cp"),
    (Tool::HaulCpAgain, "haul-cp-again", "haul cp, quickstart, again"),
    (Tool::HaulCpDaemon, "haul-cp-daemon", "haul cp, daemon"),
    (Tool::HaulCpTcp, "haul-cp-tcp", "haul cp over TCP"),
    (Tool::HaulCpSsh, "haul-cp-ssh", "haul cp through ssh"),
    (Tool::Scp, "scp", "scp"),
    (Tool::Mscp, "mscp", "mscp, 8 connections"),
    (Tool::Rsync, "rsync", "rsync over ssh"),
    (Tool::Tar, "tar", "tar over ssh"),
    (Tool::Sftp, "sftp", "sftp"),
    (Tool::Gridftp, "gridftp", "GridFTP, CUBIC streams"),
    (Tool::GridftpBbr, "gridftp-bbr", "GridFTP, BBR streams"),
];

impl Tool {
    /// Every tool, haul first.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|&(tool, ..)| tool)
    }

    /// Every tool of a kind, haul first.
    pub fn of(kind: Kind) -> impl Iterator<Item = Self> {
        Self::all().filter(move |tool| tool.kind() == kind)
    }

    /// Those of a kind that take part where nobody says who: of haul, the mode that users get.
    pub fn usual(kind: Kind) -> impl Iterator<Item = Self> {
        let special = |tool: &Self| {
            matches!(
                tool,
                Self::HaulQuickstart
                    | Self::HaulModest
                    | Self::HaulAggressive
                    | Self::HaulCpAgain
                    | Self::HaulCpDaemon
                    | Self::HaulCpTcp
                    | Self::HaulCpSsh
                    | Self::Mscp
            )
        };
        Self::of(kind).filter(move |tool| !special(tool))
    }

    /// What it moves.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Haul
            | Self::HaulQuickstart
            | Self::HaulModest
            | Self::HaulAggressive
            | Self::Cubic
            | Self::Bbr
            | Self::Reno
            | Self::Udt
            | Self::Srt
            | Self::QuicCubic
            | Self::QuicBbr => Kind::Memory,
            Self::HaulCp
            | Self::HaulCpAgain
            | Self::HaulCpDaemon
            | Self::HaulCpTcp
            | Self::HaulCpSsh
            | Self::Scp
            | Self::Mscp
            | Self::Rsync
            | Self::Tar
            | Self::Sftp
            | Self::Gridftp
            | Self::GridftpBbr => Kind::Files,
        }
    }

    /// Whether it is haul, beside which the others are measured.
    pub const fn is_haul(self) -> bool {
        matches!(
            self,
            Self::Haul
                | Self::HaulQuickstart
                | Self::HaulModest
                | Self::HaulAggressive
                | Self::HaulCp
                | Self::HaulCpAgain
                | Self::HaulCpDaemon
                | Self::HaulCpTcp
                | Self::HaulCpSsh
        )
    }

    /// As on the command line and in files: `quic-bbr`.
    pub fn name(self) -> &'static str {
        self.names().0
    }

    /// As in tables and charts: `QUIC (quinn), BBR`.
    pub fn title(self) -> &'static str {
        self.names().1
    }

    fn names(self) -> (&'static str, &'static str) {
        NAMES.iter().find(|(tool, ..)| *tool == self).map_or(("", ""), |&(_, name, title)| (name, title))
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no tool has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no tool `{name}`: there are {known}")]
pub struct ParseToolError {
    name: String,
    known: String,
}

impl FromStr for Tool {
    type Err = ParseToolError;

    fn from_str(name: &str) -> Result<Self, ParseToolError> {
        let known = || NAMES.iter().map(|&(_, name, _)| name).collect::<Vec<_>>().join(", ");
        let found = NAMES.iter().find(|(_, known, _)| *known == name).map(|&(tool, ..)| tool);
        found.ok_or_else(|| ParseToolError { name: name.to_owned(), known: known() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_name_that_is_understood_and_stored() {
        for tool in Tool::all() {
            assert_eq!(tool.name().parse(), Ok(tool));
            assert_eq!(serde_json::to_string(&tool).ok(), Some(format!("\"{tool}\"")));
            assert!(!tool.title().is_empty());
        }
        assert_eq!(Tool::of(Kind::Memory).count() + Tool::of(Kind::Files).count(), NAMES.len());
        let error = "ftp".parse::<Tool>().map_err(|error| error.to_string());
        assert!(error.is_err_and(|error| error.contains("`ftp`") && error.contains("rsync")));
    }
}
