//! What the holder of a key may do: options before the key in a line of `authorized_keys`, as OpenSSH has them.
//!
//! ```text
//! root=pub,ro,from=10.0.0.0/8,expires=2026-12-31 SHA256:..  alice
//! ```
//! A line without options allows everything that the daemons and listeners here offer. One that names a service (`cp`, `perf`, `proxy`, `pipe`, `relay`) allows what it names and no other; an
//! option that is about one service names it. What cannot be understood is an error, never ignored: it may have been meant to confine.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use haul_units::BitRate;
use thiserror::Error;

use crate::limit::{Limit, LimitError};
use crate::moment::{Moment, MomentError};
use crate::rule::Rule;
use crate::target::TargetError;
use haul_units::{Network, NetworkError};

/// What is wrong with the options of a key.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum RightsError {
    /// A root that no daemon can have.
    #[error("`{0}` is no name of a root")]
    NoRoot(String),
    /// A value that is missing, superfluous or given twice.
    #[error("`{0}` is not right, or there twice")]
    NotRight(String),
    /// A service that is named twice.
    #[error("`{0}` is there twice")]
    Twice(String),
    /// An option that there is not.
    #[error("`{0}` is no option of a key")]
    Unknown(String),
    /// A service that there is not.
    #[error("`{0}` is none of cp, perf, proxy, pipe and relay")]
    NoService(String),
    /// A target of `proxy=`.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A network of `from=`.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// A rate of `max-rate=`.
    #[error(transparent)]
    Rate(#[from] LimitError),
    /// A date of `expires=`.
    #[error(transparent)]
    Date(#[from] MomentError),
}

/// What a listener offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// Copies from and to the roots of a daemon.
    Copy,
    /// Measuring the path.
    Perf,
    /// TCP connections to targets of `haul proxy serve`.
    Proxy,
    /// The standard streams of `haul pipe -l`.
    Pipe,
    /// Meeting somebody by a daemon's relay.
    Relay,
}

/// What one key may do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rights {
    /// Services that are named; none: see [`Rights::allows`].
    pub services: Vec<Service>,
    /// Names of the roots that it sees; none: all.
    pub roots: Vec<String>,
    /// It may write to no root.
    pub read_only: bool,
    /// Where its proxied connections may go, within what the proxy allows; none: all of that.
    pub targets: Vec<Rule>,
    /// Where its holder may come from; none: anywhere.
    pub from: Vec<Network>,
    /// The rate of each of its connections.
    pub max_rate: Option<BitRate>,
    /// From then on it is refused.
    pub expires: Option<Moment>,
}

impl Rights {
    /// Whether a service is allowed. Once one is named, the others are not; roots and reading are about copies, targets about the proxy.
    pub fn allows(&self, service: Service) -> bool {
        let copies = !self.roots.is_empty() || self.read_only;
        let proxies = !self.targets.is_empty();
        let is_all = self.services.is_empty() && !copies && !proxies;
        let is_meant = match service {
            Service::Copy => copies,
            Service::Proxy => proxies,
            Service::Perf | Service::Pipe | Service::Relay => false,
        };
        is_all || is_meant || self.services.contains(&service)
    }

    /// Whether copies see a root.
    pub fn sees(&self, root: &str) -> bool {
        self.allows(Service::Copy) && (self.roots.is_empty() || self.roots.iter().any(|name| name == root))
    }

    /// Why somebody at this address may not come in now, if so.
    pub fn turns_away(&self, address: IpAddr, now: Moment) -> Option<String> {
        if let Some(expires) = self.expires.filter(|&expires| expires <= now) {
            return Some(format!("its authorisation ended at {}", expires.in_full()));
        }
        let is_near = self.from.is_empty() || self.from.iter().any(|network| network.holds(address));
        (!is_near).then(|| format!("it may not come from {}", address.to_canonical()))
    }

    /// Whether anything is confined.
    pub fn is_everything(&self) -> bool {
        *self == Self::default()
    }

