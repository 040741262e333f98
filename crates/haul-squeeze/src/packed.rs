//! A packed block.
//!
//! ```text
//!   Zstandard frame of the block | length of the block: u32 | magic: u32     (little endian)
//! ```
//!
//! The magic is another one than that of a block, so that each says what it is.

use std::io;
use std::sync::{Mutex, PoisonError};

use zstd::bulk::{Compressor, Decompressor};

const MAGIC: u32 = u32::from_le_bytes(*b"hZs1");
const TRAILER_BYTES: usize = 8;
/// The fastest of zstd's usual levels: what is won by higher ones costs several times the time.
const LEVEL: i32 = 1;
/// Of a block, three runs of so many bytes are tried first: from its beginning, middle and end.
const SAMPLE_BYTES: usize = 4 << 10;
/// A block that does not become smaller than this part of itself goes as it is: its receiver has work with what is packed.
const GAINS: (usize, usize) = (7, 8);

/// Bytes that are no packed block, or one of more than was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("malformed packed block")]
pub struct MalformedPack;

/// Packs blocks, from any thread; keeps what the algorithm needs for each thread that does so at a time.
#[derive(Default)]
pub struct Packer {
    idle: Mutex<Vec<Compressor<'static>>>,
}

impl Packer {
    /// Appends the packed block to `out`, which is empty; false, and nothing in it, where it does not become smaller by an eighth.
    pub fn pack(&self, block: &[u8], out: &mut Vec<u8>) -> bool {
        let taken = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let Some(mut compressor) = taken.or_else(|| Compressor::new(LEVEL).ok()) else { return false };
        let gained = gains(&mut compressor, block, out) && append(&mut compressor, block, out).is_ok();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(compressor);
        if !gained || !is_smaller(out.len(), block.len()) {
            out.clear();
            return false;
        }
        true
    }
}

const fn is_smaller(packed: usize, block: usize) -> bool {
    packed.saturating_mul(GAINS.1) <= block.saturating_mul(GAINS.0)
}

/// Whether samples of a block become smaller; uses `out` and leaves it empty. Of a small block all is tried anyway.
fn gains(compressor: &mut Compressor<'_>, block: &[u8], out: &mut Vec<u8>) -> bool {
    if block.len() <= 4 * SAMPLE_BYTES {
        return true;
    }
    let (mut before, mut after) = (0, 0);
    for at in [0, (block.len() - SAMPLE_BYTES) / 2, block.len() - SAMPLE_BYTES] {
        let sample = block.get(at..at + SAMPLE_BYTES).unwrap_or_default();
        out.clear();
        out.reserve(zstd::zstd_safe::compress_bound(sample.len()));
        let Ok(length) = compressor.compress_to_buffer(sample, out) else { return false };
        (before, after) = (before + sample.len(), after + length);
    }
    out.clear();
    is_smaller(after, before)
}

fn append(compressor: &mut Compressor<'_>, block: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
    out.reserve(zstd::zstd_safe::compress_bound(block.len()) + TRAILER_BYTES);
    compressor.compress_to_buffer(block, out)?;
    out.extend_from_slice(&(block.len() as u32).to_le_bytes());
    out.extend_from_slice(&MAGIC.to_le_bytes());
    Ok(())
}

/// Whether these bytes say that they are a packed block.
pub fn is_packed(bytes: &[u8]) -> bool {
    bytes.last_chunk::<4>() == Some(&MAGIC.to_le_bytes())
}

