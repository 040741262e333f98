//! From where paths leave at present, and what to do when that changes.
//!
//! [`leaves`] makes of what the user wants ([`Via`]) and of what interfaces there are a list of places to leave from, the one that the handshake takes first. [`changes`] compares it
//! with where the paths of a connection leave from:
//!
//! ```text
//!   a path's place is gone, or has no carrier              give it up: its bytes go to the others
//!   it is back as it was                                   ask whether the peer answers
//!   it is back with another address, or as a new device    leave from there, and ask
//!   a place that no path leaves from                       a new path; where there are as many as there may be, in the place of one that is gone
//! ```

use std::net::IpAddr;

use crate::via::{Class, Exit, Via};

/// An interface of this machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// Its number: one that is plugged in again has another.
    pub index: u32,
    /// It is up and has a carrier.
    pub is_up: bool,
    /// It leads nowhere but here.
    pub is_loopback: bool,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
}

/// A place to leave from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leave {
    /// The interface.
    pub interface: String,
    /// Its number.
    pub index: u32,
    /// The address.
    pub address: IpAddr,
    /// The user has named the address, and so it is what the place is known by.
    pub by_address: bool,
    /// What for.
    pub class: Class,
}

impl Leave {
    /// Whether two are one place, perhaps with another address.
    pub fn is_place_of(&self, other: &Self) -> bool {
        if self.by_address { self.address == other.address } else { !other.by_address && self.interface == other.interface }
    }
}

/// Nothing can leave as the user wants it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaveError {
    /// No such interface.
    #[error("no interface is called {name}: there are {there}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// Those there are.
        there: String,
    },
    /// No such address.
    #[error("{0} is no address of this machine")]
    NotHere(IpAddr),
    /// An address of the other family.
    #[error("{address} cannot reach {server}: one is IPv4, the other IPv6")]
    Family {
        /// What was asked for.
        address: IpAddr,
        /// Where the server is.
        server: IpAddr,
    },
    /// An interface without an address that reaches the server.
    #[error("interface {name} has no {family} address to reach {server} from")]
    NoAddress {
        /// Which.
        name: String,
        /// IPv4 or IPv6.
        family: &'static str,
        /// Where the server is.
        server: IpAddr,
    },
    /// Nothing of what was asked for works at present.
    #[error("no interface that was asked for is up with an address: {0}")]
    AllDown(String),
}

/// As [`leaves`], for a connection that begins: it fails for what cannot be, whatever is plugged in, and where nothing works at present.
pub fn first_leaves(
    via: &[Via],
    interfaces: &[Interface],
    server: IpAddr,
    routed: Option<IpAddr>,
) -> Result<Vec<Leave>, LeaveError> {
    for way in via {
        match &way.exit {
            Exit::All => {}
            Exit::Address(address) if address.is_ipv4() != server.is_ipv4() => {
                return Err(LeaveError::Family { address: *address, server });
            }
            Exit::Address(address) => {
                if !interfaces.iter().any(|interface| interface.addresses.contains(address)) {
                    return Err(LeaveError::NotHere(*address));
                }
            }
            Exit::Interface(name) => {
                let Some(interface) = interfaces.iter().find(|interface| interface.name == *name) else {
                    let there = interfaces.iter().map(|interface| interface.name.as_str()).collect::<Vec<_>>().join(", ");
                    return Err(LeaveError::Unknown { name: name.clone(), there });
                };
                if interface.is_up && address_towards(interface, server).is_none() {
                    let family = if server.is_ipv4() { "IPv4" } else { "IPv6" };
                    return Err(LeaveError::NoAddress { name: name.clone(), family, server });
                }
            }
        }
    }
    let leaves = leaves(via, interfaces, &[server], routed);
    if leaves.is_empty() {
        let wanted = via.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return Err(LeaveError::AllDown(wanted));
    }
    Ok(leaves)
}

