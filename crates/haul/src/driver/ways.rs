//! The interfaces and addresses that the paths of a client's connection leave from.
//!
//! Each path has a socket that is bound to an interface and its address. Nothing of this is on the way of a packet but a lock that is read for each train of such a connection.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};

use haul_paths::leave::{Interface, Leave, Slot, first_leaves, leaves};
use haul_proto::{Class, Via};
use haul_udp::{InterfaceWatch, Options, Socket};

use crate::error::ConnectError;

/// Where a connection's paths leave from.
pub(crate) struct Ways {
    via: Vec<Via>,
    options: Options,
    /// By path.
    places: RwLock<Vec<Place>>,
    pub(super) watch: InterfaceWatch,
}

/// Of one path.
pub(super) struct Place {
    pub(super) slot: Slot,
    pub(super) socket: Arc<Socket>,
}

/// Where a path leaves from, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathWay {
    /// The interface.
    pub interface: String,
    /// The address.
    pub address: IpAddr,
    /// What the path is for.
    pub class: Class,
    /// The interface is up and has the address.
    pub is_up: bool,
}

impl Ways {
    /// For a connection to one of `to`, of which those stay that can be reached so. The first path has a socket.
    pub(super) fn open(via: &[Via], to: &mut Vec<SocketAddr>, options: Options) -> Result<Arc<Self>, ConnectError> {
        let there = interfaces().map_err(ConnectError::Interfaces)?;
        let tried = to.iter().map(|&addr| Ok((addr, first_leaves(via, &there, canonical(addr), routed(addr))?)));
        let (server, leaves) = tried.reduce(Result::or).ok_or(ConnectError::NoAddress)?.map_err(ConnectError::Leave)?;
        to.retain(|addr| canonical(*addr).is_ipv4() == canonical(server).is_ipv4());
        let ways = Self {
            via: via.to_vec(),
            options,
            places: RwLock::default(),
            watch: InterfaceWatch::open().map_err(ConnectError::Interfaces)?,
        };
        let mut first = Err(io::ErrorKind::AddrNotAvailable.into());
        for leave in leaves {
            first = ways.place(leave);
            if first.is_ok() {
                break;
            }
        }
        ways.write().push(first.map_err(ConnectError::Interfaces)?);
        Ok(Arc::new(ways))
    }

    /// The socket of a path.
    pub(super) fn socket(&self, path: u8) -> Option<Arc<Socket>> {
        self.read().get(usize::from(path)).map(|place| place.socket.clone())
    }

    /// Where the paths leave from, by their number.
    pub(crate) fn list(&self) -> Vec<PathWay> {
        let way = |place: &Place| {
            let Leave { interface, address, class, .. } = place.slot.leave.clone();
            PathWay { interface, address, class, is_up: place.slot.is_there }
        };
        self.read().iter().map(way).collect()
    }

    /// The connection is complete, or over.
    pub(super) fn wake(&self) {
        self.watch.wake();
    }

    /// Ends the threads that receive.
    pub(super) fn stop(&self) {
        self.read().iter().for_each(|place| place.socket.stop());
        self.wake();
    }

    /// Where paths can leave from now to a server that is at these addresses.
    pub(super) fn leaves(&self, servers: &[SocketAddr]) -> io::Result<Vec<Leave>> {
        let to: Vec<IpAddr> = servers.iter().copied().map(canonical).collect();
        Ok(leaves(&self.via, &interfaces()?, &to, servers.first().copied().and_then(routed)))
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Vec<Place>> {
        self.places.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn write(&self) -> std::sync::RwLockWriteGuard<'_, Vec<Place>> {
        self.places.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn slots(&self) -> Vec<Slot> {
        self.read().iter().map(|place| place.slot.clone()).collect()
    }

    /// A socket to leave from there.
    pub(super) fn place(&self, leave: Leave) -> io::Result<Place> {
        let (socket, is_bound) = Socket::bind_via(SocketAddr::new(leave.address, 0), &leave.interface, self.options)?;
        if !is_bound {
            tracing::warn!(
                interface = %leave.interface, address = %leave.address,
                "this system binds no socket to an interface for this user: by which one packets leave is for the routing of their address to say"
            );
        }
        Ok(Place { slot: Slot { leave, is_there: true }, socket: Arc::new(socket) })
    }
}

/// Those of this machine.
pub(super) fn interfaces() -> io::Result<Vec<Interface>> {
    let same = |interface: haul_udp::Interface| {
        let haul_udp::Interface { name, index, is_up, is_loopback, addresses } = interface;
        Interface { name, index, is_up, is_loopback, addresses }
    };
    Ok(haul_udp::interfaces()?.into_iter().map(same).collect())
}

/// The address from which the routing table would have packets leave.
fn routed(server: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = if server.is_ipv4() { [0; 4].into() } else { [0; 16].into() };
    let socket = std::net::UdpSocket::bind((any, 0)).ok()?;
    socket.connect(server).ok()?;
    Some(canonical(socket.local_addr().ok()?))
}

/// Its address, whatever the family of the socket that it is from.
pub(super) fn canonical(addr: SocketAddr) -> IpAddr {
    addr.ip().to_canonical()
}
