//! Those whom a listener has admitted: how many at once, how many of one key and of one address, and what memory each may use.
//!
//! A long fat path wants hundreds of megabytes, and nobody should have to say so; but whoever comes may ask for them, and must not get the machine's memory by
//! coming often. So all clients of a listener share a budget, each the same part: who comes makes the parts of the others smaller, who leaves makes them
//! larger. A client whose part would be too small to work with is turned away. To tell all of their part wakes all of them, so among many it goes by steps.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use haul::{Bytes, Connection, Fingerprint};

use crate::allocator;
use crate::greeting::Refusal;
use crate::system::memory_bytes;

/// How many clients there may be.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// At once.
    pub clients: usize,
    /// At once with one key.
    pub of_key: usize,
    /// At once from one address.
    pub of_address: usize,
}

/// What memory clients get.
#[derive(Debug, Clone, Copy)]
pub enum Memory {
    /// All together no more than this.
    Shared(Bytes),
    /// Each a window of this size.
    Each(Bytes),
}

impl Memory {
    /// One part of so many of this machine's memory, for all clients together.
    pub fn part_of_machine(part: u64) -> Self {
        Self::Shared(Bytes(memory_bytes() / part.max(1)))
    }

    /// The window of each of so many connections; none if that is too little for any use.
    pub fn window(self, clients: usize) -> Option<Bytes> {
        match self {
            Self::Each(window) => Some(window),
            Self::Shared(budget) => part_of(budget, step(clients)).or_else(|| part_of(budget, clients)),
        }
    }
}

/// The window of each of so many that share a budget.
fn part_of(budget: Bytes, clients: usize) -> Option<Bytes> {
    let part = budget.as_u64() / (clients as u64).max(1);
    let window = part.saturating_sub(OVERHEAD.as_u64()) / WINDOWS_OF_CLIENT;
    (window >= LEAST.as_u64()).then(|| Bytes(window).min(MOST))
}

/// So many clients or a few more, for whom the budget is divided: up to 16 as many as there are, of more a whole number of eighths of a power of two. Rounded up, so that the budget holds.
fn step(clients: usize) -> usize {
    clients.next_multiple_of(1 << clients.checked_ilog2().unwrap_or(0).saturating_sub(3))
}

/// The clients of one listener.
#[derive(Clone)]
pub struct Guests {
    limits: Limits,
    memory: Memory,
    present: Arc<Mutex<Present>>,
}

struct Present<C = Connection> {
    next: u64,
    guests: HashMap<u64, Entry<C>>,
    /// What each of them was told.
    window: Option<Bytes>,
}

struct Entry<C> {
    key: Option<Fingerprint>,
    address: IpAddr,
    connection: C,
}

impl<C> Default for Present<C> {
    fn default() -> Self {
        Self { next: 0, guests: HashMap::new(), window: None }
    }
}

impl<C> Present<C> {
    /// Tells all of their window, if it is another than before.
    fn share(&mut self, window: Bytes, tell: impl Fn(&C, Bytes)) {
        if self.window.replace(window) != Some(window) {
            self.guests.values().for_each(|entry| tell(&entry.connection, window));
        }
    }
}

/// An admitted client's place, until it is dropped.
pub struct Place {
    guests: Guests,
    number: u64,
}

impl Guests {
    /// Nobody is there.
    pub fn new(limits: Limits, memory: Memory) -> Self {
        allocator::give_back_what_is_freed();
        Self { limits, memory, present: Arc::default() }
    }

    /// What all together may take, where that is bounded.
    pub const fn budget(&self) -> Option<Bytes> {
        match self.memory {
            Memory::Shared(budget) => Some(budget),
            Memory::Each(_) => None,
        }
    }

    /// Admits a client, if there is a place for it; else what to tell it.
    pub fn admit(&self, connection: &Connection) -> Result<Place, Refusal> {
        let key = connection.peer_key().map(|key| key.fingerprint());
        let address = connection.remote_addr().ip().to_canonical();
        let mut present = self.lock();
        let count = |same: &dyn Fn(&Entry<Connection>) -> bool| present.guests.values().filter(|entry| same(entry)).count();
        let Limits { clients, of_key, of_address } = self.limits;
        let refuse = |error: String| Err(Refusal { error: error.into(), hint: Some("try again later".into()) });
        if present.guests.len() >= clients {
            return refuse("the server has as many clients as it takes".to_owned());
        }
        if key.is_some_and(|key| count(&|entry| entry.key == Some(key)) >= of_key) {
            return refuse(format!("the server takes no more than {of_key} connections with one key"));
        }
        if count(&|entry| entry.address == address) >= of_address {
            return refuse(format!("the server takes no more than {of_address} connections from one address"));
        }
        let Some(window) = self.memory.window(present.guests.len() + 1) else {
            return refuse("the memory that the server has for clients is given out".to_owned());
        };
        present.share(window, Connection::set_memory);
        connection.admit(Some(window));
        present.next += 1;
        let number = present.next;
        present.guests.insert(number, Entry { key, address, connection: connection.clone() });
        Ok(Place { guests: self.clone(), number })
    }

