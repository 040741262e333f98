//! Blocks: what carries the content of files.
//!
//! ```text
//!   content of piece 0 | content of piece 1 | .. | piece table | count: u32 | magic: u32
//!   piece table entry: file: u64 | offset: u64 | length: u32 | flags: u32 | BLAKE3 of the content: 32 bytes     (little endian)
//! ```
//!
//! The content comes first, so that a file is read straight to its place in the buffer and the table is written once the lengths and
//! hashes are known. A block names all that it holds and may arrive in any order.
//!
//! What is verified: the hash of each piece is computed by the sender over the bytes in memory that it read and that leave in the
//! block, and by the receiver over the bytes in memory that it hands to the write call, before that call. For a file of several pieces both
//! sides also add up a [`PieceSum`] over (offset, length, hash) of all pieces; equal sums say that nothing is missing, doubled or
//! misplaced. Not verified by that: that a disk gives back what was written to it; see
//! `Verify::ReadBack` of haul-files.

/// Most content in a block, in bytes; also the largest piece.
pub const MAX_CONTENT: usize = 1 << 20;
/// Most pieces in a block.
pub const MAX_PIECES: usize = 4096;
/// Largest block in bytes, its piece table included.
pub const MAX_BLOCK: usize = 2 << 20;

const ENTRY_BYTES: usize = 56;
const TRAILER_BYTES: usize = 8;
const MAGIC: u32 = u32::from_le_bytes(*b"hBk1");
const WHOLE: u32 = 1;

/// BLAKE3 of something; zeros where hashing is off.
pub type Hash = [u8; 32];

/// Stands for a hash where hashing is off.
pub const UNHASHED: Hash = [0; 32];

/// A piece that was written: offset, length and hash.
pub type Sent = (u64, u32, Hash);

/// Where a run of content belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The id of the file's entry.
    pub file: u64,
    /// Where in the file, in bytes.
    pub offset: u64,
    /// How much, 1..=[`MAX_CONTENT`] bytes.
    pub length: u32,
    /// It is all of the file, and the source was checked after reading.
    pub whole: bool,
    /// BLAKE3 of the content.
    pub hash: Hash,
}

/// A block that is not one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed block")]
pub struct MalformedBlock;

/// Turns content into a block: appends the table of its `pieces`, which stand in the order of the content.
pub fn seal(block: &mut Vec<u8>, pieces: &[Piece]) {
    debug_assert_eq!(pieces.iter().map(|piece| piece.length as usize).sum::<usize>(), block.len());
    block.reserve(pieces.len() * ENTRY_BYTES + TRAILER_BYTES);
    for piece in pieces {
        block.extend_from_slice(&piece.file.to_le_bytes());
        block.extend_from_slice(&piece.offset.to_le_bytes());
        block.extend_from_slice(&piece.length.to_le_bytes());
        block.extend_from_slice(&(if piece.whole { WHOLE } else { 0 }).to_le_bytes());
        block.extend_from_slice(&piece.hash);
    }
    block.extend_from_slice(&(pieces.len() as u32).to_le_bytes());
    block.extend_from_slice(&MAGIC.to_le_bytes());
}

/// The pieces of a block with their content, in order. The lengths add up to the content; offset plus length fits in an `i64`.
pub fn open(block: &[u8]) -> Result<Vec<(Piece, &[u8])>, MalformedBlock> {
    if block.len() > MAX_BLOCK {
        return Err(MalformedBlock);
    }
    let (rest, trailer) = split_tail(block, TRAILER_BYTES)?;
    let mut trailer = Fields(trailer);
    let (count, magic) = (trailer.u32()? as usize, trailer.u32()?);
    if magic != MAGIC || count == 0 || count > MAX_PIECES {
        return Err(MalformedBlock);
    }
    let (mut content, table) = split_tail(rest, count * ENTRY_BYTES)?;
    let mut pieces = Vec::with_capacity(count);
    for entry in table.chunks_exact(ENTRY_BYTES) {
        let piece = Fields(entry).piece()?;
        let (bytes, left) = content.split_at_checked(piece.length as usize).ok_or(MalformedBlock)?;
        content = left;
        pieces.push((piece, bytes));
    }
    if content.is_empty() { Ok(pieces) } else { Err(MalformedBlock) }
}

/// A sum over the pieces of a file that does not depend on their order: BLAKE3 of (offset, length, hash) of each, added modulo 2^64 in
/// four lanes. It guards against accidents between two honest sides; the content itself is guarded by the hash of each piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PieceSum([u64; 4]);

