//! At which addresses a server can be reached besides the one that a client came to, and which of these a client asks.
//!
//! A server tells them inside the connection, so they are its own words; but a client must send nothing for it to addresses that it could not reach itself, or to more than a few. Of what a client is told
//!
//! ```text
//!   what is no host's address: unspecified, multicast, broadcast,
//!     reserved, of a translator or a tunnel (another is inside)          is passed over
//!   link-local addresses, which mean nothing without an interface        are passed over
//!   what is narrower in scope than the address where the server was
//!     reached (loopback < link-local < private < public)                 is passed over
//!   a port below 1024 that is not the one where it was reached           is passed over
//!   of the rest eight, the first that were told in the connection        are asked: see [`crate::PeerAddress::look_elsewhere`] for how often
//! ```
//! A server tells by the same rule, of its own interfaces: nothing narrower than the client's address. Sources: RFC 9000 21.5 (request forgery), 9.6; RFC 6890 (special addresses); RFC 6056 (ports).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::leave::Interface;

/// Further addresses of a server that a client keeps, and that a server tells, at most.
pub const SERVER_ADDRESSES_MAX: usize = 8;

/// Length of an address as it travels.
pub const ADDRESS_BYTES: usize = 18;

/// What a server tells of its addresses.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Announced {
    /// Where it is bound to no address of its own: those of its interfaces.
    #[default]
    Interfaces,
    /// These; port 0 is the one that it is bound to. None at all: nothing.
    These(Vec<SocketAddr>),
}

/// An address as it travels: 16 bytes, those of IPv4 mapped into IPv6, and the port in network order.
pub fn address_to_bytes(address: SocketAddr) -> [u8; ADDRESS_BYTES] {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = [0; ADDRESS_BYTES];
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..].copy_from_slice(&address.port().to_be_bytes());
    bytes
}

/// The address of as many bytes.
pub fn address_from_bytes(bytes: &[u8]) -> Option<SocketAddr> {
    let (ip, port) = bytes.split_first_chunk::<16>()?;
    Some(SocketAddr::new(IpAddr::from(*ip).to_canonical(), u16::from_be_bytes(port.try_into().ok()?)))
}

/// A client's: where else its server can be.
#[derive(Debug, Clone, Default)]
pub struct ServerAddresses {
    others: Vec<SocketAddr>,
}

impl ServerAddresses {
    /// The server, which was reached at `reached`, says that it is at `told` too. Whether that is news to act upon.
    pub fn on_told(&mut self, reached: SocketAddr, told: SocketAddr) -> bool {
        let (reached, told) = (canonical(reached), canonical(told));
        let port_fits = told.port() == reached.port() || told.port() >= FIRST_USER_PORT;
        let is_new = told != reached && !self.others.contains(&told) && self.others.len() < SERVER_ADDRESSES_MAX;
        let is_taken = is_new && port_fits && may_lead(reached.ip(), told.ip());
        if is_taken {
            self.others.push(told);
        }
        is_taken
    }

    /// Those that were told and may be asked, as they came.
    pub fn others(&self) -> &[SocketAddr] {
        &self.others
    }
}

/// What a server bound to `local` tells a client that comes from `client`, at most [`SERVER_ADDRESSES_MAX`]; `interfaces` is asked where they are wanted.
pub fn announced(
    announced: &Announced,
    local: SocketAddr,
    client: IpAddr,
    interfaces: impl FnOnce() -> Vec<Interface>,
) -> Vec<SocketAddr> {
    let mut addresses = match announced {
        Announced::These(these) => {
            these.iter().map(|to| if to.port() == 0 { SocketAddr::new(to.ip(), local.port()) } else { *to }).collect()
        }
        // A socket with an address of its own hears of no other.
        Announced::Interfaces if !local.ip().is_unspecified() => Vec::new(),
        Announced::Interfaces => of_interfaces(&interfaces(), local, client),
    };
    addresses.truncate(SERVER_ADDRESSES_MAX);
    addresses
}