    fn lock(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut present = self.guests.lock();
        let gone = present.guests.remove(&self.number);
        if let Some(window) = self.guests.memory.window(present.guests.len()) {
            present.share(window, Connection::set_memory);
        }
        drop(present);
        // Perhaps the last handle, whose end takes the connection's lock.
        drop(gone);
    }
}

/// What a connection may take, in windows: what is sent, and twice that of what is received, for blocks of which one packet is missing are whole buffers.
const WINDOWS_OF_CLIENT: u64 = 3;
/// What it takes besides: two of the largest blocks, threads, keys.
const OVERHEAD: Bytes = Bytes::mib(8);
/// A window to work with: two blocks of the usual size, 160 Mbit/s over 100 ms.
const LEAST: Bytes = Bytes::mib(2);
/// Enough for 10 Gbit/s over 200 ms at 5 % loss.
const MOST: Bytes = Bytes::gib(1);

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::Ipv4Addr;

    use super::*;

    fn mib(window: Option<Bytes>) -> Option<u64> {
        window.map(|window| window.as_u64() >> 20)
    }

    #[test]
    fn clients_share_the_budget_and_no_more() {
        let memory = Memory::Shared(Bytes::gib(1));
        assert_eq!([1, 2, 10, 73].map(|clients| mib(memory.window(clients))), [Some(338), Some(168), Some(31), Some(2)]);
        assert_eq!(memory.window(74), None, "too little for any use");
        for clients in 1..100 {
            let Some(window) = memory.window(clients) else { continue };
            let all = (window.as_u64() * WINDOWS_OF_CLIENT + OVERHEAD.as_u64()) * clients as u64;
            assert!(all <= Bytes::gib(1).as_u64(), "{clients} clients: {all} bytes");
        }
        assert_eq!(mib(Memory::Shared(Bytes::gib(400)).window(1)), Some(1024));
        assert_eq!(Memory::Shared(Bytes::mib(10)).window(1), None, "a small machine is not overdrawn");
    }

    /// How often clients are told of a window while so many come, and while all go again.
    fn told(memory: Memory, clients: u64) -> (usize, usize) {
        let (mut present, told) = (Present::<()>::default(), Cell::new(0));
        let tell = |(): &(), _: Bytes| told.set(told.get() + 1);
        for number in 0..clients {
            present.share(memory.window(present.guests.len() + 1).unwrap(), tell);
            present.guests.insert(number, Entry { key: None, address: Ipv4Addr::LOCALHOST.into(), connection: () });
        }
        let coming = told.take();
        for number in 0..clients {
            present.guests.remove(&number);
            present.share(memory.window(present.guests.len()).unwrap(), tell);
        }
        (coming, told.get())
    }

    #[test]
    fn nobody_is_told_of_a_window_that_is_the_one_before() {
        assert_eq!(told(Memory::Each(Bytes::mib(64)), 100), (0, 0));
        assert_eq!(told(Memory::Shared(Bytes::gib(400)), 100), (0, 0), "the largest window for each");
        // Each time would be 4950 tellings, each way.
        let (coming, going) = told(Memory::Shared(Bytes::gib(64)), 100);
        assert!((500..1000).contains(&coming) && (500..1000).contains(&going), "{coming} {going}");
    }

    #[test]
    fn a_part_by_steps_is_a_little_less_and_never_more() {
        for clients in 0..10_000 {
            let step = step(clients);
            assert!(step >= clients && step <= clients + clients / 8, "{clients}: {step}");
        }
        assert_eq!([1, 15, 16, 17, 33, 64, 65].map(step), [1, 15, 16, 18, 36, 64, 72]);
    }

    #[test]
    fn who_names_a_size_gets_it() {
        assert!((1..9).all(|clients| Memory::Each(Bytes::gib(2)).window(clients) == Some(Bytes::gib(2))));
    }
}