impl PieceSum {
    /// Adds one piece.
    pub fn add(&mut self, offset: u64, length: u32, hash: &Hash) {
        let mut input = [0; 44];
        let (head, tail) = input.split_at_mut(12);
        head[..8].copy_from_slice(&offset.to_le_bytes());
        head[8..].copy_from_slice(&length.to_le_bytes());
        tail.copy_from_slice(hash);
        let mixed = blake3::hash(&input);
        for (lane, bytes) in self.0.iter_mut().zip(mixed.as_bytes().as_chunks::<8>().0) {
            *lane = lane.wrapping_add(u64::from_le_bytes(*bytes));
        }
    }

    /// As it goes into a message.
    pub fn to_bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (target, lane) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.0) {
            *target = lane.to_le_bytes();
        }
        bytes
    }
}

/// The hash of a piece's content, or zeros where nothing is verified.
pub fn hash(content: &[u8], verify: bool) -> Hash {
    if verify { *blake3::hash(content).as_bytes() } else { UNHASHED }
}

fn split_tail(bytes: &[u8], tail: usize) -> Result<(&[u8], &[u8]), MalformedBlock> {
    let at = bytes.len().checked_sub(tail).ok_or(MalformedBlock)?;
    bytes.split_at_checked(at).ok_or(MalformedBlock)
}

struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], MalformedBlock> {
        let (field, rest) = self.0.split_first_chunk::<N>().ok_or(MalformedBlock)?;
        self.0 = rest;
        Ok(*field)
    }

    fn u32(&mut self) -> Result<u32, MalformedBlock> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, MalformedBlock> {
        self.take().map(u64::from_le_bytes)
    }

    fn piece(&mut self) -> Result<Piece, MalformedBlock> {
        let (file, offset, length, flags) = (self.u64()?, self.u64()?, self.u32()?, self.u32()?);
        let end = offset.checked_add(u64::from(length)).ok_or(MalformedBlock)?;
        if length == 0 || length as usize > MAX_CONTENT || end > i64::MAX as u64 || flags & !WHOLE != 0 {
            return Err(MalformedBlock);
        }
        Ok(Piece { file, offset, length, whole: flags & WHOLE != 0, hash: self.take()? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sealed(lengths: &[usize]) -> (Vec<u8>, Vec<Piece>) {
        let mut block = Vec::new();
        let mut pieces = Vec::new();
        for (i, &length) in lengths.iter().enumerate() {
            let content = vec![i as u8; length];
            pieces.push(Piece {
                file: i as u64,
                offset: 7 * i as u64,
                length: length as u32,
                whole: i % 2 == 0,
                hash: hash(&content, true),
            });
            block.extend_from_slice(&content);
        }
        seal(&mut block, &pieces);
        (block, pieces)
    }

    proptest! {
        #[test]
        fn round_trip(lengths in proptest::collection::vec(1usize..5000, 1..50)) {
            let (block, pieces) = sealed(&lengths);
            let opened = open(&block).unwrap();
            prop_assert_eq!(opened.len(), pieces.len());
            for ((got, content), piece) in opened.iter().zip(&pieces) {
                prop_assert_eq!(got, piece);
                prop_assert_eq!(hash(content, true), piece.hash);
            }
        }

        #[test]
        fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = open(&bytes);
        }

        #[test]
        fn a_changed_table_is_refused_or_read_in_bounds(at in 0usize..400, bit in 0u8..8) {
            let (mut block, _) = sealed(&[10, 20, 30]);
            let at = at % block.len();
            block[at] ^= 1 << bit;
            if let Ok(pieces) = open(&block) {
                prop_assert_eq!(pieces.iter().map(|(_, content)| content.len()).sum::<usize>(), 60);
            }
        }
    }

    #[test]
    fn the_sum_ignores_order_and_notices_a_moved_piece() {
        let (a, b) = (hash(b"a", true), hash(b"b", true));
        let sum = |pieces: &[(u64, &Hash)]| {
            let mut sum = PieceSum::default();
            for (offset, hash) in pieces {
                sum.add(*offset, 1, hash);
            }
            sum.to_bytes()
        };
        assert_eq!(sum(&[(0, &a), (1, &b)]), sum(&[(1, &b), (0, &a)]));
        assert_ne!(sum(&[(0, &a), (1, &b)]), sum(&[(1, &a), (0, &b)]));
        assert_ne!(sum(&[(0, &a)]), sum(&[(0, &a), (0, &a)]));
    }
}