    /// The options of a line; empty where everything is allowed.
    pub fn options(&self) -> String {
        let services = self.services.iter().map(|service| service.word().to_owned());
        let roots = self.roots.iter().map(|root| format!("root={root}"));
        let read_only = self.read_only.then(|| "ro".to_owned());
        let targets = self.targets.iter().map(|target| format!("proxy={target}"));
        let from = self.from.iter().map(|network| format!("from={network}"));
        let rate = self.max_rate.map(|rate| format!("max-rate={}bit/s", rate.as_bps()));
        let expires = self.expires.map(|expires| format!("expires={expires}"));
        let all = services.chain(roots).chain(read_only).chain(targets).chain(from).chain(rate).chain(expires);
        all.collect::<Vec<_>>().join(",")
    }

    fn take(&mut self, option: &str) -> Result<(), RightsError> {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option, None),
        };
        match (name, value) {
            ("ro", None) if !self.read_only => self.read_only = true,
            ("root", Some(root)) if is_root_name(root) => self.roots.push(root.to_owned()),
            ("root", Some(root)) => return Err(RightsError::NoRoot(root.to_owned())),
            ("proxy", Some(target)) => self.targets.push(target.parse()?),
            ("from", Some(network)) => self.from.push(network.parse()?),
            ("max-rate", Some(rate)) if self.max_rate.is_none() => self.max_rate = Some(rate.parse::<Limit>()?.0),
            ("expires", Some(date)) if self.expires.is_none() => self.expires = Some(date.parse()?),
            ("ro" | "max-rate" | "expires", _) => return Err(RightsError::NotRight(option.to_owned())),
            (_, None) => {
                let service = name.parse()?;
                if self.services.contains(&service) {
                    return Err(RightsError::Twice(name.to_owned()));
                }
                self.services.push(service);
            }
            _ => return Err(RightsError::Unknown(option.to_owned())),
        }
        Ok(())
    }
}

/// Whether a root can have this name: one component of any URL.
pub fn is_root_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !name.is_empty() && !name.starts_with('.') && name.chars().all(plain)
}

impl FromStr for Rights {
    type Err = RightsError;

    /// The options of a line: one at least.
    fn from_str(text: &str) -> Result<Self, RightsError> {
        let mut rights = Self::default();
        for option in text.split(',') {
            rights.take(option)?;
        }
        Ok(rights)
    }
}

/// In words: `copies of pub, read only; from 10.0.0.0/8`.
impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        let listed = |items: &mut dyn Iterator<Item = String>| items.collect::<Vec<_>>().join(", ");
        let everything = Service::ALL.into_iter().all(|service| self.allows(service));
        if everything && self.targets.is_empty() {
            parts.push("everything".to_owned());
        } else {
            if self.allows(Service::Copy) {
                let roots = if self.roots.is_empty() { "all roots".to_owned() } else { listed(&mut self.roots.iter().cloned()) };
                parts.push(format!("copies of {roots}{}", if self.read_only { ", read only" } else { "" }));
            }
            if self.allows(Service::Perf) {
                parts.push("perf".to_owned());
            }
            if self.allows(Service::Proxy) {
                let targets = listed(&mut self.targets.iter().map(Rule::to_string));
                parts.push(if targets.is_empty() { "proxy".to_owned() } else { format!("proxy to {targets}") });
            }
            if self.allows(Service::Pipe) {
                parts.push("pipe".to_owned());
            }
            if self.allows(Service::Relay) {
                parts.push("relay".to_owned());
            }
        }
        if !self.from.is_empty() {
            parts.push(format!("from {}", listed(&mut self.from.iter().map(Network::to_string))));
        }
        parts.extend(self.max_rate.map(|rate| format!("at {rate} at most")));
        parts.extend(self.expires.map(|expires| format!("until {expires}")));
        f.write_str(&parts.join("; "))
    }
}

impl Service {
    /// All of them.
    const ALL: [Self; 5] = [Self::Copy, Self::Perf, Self::Proxy, Self::Pipe, Self::Relay];

    const fn word(self) -> &'static str {
        match self {
            Self::Copy => "cp",
            Self::Perf => "perf",
            Self::Proxy => "proxy",
            Self::Pipe => "pipe",
            Self::Relay => "relay",
        }
    }
}

impl FromStr for Service {
    type Err = RightsError;

