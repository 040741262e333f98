//! A small generator of pseudo-random numbers: fast, seeded, replayable. Not for keys.
//!
//! xoshiro256++ 1.0 (Blackman and Vigna, "Scrambled linear pseudorandom number generators", 2021), its state filled by SplitMix64
//! (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).

use haul_units::Ratio;

/// A stream of pseudo-random numbers, the same for the same seed on every machine.
#[derive(Debug, Clone)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream of a seed; any seed is good.
    pub fn new(seed: u64) -> Self {
        let mut split_mix = seed;
        let state = std::array::from_fn(|_| {
            split_mix = split_mix.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = split_mix;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        });
        Self { state }
    }

    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0.0..1.0`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A number below `bound`; zero where that is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        // Multiply-shift: biased by less than bound / 2^64.
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True in that part of the cases. Draws nothing for zero.
    pub fn chance(&mut self, ratio: Ratio) -> bool {
        ratio > Ratio::ZERO && self.unit() < ratio.as_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_start_of_a_stream() {
        // From the reference implementation, state 1, 2, 3, 4.
        let mut rng = Rng { state: [1, 2, 3, 4] };
        assert_eq!([rng.next_u64(), rng.next_u64(), rng.next_u64()], [41943041, 58720359, 3588806011781223]);
    }

    #[test]
    fn chance_and_bounds() {
        let mut rng = Rng::new(7);
        let hits = (0..100_000).filter(|_| rng.chance(Ratio::percent(10.0))).count();
        assert!((9_500..10_500).contains(&hits), "{hits}");
        assert!((0..1_000).all(|_| rng.below(3) < 3));
        assert_eq!(rng.below(0), 0);
    }
}
