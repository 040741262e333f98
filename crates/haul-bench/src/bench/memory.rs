//! Memory that the machine has at hand.
//!
//! The host of a virtual machine takes back what is free there, in pieces of 2 MB and more (the guest's free page reporting), and finds it again when a page is touched: that can
//! take a third of two processors at 1 Gbit/s, and how much of it a run meets is chance. So memory is taken before the runs, all of it written, and given
//! back with a page held of every 512 KB: free pieces are then too small to be reported, and what a system gives out first.

use std::fs::File;
use std::io::{self, Write as _};

use haul_units::Bytes;
use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};

/// Holds free memory together with this machine, until it is dropped.
#[derive(Debug)]
pub struct AtHand {
    _pages: File,
}

/// A page is held of each.
const PIECE: u64 = 512 << 10;

impl AtHand {
    /// Has so much memory at hand, or half of what is free if that is less.
    pub fn take(bytes: Bytes) -> io::Result<Self> {
        let machine = rustix::system::sysinfo();
        let free = (machine.freeram as u64).saturating_mul(machine.mem_unit.into());
        let pieces = bytes.as_u64().min(free / 2) / PIECE;
        let mut file = File::from(memfd_create("haul-bench", MemfdFlags::CLOEXEC)?);
        let zeros = vec![0; PIECE as usize];
        let held = rustix::param::page_size() as u64;
        for _ in 0..pieces {
            file.write_all(&zeros)?;
        }
        for piece in 0..pieces {
            fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, piece * PIECE + held, PIECE - held)?;
        }
        Ok(Self { _pages: file })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_page_of_each_piece_is_held() {
        let AtHand { _pages: file } = AtHand::take(Bytes::mib(8)).expect("memory");
        let metadata = file.metadata().expect("a file");
        assert_eq!((metadata.len(), metadata.blocks() * 512), (8 << 20, 16 * rustix::param::page_size() as u64));
    }
}
