//! The interfaces and addresses that the paths of a client's connection leave from, and the thread that follows them.
//!
//! Each path has a socket that is bound to an interface and its address. The thread sleeps until the kernel says that an interface or an address has changed (and looks once a second,
//! lest a word was lost), compares what there is with where the paths leave from, and does what [`haul_paths::leave::changes`] says: a path is given up as soon as its carrier
//! or address is gone, before any timer notices; one that is back is asked; a new interface gets a path. Nothing of this is on the way of a packet but a lock that is read for
//! each train of such a connection.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, PoisonError, RwLock};
use std::thread;
use std::time::Duration;

use haul_paths::leave::{Change, Interface, Leave, Slot, changes, first_leaves, leaves};
use haul_proto::{Class, PATHS_MAX, Standing, Via};
use haul_udp::{InterfaceWatch, Options, Socket};
use haul_units::{Bytes, Time};

use super::carriers::is_carried;
use super::link::Link;
use super::receiving;
use super::shared::Shared;
use crate::clock;
use crate::error::ConnectError;

/// Where a connection's paths leave from.
pub(crate) struct Ways {
    via: Vec<Via>,
    options: Options,
    /// By path.
    places: RwLock<Vec<Place>>,
    watch: InterfaceWatch,
}

/// Of one path.
struct Place {
    slot: Slot,
    socket: Arc<Socket>,
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

    fn read(&self) -> std::sync::RwLockReadGuard<'_, Vec<Place>> {
        self.places.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, Vec<Place>> {
        self.places.write().unwrap_or_else(PoisonError::into_inner)
    }

    fn slots(&self) -> Vec<Slot> {
        self.read().iter().map(|place| place.slot.clone()).collect()
    }

