//! Routes, by netlink: the law of a route (`congctl` in iproute2's words) is one of its metrics.
//!
//! A route is kept as the kernel's own message, so that what is put back is what was there, whatever attributes it has.

use std::io;
use std::net::IpAddr;

use haul_netdev::netlink::{DUMP, Netlink, attributes};
use haul_units::Network;
use serde::{Deserialize, Serialize};

const NEW_ROUTE: u16 = 24;
const GET_ROUTE: u16 = 26;
const ACKNOWLEDGE: u16 = 4;
const REPLACE: u16 = 0x100;

/// `struct rtmsg`.
const ABOUT: usize = 12;

const DESTINATION: u16 = 1;
const METRICS: u16 = 8;
const CACHE: u16 = 12;
/// In the metrics: the congestion control's name.
const LAW: u16 = 16;
const NESTED: u16 = 1 << 15;

const TABLE_MAIN: u8 = 254;
const UNICAST: u8 = 1;
/// Flags that a user sets; the others are the state of the interface.
const ON_LINK: u32 = 4;

/// A route as the kernel tells it: `rtmsg` and its attributes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Route(Vec<u8>);

impl Route {
    /// Of the main table: those to exactly this network.
    pub(crate) fn to(network: &Network) -> io::Result<Vec<Self>> {
        let family = if network.address().is_ipv4() { libc::AF_INET } else { libc::AF_INET6 } as u8;
        let mut request = vec![0; ABOUT];
        request[0] = family;
        let messages = talk(GET_ROUTE, DUMP, &request)?;
        Ok(messages.into_iter().map(Self).filter(|route| route.is_to(network)).collect())
    }

    fn is_to(&self, network: &Network) -> bool {
        let &[_, bits, _, _, table, _, _, kind, ..] = self.0.as_slice() else { return false };
        let destination = match (self.attribute(DESTINATION), network.address()) {
            (None, _) => network.bits() == 0,
            (Some(value), IpAddr::V4(address)) => value == address.octets(),
            (Some(value), IpAddr::V6(address)) => value == address.octets(),
        };
        destination && bits == network.bits() && table == TABLE_MAIN && kind == UNICAST
    }

    /// The law that it has.
    pub(crate) fn law(&self) -> Option<String> {
        let name = attributes(self.attribute(METRICS)?).find(|(kind, _)| *kind == LAW)?.1;
        Some(String::from_utf8_lossy(name).trim_end_matches('\0').to_owned())
    }

    /// The same route with another law, or with none.
    pub(crate) fn with_law(&self, law: Option<&str>) -> Self {
        let mut route = self.0[..ABOUT].to_vec();
        let mut metrics = Vec::new();
        for (kind, value) in attributes(&self.0[ABOUT..]) {
            match kind {
                METRICS => {
                    attributes(value).filter(|(kind, _)| *kind != LAW).for_each(|(kind, value)| put(&mut metrics, kind, value));
                }
                _ => put(&mut route, kind, value),
            }
        }
        if let Some(law) = law {
            put(&mut metrics, LAW, format!("{law}\0").as_bytes());
        }
        if !metrics.is_empty() {
            put(&mut route, METRICS | NESTED, &metrics);
        }
        Self(route)
    }

    /// Whether both are the same route, whatever law they have.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.with_law(None).request() == other.with_law(None).request()
    }

    /// Puts it in the place of the one to the same network.
    pub(crate) fn set(&self) -> io::Result<()> {
        talk(NEW_ROUTE, ACKNOWLEDGE | REPLACE, &self.request()).map(drop)
    }

    /// As it is asked for: without what only the kernel says of it.
    fn request(&self) -> Vec<u8> {
        let mut request = self.0[..ABOUT].to_vec();
        let flags = u32::from_ne_bytes([request[8], request[9], request[10], request[11]]) & ON_LINK;
        request[8..ABOUT].copy_from_slice(&flags.to_ne_bytes());
        for (kind, value) in attributes(&self.0[ABOUT..]).filter(|(kind, _)| *kind != CACHE) {
            put(&mut request, if kind == METRICS { kind | NESTED } else { kind }, value);
        }
        request
    }

    fn attribute(&self, wanted: u16) -> Option<&[u8]> {
        attributes(self.0.get(ABOUT..)?).find(|(kind, _)| *kind == wanted).map(|(_, value)| value)
    }
}

fn put(to: &mut Vec<u8>, kind: u16, value: &[u8]) {
    to.extend(((value.len() + 4) as u16).to_ne_bytes());
    to.extend(kind.to_ne_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// Asks the kernel; its answers without their headers.
fn talk(kind: u16, flags: u16, body: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    let mut answers = Vec::new();
    Netlink::open(None)?.ask(kind, flags, body, |answer| answers.push(answer.to_vec()))?;
    Ok(answers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(attributes: &[(u16, &[u8])]) -> Route {
        let mut bytes = vec![libc::AF_INET as u8, 24, 0, 0, TABLE_MAIN, 3, 0, UNICAST, 16, 0, 0, 0];
        for (kind, value) in attributes {
            put(&mut bytes, *kind, value);
        }
        Route(bytes)
    }

    #[test]
    fn the_law_comes_to_the_other_metrics_and_goes_again() {
        let mut metrics = Vec::new();
        put(&mut metrics, 2, &1400_u32.to_ne_bytes());
        let before = route(&[(DESTINATION, &[10, 1, 2, 0]), (METRICS, &metrics), (4, &[3, 0, 0, 0])]);
        let after = before.with_law(Some("haul_fair"));
        assert_eq!(after.law().as_deref(), Some("haul_fair"));
        assert!(after.is_same(&before));
        assert_eq!(attributes(after.attribute(METRICS).expect("metrics")).count(), 2);
        assert_eq!(after.with_law(Some("bic")).law().as_deref(), Some("bic"));
        assert_eq!(after.with_law(None).with_law(None).law(), None);
        assert!(!route(&[(DESTINATION, &[10, 1, 3, 0])]).is_same(&before));
    }

    #[test]
    fn what_the_kernel_adds_is_not_asked_for() {
        let about = route(&[(DESTINATION, &[10, 1, 2, 0]), (CACHE, &[0; 32])]);
        assert!(about.is_same(&route(&[(DESTINATION, &[10, 1, 2, 0])])));
        assert_eq!(about.request()[8..ABOUT], [0; 4], "the state of a link is no property of the route");
    }

    #[test]
    fn a_network_is_found_by_its_address_and_length() {
        let about = route(&[(DESTINATION, &[10, 1, 2, 0])]);
        assert!(about.is_to(&"10.1.2.0/24".parse().expect("a network")));
        assert!(!about.is_to(&"10.1.2.0/25".parse().expect("a network")));
        assert!(!Route(vec![1]).is_to(&"10.1.2.0/24".parse().expect("a network")));
    }
}
