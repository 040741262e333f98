//! Several paths of one connection on one bottleneck: one flow to others.
//!
//! Flows of this kind share a bottleneck by the queue that each wants to see, shorter the faster it is (`share.rs`). Paths of one connection all want the queue that a flow with
//! their whole rate would want, so all of them together have what that flow would have: the rule is shared, the estimates are each path's. Where a path
//! turns out to have a bottleneck of its own its queue is empty, and it finds that room by itself.
//!
//! A path that joins others does not double its rate each round trip, for what it would overshoot by is theirs: it begins with a small window, and the attempt at more (`up.rs`).

use haul_units::BitRate;

use super::Lfn;
use super::path::PathModel;
use super::turn::Turn;
use crate::{Learned, PathStart, Share};

impl Lfn {
    /// Begins beside another path of the connection, which carries so much.
    pub(super) fn join(&mut self, start: &PathStart, beside: BitRate) {
        let Some(min_rtt) = start.rtt.filter(|rtt| !rtt.is_zero()) else { return };
        let bandwidth = BitRate::of(start.packet * JOIN_PKTS, min_rtt).min(beside.scaled(JOIN_PART));
        self.path.take_over(start.now, &Learned { bandwidth, min_rtt, base_loss: 0.0 });
        self.turn(start.now, Turn::Up);
    }
}

impl PathModel {
    pub(super) const fn set_part(&mut self, part: f64) {
        self.part = part;
    }

    pub(super) const fn part(&self) -> f64 {
        self.part
    }

    /// The rate of all paths that may share the bottleneck.
    pub(super) fn whole_bps(&self) -> f64 {
        self.bandwidth_bps() / self.part
    }

    pub(super) fn share(&self) -> Option<Share> {
        let rate = self.bandwidth_bps() / 8.0;
        (rate > 0.0).then(|| {
            let rtt_seconds = self.min_rtt().as_secs_f64();
            Share { window_bytes: rate * rtt_seconds, rtt_seconds, rate, unlost_bytes: 0.0 }
        })
    }
}

/// RFC 6928: the initial window of ten packets, here in a round trip.
const JOIN_PKTS: u64 = 10;
/// And of what another path carries: an attempt at more begins with as much, an eighth.
const JOIN_PART: f64 = 0.125;
