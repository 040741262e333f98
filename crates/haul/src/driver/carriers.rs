//! What is sent and received over byte streams, where UDP does not pass.
//!
//! To the transport a carrier is an address like any other, which only this endpoint knows: one of `100::/64`, where no packet ever goes (RFC 6666). So a connection goes over to it, and back, as it follows
//! any change of address. The socket takes nothing that claims to come from there.
//!
//! Nothing that a lane's reader calls waits for a lane: a connection's own send thread does, for a while; the others' trains are lost where there is no room, as on a network.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use haul_carrier::Carrier;
use haul_cc::ControllerChoice;
use haul_units::BitRate;

/// How long a connection's send thread waits for room at a time: its timers wait with it.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);
/// A lane may stand still so long, while TCP finds out what it has lost: what it has is on its way.
pub(super) const STANDSTILL: Duration = Duration::from_secs(3);
/// What the window is over carriers: theirs. TCP, or ssh's, finds out what the path carries, and a train that finds no room waits; nothing else is to rule. The rate is beyond any.
pub(super) const UNRULED: ControllerChoice = ControllerChoice::Fixed(BitRate::gbps(100));

/// An endpoint's carriers.
#[derive(Default)]
pub(crate) struct Carriers {
    by_address: RwLock<HashMap<SocketAddr, Entry>>,
    /// The socket has brought something for a connection.
    heard_over_udp: AtomicBool,
}

struct Entry {
    carrier: Carrier,
    peer: Option<SocketAddr>,
}

impl Carriers {
    pub(super) fn get(&self, address: SocketAddr) -> Option<Carrier> {
        let carriers = self.by_address.read().unwrap_or_else(PoisonError::into_inner);
        carriers.get(&address).map(|entry| entry.carrier.clone())
    }

    /// Where the peer of a carrier is; other addresses are themselves.
    pub(crate) fn resolve(&self, address: SocketAddr) -> SocketAddr {
        if !is_carried(address) {
            return address;
        }
        let carriers = self.by_address.read().unwrap_or_else(PoisonError::into_inner);
        carriers.get(&address).and_then(|entry| entry.peer).unwrap_or(address)
    }

    /// A new one, and its address; `peer` is where the other end is, if that is known.
    pub(super) fn add(&self, peer: Option<SocketAddr>, make: impl FnOnce(SocketAddr) -> Carrier) -> (SocketAddr, Carrier) {
        let mut carriers = self.by_address.write().unwrap_or_else(PoisonError::into_inner);
        let free = (1..u64::MAX).map(address).find(|address| !carriers.contains_key(address));
        let address = free.unwrap_or_else(|| address(0));
        let carrier = make(address);
        carriers.insert(address, Entry { carrier: carrier.clone(), peer });
        (address, carrier)
    }

    /// Whether the socket has brought something for a connection.
    pub(super) fn has_heard_over_udp(&self) -> bool {
        self.heard_over_udp.load(Ordering::Relaxed)
    }

    pub(super) fn on_heard_over_udp(&self) {
        if !self.heard_over_udp.load(Ordering::Relaxed) {
            self.heard_over_udp.store(true, Ordering::Relaxed);
        }
    }

    pub(crate) fn drop_one(&self, address: SocketAddr) {
        let gone = self.by_address.write().unwrap_or_else(PoisonError::into_inner).remove(&address);
        if let Some(entry) = gone {
            entry.carrier.close();
        }
    }

    pub(super) fn close(&self) {
        for (_, entry) in self.by_address.write().unwrap_or_else(PoisonError::into_inner).drain() {
            entry.carrier.close();
        }
    }
}

/// Whether this is a carrier's address.
pub(crate) fn is_carried(address: SocketAddr) -> bool {
    matches!(address.ip(), IpAddr::V6(ip) if ip.segments().starts_with(&PREFIX))
}

const fn address(number: u64) -> SocketAddr {
    let [a, b, c, d] = PREFIX;
    let [e, f, g, h] = [number >> 48, number >> 32, number >> 16, number];
    SocketAddr::new(IpAddr::V6(Ipv6Addr::new(a, b, c, d, e as u16, f as u16, g as u16, h as u16)), 1)
}

const PREFIX: [u16; 4] = [0x100, 0, 0, 0];
