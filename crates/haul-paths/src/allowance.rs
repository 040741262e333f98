//! A limit of bytes for both directions of a path, shared out between its two ends.
//!
//! The client counts what it sends itself; the server is told a bound on what it may send. What was granted is never taken back, and what is sent and granted is never more
//! than the limit, so nothing in flight can go beyond it. A grant G grows as fast as a start does, as far as the client keeps twice what reports of it take: with s sent and r
//! received so far,
//!
//! ```text
//!   limit - s - G >= 2 (s / r) (G - r)      so      G <= (limit + s) r / (r + 2 s)
//! ```
//! and where the client sends the data, and the server reports, the server gets half of what its reports will take, and again when that is gone.

/// What a metered path may still carry, as its client counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowance {
    limit: u64,
    granted: u64,
}

impl Allowance {
    /// So many bytes in all. The first grant is [`Self::granted`].
    pub fn new(limit: u64) -> Self {
        Self { limit, granted: FIRST_GRANT.min(limit / 2) }
    }

    /// What the server may send in all.
    pub const fn granted(&self) -> u64 {
        self.granted
    }

    /// What the client may send in all.
    pub const fn own(&self) -> u64 {
        self.limit - self.granted
    }

    /// So much was sent here, and so much received: a larger grant to tell, if it is worth it.
    pub fn renew(&mut self, sent: u64, received: u64) -> Option<u64> {
        let (sent_f, received_f) = (sent as f64, received as f64);
        let share = (self.limit as f64 + sent_f) * received_f / (received_f + 2.0 * sent_f).max(1.0);
        // Three of four packets may be lost.
        let most = received.saturating_mul(4).saturating_add(FIRST_GRANT).min(self.limit.saturating_sub(sent));
        let next = (share as u64).min(most);
        let unused = self.granted.saturating_sub(received);
        let is_worth_it = next >= self.granted + (self.granted / 8).min(unused / 4).max(LEAST_GRANT);
        is_worth_it.then(|| {
            self.granted = next;
            next
        })
    }
}

/// Reports of some hundred MB.
const FIRST_GRANT: u64 = 256 << 10;
/// A packet.
const LEAST_GRANT: u64 = 1200;

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever sends sends all it may, and the other one reports so much of a thousand bytes; what was sent each way, and how many grants were told.
    fn run(limit: u64, up: bool, per_mille: u64) -> (u64, u64, u32) {
        let mut allowance = Allowance::new(limit);
        let (mut sent, mut received, mut told) = (0, 0, 0);
        for _ in 0..200_000 {
            let (room, granted) = (allowance.own() - sent, allowance.granted() - received);
            let data = if up { room } else { granted }.min(65_536);
            let reports = if up { granted } else { room };
            // Without reports nothing goes on.
            let (data, report) = if reports == 0 { (0, 0) } else { (data, (data * per_mille / 1000).min(reports)) };
            let (more, come) = if up { (data, report) } else { (report, data) };
            (sent, received) = (sent + more, received + come);
            told += u32::from(allowance.renew(sent, received).is_some());
            assert!(sent + received <= limit && sent + allowance.granted() <= limit, "{sent} {received}");
        }
        (sent, received, told)
    }

    #[test]
    fn no_more_than_the_limit_and_nearly_all_of_it_either_way() {
        for limit in [1 << 20, 5_000_000, 100 << 20, 10 << 30] {
            for per_mille in [2, 15, 130] {
                for up in [true, false] {
                    let (sent, received, told) = run(limit, up, per_mille);
                    let data = if up { sent } else { received };
                    let reports = data * per_mille / 1000;
                    let least = (limit - (256 << 10)) * 9 / 10;
                    assert!(data + reports >= least, "{limit} {per_mille} up: {up}: {sent} {received}");
                    assert!(told < 400, "{told}");
                }
            }
        }
        assert_eq!((Allowance::new(0).granted(), Allowance::new(0).own()), (0, 0));
    }

    #[test]
    fn loss_does_not_end_the_grants() {
        let mut allowance = Allowance::new(1 << 30);
        let (mut received, mut grants) = (0, 0);
        for _ in 0..1000 {
            // Of all that was granted a third came.
            received = received.max(allowance.granted() / 3);
            grants += u32::from(allowance.renew(1000, received).is_some());
        }
        assert!(allowance.granted() > 1 << 29 && grants > 3, "{allowance:?}");
    }
}
