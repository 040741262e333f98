//! What a far side gets that has no haul of this version, and what may be in the way.

use std::fmt;

use haul_units::PeerText;

use crate::programs::Program;

/// What a far side gets that has no haul of this version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bootstrap {
    /// What is at hand, one for each kind of machine.
    pub programs: Vec<Program>,
    /// How long it stays.
    pub stay: Stay,
    /// Whether the haul that is there is left alone, whatever version it says it has.
    pub afresh: bool,
}

/// How long a program stays that was brought to a far side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stay {
    /// Until somebody removes it: the next command finds it there.
    Keep,
    /// It is gone from the far side's disk before it has done anything.
    Once,
}

/// haul, on its way to a far side that has none of this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending<'a> {
    /// The far side.
    pub host: &'a str,
    /// As `uname -m` says it there.
    pub machine: &'a str,
    /// The program's length.
    pub bytes: u64,
    /// How long it stays there.
    pub stay: Stay,
}

/// Why a program could not be brought to the far side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    /// Of which kind.
    pub kind: ObstacleKind,
    /// What the far side's programs said of it.
    pub detail: PeerText,
}

/// What is in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObstacleKind {
    /// No directory can be made for it.
    Directory,
    /// The directory that is there is another user's.
    Owner,
    /// It cannot be written: the disk is full.
    Room,
    /// What arrived is not what was sent.
    Hash,
    /// Nothing there can tell.
    NoHash,
    /// It may not be run there, or cannot.
    Run,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ObstacleKind::Directory => "there is no place for haul: its directory cannot be made",
            ObstacleKind::Owner => "there is no place for haul: its directory is another user's",
            ObstacleKind::Room => "haul could not be written there",
            ObstacleKind::Hash => "haul did not arrive as it was sent",
            ObstacleKind::NoHash => "nothing there can check what arrives: no sha256sum, shasum or openssl",
            ObstacleKind::Run => "haul was written there, and cannot be run",
        })?;
        if self.detail.as_str().is_empty() { Ok(()) } else { write!(f, ": {}", self.detail) }
    }
}

impl Bootstrap {
    /// The program for such a machine.
    pub(crate) fn program(&self, system: &str, machine: &str) -> Option<&Program> {
        self.programs.iter().find(|program| system == SYSTEM && program.machine == machine)
    }

    /// The kinds of machines that there is a program for, in words.
    pub fn machines(&self) -> String {
        let machines: Vec<_> = self.programs.iter().map(|program| format!("{SYSTEM} {}", program.machine)).collect();
        if machines.is_empty() { "none".to_owned() } else { machines.join(", ") }
    }
}

/// `uname -s` of the system that all programs are for.
pub const SYSTEM: &str = "Linux";
