//! A token bucket: how many providers sell a slower line. What exceeds its rate is dropped (a policer) or waits (a shaper).

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

/// How fast it fills, and how much it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenBucket {
    /// Rate at which the bucket fills.
    pub rate: BitRate,
    /// What the bucket holds: the longest burst at the speed of the line. A packet larger than it never passes a policer.
    pub bucket: Bytes,
}

/// What is in the bucket, which is full at first. Tokens are counted in bits times 10^9, of which `rate` come every nanosecond: exact.
#[derive(Debug, Clone)]
pub(crate) struct Tokens {
    of: TokenBucket,
    held: u128,
    at: Time,
}

impl Tokens {
    pub(crate) fn new(of: TokenBucket) -> Self {
        Self { of, held: tokens(of.bucket), at: Time::ZERO }
    }

    /// Whether a packet passes; if so its tokens are gone.
    pub(crate) fn admits(&mut self, now: Time, bytes: Bytes) -> bool {
        self.fill(now);
        let Some(left) = self.held.checked_sub(tokens(bytes)) else { return false };
        self.held = left;
        true
    }

    /// When a packet that is the next one from `now` on may go: its tokens are gone then.
    pub(crate) fn take(&mut self, now: Time, bytes: Bytes) -> Time {
        let from = now.max(self.at);
        let at = from + self.wait(from, bytes);
        // What waited has taken each token that came.
        (self.held, self.at) = (self.filled(from).saturating_sub(tokens(bytes)), at);
        at
    }

    /// How long so many bytes wait for their tokens.
    pub(crate) fn wait(&self, now: Time, bytes: Bytes) -> Duration {
        let rate = u128::from(self.of.rate.as_bps());
        let missing = tokens(bytes).saturating_sub(self.filled(now));
        if missing == 0 { Duration::ZERO } else { nanos(missing.div_ceil(rate.max(1))) }
    }

    fn fill(&mut self, now: Time) {
        (self.held, self.at) = (self.filled(now), now);
    }

    fn filled(&self, now: Time) -> u128 {
        let fresh = now.since(self.at).as_nanos() * u128::from(self.of.rate.as_bps());
        self.held.saturating_add(fresh).min(tokens(self.of.bucket))
    }
}

fn tokens(bytes: Bytes) -> u128 {
    u128::from(bytes.as_u64()) * 8_000_000_000
}

fn nanos(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}
