//! Buffers that nobody uses, for the next blocks of any connection of this process.
//!
//! Memory that is new costs as much as what is decrypted into it: the system clears each page. Connections have their highs at different times, so what one does not need is for the next; a
//! client of many servers has an endpoint for each.

use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

/// The buffers. They count for no connection until one takes them.
#[derive(Debug, Default)]
pub(crate) struct Spares(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    buffers: Vec<Vec<u8>>,
    bytes: usize,
    /// Connections that may want them.
    users: usize,
}

impl Spares {
    /// Those of this process.
    pub(crate) fn of_this_process() -> Arc<Self> {
        static SPARES: LazyLock<Arc<Spares>> = LazyLock::new(Arc::default);
        SPARES.clone()
    }

    /// A connection may want some.
    pub(super) fn enter(&self) {
        self.kept().users += 1;
    }

    /// A connection is over. With the last one they go.
    pub(super) fn leave(&self) {
        let mut kept = self.kept();
        kept.users = kept.users.saturating_sub(1);
        if kept.users == 0 {
            let gone = std::mem::take(&mut *kept);
            drop(kept);
            drop(gone);
        }
    }

    /// One of them, if its length is right.
    pub(super) fn take(&self, fits: impl FnOnce(usize) -> bool) -> Option<Vec<u8>> {
        let mut kept = self.kept();
        let buffer = kept.buffers.pop_if(|buffer| fits(buffer.len()))?;
        kept.bytes -= buffer.len();
        Some(buffer)
    }

    /// One more, if there is room for it.
    pub(super) fn keep(&self, buffer: Vec<u8>) {
        let mut kept = self.kept();
        if kept.bytes + buffer.len() <= MAX_BYTES && kept.users > 0 {
            kept.bytes += buffer.len();
            kept.buffers.push(buffer);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Buffers kept at most: what a fast receiver has in use at once.
const MAX_BYTES: usize = 48 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_bounded_and_go_with_the_last_user() {
        let spares = Spares::default();
        spares.keep(vec![0; 10]);
        assert!(spares.take(|_| true).is_none(), "nobody may want one");
        spares.enter();
        spares.enter();
        for _ in 0..100 {
            spares.keep(vec![0; 1 << 20]);
        }
        assert!(spares.take(|len| len < 1 << 20).is_none());
        assert_eq!(std::iter::from_fn(|| spares.take(|_| true)).count(), 48);
        spares.keep(vec![0; 1 << 20]);
        spares.leave();
        spares.leave();
        spares.enter();
        assert!(spares.take(|_| true).is_none(), "they went with the last user");
    }
}
