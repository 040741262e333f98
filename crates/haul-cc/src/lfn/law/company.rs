//! Several paths of one connection on one bottleneck: one flow to others.
//!
//! Flows of this kind share a bottleneck by the queue that each wants to see, shorter the faster it is (`share.rs`). Paths of one connection all want the queue that a flow with
//! their whole rate would want, so all of them together have what that flow would have: the rule is shared, the estimates are each path's. Where a path
//! turns out to have a bottleneck of its own its queue is empty, and it finds that room by itself.

use super::Flow;
use crate::Share;

impl Flow {
    pub(in crate::lfn) const fn set_part(&mut self, part: f64) {
        self.part = part;
    }

    pub(super) const fn part(&self) -> f64 {
        self.part
    }

    /// The rate of all paths that may share the bottleneck.
    pub(super) fn whole_bps(&self) -> f64 {
        self.path.bandwidth_bps() / self.part
    }

    pub(in crate::lfn) fn share(&self) -> Option<Share> {
        let rate = self.path.bandwidth_bps() / 8.0;
        (rate > 0.0).then(|| {
            let rtt_seconds = self.path.min_rtt().as_secs_f64();
            Share { window_bytes: rate * rtt_seconds, rtt_seconds, rate, unlost_bytes: 0.0 }
        })
    }
}
