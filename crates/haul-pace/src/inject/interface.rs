//! What is to be known of an interface, and how packets are led past it.

use std::fs;
use std::net::IpAddr;

use haul_netdev::iproute::{IprouteError, ip};
use haul_units::{BitRate, Network};
use serde::Deserialize;

/// An Ethernet interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    name: String,
    mac: [u8; 6],
    mtu: u32,
}

/// Why an interface will not do.
#[derive(Debug, thiserror::Error)]
pub enum InterfaceError {
    /// There is none of this name.
    #[error("there is no interface {0}")]
    Unknown(String),
    /// No frames, or of another kind.
    #[error("{0} is no Ethernet interface: gaps are frames of Ethernet")]
    NotEthernet(String),
    /// It does not say how fast it sends.
    #[error("{0} does not say how fast its line is (a virtual interface has none)")]
    NoRate(String),
    /// The kernel would not take answers.
    #[error(
        "{0} drops packets from where others would be sent through another interface: that holds for the answers here \
         (`sysctl net.ipv4.conf.{0}.rp_filter=2`, and `net.ipv4.conf.all.rp_filter=0` or `=2`, allow them)"
    )]
    Strict(String),
    /// Nothing leads there through it.
    #[error("no route leads to {to} through {interface}")]
    NoRoute {
        /// Where to.
        to: Network,
        /// The interface.
        interface: String,
    },
    /// iproute2 did not do what it was to do.
    #[error(transparent)]
    Iproute(#[from] IprouteError),
}

#[derive(Deserialize)]
struct Route {
    dev: String,
    gateway: Option<IpAddr>,
    prefsrc: Option<IpAddr>,
}

impl Interface {
    /// One of the network namespace of this thread.
    pub fn named(name: &str) -> Result<Self, InterfaceError> {
        // What is no name of an interface would lead elsewhere below /sys.
        if name.is_empty() || name.contains('/') || name.starts_with('.') {
            return Err(InterfaceError::Unknown(name.to_owned()));
        }
        let told = ip(&["-j", "link", "show", "dev", name]).map_err(|error| match error {
            IprouteError::Failed { .. } => InterfaceError::Unknown(name.to_owned()),
            missing @ IprouteError::Missing { .. } => missing.into(),
        })?;
        #[derive(Deserialize)]
        struct Link {
            #[serde(rename = "link_type")]
            kind: String,
            address: Option<String>,
            mtu: u32,
        }
        let links: Vec<Link> = serde_json::from_str(&told).unwrap_or_default();
        let link = links.into_iter().next().ok_or_else(|| InterfaceError::Unknown(name.to_owned()))?;
        let mac = link.address.as_deref().and_then(parse_mac).filter(|_| link.kind == "ether");
        let mac = mac.ok_or_else(|| InterfaceError::NotEthernet(name.to_owned()))?;
        Ok(Self { name: name.to_owned(), mac, mtu: link.mtu })
    }

    /// Its own address on the line.
    pub const fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// How fast it sends, as it says.
    pub fn line(&self) -> Result<BitRate, InterfaceError> {
        let file = |name: &str| format!("/sys/class/net/{}/{name}", self.name);
        // Virtual ones (veth: 10 Gbit/s) say something that nothing keeps them to.
        let real = fs::metadata(file("device")).is_ok();
        let mbps = fs::read_to_string(file("speed")).ok().and_then(|text| text.trim().parse::<i64>().ok());
        match mbps.and_then(|mbps| u64::try_from(mbps).ok()).filter(|&mbps| real && mbps > 0) {
            Some(mbps) => Ok(BitRate::mbps(mbps)),
            None => Err(InterfaceError::NoRate(self.name.clone())),
        }
    }

    /// Whether the kernel takes answers that come here while the way out is another interface.
    pub fn accepts_answers(&self) -> Result<(), InterfaceError> {
        let filter = |name: &str| {
            let text = fs::read_to_string(format!("/proc/sys/net/ipv4/conf/{name}/rp_filter"));
            text.ok().and_then(|text| text.trim().parse::<u8>().ok()).unwrap_or(0)
        };
        // The larger one counts (ip-sysctl); 1 is strict.
        if filter("all").max(filter(&self.name)) == 1 { Err(InterfaceError::Strict(self.name.clone())) } else { Ok(()) }
    }

    /// The address that packets to a network have when they leave here.
    pub fn source_for(&self, to: Network) -> Result<IpAddr, InterfaceError> {
        // Which interface is not said: with it, the kernel would take everybody to be on its line.
        let route = route(&self.name, &[&to.address().to_string()], to)?;
        route.prefsrc.ok_or_else(|| InterfaceError::NoRoute { to, interface: self.name.clone() })
    }

