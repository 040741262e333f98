//! Hosts and their ports, as rights and the options of a proxy name them.
//!
//! A rule that names a host allows targets of that name; whatever the name resolves to is right. A rule with addresses allows targets by
//! address, and targets by name that resolve to them: then only those of its addresses are used.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use crate::target::{Target, TargetError, TargetHost, fields, parse_port};
use haul_units::Network;

/// Hosts and their ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    hosts: Hosts,
    ports: RangeInclusive<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Hosts {
    Any,
    Named(String),
    Network(Network),
}

impl Rule {
    /// Whether it holds this port of this host.
    pub fn allows(&self, host: &TargetHost, port: u16) -> bool {
        let host = match (&self.hosts, host) {
            (Hosts::Any, _) => true,
            (Hosts::Named(rule), TargetHost::Name(name)) => rule == name,
            (Hosts::Network(network), TargetHost::Address(address)) => network.holds(*address),
            _ => false,
        };
        host && self.ports.contains(&port)
    }

    /// Whether a host that was named may be meant once its addresses are known.
    pub const fn needs_addresses(&self) -> bool {
        matches!(self.hosts, Hosts::Network(_))
    }
}

impl From<Target> for Rule {
    fn from(target: Target) -> Self {
        let hosts = match target.host {
            TargetHost::Name(name) => Hosts::Named(name),
            TargetHost::Address(address) => Hosts::Network(Network::host(address)),
        };
        Self { hosts, ports: target.port..=target.port }
    }
}

impl FromStr for Rule {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, TargetError> {
        let wrong = || TargetError::NoRule(text.to_owned());
        let plain = unbracketed_prefix(text);
        let [host, ports] = *fields(&plain)? else { return Err(wrong()) };
        let hosts = match (host, host.split_once('/')) {
            ("*", _) => Hosts::Any,
            (host, Some(_)) => Hosts::Network(host.parse().map_err(|_| wrong())?),
            (host, None) => Self::from(Target::new(host, 1)?).hosts,
        };
        let ports = match ports.split_once('-') {
            _ if ports == "*" => 1..=u16::MAX,
            Some((first, last)) => parse_port(first)?..=parse_port(last)?,
            None => parse_port(ports)?..=parse_port(ports)?,
        };
        if ports.is_empty() { Err(wrong()) } else { Ok(Self { hosts, ports }) }
    }
}

/// `[2001:db8::]/32:443` as `[2001:db8::/32]:443`: people write both.
fn unbracketed_prefix(text: &str) -> String {
    match text.split_once("]/").and_then(|(address, rest)| Some((address, rest.split_once(':')?))) {
        Some((address, (bits, port))) => format!("{address}/{bits}]:{port}"),
        None => text.to_owned(),
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Any => f.write_str("*")?,
            Hosts::Named(name) => f.write_str(name)?,
            Hosts::Network(network) => write!(f, "[{network}]")?,
        }
        match (self.ports.start(), self.ports.end()) {
            (1, &u16::MAX) => f.write_str(":*"),
            (first, last) if first == last => write!(f, ":{first}"),
            (first, last) => write!(f, ":{first}-{last}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(rule: &str, target: &str) -> bool {
        let (rule, target): (Rule, Target) = (rule.parse().expect(rule), target.parse().expect(target));
        rule.allows(&target.host, target.port)
    }

    #[test]
    fn networks_and_ranges() {
        for (rule, target, is) in [
            ("10.0.0.0/8:443", "10.9.8.7:443", true),
            ("10.0.0.0/8:443", "[::ffff:10.9.8.7]:443", true),
            ("10.0.0.0/8:443", "11.0.0.1:443", false),
            ("10.0.0.0/8:443", "10.9.8.7:444", false),
            ("0.0.0.0/0:*", "1.2.3.4:5", true),
            ("0.0.0.0/0:*", "[2001:db8::1]:5", false),
            ("[2001:db8::]/32:1-99", "[2001:db8:5::1]:99", true),
            ("[2001:db8::/32]:1-99", "[2001:db9::1]:99", false),
            ("192.0.2.1:22", "192.0.2.1:22", true),
            ("*:443", "anything:443", true),
            ("*:443", "anything:444", false),
        ] {
            assert_eq!(allowed(rule, target), is, "{rule} {target}");
        }
        for rule in ["", "*", "10.0.0.0/33:1", "x/8:1", "a:5-3", "a:0", "a:b:c", "10.0.0.0/:1"] {
            assert!(rule.parse::<Rule>().is_err(), "{rule}");
        }
    }
}
