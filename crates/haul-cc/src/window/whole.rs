//! A window that is a part of its connection's: the law is the connection's, and each path follows it with its part.
//!
//! With a part p of what arrives on all paths of a bottleneck, a law is shown the window w / p and time that passes slower by p. Losses that hit packets by chance come to a
//! path 1 / p times as rarely as to a flow with all of the packets: in that time as often. So the law sees what it would see with the whole connection on one path, and
//! w is p of what one flow would have. Of Reno it makes a = p^2, of CUBIC C p^4 (RFC 9438 5.1: the mean window goes with the fourth root of C).

use std::time::Duration;

use haul_units::{Bytes, Time};

use crate::{AckSample, Company};

/// What a window is a part of.
#[derive(Debug, Clone, Default)]
pub(super) struct Whole {
    company: Company,
    /// By how much the law's time is behind.
    behind: Duration,
    at: Option<Time>,
    /// Acknowledged since the last cut, and between the two before.
    since: Bytes,
    between: Bytes,
}

impl Whole {
    pub(super) const fn set(&mut self, company: &Company) {
        self.company = *company;
    }

    pub(super) const fn company(&self) -> &Company {
        &self.company
    }

    pub(super) fn part(&self) -> f64 {
        self.company.part()
    }

    /// The acknowledgement in the law's time.
    pub(super) fn slowed(&mut self, sample: &AckSample, part: f64) -> AckSample {
        let passed = self.at.replace(sample.now).map_or(Duration::ZERO, |at| sample.now.since(at));
        self.behind += passed.mul_f64(1.0 - part);
        AckSample { now: sample.now.before(self.behind), ..*sample }
    }

    pub(super) fn on_acked(&mut self, acked: Bytes) {
        self.since += acked;
    }

    pub(super) const fn on_cut(&mut self) {
        (self.between, self.since) = (self.since, Bytes::ZERO);
    }

    /// draft-khalili 2.1: l_r = max(l1_r, l2_r)
    pub(super) fn unlost_bytes(&self) -> f64 {
        self.since.max(self.between).as_u64() as f64
    }
}

#[cfg(test)]
mod tests {
    use crate::rounds::mean_window_beside;
    use crate::{cubic::Cubic, reno::Reno};

    /// Losses by chance: n windows of an nth of the connection are one flow together, not the square root of n of them.
    #[test]
    fn parts_add_up_to_one_flow() {
        for others in [1usize, 3, 7] {
            let parts = (others + 1) as f64;
            for (name, one, each) in [
                ("reno", mean_window_beside::<Reno>(1e-4, 0), mean_window_beside::<Reno>(1e-4, others)),
                ("cubic", mean_window_beside::<Cubic>(1e-5, 0), mean_window_beside::<Cubic>(1e-5, others)),
            ] {
                let ratio = each * parts / one;
                assert!((0.8..1.25).contains(&ratio), "{name}: {parts} parts are {ratio} flows");
            }
        }
    }
}
