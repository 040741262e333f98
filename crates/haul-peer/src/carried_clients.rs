//! A listener's clients that come over TCP, because UDP does not get there.
//!
//! Whoever comes is a stranger, who chooses his carrier's name himself. Until a connection is complete on it, which takes a key that the listener lets in, a carrier has one lane; there are few such carriers, the oldest
//! of the source that has the most goes for one who comes, and each is gone after a while. Then it may have more, from the same address.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use haul::Endpoint;
use haul::carrier::{Carrier, Lane, tcp};
use haul_strangers::Strangers;
use haul_units::Cancel;

use crate::clock;

/// Carriers on which no connection is complete, at most, and those of one source; each has two threads.
const MAX_STRANGERS: usize = 128;
const MAX_STRANGERS_OF_SOURCE: usize = 32;
/// All carriers.
const MAX_CARRIERS: usize = 1024;
/// Lanes of one carrier.
const MAX_LANES: usize = 16;
/// How long a carrier may be of no use.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often that is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Takes connections over TCP too, on the port of the endpoint's, until `over` is cancelled.
pub fn carry_clients(endpoint: &Endpoint, over: &Cancel) -> io::Result<()> {
    let listener = tcp::listen(endpoint.local_addr())?;
    let clients = Clients { endpoint: endpoint.clone(), over: over.clone(), present: Arc::new(Mutex::new(Present::new())) };
    let sweeper = clients.clone();
    thread::Builder::new().name("haul-sweeper".to_owned()).spawn(move || sweeper.sweep())?;
    thread::Builder::new().name("haul-carrier".to_owned()).spawn(move || tcp::accept(&listener, clients))?;
    Ok(())
}

#[derive(Clone)]
struct Clients {
    endpoint: Endpoint,
    over: Cancel,
    present: Arc<Mutex<Present>>,
}

struct Present {
    by_name: HashMap<tcp::Name, Client>,
    /// Those on whose carrier no connection is complete.
    strangers: Strangers<tcp::Name>,
}

impl Present {
    fn new() -> Self {
        Self { by_name: HashMap::new(), strangers: Strangers::new(MAX_STRANGERS, MAX_STRANGERS_OF_SOURCE) }
    }
}

struct Client {
    carrier: Carrier,
    /// Its address at the endpoint.
    at: SocketAddr,
    from: SocketAddr,
    /// When it was last of use.
    used: Instant,
    /// A connection has been complete on it.
    is_known: bool,
    /// Cuts off a stranger's one lane.
    cut: Option<tcp::Cut>,
}

impl Client {
    /// A connection is complete on it.
    fn become_known(&mut self) {
        (self.is_known, self.cut) = (true, None);
    }
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends one that is in no list any more.
    fn end(&self, client: &Client) {
        if let Some(cut) = &client.cut {
            cut.off();
        }
        self.endpoint.drop_carrier(client.at);
    }

    /// Ends what is of no use.
    fn sweep(&self) {
        while !self.over.is_cancelled() {
            thread::park_timeout(LOOK);
            let now = clock::now();
            let Present { by_name, strangers } = &mut *self.lock();
            by_name.retain(|name, client| {
                if self.endpoint.is_used(client.at) {
                    client.used = now;
                    client.become_known();
                    strangers.leave(*name);
                }
                let stays = now - client.used < PATIENCE && (client.carrier.lanes() > 0 || now - client.used < LOOK * 2);
                if !stays {
                    strangers.leave(*name);
                    self.end(client);
                }
                stays
            });
        }
        *self.lock() = Present::new();
    }
}

impl tcp::Welcome for Clients {
    fn is_over(&self) -> bool {
        self.over.is_cancelled()
    }

    fn knows(&self, name: &tcp::Name, from: SocketAddr) -> bool {
        let Present { by_name, strangers } = &mut *self.lock();
        if let Some(client) = by_name.get_mut(name) {
            if self.endpoint.is_used(client.at) {
                client.become_known();
                strangers.leave(*name);
            }
            return client.is_known && client.from.ip() == from.ip() && client.carrier.lanes() < MAX_LANES;
        }
        // Those who are known can be so many, and their connections are counted elsewhere.
        if by_name.len() >= MAX_CARRIERS {
            return false;
        }
        if let Some(loser) = strangers.enter(from, *name)
            && let Some(mut client) = by_name.remove(&loser)
        {
            if self.endpoint.is_used(client.at) {
                // It has become a client since it was last looked at, and its place was free.
                client.become_known();
                by_name.insert(loser, client);
            } else {
                self.end(&client);
            }
        }
        let (at, carrier) = self.endpoint.carry(Some(from));
        by_name.insert(*name, Client { carrier, at, from, used: clock::now(), is_known: false, cut: None });
        true
    }

    fn take(&self, name: &tcp::Name, from: SocketAddr, lane: Lane, cut: tcp::Cut) {
        let carrier = self.lock().by_name.get_mut(name).map(|client| {
            client.cut = Some(cut).filter(|_| !client.is_known);
            client.carrier.clone()
        });
        if let Some(Err(error)) = carrier.map(|carrier| carrier.add(lane)) {
            tracing::debug!(%error, %from, "no lane");
        }
    }
}

#[cfg(test)]
mod tests;
