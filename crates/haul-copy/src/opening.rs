//! What the client says first: what its connection is for.
//!
//! One thing, which is a type here; on the line each has a field of its own, as older programs know them.

use haul_files::WirePath;
use haul_units::PeerText;
use serde::{Deserialize, Serialize};

/// What the client says first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Line", into = "Line")]
pub struct Opening {
    /// Version of the program, for the log.
    pub version: PeerText,
    /// What the server may send at most, in bits per second.
    pub limit_bps: Option<u64>,
    /// What the connection is for.
    pub purpose: Purpose,
}

/// What a connection is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purpose {
    /// A copy.
    Copy {
        /// Whether the client wants to hear how the server sees the path.
        telemetry: bool,
        /// Whether it takes packed blocks, or sends them to a server that does.
        packs: bool,
    },
    /// The question how the server is, and how much room there is in a directory. Nothing is copied: the answer is the line behind the reply.
    Status(Option<WirePath>),
    /// The question what interrupted copies have kept. Nothing is copied: the next line says in which directory.
    Kept,
    /// To keep the server for those whom the client names on it.
    Keep,
    /// Errands: many requests for single names.
    Errands,
}

impl Opening {
    /// That of this program.
    pub fn new(purpose: Purpose) -> Self {
        Self { version: env!("CARGO_PKG_VERSION").into(), limit_bps: None, purpose }
    }
}

impl Default for Purpose {
    /// A copy, and nothing besides.
    fn default() -> Self {
        Self::Copy { telemetry: false, packs: false }
    }
}

/// An opening as it is said.
#[derive(Default, Serialize, Deserialize)]
struct Line {
    version: PeerText,
    #[serde(default)]
    limit_bps: Option<u64>,
    #[serde(default)]
    telemetry: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    status: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status_path: Option<WirePath>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    kept: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    keeps: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    errands: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    packs: bool,
}

impl From<Line> for Opening {
    /// Who says several things means the first of them.
    fn from(line: Line) -> Self {
        let purpose = match line {
            Line { status: true, status_path, .. } => Purpose::Status(status_path),
            Line { kept: true, .. } => Purpose::Kept,
            Line { keeps: true, .. } => Purpose::Keep,
            Line { errands: true, .. } => Purpose::Errands,
            Line { telemetry, packs, .. } => Purpose::Copy { telemetry, packs },
        };
        Self { version: line.version, limit_bps: line.limit_bps, purpose }
    }
}

impl From<Opening> for Line {
    fn from(Opening { version, limit_bps, purpose }: Opening) -> Self {
        let line = Self { version, limit_bps, ..Self::default() };
        match purpose {
            Purpose::Copy { telemetry, packs } => Self { telemetry, packs, ..line },
            Purpose::Status(status_path) => Self { status: true, status_path, ..line },
            Purpose::Kept => Self { kept: true, ..line },
            Purpose::Keep => Self { keeps: true, ..line },
            Purpose::Errands => Self { errands: true, ..line },
        }
    }
}

#[cfg(test)]
mod tests {
    use haul_peer::{from_line, to_line};

    use super::*;

    #[test]
    fn greetings_of_other_versions_can_be_read() {
        let opening: Opening = from_line(&mut &b"{\"version\":\"9\",\"colour\":1}\n"[..]).expect("fields may be added");
        assert_eq!(opening, Opening { version: "9".into(), ..Opening::default() });
        assert!(from_line::<Opening>(&mut &b"GET / HTTP/1.1\n"[..]).is_err());
    }

    #[test]
    fn each_purpose_has_the_field_that_older_programs_know() {
        let said = |purpose, expected: &str| {
            let opening = Opening { version: "9".into(), limit_bps: None, purpose };
            let line = to_line(&opening);
            assert_eq!(String::from_utf8_lossy(&line), format!("{{\"version\":\"9\",\"limit_bps\":null,{expected}}}\n"));
            assert_eq!(from_line::<Opening>(&mut &line[..]).expect("an opening"), opening);
        };
        said(Purpose::Copy { telemetry: true, packs: false }, "\"telemetry\":true");
        said(Purpose::Copy { telemetry: false, packs: true }, "\"telemetry\":false,\"packs\":true");
        said(Purpose::Status(None), "\"telemetry\":false,\"status\":true");
        said(Purpose::Kept, "\"telemetry\":false,\"kept\":true");
        said(Purpose::Keep, "\"telemetry\":false,\"keeps\":true");
        said(Purpose::Errands, "\"telemetry\":false,\"errands\":true");
        let status: Opening =
            from_line(&mut &b"{\"version\":\"9\",\"telemetry\":true,\"kept\":true,\"status\":true}\n"[..]).expect("an opening");
        assert_eq!(status.purpose, Purpose::Status(None));
    }
}
