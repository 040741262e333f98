//! Data on its way, one direction, from memory to memory: over haul or over the kernel's TCP.
//!
//! A flow runs in threads of its own, one a stream; whoever measures reads its counters.

mod haul_flow;
mod info;
mod tcp_flow;
mod throttle;
mod turns;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Instant;

use haul::Distributions;

pub use haul_flow::{HaulReceiver, HaulSender};
pub use info::{CongestionError, set_congestion};
pub use tcp_flow::{TcpReceiver, TcpSender};

use self::throttle::Throttle;
use super::plan::Plan;
use super::sample::PathSample;
use crate::clock;

/// One end of the data of one direction.
pub trait Flow: Send + Sync {
    /// Bytes of each stream so far: those that have left, or those that have arrived, each once.
    fn bytes(&self) -> Vec<u64>;
    /// A sender's view of its paths.
    fn paths(&self) -> Vec<PathSample> {
        Vec::new()
    }
    /// How the figures of its packets are spread, over haul.
    fn distributions(&self) -> Option<Distributions> {
        None
    }
    /// A sender's congestion control.
    fn congestion(&self) -> Option<String> {
        None
    }
    /// Ends it; what is still on its way is dropped.
    fn stop(&self);
}

/// What a flow tells on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The clock is to start.
    Begin,
    /// One of its streams has ended: everything was sent and acknowledged, or received.
    StreamEnded,
    /// It cannot go on.
    Failed(String),
    /// Somebody wants it to end.
    Stop,
}

/// Where a flow tells it.
pub type Events = mpsc::Sender<Event>;

/// Bytes that are still to be handed over, by all streams together.
#[derive(Debug)]
struct Quota(Option<AtomicU64>);

impl Quota {
    fn new(plan: &Plan) -> Self {
        Self(plan.bytes().map(AtomicU64::new))
    }

    /// Takes up to `want` of them; 0 when there are none left.
    fn take(&self, want: usize) -> usize {
        let Some(left) = &self.0 else { return want };
        let taken = |left: u64| left.min(want as u64);
        let before = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left - taken(left)));
        before.map_or(0, taken) as usize
    }
}

/// What one stream of a sender may still hand over, and when.
struct Portions {
    quota: Arc<Quota>,
    /// Until then nothing counts, so nothing is taken from the quota.
    counted_from: Instant,
    throttle: Throttle,
    stopped: Arc<AtomicBool>,
}

impl Portions {
    fn new(quota: &Arc<Quota>, plan: &Plan, stopped: &Arc<AtomicBool>) -> Self {
        let now = clock::now();
        let throttle = Throttle::new(plan.rate(), now);
        Self { quota: Arc::clone(quota), counted_from: now + plan.omit(), throttle, stopped: Arc::clone(stopped) }
    }

    /// Waits until the next portion may go, of at most `most` bytes; none when there are none left, or the flow is to end.
    fn next(&mut self, most: usize) -> Option<usize> {
        if self.stopped.load(Ordering::Acquire) {
            return None;
        }
        let now = clock::now();
        let len = if now < self.counted_from { most } else { self.quota.take(most) };
        let wait = self.throttle.wait(now, len);
        if len > 0 && !wait.is_zero() {
            clock::pause(wait);
        }
        (len > 0).then_some(len)
    }
}

/// Bytes that no middlebox and no file system could make less of. // Marsaglia, Xorshift RNGs (2003)
fn incompressible(len: usize) -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend(state.to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_given_out_once() {
        let quota = Quota(Some(AtomicU64::new(25)));
        assert_eq!([quota.take(10), quota.take(10), quota.take(10), quota.take(10)], [10, 10, 5, 0]);
        assert_eq!(Quota(None).take(7), 7);
    }

    #[test]
    fn bytes_count_from_the_end_of_what_is_omitted() {
        let handed_over = |omit_us| {
            let plan = Plan { amount: crate::plan::Amount::Bytes(25), omit_us, ..Plan::default() };
            let mut portions = Portions::new(&Arc::new(Quota::new(&plan)), &plan, &Arc::default());
            (0..5).map_while(|_| portions.next(10)).sum::<usize>()
        };
        assert_eq!((handed_over(0), handed_over(3_600_000_000)), (25, 50));
    }

    #[test]
    fn the_source_does_not_repeat_itself() {
        let bytes = incompressible(4096);
        assert_eq!(bytes.len(), 4096);
        let mut words: Vec<_> = bytes.chunks(8).collect();
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 512);
    }
}