    /// A socket to leave from there.
    fn place(&self, leave: Leave) -> io::Result<Place> {
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

/// Starts the threads: one that receives on the first path, and the one that follows.
pub(super) fn spawn(shared: &Arc<Shared>, link: &Arc<Link>, ways: &Arc<Ways>) -> io::Result<()> {
    if let Some(socket) = ways.socket(0) {
        receiving::spawn_for_path(shared.clone(), socket)?;
    }
    let follower = Follower { shared: shared.clone(), link: link.clone(), ways: ways.clone(), moved: clock::now() };
    thread::Builder::new().name("haul-follow".to_owned()).spawn(move || follower.run())?;
    Ok(())
}

struct Follower {
    shared: Arc<Shared>,
    link: Arc<Link>,
    ways: Arc<Ways>,
    /// When the handshake last began to leave from elsewhere.
    moved: Time,
}

impl Follower {
    fn run(mut self) {
        loop {
            let (over, connected) = self.link.look(|state| (state.drained || state.closed.is_some(), state.connected));
            if over {
                return;
            }
            if connected {
                self.follow();
            } else {
                self.try_another();
            }
            self.ways.watch.wait(LOOK);
        }
    }

    /// Where to leave from now; `None` where that cannot be told, or a carrier is used.
    fn leaves(&self) -> Option<Vec<Leave>> {
        let server = self.link.look(|state| state.connection.remote());
        if is_carried(server) {
            return None;
        }
        let there = interfaces().inspect_err(|error| tracing::warn!(%error, "no list of interfaces")).ok()?;
        Some(leaves(&self.ways.via, &there, canonical(server), routed(server)))
    }

    /// The handshake has not been answered: it may be by another way.
    fn try_another(&mut self) {
        let now = clock::now();
        if now.since(self.moved) < HANDSHAKE_PATIENCE {
            return;
        }
        self.moved = now;
        let Some(leaves) = self.leaves().filter(|leaves| leaves.len() > 1) else { return };
        let at = self.ways.slots().first().and_then(|slot| leaves.iter().position(|leave| leave.is_place_of(&slot.leave)));
        let next = leaves[at.map_or(0, |at| (at + 1) % leaves.len())].clone();
        tracing::info!(interface = %next.interface, "no answer: the handshake goes another way");
        self.renew(0, next);
    }

    fn follow(&self) {
        let Some(leaves) = self.leaves() else { return };
        self.say_classes();
        let most = usize::from(self.link.look(|state| state.connection.paths_allowed()).min(PATHS_MAX));
        for change in changes(&self.ways.slots(), &leaves, most) {
            tracing::debug!(?change, "interfaces");
            match change {
                Change::GiveUp(path) => self.set_there(path, false),
                Change::Return(path) => self.set_there(path, true),
                Change::Renew(path, leave) => self.renew(path, leave),
                Change::Open(leave) => self.open(leave),
            }
        }
    }

    /// The handshake's path may be one that is not for data.
    fn say_classes(&self) {
        let slots = self.ways.slots();
        let Some(first) = slots.first().filter(|slot| slot.is_there && slot.leave.class.is_backup()) else { return };
        self.link.act(|state, now| {
            if state.connection.paths().next().is_some_and(|path| path.standing == Standing::Available) {
                let (standing, limit) = duty(&first.leave);
                state.connection.set_standing(now, 0, standing, limit);
            }
        });
    }

    fn set_there(&self, path: usize, is_there: bool) {
        let mut leave = None;
        if let Some(place) = self.ways.write().get_mut(path) {
            place.slot.is_there = is_there;
            leave = Some(place.slot.leave.clone());
        }
        let Some(leave) = leave else { return };
        let (standing, limit) = duty(&leave);
        let standing = if is_there { standing } else { Standing::Away };
        self.link.act(|state, now| state.connection.set_standing(now, path as u8, standing, limit));
    }

    /// A path leaves from elsewhere.
    fn renew(&self, path: usize, leave: Leave) {
        let (standing, limit) = duty(&leave);
        let Some(place) = self.received(leave) else { return };
        if let Some(old) = self.ways.write().get_mut(path) {
            std::mem::replace(old, place).socket.stop();
        }
        self.link.act(|state, now| {
            state.connection.renew_path(now, path as u8);
            state.connection.set_standing(now, path as u8, standing, limit);
        });
    }

    fn open(&self, leave: Leave) {
        let (standing, limit) = duty(&leave);
        let Some(place) = self.received(leave) else { return };
        // The path may send at once: its socket comes first.
        self.ways.write().push(place);
        let opened = self.link.act(|state, now| {
            let path = state.connection.open_path(now)?;
            if standing != Standing::Available || limit.is_some() {
                state.connection.set_standing(now, path, standing, limit);
            }
            Some(path)
        });
        if opened.is_none()
            && let Some(place) = self.ways.write().pop()
        {
            place.socket.stop();
        }
    }

    /// A socket there, with a thread that receives from it.
    fn received(&self, leave: Leave) -> Option<Place> {
        let interface = leave.interface.clone();
        let place = self.ways.place(leave).and_then(|place| {
            receiving::spawn_for_path(self.shared.clone(), place.socket.clone())?;
            Ok(place)
        });
        // An address that has just come may not be usable yet.
        place.inspect_err(|error| tracing::debug!(%error, %interface, "no path leaves from there yet")).ok()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.ways.stop();
    }
}

fn duty(leave: &Leave) -> (Standing, Option<Bytes>) {
    let standing = if leave.class.is_backup() { Standing::Backup } else { Standing::Available };
    (standing, leave.class.limit())
}

fn interfaces() -> io::Result<Vec<Interface>> {
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

fn canonical(addr: SocketAddr) -> IpAddr {
    addr.ip().to_canonical()
}

/// How often interfaces are looked at though nothing was said of a change.
const LOOK: Duration = Duration::from_secs(1);
/// A handshake without an answer goes another way after so long: two tries of it.
const HANDSHAKE_PATIENCE: Duration = Duration::from_millis(1500);