/// The first address of each interface before the second of any: who has many on one leaves room for the others. Last those of links that are down, which may come back.
fn of_interfaces(interfaces: &[Interface], local: SocketAddr, client: IpAddr) -> Vec<SocketAddr> {
    let is_heard = |address: &IpAddr| local.is_ipv6() || address.is_ipv4();
    let mut ranked: Vec<((bool, usize), IpAddr)> = Vec::new();
    for interface in interfaces {
        for is_ipv4 in [true, false] {
            let of_family = interface.addresses.iter().filter(|address| address.is_ipv4() == is_ipv4);
            let told = of_family.filter(|address| is_heard(address) && may_lead(client, **address));
            ranked.extend(told.enumerate().map(|(rank, address)| ((!interface.is_up, rank), *address)));
        }
    }
    ranked.sort_by_key(|(rank, _)| *rank);
    ranked.into_iter().map(|(_, address)| SocketAddr::new(address, local.port())).collect()
}

/// Whether who is known at the one address may lead others to the other.
fn may_lead(known: IpAddr, to: IpAddr) -> bool {
    match (scope(known.to_canonical()), scope(to.to_canonical())) {
        (Some(_), Some(Scope::LinkLocal) | None) | (None, _) => false,
        (Some(known), Some(to)) => to >= known,
    }
}

/// How far an address of a host means the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    Loopback,
    LinkLocal,
    Private,
    Public,
}

/// `None`: not the address of a host, or another one is inside.
fn scope(address: IpAddr) -> Option<Scope> {
    match address {
        IpAddr::V4(address) => scope_v4(address),
        IpAddr::V6(address) => scope_v6(address),
    }
}

fn scope_v4(address: Ipv4Addr) -> Option<Scope> {
    match address.octets() {
        // This network (RFC 791), relays of 6to4 (RFC 7526), multicast, reserved, broadcast.
        [0 | 224..=255, ..] | [192, 88, 99, _] => None,
        [127, ..] => Some(Scope::Loopback),
        [169, 254, ..] => Some(Scope::LinkLocal),
        // RFC 1918; carriers' own (RFC 6598); networks of tests (RFC 2544).
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] | [198, 18..=19, ..] => Some(Scope::Private),
        _ => Some(Scope::Public),
    }
}

