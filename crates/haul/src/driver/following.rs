//! The thread that follows the interfaces of a client's connection as they come and go.
//!
//! It sleeps until the kernel says that an interface or an address has changed (and looks once a second, lest a word was lost), compares what there is with where the paths leave from,
//! and does what [`haul_paths::leave::changes`] says: a path is given up as soon as its carrier or address is gone, before any timer notices; one that is back is asked; a new
//! interface gets a path.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use haul_paths::leave::{Change, Leave, changes};
use haul_proto::{PATHS_MAX, Standing};
use haul_units::{Bytes, Time};

use super::carriers::is_carried;
use super::link::Link;
use super::receiving;
use super::shared::Shared;
use super::ways::{Place, Ways, canonical};
use crate::clock;

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
        let servers = self.link.look(|state| state.connection.server_addresses());
        if servers.first().copied().is_none_or(is_carried) {
            return None;
        }
        self.ways.leaves(&servers).inspect_err(|error| tracing::warn!(%error, "no list of interfaces")).ok()
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
        let of_its_family = |to: &SocketAddr| canonical(*to).is_ipv4() == leave.address.is_ipv4();
        let Some(to) = self.link.look(|state| state.connection.server_addresses()).into_iter().find(of_its_family) else {
            return;
        };
        let Some(place) = self.received(leave) else { return };
        // The path may send at once: its socket comes first.
        self.ways.write().push(place);
        let opened = self.link.act(|state, now| {
            let path = state.connection.open_path(now, to)?;
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

/// How often interfaces are looked at though nothing was said of a change.
const LOOK: Duration = Duration::from_secs(1);
/// A handshake without an answer goes another way after so long: two tries of it.
const HANDSHAKE_PATIENCE: Duration = Duration::from_millis(1500);
