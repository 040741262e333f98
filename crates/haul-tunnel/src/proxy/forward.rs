//! What is listened on, and where what comes there goes: the formats of ssh's `-L`, `-R` and `-D`.

use std::fmt;
use std::str::FromStr;

use haul_peer::{Target, TargetError, fields, parse_port};
use haul_units::PeerText;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Why a text names no port to listen on, or not where what comes there goes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ForwardError {
    /// The port to listen on is not right.
    #[error("`{0}`: write [ADDRESS:]PORT, for instance 8080 or 0.0.0.0:8080")]
    NoListen(String),
    /// Nothing follows the port.
    #[error("`{0}`: write [BIND:]PORT:HOST:HOSTPORT, for instance 8080:localhost:80")]
    NoTarget(String),
    /// One of its parts is not right.
    #[error(transparent)]
    Part(#[from] TargetError),
}

/// The address to listen on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Bind {
    /// None was named: this host alone, unless all are to be let in.
    Unsaid,
    /// This host alone, by IPv4 and IPv6.
    Loopback,
    /// Everybody.
    All,
    /// An address, or the name of one.
    On(PeerText),
}

/// A TCP port to listen on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Listen {
    /// Where.
    pub bind: Bind,
    /// The port; 0 is any free one.
    pub port: u16,
}

/// A port here and a target over there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forward {
    /// The port.
    pub listen: Listen,
    /// The target.
    pub target: Target,
}

/// A port over there, and a target here or whatever its SOCKS clients name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteForward {
    /// The port.
    pub listen: Listen,
    /// The target.
    pub target: Option<Target>,
}

impl Listen {
    fn from_fields(fields: &[&str], text: &str) -> Result<Self, ForwardError> {
        let (bind, port) = match fields {
            [port] => (Bind::Unsaid, port),
            [bind, port] => (Bind::parse(bind), port),
            _ => return Err(ForwardError::NoListen(text.to_owned())),
        };
        // Any free port, as with ssh.
        let port = if *port == "0" { 0 } else { parse_port(port)? };
        Ok(Self { bind, port })
    }

    /// The same, for all hosts if no address was named.
    pub fn opened(self, to_all: bool) -> Self {
        let bind = match self.bind {
            Bind::Unsaid if to_all => Bind::All,
            Bind::Unsaid => Bind::Loopback,
            bind => bind,
        };
        Self { bind, ..self }
    }
}

impl Bind {
    fn parse(text: &str) -> Self {
        match text {
            "" | "*" => Self::All,
            "localhost" => Self::Loopback,
            address => Self::On(address.into()),
        }
    }
}

impl FromStr for Listen {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Self, ForwardError> {
        Self::from_fields(&fields(text)?, text)
    }
}

impl FromStr for Forward {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Self, ForwardError> {
        match text.parse()? {
            RemoteForward { listen, target: Some(target) } => Ok(Self { listen, target }),
            RemoteForward { .. } => Err(ForwardError::NoTarget(text.to_owned())),
        }
    }
}

impl FromStr for RemoteForward {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Self, ForwardError> {
        let fields = fields(text)?;
        match &*fields {
            [listen @ .., host, port] if !listen.is_empty() => {
                let target = Some(Target::new(host, parse_port(port)?)?);
                Ok(Self { listen: Listen::from_fields(listen, text)?, target })
            }
            listen => Ok(Self { listen: Listen::from_fields(listen, text)?, target: None }),
        }
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let port = self.port;
        match &self.bind {
            Bind::Unsaid | Bind::Loopback => write!(f, "localhost:{port}"),
            Bind::All => write!(f, "*:{port}"),
            Bind::On(address) if address.contains(':') => write!(f, "[{address}]:{port}"),
            Bind::On(address) => write!(f, "{address}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forward(text: &str) -> Result<(String, String), ForwardError> {
        text.parse::<Forward>().map(|forward| (forward.listen.opened(false).to_string(), forward.target.to_string()))
    }

    #[test]
    fn the_formats_of_ssh() {
        for (text, listen, target) in [
            ("8080:localhost:80", "localhost:8080", "localhost:80"),
            ("localhost:8080:web:80", "localhost:8080", "web:80"),
            ("*:8080:web:80", "*:8080", "web:80"),
            (":8080:web:80", "*:8080", "web:80"),
            ("192.0.2.1:8080:10.0.0.1:80", "192.0.2.1:8080", "10.0.0.1:80"),
            ("[::1]:8080:[2001:db8::1]:80", "[::1]:8080", "[2001:db8::1]:80"),
            ("0:web:80", "localhost:0", "web:80"),
        ] {
            assert_eq!(forward(text), Ok((listen.to_owned(), target.to_owned())), "{text}");
        }
        for text in ["", "8080", "1:2", "8080:web", "a:web:80", "70000:web:80", "8080:web:0", "a:b:c:d:e", "8080:[::1:80"] {
            assert!(forward(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_far_side_may_be_a_socks_port() {
        let remote = |text: &str| text.parse::<RemoteForward>().map(|remote| remote.target.map(|target| target.to_string()));
        assert_eq!(remote("9000"), Ok(None));
        assert_eq!(remote("*:9000"), Ok(None));
        assert_eq!(remote("9000:localhost:22"), Ok(Some("localhost:22".to_owned())));
    }

    #[test]
    fn other_hosts_come_in_only_where_that_was_said() {
        let bind = |text: &str, to_all| text.parse::<Listen>().map(|listen| listen.opened(to_all).bind);
        assert_eq!(bind("1080", false), Ok(Bind::Loopback));
        assert_eq!(bind("1080", true), Ok(Bind::All));
        assert_eq!(bind("localhost:1080", true), Ok(Bind::Loopback));
    }
}
