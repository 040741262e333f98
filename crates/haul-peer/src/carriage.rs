//! What carries a connection: UDP, or what passes where UDP does not.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

use crate::ports::PortRange;

/// What is to carry a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Carriage {
    /// UDP as long as it passes, also where it does only once the far side has sent some; then TCP, then ssh's own channel.
    #[default]
    Auto,
    /// UDP, or nothing.
    Udp,
    /// TCP, or nothing: several connections to a port of the far side's.
    Tcp,
    /// ssh's own channel, or nothing.
    Ssh,
}

impl Carriage {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Udp, Self::Tcp, Self::Ssh];

    const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Udp => "udp",
            Self::Tcp => "tcp",
            Self::Ssh => "ssh",
        }
    }
}

impl fmt::Display for Carriage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What is no word for one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("write auto, udp, tcp or ssh")]
pub struct CarriageError;

impl FromStr for Carriage {
    type Err = CarriageError;

    fn from_str(text: &str) -> Result<Self, CarriageError> {
        Self::ALL.into_iter().find(|carriage| carriage.name() == text).ok_or(CarriageError)
    }
}

/// The connection goes over to something else: what is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoesOver {
    /// The host, with the port that it was asked at.
    pub host: String,
    /// What carries it from now on.
    pub to: Carrying,
    /// Why UDP does not.
    pub why: NoUdp,
    /// Ports of UDP that would have to be open there.
    pub ports: PortRange,
}

/// What carries a connection at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrying {
    /// Datagrams.
    Udp,
    /// TCP connections.
    Tcp,
    /// The channel of the ssh that has logged in.
    Ssh,
}

/// Why UDP does not carry it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoUdp {
    /// The far side has got nothing over UDP.
    Inbound,
    /// What was sent has arrived there; no answer has come back.
    Answers,
    /// Nothing has come back; more is not known.
    Silent,
    /// It did, until it fell silent.
    Lost(Duration),
}

impl fmt::Display for GoesOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, ports, .. } = self;
        match (self.to, self.why) {
            (Carrying::Udp, NoUdp::Inbound) => {
                return write!(f, "UDP is blocked inbound at {host} until {host} itself has sent some: it has, and UDP passes");
            }
            (Carrying::Udp, _) => return write!(f, "{host}: over UDP again"),
            (Carrying::Tcp | Carrying::Ssh, _) => {}
        }
        let (first, last) = ports.ends();
        let ports = if first == last { first.to_string() } else { format!("{first}-{last}") };
        match self.why {
            NoUdp::Inbound => write!(f, "UDP is blocked inbound at {host}: ask for UDP {ports}"),
            NoUdp::Answers => write!(f, "UDP gets to {host}, its answers do not get here: ask for UDP {ports} both ways"),
            NoUdp::Silent => write!(f, "UDP to {host} is blocked: ask for UDP {ports}"),
            NoUdp::Lost(silence) => write!(f, "UDP to {host} has brought nothing for {} s", silence.as_secs()),
        }?;
        match self.to {
            Carrying::Udp => Ok(()),
            Carrying::Tcp => f.write_str("; over TCP for now, which one lost packet slows down more"),
            Carrying::Ssh => f.write_str("; through ssh's own connection for now, which is slower"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_are_read_as_they_are_written() {
        for carriage in Carriage::ALL {
            assert_eq!(carriage.to_string().parse(), Ok(carriage));
        }
        assert_eq!("quic".parse::<Carriage>(), Err(CarriageError));
    }

    #[test]
    fn what_is_told_names_the_ports_to_ask_for() {
        let ports = PortRange::new(60000, 60100).expect("a range");
        let told = GoesOver { host: "far".into(), to: Carrying::Tcp, why: NoUdp::Inbound, ports };
        assert!(told.to_string().starts_with("UDP is blocked inbound at far: ask for UDP 60000-60100; over TCP for now"));
        let called = GoesOver { to: Carrying::Udp, ..told.clone() };
        assert!(called.to_string().ends_with("far itself has sent some: it has, and UDP passes"), "{called}");
        let lost = GoesOver { why: NoUdp::Lost(Duration::from_secs(6)), to: Carrying::Ssh, ..told };
        assert!(lost.to_string().contains("nothing for 6 s") && lost.to_string().contains("ssh"));
    }
}