/// The block in a packed one, of at most `most` bytes: so much memory it takes, and no more than it says that it needs.
pub fn unpack(packed: &[u8], most: usize) -> Result<Vec<u8>, MalformedPack> {
    let (frame, trailer) = packed.split_last_chunk::<TRAILER_BYTES>().ok_or(MalformedPack)?;
    let (length, _) = trailer.split_first_chunk::<4>().ok_or(MalformedPack)?;
    let length = u32::from_le_bytes(*length) as usize;
    if !is_packed(packed) || length > most {
        return Err(MalformedPack);
    }
    let mut block = Vec::with_capacity(length);
    // It writes into the capacity and no further.
    let mut decompressor = Decompressor::new().map_err(|_| MalformedPack)?;
    decompressor.decompress_to_buffer(frame, &mut block).map_err(|_| MalformedPack)?;
    if block.len() == length { Ok(block) } else { Err(MalformedPack) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MOST: usize = 2 << 20;

    fn text(length: usize) -> Vec<u8> {
        (0..length).map(|at| b"haul carries files "[at * at % 19]).collect()
    }

    fn noise(length: usize) -> Vec<u8> {
        let mut state = 7_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state as u8
        };
        (0..length).map(|_| next()).collect()
    }

    fn packed(block: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let is_packed = Packer::default().pack(block, &mut out);
        assert_eq!(is_packed, !out.is_empty());
        is_packed.then_some(out)
    }

    #[test]
    fn what_gains_is_packed_and_comes_back() {
        let packer = Packer::default();
        for length in [100, 5000, 70_000, 1 << 20, MOST] {
            let block = text(length);
            let mut out = Vec::new();
            assert!(packer.pack(&block, &mut out) && out.len() < length * 7 / 8, "{length}");
            assert!(is_packed(&out));
            assert!(unpack(&out, MOST).as_ref() == Ok(&block), "{length}");
            assert_eq!(unpack(&out, length - 1), Err(MalformedPack), "one byte more than is allowed");
        }
        assert_eq!(packer.idle.lock().expect("sound").len(), 1, "one is used again");
    }

    #[test]
    fn what_does_not_gain_goes_as_it_is() {
        for length in [0, 1, 9, 5000, 1 << 20] {
            assert_eq!(packed(&noise(length)), None, "{length}");
        }
        // The samples promise much, and the rest does not keep it.
        let mut block = noise(1 << 20);
        for at in [0, (block.len() - SAMPLE_BYTES) / 2, block.len() - SAMPLE_BYTES] {
            block[at..at + SAMPLE_BYTES].fill(0);
        }
        assert_eq!(packed(&block), None);
    }

    #[test]
    fn a_bomb_takes_no_more_than_it_may() {
        let zeros = zstd::bulk::compress(&vec![0; 64 << 20], 19).expect("compressed");
        assert!(zeros.len() < 16 << 10, "64 MiB in {} bytes", zeros.len());
        for says in [0_u32, 1, MOST as u32, 64 << 20, u32::MAX] {
            let bomb = [&zeros[..], &says.to_le_bytes(), &MAGIC.to_le_bytes()].concat();
            assert_eq!(unpack(&bomb, MOST), Err(MalformedPack), "it says {says}");
        }
        let small = packed(&[0; 1000]).expect("packed");
        let (frame, _) = small.split_at(small.len() - TRAILER_BYTES);
        for says in [0_u32, 999, 1001, MOST as u32] {
            let lie = [frame, &says.to_le_bytes(), &MAGIC.to_le_bytes()].concat();
            assert_eq!(unpack(&lie, MOST), Err(MalformedPack), "it says {says}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200), length in 0..300_u32) {
            let ended = [&bytes[..], &length.to_le_bytes(), &MAGIC.to_le_bytes()].concat();
            for bytes in [bytes, ended] {
                if let Ok(block) = unpack(&bytes, 250) {
                    prop_assert!(block.len() <= 250);
                }
            }
        }

        #[test]
        fn a_changed_pack_is_refused_or_of_the_length_that_it_says(at in 0..1000_usize, bit in 0..8_u32) {
            let mut pack = packed(&text(3000)).expect("packed");
            let at = at % (pack.len() - TRAILER_BYTES);
            pack[at] ^= 1 << bit;
            if let Ok(block) = unpack(&pack, MOST) {
                prop_assert_eq!(block.len(), 3000);
            }
        }
    }
}
