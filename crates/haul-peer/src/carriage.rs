//! What carries a connection: UDP, or what passes where UDP does not.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use haul::Bytes;
use thiserror::Error;

use crate::operand::DaemonHost;
use crate::ports::PortRange;

/// What is to carry a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Carriage {
    /// UDP as long as it passes, also where it does only once the far side has sent some, or both have met by a relay; then by way of that relay, then TCP, then ssh's own channel.
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
    /// The relay that has helped; none where there is none.
    pub relay: Option<DaemonHost>,
}

/// What carries a connection at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrying {
    /// Datagrams.
    Udp,
    /// Datagrams, directly through the NATs of both sides, which a relay has helped to open.
    Punched,
    /// Datagrams, by way of a relay.
    Relay,
    /// TCP connections.
    Tcp,
    /// The channel of the ssh that has logged in.
    Ssh,
}

/// A word for programs.
impl fmt::Display for Carrying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "udp",
            Self::Punched => "udp-through-nats",
            Self::Relay => "relay",
            Self::Tcp => "tcp",
            Self::Ssh => "ssh",
        })
    }
}

/// What a relay has carried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relayed {
    /// The relay.
    pub by: DaemonHost,
    /// UDP payload that went by way of it, both ways.
    pub bytes: Bytes,
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
            (Carrying::Punched, _) => {
                return write!(
                    f,
                    "UDP to {host} does not pass from outside: directly through both NATs{}",
                    met(self.relay.as_ref())
                );
            }
            (Carrying::Relay, _) => {
                let relay = self.relay.as_ref().map_or_else(String::new, |relay| format!(" {relay}"));
                return write!(f, "UDP to {host} does not pass from outside, nor through both NATs: by way of relay{relay}");
            }
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
            Carrying::Udp | Carrying::Punched | Carrying::Relay => Ok(()),
            Carrying::Tcp => f.write_str("; over TCP for now, which one lost packet slows down more"),
            Carrying::Ssh => f.write_str("; through ssh's own connection for now, which is slower"),
        }
    }
}

fn met(relay: Option<&DaemonHost>) -> String {
    relay.map_or_else(String::new, |relay| format!(", met by relay {relay}"))
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
        let told = GoesOver { host: "far".into(), to: Carrying::Tcp, why: NoUdp::Inbound, ports, relay: None };
        assert!(told.to_string().starts_with("UDP is blocked inbound at far: ask for UDP 60000-60100; over TCP for now"));
        let called = GoesOver { to: Carrying::Udp, ..told.clone() };
        assert!(called.to_string().ends_with("far itself has sent some: it has, and UDP passes"), "{called}");
        let relay = DaemonHost::parse("relay.example:7800").ok();
        let punched = GoesOver { to: Carrying::Punched, relay: relay.clone(), ..told.clone() };
        assert!(punched.to_string().ends_with("directly through both NATs, met by relay relay.example:7800"), "{punched}");
        let relayed = GoesOver { to: Carrying::Relay, relay, ..told.clone() };
        assert!(relayed.to_string().ends_with("by way of relay relay.example:7800"), "{relayed}");
        let lost = GoesOver { why: NoUdp::Lost(Duration::from_secs(6)), to: Carrying::Ssh, ..told };
        assert!(lost.to_string().contains("nothing for 6 s") && lost.to_string().contains("ssh"));
    }
}