/// Where paths to a server can leave from now that is at these addresses, from each place to the first that can be reached there: normal ways before backups, and among each kind `routed`, the address that the routing table would take, before others of `all`.
pub fn leaves(via: &[Via], interfaces: &[Interface], servers: &[IpAddr], routed: Option<IpAddr>) -> Vec<Leave> {
    let mut leaves: Vec<Leave> = Vec::new();
    let address_of = |interface: &Interface| servers.iter().find_map(|server| address_towards(interface, *server));
    let is_here = servers.first().is_some_and(IpAddr::is_loopback);
    let up = || interfaces.iter().filter(|interface| interface.is_up);
    let leave = |interface: &Interface, address, by_address, class| Leave {
        interface: interface.name.clone(),
        index: interface.index,
        address,
        by_address,
        class,
    };
    for way in via {
        let mut found: Vec<Leave> = match &way.exit {
            Exit::Interface(name) => up()
                .filter(|interface| interface.name == *name)
                .filter_map(|interface| Some(leave(interface, address_of(interface)?, false, way.class)))
                .collect(),
            Exit::Address(address) => up()
                .filter(|interface| interface.addresses.contains(address) && is_of_family(servers, address))
                .map(|interface| leave(interface, *address, true, way.class))
                .collect(),
            Exit::All => {
                let is_routed = |interface: &&Interface| routed.is_some_and(|routed| interface.addresses.contains(&routed));
                let is_named = |interface: &Interface| {
                    via.iter().any(|other| match &other.exit {
                        Exit::All => false,
                        Exit::Interface(name) => *name == interface.name,
                        Exit::Address(address) => interface.addresses.contains(address),
                    })
                };
                let others = up().filter(|interface| !interface.is_loopback && !is_routed(interface) && !is_here);
                up().filter(is_routed)
                    .chain(others)
                    .filter(|interface| !is_named(interface))
                    .filter_map(|interface| Some(leave(interface, address_of(interface)?, false, way.class)))
                    .collect()
            }
        };
        found.retain(|new| !leaves.iter().any(|old| old.is_place_of(new)));
        leaves.extend(found);
    }
    leaves.sort_by_key(|leave| leave.class.is_backup());
    leaves
}

fn is_of_family(servers: &[IpAddr], address: &IpAddr) -> bool {
    servers.iter().any(|server| server.is_ipv4() == address.is_ipv4())
}

/// The address of an interface by which `server` is reached: of its family, and of those the widest in scope.
fn address_towards(interface: &Interface, server: IpAddr) -> Option<IpAddr> {
    let reaches = |address: &&IpAddr| address.is_ipv4() == server.is_ipv4() && is_link_local(**address) == is_link_local(server);
    interface.addresses.iter().find(reaches).copied()
}

fn is_link_local(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Where a path of a connection leaves from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// From there.
    pub leave: Leave,
    /// It works, as far as this machine can tell.
    pub is_there: bool,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// The path of this number can carry nothing.
    GiveUp(usize),
    /// It may work again.
    Return(usize),
    /// It leaves from elsewhere.
    Renew(usize, Leave),
    /// A new path.
    Open(Leave),
}