    /// Leads packets for these networks, with these addresses of this host, into another interface. They take their usual way again when that one is gone.
    pub fn divert(&self, into: &str, networks: impl Iterator<Item = (Network, IpAddr)>) -> Result<(), InterfaceError> {
        ip(&["link", "set", "dev", into, "mtu", &self.mtu.to_string(), "txqueuelen", "1000", "up"])?;
        for (network, source) in networks {
            for half in halves(network) {
                let six: &[&str] = if source.is_ipv6() { &["-6"] } else { &[] };
                let half = half.to_string();
                let source = source.to_string();
                ip(&[six, &["route", "add", &half, "dev", into, "src", &source]].concat())?;
            }
        }
        Ok(())
    }
}

/// The next hop to an address through an interface: a router, or the address itself.
pub fn next_hop(interface: &str, to: IpAddr) -> Result<IpAddr, InterfaceError> {
    let arguments = [&*to.to_string(), "oif", interface];
    Ok(route(interface, &arguments, Network::host(to))?.gateway.unwrap_or(to))
}

/// What a neighbour on the line is called there, if it is known.
pub fn mac_of(interface: &str, neighbour: IpAddr) -> Option<[u8; 6]> {
    #[derive(Deserialize)]
    struct Entry {
        lladdr: Option<String>,
        #[serde(default)]
        state: Vec<String>,
    }
    let told = ip(&["-j", "neigh", "show", "to", &neighbour.to_string(), "dev", interface]).ok()?;
    let entries: Vec<Entry> = serde_json::from_str(&told).ok()?;
    let entry = entries.into_iter().find(|entry| !entry.state.iter().any(|state| state == "FAILED"))?;
    parse_mac(&entry.lladdr?)
}

fn route(interface: &str, arguments: &[&str], to: Network) -> Result<Route, InterfaceError> {
    let none = || InterfaceError::NoRoute { to, interface: interface.to_owned() };
    let told = ip(&[&["-j", "route", "get"], arguments].concat()).map_err(|error| match error {
        IprouteError::Failed { .. } => none(),
        missing @ IprouteError::Missing { .. } => missing.into(),
    })?;
    let routes: Vec<Route> = serde_json::from_str(&told).unwrap_or_default();
    routes.into_iter().find(|route| route.dev == interface).ok_or_else(none)
}

/// A network in two halves, so that a route to each comes before one to the whole, which may be there already; a single address stays one.
fn halves(network: Network) -> Vec<Network> {
    let (address, bits) = (network.address(), u32::from(network.bits()));
    let halves = match address {
        IpAddr::V4(address) if bits < 32 => {
            let low = address.to_bits() & !u32::MAX.checked_shr(bits).unwrap_or(0);
            [IpAddr::V4(low.into()), IpAddr::V4((low | 1 << (31 - bits)).into())]
        }
        IpAddr::V6(address) if bits < 128 => {
            let low = address.to_bits() & !u128::MAX.checked_shr(bits).unwrap_or(0);
            [IpAddr::V6(low.into()), IpAddr::V6((low | 1 << (127 - bits)).into())]
        }
        _ => return vec![network],
    };
    halves.iter().filter_map(|half| format!("{half}/{}", bits + 1).parse().ok()).collect()
}

fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_its_halves() {
        for (network, halves_are) in [
            ("10.0.0.0/8", &["10.0.0.0/9", "10.128.0.0/9"][..]),
            ("10.9.8.7/24", &["10.9.8.0/25", "10.9.8.128/25"]),
            ("0.0.0.0/0", &["0.0.0.0/1", "128.0.0.0/1"]),
            ("10.0.0.1", &["10.0.0.1"]),
            ("2001:db8::/32", &["2001:db8::/33", "2001:db8:8000::/33"]),
            ("::/0", &["::/1", "8000::/1"]),
        ] {
            let found: Vec<String> = halves(network.parse().unwrap()).iter().map(ToString::to_string).collect();
            assert_eq!(found, halves_are, "{network}");
        }
    }

    #[test]
    fn an_address_on_the_line_has_six_bytes() {
        assert_eq!(parse_mac("02:00:5e:10:00:ff"), Some([2, 0, 0x5e, 0x10, 0, 255]));
        for text in ["", "02:00:5e:10:00", "02:00:5e:10:00:ff:01", "02:00:5e:10:00:xx", "10.0.0.1"] {
            assert_eq!(parse_mac(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_interface_is_named() {
        for name in ["", "../eth0", ".", "no-such-device"] {
            assert!(matches!(Interface::named(name), Err(InterfaceError::Unknown(unknown)) if unknown == name));
        }
        assert!(matches!(Interface::named("lo"), Err(InterfaceError::NotEthernet(_))));
    }
}