fn scope_v6(address: Ipv6Addr) -> Option<Scope> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(Scope::Loopback),
        [0xfe80..=0xfebf, ..] => Some(Scope::LinkLocal),
        // RFC 4193.
        [0xfc00..=0xfdff, ..] => Some(Scope::Private),
        // Teredo (RFC 4380) and 6to4 (RFC 3056): an IPv4 address is inside.
        [0x2001, 0, ..] | [0x2002, ..] => None,
        // All that is given to hosts (RFC 4291 2.4); translators (RFC 6052), the discard prefix and multicast are outside.
        [0x2000..=0x3fff, ..] => Some(Scope::Public),
        _ => None,
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Below are the ports of the system's own services. // RFC 6335 6
const FIRST_USER_PORT: u16 = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn is_taken(reached: &str, told: &str) -> bool {
        ServerAddresses::default().on_told(at(reached), at(told))
    }

    #[test]
    fn a_public_server_leads_nobody_to_private_addresses() {
        let public = "203.0.113.1:7700";
        for told in ["198.51.100.7:7700", "203.0.113.2:9000", "[2001:db8::1]:7700", "[::ffff:198.51.100.7]:7700"] {
            assert!(is_taken(public, told), "{told}");
        }
        for told in [
            "127.0.0.1:7700",
            "[::1]:7700",
            "10.0.0.1:7700",
            "172.16.0.1:7700",
            "192.168.1.1:7700",
            "100.64.0.1:7700",
            "169.254.169.254:7700",
            "[fe80::1]:7700",
            "[fd00::1]:7700",
            "[::ffff:10.0.0.1]:7700",
            "[::ffff:127.0.0.1]:7700",
            "[64:ff9b::a00:1]:7700",
            "[2002:a00:1::1]:7700",
            "[2001:0:a00:1::1]:7700",
        ] {
            assert!(!is_taken(public, told) && !is_taken("[2001:db8::9]:7700", told), "{told}");
        }
    }

    #[test]
    fn nobody_is_led_to_what_is_no_host() {
        for reached in ["127.0.0.1:7700", "10.0.0.1:7700", "203.0.113.1:7700", "[::1]:7700", "[fd00::1]:7700"] {
            for told in [
                "0.0.0.0:7700",
                "[::]:7700",
                "224.0.0.1:7700",
                "239.1.1.1:7700",
                "255.255.255.255:7700",
                "250.0.0.1:7700",
                "[ff02::1]:7700",
                "[ff0e::1]:7700",
                "[fe80::1]:7700",
                "169.254.1.1:7700",
                "[100::1]:7700",
                "[::a00:1]:7700",
                "203.0.113.9:0",
                "203.0.113.9:53",
            ] {
                assert!(!is_taken(reached, told), "{reached} leads to {told}");
            }
        }
        assert!(is_taken("203.0.113.1:443", "203.0.113.9:443"), "the port that the client took itself");
        assert!(!is_taken("[100::1]:7700", "203.0.113.9:7700"), "who is nowhere leads nowhere");
    }

    #[test]
    fn wider_is_allowed_and_eight_are_enough() {
        assert!(is_taken("127.0.0.1:1", "127.0.0.2:7700") && is_taken("127.0.0.1:1", "10.0.0.1:7700"));
        assert!(is_taken("10.0.0.1:1", "192.168.3.4:7700") && is_taken("10.0.0.1:1", "203.0.113.1:7700"));
        assert!(is_taken("169.254.3.4:1", "10.0.0.1:7700") && !is_taken("10.0.0.1:1", "127.0.0.1:7700"));
        let mut addresses = ServerAddresses::default();
        let reached = at("203.0.113.1:7700");
        assert!(!addresses.on_told(reached, reached), "known");
        assert!(addresses.on_told(reached, at("203.0.113.2:7700")) && !addresses.on_told(reached, at("203.0.113.2:7700")));
        for last in 3..=255 {
            addresses.on_told(reached, SocketAddr::from(([203, 0, 113, last], 7700)));
        }
        assert_eq!(addresses.others().len(), SERVER_ADDRESSES_MAX);
    }

    fn machine() -> Vec<Interface> {
        let interface = |name: &str, is_up, addresses: &[&str]| Interface {
            name: name.to_owned(),
            is_up,
            addresses: addresses.iter().map(|text| text.parse().unwrap()).collect(),
            ..Interface::default()
        };
        vec![
            interface("lo", true, &["127.0.0.1", "::1"]),
            interface("eth0", true, &["203.0.113.1", "203.0.113.2", "fe80::1", "2001:db8::1"]),
            interface("eth1", true, &["10.0.0.1", "fd00::1"]),
            interface("eth2", false, &["203.0.113.99"]),
        ]
    }

    fn told(what: &Announced, local: &str, client: &str) -> Vec<String> {
        announced(what, at(local), client.parse().unwrap(), machine).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_server_on_every_address_tells_those_that_its_client_may_be_told() {
        let all = &Announced::Interfaces;
        let public = ["203.0.113.1:7", "[2001:db8::1]:7", "203.0.113.2:7", "203.0.113.99:7"];
        assert_eq!(told(all, "[::]:7", "198.51.100.1"), public);
        assert_eq!(told(all, "0.0.0.0:7", "198.51.100.1"), [public[0], public[2], public[3]]);
        let near = ["203.0.113.1:7", "[2001:db8::1]:7", "10.0.0.1:7", "[fd00::1]:7", "203.0.113.2:7", "203.0.113.99:7"];
        assert_eq!(told(all, "[::]:7", "::ffff:10.0.0.9"), near);
        assert_eq!(told(all, "[::]:7", "fe80::9"), near);
        assert_eq!(told(all, "[::]:7", "127.0.0.1").len(), SERVER_ADDRESSES_MAX);
        assert_eq!(told(all, "203.0.113.1:7", "198.51.100.1"), [""; 0], "it hears of no other");
        let these = Announced::These(vec![at("192.0.2.1:0"), at("192.0.2.2:9")]);
        assert_eq!(told(&these, "203.0.113.1:7", "198.51.100.1"), ["192.0.2.1:7", "192.0.2.2:9"]);
        assert_eq!(told(&Announced::These(Vec::new()), "[::]:7", "10.0.0.1"), [""; 0]);
    }
}
