//! What the two sides say to each other.
//!
//! ```text
//!   first stream   --- opening, a line of JSON ------->     (what the client wants listened on, and what it confines itself to)
//!                  <-- answer, a line of JSON ---------     (served, or refused and why); both ends stay open as long as the connection
//!   other streams  --- header | bytes of the TCP connection ... ->      (opened by either side, one a TCP connection)
//!                  <-- answer | bytes of the TCP connection ... --
//!
//!   header   0 | number of one of the other side's own targets (2 bytes)
//!            1 | IPv4 address (4 bytes)      | port (2 bytes)
//!            3 | length (1 byte) | name      | port
//!            4 | IPv6 address (16 bytes)     | port
//!   answer   0                               connected
//!            code (1 byte) | why, as text    not connected; the stream ends
//! ```
//! Integers are big endian. Addresses and codes are those of SOCKS5 (RFC 1928 5 and 6). Whoever opens a stream waits for nothing: the header and the first bytes travel together.

use std::fmt;
use std::io;
use std::net::IpAddr;

use haul::{RecvStream, SendStream};
use haul_peer::{MAX_NAME, Refusal, Target, TargetError, TargetHost};
use haul_units::PeerText;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::forward::Listen;

/// Application protocol name, agreed in the handshake.
pub const PROTOCOL: &[u8] = b"haul-proxy/1";
/// Code of streams and connections that end in the middle.
pub const CODE_RESET: u64 = 1;
/// Longest line on the first stream.
const MAX_LINE: usize = 256 << 10;
/// Longest reason that is read.
const MAX_REASON: usize = 1024;

/// What the client says first.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Opening {
    /// Version of the program, for the log.
    pub version: PeerText,
    /// Ports to listen on over there; what comes there is for the client's target of the same number.
    #[serde(default)]
    pub listen: Vec<RemoteListen>,
    /// The only targets that the client will name, if it knows them; the far side then allows no others.
    #[serde(default)]
    pub only: Option<Vec<PeerText>>,
}

/// A port to listen on for the client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteListen {
    /// The port.
    pub listen: Listen,
    /// Whoever connects there names a target by SOCKS5.
    pub socks: bool,
}

/// What the server answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Streams may follow.
    Served {
        /// Version of the program, for the log.
        version: PeerText,
        /// The ports listened on, in the order that they were asked for.
        #[serde(default)]
        listening: Vec<u16>,
    },
    /// Nothing follows.
    Refused(Refusal),
}

/// Where the other side is to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Aim {
    /// One of its own targets.
    Numbered(u16),
    /// The one that is named.
    Named(Target),
}

/// Why a target was not connected to: a reply code of SOCKS5, and words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// RFC 1928 6.
    pub code: u8,
    /// For the log.
    pub why: PeerText,
}

/// Some server failure.
pub const FAILED: u8 = 1;
/// Not allowed by the rules.
pub const NOT_ALLOWED: u8 = 2;
/// The network is unreachable.
pub const NETWORK_UNREACHABLE: u8 = 3;
/// The host is unreachable, or has no such name.
pub const HOST_UNREACHABLE: u8 = 4;
/// The host refuses.
pub const CONNECTION_REFUSED: u8 = 5;
/// The host does not answer.
pub const TIMED_OUT: u8 = 6;

impl Aim {
    /// The header of a stream.
    pub fn to_header(&self) -> Vec<u8> {
        match self {
            Self::Numbered(number) => [&[0], &number.to_be_bytes()[..]].concat(),
            Self::Named(target) => encode(target),
        }
    }

    /// Reads a header.
    pub async fn read(stream: &mut RecvStream) -> io::Result<Self> {
        let [kind] = read_array(stream).await?;
        if kind == 0 {
            return Ok(Self::Numbered(u16::from_be_bytes(read_array(stream).await?)));
        }
        let host = match kind {
            1 => TargetHost::Address(read_array::<4>(stream).await?.into()),
            4 => TargetHost::Address(IpAddr::from(read_array::<16>(stream).await?).to_canonical()),
            3 => {
                let [length] = read_array(stream).await?;
                let mut name = vec![0; usize::from(length)];
                read_exact(stream, &mut name).await?;
                parse_name(name)?
            }
            _ => return Err(invalid("a header of an unknown kind")),
        };
        Ok(Self::Named(Target { host, port: u16::from_be_bytes(read_array(stream).await?) }))
    }
}

/// A host that was named in bytes; a name that is an address is one.
pub fn parse_name(name: Vec<u8>) -> io::Result<TargetHost> {
    let name = String::from_utf8(name).map_err(|_| invalid("a host name that is not text"))?;
    name.parse().map_err(|error: TargetError| invalid(&error.to_string()))
}

