//! A token bucket that drops what exceeds a rate, without a queue: how many providers sell a slower line.

use haul_units::{BitRate, Bytes, Time};

/// Drops packets above a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policer {
    /// Rate at which the bucket fills.
    pub rate: BitRate,
    /// What the bucket holds: the longest burst at the speed of the line. A packet larger than it never passes.
    pub bucket: Bytes,
}

/// The bucket, full at first. Tokens are counted in bits times 10^9, of which `rate` come every nanosecond: exact.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    policer: Policer,
    tokens: u128,
    at: Time,
}

impl Bucket {
    pub(crate) fn new(policer: Policer) -> Self {
        Self { policer, tokens: tokens(policer.bucket), at: Time::ZERO }
    }

    /// Whether a packet passes; if so its tokens are gone.
    pub(crate) fn admits(&mut self, now: Time, bytes: Bytes) -> bool {
        let fresh = now.since(self.at).as_nanos() * u128::from(self.policer.rate.as_bps());
        self.tokens = self.tokens.saturating_add(fresh).min(tokens(self.policer.bucket));
        self.at = now;
        let Some(left) = self.tokens.checked_sub(tokens(bytes)) else { return false };
        self.tokens = left;
        true
    }
}

fn tokens(bytes: Bytes) -> u128 {
    u128::from(bytes.as_u64()) * 8_000_000_000
}