/// What to do for paths that leave from `slots`, by their number, now that they can leave from `leaves`; no more than `most` paths.
pub fn changes(slots: &[Slot], leaves: &[Leave], most: usize) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut free = Vec::new();
    for (number, slot) in slots.iter().enumerate() {
        match leaves.iter().find(|leave| leave.is_place_of(&slot.leave)) {
            None => {
                free.push(number);
                if slot.is_there {
                    changes.push(Change::GiveUp(number));
                }
            }
            Some(leave) if (leave.index, leave.address) != (slot.leave.index, slot.leave.address) => {
                changes.push(Change::Renew(number, leave.clone()));
            }
            Some(_) if !slot.is_there => changes.push(Change::Return(number)),
            Some(_) => {}
        }
    }
    let mut count = slots.len();
    for leave in leaves.iter().filter(|leave| !slots.iter().any(|slot| leave.is_place_of(&slot.leave))) {
        if count < most {
            count += 1;
            changes.push(Change::Open(leave.clone()));
        } else if !free.is_empty() {
            changes.push(Change::Renew(free.remove(0), leave.clone()));
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn interface(name: &str, index: u32, addresses: &[&str]) -> Interface {
        let addresses = addresses.iter().map(|text| ip(text)).collect();
        Interface { name: name.to_owned(), index, is_up: true, is_loopback: name == "lo", addresses }
    }

    fn machine() -> Vec<Interface> {
        vec![
            interface("lo", 1, &["127.0.0.1", "::1"]),
            interface("eth0", 2, &["fe80::1", "10.0.0.2", "fd00::2"]),
            interface("eth1", 3, &["10.0.1.2"]),
            interface("bare", 4, &[]),
        ]
    }

    fn via(text: &str) -> Vec<Via> {
        text.split(',').map(|way| way.parse().unwrap()).collect()
    }

    fn names(leaves: &[Leave]) -> Vec<String> {
        leaves.iter().map(|leave| format!("{} {}", leave.interface, leave.address)).collect()
    }

    fn leave(text: &str, server: &str) -> Vec<String> {
        names(&leaves(&via(text), &machine(), &[ip(server)], Some(ip("10.0.1.2"))))
    }

    #[test]
    fn the_handshake_leaves_by_what_is_named_first_or_routed_and_backups_come_last() {
        assert_eq!(leave("eth1,eth0", "192.0.2.1"), ["eth1 10.0.1.2", "eth0 10.0.0.2"]);
        assert_eq!(leave("eth1:backup,eth0", "192.0.2.1"), ["eth0 10.0.0.2", "eth1 10.0.1.2"]);
        assert_eq!(leave("all", "192.0.2.1"), ["eth1 10.0.1.2", "eth0 10.0.0.2"]);
        assert_eq!(leave("all,eth1:metered", "192.0.2.1"), ["eth0 10.0.0.2", "eth1 10.0.1.2"]);
        assert_eq!(leave("all", "2001:db8::1"), ["eth0 fd00::2"]);
        assert_eq!(leave("10.0.0.2,eth1", "192.0.2.1"), ["eth0 10.0.0.2", "eth1 10.0.1.2"]);
        assert_eq!(leave("eth0,eth0", "192.0.2.1"), ["eth0 10.0.0.2"]);
        assert_eq!(leave("all", "127.0.0.1"), ["eth1 10.0.1.2"], "only what is routed leads to this machine");
    }

    #[test]
    fn an_interface_of_the_other_family_leads_to_another_address_of_the_server() {
        let servers = ["2001:db8::1", "192.0.2.1"].map(ip);
        let leave = |text: &str, servers: &[IpAddr]| names(&leaves(&via(text), &machine(), servers, None));
        assert_eq!(leave("all", &servers), ["eth0 fd00::2", "eth1 10.0.1.2"]);
        assert_eq!(leave("all", &servers[..1]), ["eth0 fd00::2"]);
        assert_eq!(leave("eth1,10.0.0.2", &servers), ["eth1 10.0.1.2", "eth0 10.0.0.2"]);
    }

    #[test]
    fn what_cannot_be_is_said() {
        let verify = |text: &str, server: &str| {
            first_leaves(&via(text), &machine(), ip(server), None).map(drop).map_err(|error| error.to_string())
        };
        assert_eq!(verify("all,eth1:backup", "192.0.2.1"), Ok(()));
        for (text, server, words) in [
            ("eth7", "192.0.2.1", "eth7: there are lo, eth0, eth1, bare"),
            ("10.9.9.9", "192.0.2.1", "no address of this machine"),
            ("10.0.0.2", "2001:db8::1", "one is IPv4"),
            ("eth1", "2001:db8::1", "eth1 has no IPv6 address"),
            ("bare", "192.0.2.1", "bare has no IPv4 address"),
        ] {
            assert!(verify(text, server).is_err_and(|error| error.contains(words)), "{text}: {:?}", verify(text, server));
        }
        let mut down = machine();
        for interface in &mut down {
            interface.is_up = false;
        }
        let error = first_leaves(&via("eth0,eth1"), &down, ip("192.0.2.1"), None).unwrap_err();
        assert_eq!(error, LeaveError::AllDown("eth0, eth1".to_owned()));
    }

    #[test]
    fn paths_follow_what_is_plugged_in() {
        let (wanted, server) = (via("all"), ip("192.0.2.1"));
        let find = |machine: &[Interface]| leaves(&wanted, machine, &[server], Some(ip("10.0.1.2")));
        let mut machine = machine();
        let mut slots: Vec<Slot> = find(&machine).into_iter().map(|leave| Slot { leave, is_there: true }).collect();
        assert_eq!(changes(&slots, &find(&machine), 8), []);
        machine[1].is_up = false;
        assert_eq!(changes(&slots, &find(&machine), 8), [Change::GiveUp(1)]);
        slots[1].is_there = false;
        assert_eq!(changes(&slots, &find(&machine), 8), []);
        machine[1].is_up = true;
        assert_eq!(changes(&slots, &find(&machine), 8), [Change::Return(1)]);
        machine[1].addresses = vec![ip("10.0.0.3")];
        let moved = find(&machine)[1].clone();
        assert_eq!(changes(&slots, &find(&machine), 8), [Change::Renew(1, moved)]);
        machine[1] = interface("wlan0", 9, &["10.0.5.2"]);
        let new = find(&machine)[1].clone();
        assert_eq!(changes(&slots, &find(&machine), 8), [Change::Open(new.clone())]);
        assert_eq!(changes(&slots, &find(&machine), 2), [Change::Renew(1, new)], "in the place of one that is gone");
    }

    #[test]
    fn an_address_is_followed_to_where_it_is() {
        let (wanted, server) = (via("10.0.0.2"), ip("192.0.2.1"));
        let mut machine = machine();
        let slots = [Slot { leave: leaves(&wanted, &machine, &[server], None).remove(0), is_there: true }];
        machine[1].addresses.clear();
        assert_eq!(changes(&slots, &leaves(&wanted, &machine, &[server], None), 8), [Change::GiveUp(0)]);
        machine[2].addresses.push(ip("10.0.0.2"));
        let there = leaves(&wanted, &machine, &[server], None).remove(0);
        assert_eq!(
            (there.interface.as_str(), changes(&slots, std::slice::from_ref(&there), 8)),
            ("eth1", vec![Change::Renew(0, there.clone())])
        );
    }
}