fn encode(target: &Target) -> Vec<u8> {
    let mut header = match &target.host {
        TargetHost::Address(IpAddr::V4(address)) => [&[1], &address.octets()[..]].concat(),
        TargetHost::Address(IpAddr::V6(address)) => [&[4], &address.octets()[..]].concat(),
        TargetHost::Name(name) => {
            let name = name.as_bytes().get(..MAX_NAME).unwrap_or(name.as_bytes());
            [&[3, name.len() as u8], name].concat()
        }
    };
    header.extend(target.port.to_be_bytes());
    header
}

impl Refused {
    /// For this reason.
    pub fn new(code: u8, why: impl Into<PeerText>) -> Self {
        Self { code, why: why.into() }
    }

    /// As the whole answer.
    pub fn to_answer(&self) -> Vec<u8> {
        let why = self.why.as_str().as_bytes();
        [&[self.code.max(1)], why.get(..MAX_REASON).unwrap_or(why)].concat()
    }

    /// The longest answer.
    pub const LONGEST: usize = 1 + MAX_REASON;

    /// From the whole answer.
    pub fn parse(answer: &[u8]) -> Self {
        let (code, why) = answer.split_first().unwrap_or((&FAILED, &[]));
        Self { code: *code, why: PeerText::from_bytes(why) }
    }

    /// Reads an answer; none is a success.
    pub async fn read(stream: &mut RecvStream) -> io::Result<Option<Self>> {
        let [code] = read_array(stream).await?;
        if code == 0 {
            return Ok(None);
        }
        let mut answer = vec![code];
        let mut part = [0; 256];
        while answer.len() < Self::LONGEST
            && let Ok(read @ 1..) = stream.read_async(&mut part).await
        {
            answer.extend_from_slice(part.get(..read).unwrap_or_default());
        }
        Ok(Some(Self::parse(&answer)))
    }
}

impl fmt::Display for Aim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numbered(0) => f.write_str("the other side's target"),
            Self::Numbered(number) => write!(f, "the other side's target {number}"),
            Self::Named(target) => target.fmt(f),
        }
    }
}

/// Writes a line of JSON.
pub async fn write_line(stream: &mut SendStream, what: &impl Serialize) -> io::Result<()> {
    Ok(stream.write_all_async(&haul_peer::to_line(what)).await?)
}

/// Reads a line of JSON.
pub async fn read_line<T: DeserializeOwned>(stream: &mut RecvStream) -> io::Result<T> {
    let mut line = Vec::new();
    let mut part = [0; 4096];
    while line.last() != Some(&b'\n') {
        let read = stream.read_async(&mut part).await?;
        line.extend_from_slice(part.get(..read).unwrap_or_default());
        if read == 0 || line.len() > MAX_LINE {
            return Err(invalid("no line where one was expected"));
        }
    }
    serde_json::from_slice(&line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

async fn read_array<const N: usize>(stream: &mut RecvStream) -> io::Result<[u8; N]> {
    let mut array = [0; N];
    read_exact(stream, &mut array).await?;
    Ok(array)
}

async fn read_exact(stream: &mut RecvStream, mut buffer: &mut [u8]) -> io::Result<()> {
    while !buffer.is_empty() {
        match stream.read_async(buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => buffer = buffer.split_at_mut(read).1,
        }
    }
    Ok(())
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_those_of_socks() {
        for (target, header) in [
            ("1.2.3.4:80", &[1, 1, 2, 3, 4, 0, 80][..]),
            ("[::1]:258", &[4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2]),
            ("db:5432", &[3, 2, b'd', b'b', 0x15, 0x38]),
        ] {
            assert_eq!(Aim::Named(target.parse().unwrap()).to_header(), header);
        }
        assert_eq!(Aim::Numbered(258).to_header(), [0, 1, 2]);
    }

    #[test]
    fn a_refusal_is_never_taken_for_a_success() {
        assert_eq!(Refused::new(0, "no").to_answer(), b"\x01no");
        assert_eq!(Refused::new(5, "x".repeat(5000)).to_answer().len(), Refused::LONGEST);
        assert_eq!(Refused::parse(b"\x05no\x1b[m"), Refused::new(5, "no\\u{1b}[m"));
    }

    #[test]
    fn names_in_bytes_are_checked() {
        assert_eq!(parse_name(b"10.0.0.1".to_vec()).unwrap(), TargetHost::Address([10, 0, 0, 1].into()));
        assert!(parse_name(b"a b".to_vec()).is_err() && parse_name(vec![0xff]).is_err() && parse_name(Vec::new()).is_err());
    }

    #[test]
    fn a_later_version_may_say_more() {
        let opening: Opening = serde_json::from_str(r#"{"version":"9","colour":"blue"}"#).unwrap();
        assert_eq!((opening.listen.len(), opening.only), (0, None));
    }
}
