//! Bandwidth: what reaches the receiver.
//!
//! While a queue stands for a whole epoch the mean delivery rate *is* our share of the bottleneck, whether higher or lower than thought;
//! without a queue, and where the application or a trial holds the rate back, it is a lower bound and can only raise the estimate.

use haul_units::Time;

/// The estimate, in bits per second.
#[derive(Debug, Clone, Default)]
pub(in crate::lfn) struct Bandwidth {
    /// 0 while unknown.
    bps: f64,
    /// Until then the samples show what the search for the bandwidth has sent.
    search_until: Time,
    /// What it was before the last attempt at more.
    before_attempt_bps: f64,
}

impl Bandwidth {
    /// What another connection had found.
    pub(super) const fn remembered(bps: f64) -> Self {
        Self { bps, search_until: Time::ZERO, before_attempt_bps: bps }
    }

    pub(super) const fn bps(&self) -> f64 {
        self.bps
    }

    /// The search is over. A sample is the mean over the round trip before its packet left, in which the rate was three times as much at the
    /// end as at the beginning: only those until then show all that arrives.
    pub(super) const fn end_search(&mut self, until: Time) {
        self.search_until = until;
    }

    pub(super) fn is_searched(&self, now: Time) -> bool {
        now < self.search_until
    }

    /// Half way to the mean of an epoch; only upwards where that is a lower bound.
    pub(in crate::lfn) fn follow(&mut self, mean_bps: f64, is_lower_bound: bool) {
        let step = (mean_bps - self.bps) / 2.0;
        self.bps += if is_lower_bound { step.max(0.0) } else { step };
    }

    /// So much has been seen to arrive.
    pub(in crate::lfn) fn raise(&mut self, arrived_bps: f64) {
        self.bps = self.bps.max(arrived_bps);
    }

    /// No more than this arrives.
    pub(in crate::lfn) fn limit(&mut self, arrived_bps: f64) {
        self.bps = self.bps.min(arrived_bps);
    }

    /// It has been measured, whatever samples have raised it to.
    pub(in crate::lfn) const fn set(&mut self, measured_bps: f64) {
        self.bps = measured_bps;
    }

    /// After an outage.
    pub(in crate::lfn) fn cut(&mut self) {
        self.bps *= CUT;
    }

    /// An attempt at more begins.
    pub(in crate::lfn) const fn begin_attempt(&mut self) {
        self.before_attempt_bps = self.bps;
    }

    /// The last attempt at more brought much.
    pub(in crate::lfn) fn has_gained(&self) -> bool {
        self.bps > self.before_attempt_bps * GAINED
    }
}

/// The path's rate, where an estimate was made of a token bucket's first bytes, which pass at the rate of the wire behind it: then much less arrives now.
pub(in crate::lfn) fn behind_bucket(estimate_bps: f64, now_bps: f64) -> Option<f64> {
    (now_bps * BUCKET < estimate_bps).then_some(now_bps * BUCKET_MARGIN)
}

/// An estimate so many times above what arrives when the search ends was made of a bucket's first bytes.
const BUCKET: f64 = 4.0;
/// One sample alone may be low.
const BUCKET_MARGIN: f64 = 1.5;
/// As CUBIC cuts, RFC 9438 4.6.
const CUT: f64 = 0.7;
/// More than the first step of an attempt gives.
const GAINED: f64 = 1.2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_is_followed_half_way_and_a_lower_bound_never_down() {
        let mut bandwidth = Bandwidth::remembered(100e6);
        bandwidth.follow(60e6, true);
        assert!((bandwidth.bps() - 100e6).abs() < 1.0);
        bandwidth.follow(60e6, false);
        assert!((bandwidth.bps() - 80e6).abs() < 1.0);
        bandwidth.follow(120e6, true);
        assert!((bandwidth.bps() - 100e6).abs() < 1.0);
    }

    #[test]
    fn an_attempt_has_gained_where_it_brought_more_than_its_first_step() {
        let mut bandwidth = Bandwidth::remembered(100e6);
        bandwidth.begin_attempt();
        bandwidth.raise(115e6);
        assert!(!bandwidth.has_gained());
        bandwidth.raise(130e6);
        assert!(bandwidth.has_gained());
        bandwidth.begin_attempt();
        assert!(!bandwidth.has_gained());
    }
}
