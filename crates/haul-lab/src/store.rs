//! Memory of the packets inside a link.
//!
//! Packets are read one behind the other into chunks of 1 MiB. A chunk is alive as long as one of its packets has a segment somewhere, and
//! its memory is then used again: storing costs no allocation per packet, and little more memory than the packets are long.
//! [`Segment`] is what a link carries: 16 bytes, a count that goes up and down, no lock.

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::{Rc, Weak};

use haul_units::Bytes;

use crate::packet::Layout;

/// Where packets are read into.
#[derive(Debug)]
pub struct Store {
    chunk: Rc<Chunk>,
    pool: Rc<Pool>,
}

/// One packet of a super-packet, or a packet that came alone.
#[derive(Debug, Clone)]
pub struct Segment {
    chunk: Rc<Chunk>,
    packet: u16,
    /// Its number in the super-packet.
    pub index: u16,
}

/// What is known about a packet that has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// How it divides into segments.
    pub layout: Layout,
    /// Which of the receivers is to have it.
    pub to: u32,
}

#[derive(Debug)]
struct Chunk {
    /// Empty once it went back to the pool.
    storage: RefCell<Storage>,
    pool: Weak<Pool>,
}

#[derive(Debug, Default)]
struct Storage {
    bytes: Vec<u8>,
    used: usize,
    /// With the offset and length of each.
    packets: Vec<(Packet, u32, u32)>,
}

#[derive(Debug, Default)]
struct Pool {
    state: RefCell<PoolState>,
}

#[derive(Debug, Default)]
struct PoolState {
    free: Vec<Storage>,
    lent: usize,
}

const CHUNK_BYTES: usize = 1 << 20;
/// A chunk with less room than this is not read into: the largest packet and its virtio-net header fit.
pub const ROOM_BYTES: usize = 66 << 10;
const PAGE_BYTES: usize = 4096;
/// Chunks beyond this many that nobody uses are given back to the system.
const FREE_CHUNKS: usize = 256;

impl Store {
    /// Nothing stored yet.
    pub fn new() -> Self {
        let pool = Rc::new(Pool::default());
        Self { chunk: pool.lend(), pool }
    }

    /// Has memory for so many bytes ready, as far as it would be kept: the system hands out pages when they are first touched, and a link that touches
    /// hundreds of megabytes for the first time while a flow starts stands still meanwhile.
    pub fn prepare(&self, bytes: Bytes) {
        let chunks = usize::try_from(bytes.as_u64()).unwrap_or(usize::MAX).div_ceil(CHUNK_BYTES).min(FREE_CHUNKS);
        let mut state = self.pool.state.borrow_mut();
        while state.free.len() < chunks {
            let mut storage = Storage::whole();
            for page in storage.bytes.chunks_mut(PAGE_BYTES) {
                // What is never read need not be written either, says the compiler, unless it cannot know.
                page[0] = black_box(1);
            }
            state.free.push(storage);
        }
    }

    /// Lets `read` fill memory of at least [`ROOM_BYTES`]; it returns how much it used and what that is, or nothing. The segment
    /// that comes back is the packet's first.
    pub fn keep<E>(
        &mut self,
        read: impl FnOnce(&mut [u8]) -> Result<Option<(usize, Packet)>, E>,
    ) -> Result<Option<(Segment, Packet)>, E> {
        if !self.chunk.has_room() {
            self.chunk = self.pool.lend();
        }
        let mut storage = self.chunk.storage.borrow_mut();
        let offset = storage.used;
        let Some((len, packet)) = read(storage.bytes.get_mut(offset..).unwrap_or_default())? else { return Ok(None) };
        let number = storage.packets.len() as u16;
        storage.packets.push((packet, offset as u32, len as u32));
        storage.used += len;
        drop(storage);
        Ok(Some((Segment { chunk: Rc::clone(&self.chunk), packet: number, index: 0 }, packet)))
    }

    /// Keeps `bytes` of the packet that was read last, or forgets it for zero, when nothing may hold a segment of it. What a full queue
    /// drops takes no room, so that memory is bounded by what the link holds, however much is offered.
    pub fn trim(&mut self, bytes: usize) {
        let mut storage = self.chunk.storage.borrow_mut();
        let Some((_, offset, len)) = storage.packets.last_mut() else { return };
        *len = (*len).min(bytes as u32);
        let end = *offset + *len;
        storage.used = end as usize;
        if bytes == 0 {
            storage.packets.pop();
        }
    }

    /// Memory in use, and kept for use.
    pub fn memory(&self) -> Bytes {
        let state = self.pool.state.borrow();
        Bytes(((state.lent + state.free.len()) * CHUNK_BYTES) as u64)
    }
}

impl Segment {
    /// The same packet's segment of another number.
    pub fn with_index(&self, index: u16) -> Self {
        Self { index, ..self.clone() }
    }

    /// Whether both are of the same packet.
    pub fn same_packet(&self, other: &Self) -> bool {
        self.packet == other.packet && Rc::ptr_eq(&self.chunk, &other.chunk)
    }

