//! Queues that act before they are full: RED and CoDel.
//!
//! RED judges a packet as it arrives, by the average length of the queue; CoDel as it leaves, by the time it has waited. Either drops, or
//! marks where its configuration and the packet allow. Both cost a constant number of steps a packet.
//! Sources: Floyd and Jacobson, "Random early detection gateways for congestion avoidance" (1993), with Floyd's "gentle" (2000);
//! RFC 8289 (CoDel).

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use crate::Rng;

/// What a queue does besides dropping what does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Discipline {
    /// Nothing.
    #[default]
    TailDrop,
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    CoDel(CoDel),
}

/// Random early detection, gentle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Red {
    /// Average length below which nothing happens.
    pub min: Bytes,
    /// Average length at which [`Self::max_probability`] is reached; at twice this length every packet is hit.
    pub max: Bytes,
    /// Part of the packets hit at [`Self::max`], 0 to 1.
    pub max_probability: f64,
    /// Weight of the newest sample in the average, 0 to 1.
    pub weight: f64,
    /// Marks packets that can be marked.
    pub ecn: bool,
}

impl Red {
    /// Between a sixth and a half of a queue, a tenth at most, the weight that its authors recommend; drops.
    pub const fn for_queue(queue: Bytes) -> Self {
        Self { min: Bytes(queue.0 / 6), max: Bytes(queue.0 / 2), max_probability: 0.1, weight: 0.002, ecn: false }
    }
}

/// Controlled delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoDel {
    /// Waiting time that may stand.
    pub target: Duration,
    /// How long it must stand before the first packet is hit: about the largest round-trip time.
    pub interval: Duration,
    /// Marks packets that can be marked.
    pub ecn: bool,
}

impl CoDel {
    /// 5 ms and 100 ms (RFC 8289 4.2, 4.3); drops.
    pub const DEFAULT: Self = Self { target: Duration::from_millis(5), interval: Duration::from_millis(100), ecn: false };
}

/// RED's memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct RedState {
    average: f64,
    /// Packets since the last hit, while the average is above the minimum.
    since_hit: f64,
}

impl RedState {
    /// Whether the packet that arrives now is hit. `idle`: how long the queue has been empty, zero while it is not.
    pub(crate) fn hits(&mut self, red: &Red, queued: Bytes, idle: Duration, rate: BitRate, rng: &mut Rng) -> bool {
        if queued == Bytes::ZERO {
            // As if so many small packets had found it empty.
            let packets = idle.as_secs_f64() / rate.time_for(TYPICAL_PACKET).as_secs_f64().max(1e-12);
            self.average *= (1.0 - red.weight).powf(packets);
        } else {
            self.average += red.weight * (queued.0 as f64 - self.average);
        }
        let base = red.probability(self.average);
        if base <= 0.0 {
            self.since_hit = 0.0;
            return false;
        }
        // Spreads the hits evenly: p_a = p_b / (1 - count * p_b)
        let probability = base / (1.0 - self.since_hit * base).max(base);
        let hit = rng.unit() < probability;
        self.since_hit = if hit { 0.0 } else { self.since_hit + 1.0 };
        hit
    }
}

impl Red {
    fn probability(&self, average: f64) -> f64 {
        let (min, max) = (self.min.0 as f64, self.max.0 as f64);
        if average < min {
            0.0
        } else if average < max {
            self.max_probability * (average - min) / (max - min).max(1.0)
        } else {
            (self.max_probability + (1.0 - self.max_probability) * (average - max) / max.max(1.0)).min(1.0)
        }
    }
}

/// CoDel's memory.
#[derive(Debug, Clone, Default)]
pub(crate) struct CoDelState {
    /// When the wait will have been above the target for an interval.
    first_above: Option<Time>,
    next_hit: Time,
    hits: u32,
    hits_before: u32,
    hitting: bool,
}

impl CoDelState {
    /// Whether the packet that leaves the queue now is hit; asked again for its successor if it was dropped.
    pub(crate) fn hits(&mut self, codel: &CoDel, now: Time, waited: Duration, behind: Bytes) -> bool {
        if !self.stands(codel, now, waited, behind) {
            self.hitting = false;
            return false;
        }
        if self.hitting {
            if now < self.next_hit {
                return false;
            }
            self.hits += 1;
            self.next_hit = codel.after(self.next_hit, self.hits);
            return true;
        }
        // RFC 8289 5.4: when hits stopped a short time ago, their rate then is a good start.
        let recent = now.since(self.next_hit) < codel.interval * 16;
        let delta = self.hits - self.hits_before;
        self.hits = if delta > 1 && recent { delta } else { 1 };
        self.hits_before = self.hits;
        self.next_hit = codel.after(now, self.hits);
        self.hitting = true;
        true
    }

    fn stands(&mut self, codel: &CoDel, now: Time, waited: Duration, behind: Bytes) -> bool {
        if waited < codel.target || behind < TYPICAL_PACKET {
            self.first_above = None;
            return false;
        }
        now >= *self.first_above.get_or_insert(now + codel.interval)
    }
}

impl CoDel {
    /// RFC 8289 3.3: the next hit is interval / sqrt(hits) later.
    fn after(&self, time: Time, hits: u32) -> Time {
        time + self.interval.div_f64(f64::from(hits).sqrt())
    }
}

const TYPICAL_PACKET: Bytes = Bytes(1500);
