//! Shelves: what is kept open, and closed where others need the room.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use crate::limit::limit;

/// Most that one shelf holds: a directory is used for all its files one after the other, so more gain little.
const MAX_KEPT: usize = 256;
/// Least that one shelf holds, however many there are: with fewer each file would open its directory again.
const MIN_KEPT: usize = 4;

/// The shelves of this process.
static SHELVES: Mutex<Vec<Weak<dyn Clear>>> = Mutex::new(Vec::new());

/// Open descriptors, or what a store has in their place, by a number of their owner's, the least recently used half of which is closed when there are too many.
pub struct Shelf<V>(Arc<Mutex<Kept<V>>>);

struct Kept<V> {
    open: HashMap<u64, (Arc<V>, u64)>,
    uses: u64,
}

/// What can be closed, whatever it is.
trait Clear: Send + Sync {
    /// Closes what nobody uses at the moment; false where that was nothing.
    fn clear(&self) -> bool;
}

impl<V: Send + Sync> Clear for Mutex<Kept<V>> {
    fn clear(&self) -> bool {
        let open = std::mem::take(&mut lock(self).open);
        open.into_values().any(|(value, _)| Arc::into_inner(value).is_some())
    }
}

impl<V: Send + Sync + 'static> Shelf<V> {
    /// Nothing is on it.
    pub fn new() -> Self {
        let kept = Arc::new(Mutex::new(Kept { open: HashMap::new(), uses: 0 }));
        let clear: Arc<dyn Clear> = kept.clone();
        let mut shelves = lock(&SHELVES);
        shelves.retain(|shelf| shelf.strong_count() > 0);
        shelves.push(Arc::downgrade(&clear));
        Self(kept)
    }

    /// The descriptor, if it is still open.
    pub fn get(&self, id: u64) -> Option<Arc<V>> {
        let mut kept = lock(&self.0);
        kept.uses += 1;
        let uses = kept.uses;
        let (fd, last) = kept.open.get_mut(&id)?;
        *last = uses;
        Some(fd.clone())
    }

    /// Keeps a descriptor open until others need the room.
    pub fn keep(&self, id: u64, fd: Arc<V>) {
        let room = room();
        let mut kept = lock(&self.0);
        if kept.open.len() >= room {
            let mut uses: Vec<u64> = kept.open.values().map(|(_, last)| *last).collect();
            uses.sort_unstable_by(|a, b| b.cmp(a));
            let oldest = uses.get(room / 2).copied().unwrap_or(0);
            kept.open.retain(|_, (_, last)| *last > oldest);
        }
        kept.uses += 1;
        let uses = kept.uses;
        kept.open.insert(id, (fd, uses));
    }

    /// Lets go of a descriptor.
    pub fn forget(&self, id: u64) {
        lock(&self.0).open.remove(&id);
    }
}

impl<V: Send + Sync + 'static> Default for Shelf<V> {
    fn default() -> Self {
        Self::new()
    }
}

/// What one shelf may hold.
fn room() -> usize {
    let shelves = lock(&SHELVES).iter().filter(|shelf| shelf.strong_count() > 0).count().max(1);
    (limit() / 2 / shelves).clamp(MIN_KEPT, MAX_KEPT)
}

/// Locks; what a thread that panicked has left can be used.
fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Closes what nobody uses at the moment; false where that was nothing.
pub(crate) fn clear_shelves() -> bool {
    let shelves: Vec<_> = lock(&SHELVES).iter().filter_map(Weak::upgrade).collect();
    let mut closed = false;
    for shelf in shelves {
        closed |= shelf.clear();
    }
    closed
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::fd::OwnedFd;

    use rustix::io::Errno;

    use super::*;
    use crate::{patiently, promptly};

    fn descriptor() -> Arc<OwnedFd> {
        Arc::new(std::fs::File::open("/dev/null").unwrap().into())
    }

    /// One test, for the shelves are the process's.
    #[test]
    fn what_was_used_last_stays_until_others_need_it() {
        let shelf = Shelf::new();
        for id in 0..10_000 {
            shelf.keep(id, descriptor());
            assert!(shelf.get(0).is_some() && shelf.get(id).is_some());
            assert!(lock(&shelf.0).open.len() <= MAX_KEPT);
        }
        shelf.forget(0);
        assert!(shelf.get(0).is_none() && shelf.get(9_999).is_some());

        let other = Shelf::new();
        shelf.keep(1, descriptor());
        other.keep(2, descriptor());
        let mut tries = 0;
        let opened = patiently(|| {
            tries += 1;
            if other.get(2).is_some() || shelf.get(1).is_some() { Err(Errno::MFILE) } else { Ok(tries) }
        });
        assert_eq!(opened, Ok(2));

        shelf.keep(1, descriptor());
        let opened = || promptly(|| if shelf.get(1).is_some() { Err(Errno::MFILE) } else { Ok(()) });
        assert_eq!(opened(), Ok(()));
        let mut tries = 0;
        let none_left = promptly(|| -> Result<(), Errno> {
            tries += 1;
            Err(Errno::MFILE)
        });
        assert_eq!((none_left, tries), (Err(Errno::MFILE), 1), "there was nothing to close");
    }
}