    fn from_str(text: &str) -> Result<Self, RightsError> {
        let found = Self::ALL.into_iter().find(|service| service.word() == text);
        found.ok_or_else(|| RightsError::NoService(text.to_owned()))
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(options: &str) -> Rights {
        options.parse().expect(options)
    }

    #[test]
    fn a_key_without_options_may_do_everything() {
        let all = Rights::default();
        for service in Service::ALL {
            assert!(all.allows(service));
        }
        assert!(all.sees("any") && !all.read_only && all.is_everything());
        assert_eq!((all.options().as_str(), all.to_string().as_str()), ("", "everything"));
    }

    #[test]
    fn what_is_named_excludes_the_rest() {
        for (options, allowed) in [
            ("cp", &[Service::Copy][..]),
            ("perf", &[Service::Perf]),
            ("cp,perf", &[Service::Copy, Service::Perf]),
            ("root=pub", &[Service::Copy]),
            ("ro", &[Service::Copy]),
            ("root=pub,perf", &[Service::Copy, Service::Perf]),
            ("proxy=db:5432", &[Service::Proxy]),
            ("proxy", &[Service::Proxy]),
            ("pipe", &[Service::Pipe]),
            ("from=::/0", &[Service::Copy, Service::Perf, Service::Proxy, Service::Pipe]),
        ] {
            let rights = rights(options);
            for service in [Service::Copy, Service::Perf, Service::Proxy, Service::Pipe] {
                assert_eq!(rights.allows(service), allowed.contains(&service), "{options}: {service}");
            }
        }
        let one = rights("root=pub");
        assert!(one.sees("pub") && !one.sees("in"));
        assert!(!rights("perf").sees("pub"));
    }

    #[test]
    fn where_from_and_until_when() {
        let rights = rights("from=10.0.0.0/8,from=2001:db8::/32,expires=2026-12-31");
        let (near, far) = ("::ffff:10.1.2.3".parse().unwrap(), "192.0.2.1".parse().unwrap());
        let before = "2026-12-30T23:59:59Z".parse().unwrap();
        let after = "2026-12-31".parse().unwrap();
        assert_eq!(rights.turns_away(near, before), None);
        assert!(rights.turns_away(near, after).unwrap().contains("ended at 2026-12-31T00:00:00Z"));
        assert!(rights.turns_away(far, before).unwrap().contains("may not come from 192.0.2.1"));
    }

    #[test]
    fn options_survive_being_written() {
        for options in [
            "cp,perf,root=pub,root=in,ro,from=10.0.0.0/8,max-rate=100000000bit/s,expires=2026-12-31",
            "proxy=db:5432,proxy=[10.0.0.0/8]:443",
            "pipe",
        ] {
            assert_eq!(rights(options).options(), options);
        }
        assert_eq!(rights("max-rate=100M").max_rate, Some(BitRate::mbps(100)));
    }

    #[test]
    fn rights_in_words() {
        for (options, words) in [
            ("root=pub,root=in,ro", "copies of pub, in, read only"),
            ("cp,perf,from=10.0.0.0/8", "copies of all roots; perf; from 10.0.0.0/8"),
            ("proxy=db:5432", "proxy to db:5432"),
            ("max-rate=1G,expires=2026-12-31", "everything; at 1.00 Gbit/s at most; until 2026-12-31"),
        ] {
            assert_eq!(rights(options).to_string(), words);
        }
    }

    #[test]
    fn nothing_that_is_not_understood_is_let_pass() {
        for options in [
            "",
            ",",
            "cp,",
            "ro,ro",
            "RO",
            "rw",
            "root",
            "root=",
            "root=a/b",
            "root=..",
            "copy",
            "cp,cp",
            "cp=yes",
            "ro=no",
            "from=",
            "from=everywhere",
            "max-rate=0",
            "max-rate=fast",
            "max-rate",
            "max-rate=1G,max-rate=2G",
            "expires=tomorrow",
            "expires",
            "proxy=",
            "proxy=db",
            "proxy=db:0",
            "no-pty",
            "root=pub ro",
        ] {
            assert!(options.parse::<Rights>().is_err(), "{options}");
        }
    }
}
