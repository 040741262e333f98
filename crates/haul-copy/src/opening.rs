//! What the client of a copy says first.

use haul_files::WirePath;
use haul_units::PeerText;
use serde::{Deserialize, Serialize};

/// What the client says first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Opening {
    /// Version of the program, for the log.
    pub version: PeerText,
    /// What the server may send at most, in bits per second.
    #[serde(default)]
    pub limit_bps: Option<u64>,
    /// Whether the client wants to hear how the server sees the path.
    #[serde(default)]
    pub telemetry: bool,
    /// Whether it only asks how the server is: nothing is copied, and the answer is the line behind the reply.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub status: bool,
    /// The directory whose room it then asks about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_path: Option<WirePath>,
    /// Whether it only asks what interrupted copies have kept: nothing is copied, and the next line says in which directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kept: bool,
    /// Whether this connection carries no copy, but keeps the server for those whom the client names on it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps: bool,
    /// Whether this connection carries no copy, but errands: many requests for single names.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub errands: bool,
    /// Whether the client takes packed blocks, or sends them to a server that does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub packs: bool,
}

#[cfg(test)]
mod tests {
    use haul_peer::from_line;

    use super::*;

    #[test]
    fn greetings_of_other_versions_can_be_read() {
        let opening: Opening = from_line(&mut &b"{\"version\":\"9\",\"colour\":1}\n"[..]).expect("fields may be added");
        assert_eq!(opening, Opening { version: "9".into(), ..Opening::default() });
        assert!(from_line::<Opening>(&mut &b"GET / HTTP/1.1\n"[..]).is_err());
    }
}
