//! How much memory each client of a server may use.
//!
//! A long fat path wants hundreds of megabytes, and nobody should have to say so; but whoever comes may ask for them, and must not get the
//! machine's memory by coming often. So a client's window is half of what is left of a tenth of the machine's memory, within bounds; as a window may
//! take two and a half times itself, blocks of which one packet is missing included, that is a quarter of the memory.

use std::sync::{Arc, Mutex, PoisonError};

use haul_units::Bytes;

/// What is left for those who come.
#[derive(Debug, Clone)]
pub struct Shares {
    left: Arc<Mutex<u64>>,
    /// What the user said: each gets that.
    fixed: Option<Bytes>,
}

/// A client's memory; it goes back when dropped.
#[derive(Debug)]
pub struct Share {
    /// For [`haul::Connection::set_memory`].
    pub memory: Bytes,
    taken: u64,
    left: Arc<Mutex<u64>>,
}

impl Shares {
    /// Shares of this machine's memory, or `fixed` ones.
    pub fn new(fixed: Option<Bytes>) -> Self {
        let machine = rustix::system::sysinfo();
        Self::of((machine.totalram as u64).saturating_mul(machine.mem_unit.into()), fixed)
    }

    fn of(machine: u64, fixed: Option<Bytes>) -> Self {
        Self { left: Arc::new(Mutex::new(machine / MACHINE_PART)), fixed }
    }

    /// What a client may use that has come.
    pub fn take(&self) -> Share {
        let mut left = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        let share = self.fixed.map_or_else(|| (*left / 2).clamp(LEAST.as_u64(), MOST.as_u64()), Bytes::as_u64);
        let taken = share.min(*left);
        *left -= taken;
        Share { memory: Bytes(share), taken, left: Arc::clone(&self.left) }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        *self.left.lock().unwrap_or_else(PoisonError::into_inner) += self.taken;
    }
}

/// The windows of all clients together get one part of so many.
const MACHINE_PART: u64 = 10;
/// Enough for 1 Gbit/s over 200 ms, also when all is taken.
pub const LEAST: Bytes = Bytes::mib(128);
/// Enough for 10 Gbit/s over 200 ms at 5 % loss.
const MOST: Bytes = Bytes::gib(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_share_a_quarter_of_the_machine() {
        let shares = Shares::of(40 << 30, None);
        let present: Vec<_> = (0..32).map(|_| shares.take()).collect();
        let mib: Vec<_> = present.iter().map(|share| share.memory.as_u64() >> 20).collect();
        assert_eq!(mib[..6], [1024, 1024, 1024, 512, 256, 128]);
        assert!(mib[6..].iter().all(|share| *share == 128));
        drop(present);
        assert_eq!(shares.take().memory, Bytes::gib(1), "all has come back");
    }

    #[test]
    fn who_names_a_size_gets_it() {
        let shares = Shares::of(1 << 30, Some(Bytes::gib(2)));
        let present: Vec<_> = (0..3).map(|_| shares.take()).collect();
        assert!(present.iter().all(|share| share.memory == Bytes::gib(2)));
    }
}
