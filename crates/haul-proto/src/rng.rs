//! Numbers that nobody can foresee, from a seed of 256 bits that the driver draws.
//!
//! The n-th block is HMAC-SHA256 of n under the seed (a pseudorandom function in counter mode, NIST SP 800-108 4.1), four numbers each: connection ids, attempts, challenges and skipped
//! packet numbers are shown to peers, and whoever has seen all but one of them knows nothing about that one or about the seed. HMAC is what tokens are made with anyway, and numbers are drawn a few
//! times a round trip at most, so no faster cipher is worth another dependency.

use aws_lc_rs::hmac;
use zeroize::Zeroizing;

/// A generator; the same seed gives the same numbers.
pub struct Rng {
    function: hmac::Key,
    /// The next block.
    counter: u64,
    block: Zeroizing<[u8; BLOCK_BYTES]>,
    /// Bytes of the block given out.
    used: usize,
}

const BLOCK_BYTES: usize = 32;
const NUMBER_BYTES: usize = 8;

impl Rng {
    /// From a seed.
    pub fn new(seed: &[u8; 32]) -> Self {
        let function = hmac::Key::new(hmac::HMAC_SHA256, seed);
        Self { function, counter: 0, block: Zeroizing::new([0; BLOCK_BYTES]), used: BLOCK_BYTES }
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        if self.used == BLOCK_BYTES {
            *self.block = self.next_block();
            self.used = 0;
        }
        let mut number = [0; NUMBER_BYTES];
        number.copy_from_slice(&self.block[self.used..self.used + NUMBER_BYTES]);
        self.used += NUMBER_BYTES;
        u64::from_be_bytes(number)
    }

    /// A seed for a generator of its own: a whole block.
    pub fn next_seed(&mut self) -> Zeroizing<[u8; 32]> {
        Zeroizing::new(self.next_block())
    }

    fn next_block(&mut self) -> [u8; BLOCK_BYTES] {
        let tag = hmac::sign(&self.function, &self.counter.to_be_bytes());
        self.counter += 1;
        let mut block = [0; BLOCK_BYTES];
        block.copy_from_slice(tag.as_ref());
        block
    }
}

impl std::fmt::Debug for Rng {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Rng")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_again_and_each_only_once() {
        let numbers = |seed| {
            let mut rng = Rng::new(&seed);
            let mut child = Rng::new(&rng.next_seed());
            (0..100).flat_map(|_| [rng.next_u64(), child.next_u64()]).collect::<Vec<_>>()
        };
        let first = numbers([1; 32]);
        assert_eq!(first, numbers([1; 32]));
        let mut other = [1; 32];
        other[31] ^= 1;
        assert_eq!(first.into_iter().chain(numbers(other)).collect::<BTreeSet<_>>().len(), 400);
    }
}