    /// What is known of the packet.
    pub fn packet(&self) -> Packet {
        self.chunk.storage.borrow().packets[usize::from(self.packet)].0
    }

    /// Hands the whole packet's bytes to `use_it`.
    pub fn with_bytes<R>(&self, use_it: impl FnOnce(&Packet, &[u8]) -> R) -> R {
        let storage = self.chunk.storage.borrow();
        let (packet, offset, len) = &storage.packets[usize::from(self.packet)];
        use_it(packet, &storage.bytes[*offset as usize..][..*len as usize])
    }
}

impl Pool {
    fn lend(self: &Rc<Self>) -> Rc<Chunk> {
        let mut state = self.state.borrow_mut();
        state.lent += 1;
        let storage = state.free.pop().unwrap_or_else(Storage::whole);
        Rc::new(Chunk { storage: RefCell::new(storage), pool: Rc::downgrade(self) })
    }
}

impl Storage {
    /// A chunk's.
    fn whole() -> Self {
        Self { bytes: vec![0; CHUNK_BYTES], used: 0, packets: Vec::with_capacity(CHUNK_BYTES / 1024) }
    }
}

impl Chunk {
    fn has_room(&self) -> bool {
        let storage = self.storage.borrow();
        storage.bytes.len() - storage.used >= ROOM_BYTES && storage.packets.len() < usize::from(u16::MAX)
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let Some(pool) = self.pool.upgrade() else { return };
        let mut storage = self.storage.take();
        let mut state = pool.state.borrow_mut();
        state.lent -= 1;
        if state.free.len() < FREE_CHUNKS {
            storage.used = 0;
            storage.packets.clear();
            state.free.push(storage);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep(store: &mut Store, len: usize, fill: u8) -> Segment {
        let packet = Packet { layout: Layout::whole(len, 20), to: 0 };
        let kept = store.keep(|room| {
            assert!(room.len() >= ROOM_BYTES);
            room[..len].fill(fill);
            Ok::<_, ()>(Some((len, packet)))
        });
        kept.expect("reading cannot fail").expect("something was read").0
    }

    #[test]
    fn memory_follows_what_is_inside_and_is_used_again() {
        let mut store = Store::new();
        let segments: Vec<_> = (0..1000).map(|n: u32| keep(&mut store, 60_000, n as u8)).collect();
        let full = store.memory();
        assert!((Bytes::mib(57)..Bytes::mib(64)).contains(&full), "{full}");
        for (n, segment) in segments.iter().enumerate() {
            segment.with_bytes(|_, bytes| assert!(bytes.len() == 60_000 && bytes.iter().all(|byte| *byte == n as u8)));
        }
        drop(segments);
        for _ in 0..1000 {
            keep(&mut store, 60_000, 1);
        }
        assert_eq!(store.memory(), full);
    }

    #[test]
    fn what_is_prepared_is_used_and_bounded() {
        let mut store = Store::new();
        store.prepare(Bytes::mib(10));
        assert_eq!(store.memory(), Bytes::mib(11));
        let segments: Vec<_> = (0..150).map(|n| keep(&mut store, 60_000, n)).collect();
        assert_eq!(store.memory(), Bytes::mib(11));
        assert!(
            segments
                .iter()
                .enumerate()
                .all(|(n, segment)| segment.with_bytes(|_, bytes| bytes.iter().all(|byte| *byte == n as u8)))
        );
        store.prepare(Bytes(u64::MAX));
        assert!(store.memory() <= Bytes::mib(FREE_CHUNKS as u64 + 11));
    }

    #[test]
    fn a_chunk_lives_as_long_as_one_of_its_segments() {
        let mut store = Store::new();
        let kept = keep(&mut store, 1000, 7).with_index(3);
        for n in 0..10_000 {
            keep(&mut store, 1500, n as u8);
        }
        kept.with_bytes(|_, bytes| assert_eq!(bytes, [7; 1000]));
        assert!(store.memory() <= Bytes::mib(3));
    }

    #[test]
    fn what_is_trimmed_takes_no_room() {
        let mut store = Store::new();
        let mut heads = Vec::new();
        for n in 0..10_000u32 {
            let first = keep(&mut store, 60_000, n as u8);
            if n % 100 == 0 {
                store.trim(1500);
                heads.push((n as u8, first));
            } else {
                drop(first);
                store.trim(0);
            }
        }
        assert!(store.memory() <= Bytes::mib(2), "{}", store.memory());
        for (n, head) in heads {
            head.with_bytes(|_, bytes| assert_eq!(bytes, [n; 1500]));
        }
    }

    #[test]
    fn nothing_read_takes_no_room() {
        let mut store = Store::new();
        assert!(store.keep(|_| Ok::<_, ()>(None)).expect("no error").is_none());
        assert_eq!(store.keep(|_| Err::<Option<_>, _>("broken")).expect_err("an error"), "broken");
    }
}
