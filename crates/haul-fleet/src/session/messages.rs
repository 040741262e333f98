//! What is said between a fleet that is kept and the programs that use it: a line of JSON each, over a Unix socket or within one process.
//!
//! ```text
//!   program -> keeper   {"v":1,"version":"..","ask":{"terms":{"revive":true}}}       who is there?
//!   keeper -> program   {"terms":{..}}                                               members, their keys and addresses
//!   program -> keeper   {"v":1,"version":"..","ask":{"invite":{"key":..,"port":..}}} let me come
//!   keeper -> program   {"invited":[..]}                                             members that will not have it
//! ```
//!
//! Nothing of a job passes here: the program that asked connects to the members by itself, and reads, writes and shows everything with its own rights, mask, directory and terminal. What it says is a fingerprint; its
//! key never leaves it.

use std::io::{self, BufRead, Read as _};
use std::net::SocketAddr;
use std::path::PathBuf;

use haul_files::WirePath;
use haul_peer::{Family, MAX_LINE};
use serde::{Deserialize, Serialize};

/// Version of this exchange.
pub const VERSION: u32 = 1;
/// Bytes of a reply: as many members as a fleet may have, with a long path each.
pub const MAX_REPLY: u64 = 4 << 20;

/// What a program says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    /// Version of this exchange.
    pub v: u32,
    /// Version of the program, for messages.
    pub version: String,
    /// What it wants.
    pub ask: Ask,
}

/// What a program wants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Ask {
    /// To know who is there.
    Terms {
        /// Whether members that are gone are to be started again first.
        revive: bool,
    },
    /// To be let in for one job.
    Invite {
        /// Fingerprint of its key.
        key: String,
        /// The UDP port at which it waits for members that call.
        #[serde(default)]
        port: Option<u16>,
    },
    /// That the fleet ends.
    Down,
}

/// What the keeper says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    /// Who is there.
    Terms(Box<Terms>),
    /// The program is expected, but not by these.
    Invited(Vec<Gone>),
    /// The fleet ends.
    Down,
    /// It cannot be done.
    Error {
        /// Why.
        error: String,
    },
}

/// A fleet, as a program needs to know it to use it once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Terms {
    /// Version of the program that keeps it.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// For how long it has been up, in seconds.
    pub up_s: u64,
    /// Kinds of addresses that may be used.
    pub family: Family,
    /// First and last UDP port that may be listened on, if they were named.
    pub udp_ports: Option<(u16, u16)>,
    /// The congestion controller, by its name.
    pub controller: String,
    /// Silence after which a connection is over, in seconds.
    pub dead_after_s: u64,
    /// The largest packet, and the memory of a connection; none from a program that does not say.
    #[serde(default)]
    pub max_packet: Option<u16>,
    /// In bytes.
    #[serde(default)]
    pub memory: Option<u64>,
    /// Directory of keys for daemons, where it is not the usual one.
    pub state: Option<WirePath>,
    /// Members that are there.
    pub members: Vec<Ticket>,
    /// Members that are not.
    pub gone: Vec<Gone>,
}

/// A member that is there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ticket {
    /// What its user calls it.
    pub name: String,
    /// Where relative paths start there.
    pub path: Option<WirePath>,
    /// No more than this is asked of it, in bits per second.
    pub limit_bps: Option<u64>,
    /// How it is reached.
    pub way: TicketWay,
}

/// How a member is reached for one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TicketWay {
    /// It listens there, and has this key.
    Dial {
        /// Where.
        at: SocketAddr,
        /// Fingerprint.
        key: String,
    },
    /// It calls, and has this key.
    Call {
        /// Fingerprint.
        key: String,
    },
    /// It is a daemon, which is reached as always.
    Daemon {
        /// Its host.
        host: String,
        /// Its port.
        port: u16,
        /// The name or address to be used for data, if it is another one.
        data: Option<String>,
    },
}

/// A member that is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gone {
    /// Which.
    pub name: String,
    /// Why.
    pub why: String,
}

impl Terms {
    /// Whether some members call.
    pub fn anybody_calls(&self) -> bool {
        self.members.iter().any(|member| matches!(member.way, TicketWay::Call { .. }))
    }

    /// The directory of keys.
    pub fn state(&self) -> Option<PathBuf> {
        self.state.as_ref().map(WirePath::to_path)
    }
}

impl Request {
    /// This version's.
    pub fn new(ask: Ask) -> Self {
        Self { v: VERSION, version: env!("CARGO_PKG_VERSION").to_owned(), ask }
    }

    /// From a line of at most [`MAX_LINE`] bytes; nothing at the end.
    pub fn read(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        read(reader, MAX_LINE)
    }
}

/// A line of at most so many bytes as a value; nothing at the end.
pub fn read<T: for<'a> Deserialize<'a>>(reader: &mut impl BufRead, most: u64) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    reader.take(most).read_until(b'\n', &mut line)?;
    match line.last() {
        None => Ok(None),
        Some(b'\n') => serde_json::from_slice(&line).map(Some).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error)),
        Some(_) => Err(io::Error::new(io::ErrorKind::InvalidData, "a line that is too long, or has no end")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_said_is_heard() {
        for ask in [Ask::Terms { revive: true }, Ask::Invite { key: "k".into(), port: Some(7) }, Ask::Down] {
            let line = haul_peer::to_line(&Request::new(ask.clone()));
            assert_eq!(Request::read(&mut &line[..]).expect("a line").map(|request| request.ask), Some(ask));
        }
        assert!(Request::read(&mut &b""[..]).expect("the end").is_none());
        assert!(Request::read(&mut &b"{\"v\":1"[..]).is_err());
    }

    #[test]
    fn a_line_without_end_is_not_read_for_ever() {
        let mut endless = io::BufReader::new(io::repeat(b' '));
        assert_eq!(Request::read(&mut endless).expect_err("too long").kind(), io::ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..300), text in ".{0,200}") {
            let _ = Request::read(&mut &bytes[..]);
            let _ = Request::read(&mut format!("{{\"v\":1,\"version\":\"{text}\",\"ask\":{text}}}\n").as_bytes());
            let _ = read::<Reply>(&mut &bytes[..], MAX_REPLY);
        }
    }
}
