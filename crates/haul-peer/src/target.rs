//! Where a connection goes: a host, by address or by name, and a port.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use haul_units::is_unprintable;
use thiserror::Error;

/// Longest name, in bytes: what fits the length field of SOCKS5 and of the stream's header.
pub const MAX_NAME: usize = 255;

/// Why a text is no target.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TargetError {
    /// Something else than a host.
    #[error("`{0}` is no host: write a name or an address, an IPv6 address in brackets")]
    NoHost(String),
    /// Something else than a port that can be connected to.
    #[error("`{0}` is no port: a port is a number from 1 to 65535")]
    NoPort(String),
    /// More or less than a host and a port.
    #[error("write HOST:PORT, for instance localhost:80 or [2001:db8::1]:80")]
    NotHostAndPort,
    /// An IPv6 address without its end.
    #[error("`{0}`: a bracket is not closed")]
    OpenBracket(String),
    /// Something that belongs to no part.
    #[error("`{0}`: a colon must follow the bracket")]
    NoColon(String),
    /// No hosts and their ports.
    #[error("`{0}`: write HOST:PORT, ADDRESS/BITS:PORT or *:PORT, for instance 10.0.0.0/8:443")]
    NoRule(String),
}

/// A TCP port of a host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target {
    /// The host.
    pub host: TargetHost,
    /// The port.
    pub port: u16,
}

/// A host.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TargetHost {
    /// By address; never an IPv4 address in IPv6's clothes.
    Address(IpAddr),
    /// By name, resolved where the connection is made; in lower case.
    Name(String),
}

impl Target {
    /// The host of this text and a port.
    pub fn new(host: &str, port: u16) -> Result<Self, TargetError> {
        Ok(Self { host: host.parse()?, port })
    }

    /// This address and port.
    pub fn at(address: IpAddr, port: u16) -> Self {
        Self { host: TargetHost::Address(address.to_canonical()), port }
    }
}

impl FromStr for TargetHost {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            return Ok(Self::Address(address.to_canonical()));
        }
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') || !c.is_ascii() && !is_unprintable(c);
        if text.is_empty() || text.len() > MAX_NAME || text.starts_with('-') || !text.chars().all(plain) {
            return Err(TargetError::NoHost(text.to_owned()));
        }
        Ok(Self::Name(text.to_ascii_lowercase()))
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        match &*fields(text)? {
            [host, port] => Self::new(host, parse_port(port)?),
            _ => Err(TargetError::NotHostAndPort),
        }
    }
}

impl fmt::Display for TargetHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
            Self::Address(address) => address.fmt(f),
            Self::Name(name) => f.write_str(name),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The parts between colons; brackets hold an IPv6 address together, and go.
pub fn fields(text: &str) -> Result<Vec<&str>, TargetError> {
    let mut fields = Vec::new();
    let mut rest = text;
    loop {
        let (field, after) = match rest.strip_prefix('[') {
            Some(inside) => inside.split_once(']').ok_or_else(|| TargetError::OpenBracket(text.to_owned()))?,
            None => rest.split_at(rest.find(':').unwrap_or(rest.len())),
        };
        fields.push(field);
        match after.strip_prefix(':') {
            Some(next) => rest = next,
            None if after.is_empty() => return Ok(fields),
            None => return Err(TargetError::NoColon(text.to_owned())),
        }
    }
}

/// A port to connect to.
pub fn parse_port(text: &str) -> Result<u16, TargetError> {
    let port = text.parse().ok().filter(|&port: &u16| port > 0);
    port.ok_or_else(|| TargetError::NoPort(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_and_a_port() {
        for (text, shown) in [
            ("localhost:80", "localhost:80"),
            ("DB.Local:5432", "db.local:5432"),
            ("10.0.0.1:22", "10.0.0.1:22"),
            ("[2001:db8::1]:443", "[2001:db8::1]:443"),
            ("[::ffff:10.0.0.1]:443", "10.0.0.1:443"),
        ] {
            assert_eq!(text.parse::<Target>().map(|target| target.to_string()), Ok(shown.to_owned()));
        }
        for text in
            ["", "host", ":80", "host:", "host:0", "host:70000", "a:b:1", "::1:80", "[::1]80", "[::1:80", "-x:80", "a b:80"]
        {
            assert!(text.parse::<Target>().is_err(), "{text}");
        }
    }
}
