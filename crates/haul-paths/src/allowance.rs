//! A limit of bytes for both directions of a path, shared out between its two ends.
//!
//! The client counts what it sends itself; the server is told a bound on what it may send. What was granted is never taken back, and what is sent and granted is never more
//! than the limit, so nothing in flight can go beyond it. A grant is twice what came so far and some, so that it grows as fast as a start does, and what goes the other way has
//! the rest.

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

    /// So much was sent here, and so much received: a larger grant to tell, if it is time for one.
    pub fn renew(&mut self, sent: u64, received: u64) -> Option<u64> {
        let due = received >= self.granted / 2;
        let next = received.saturating_mul(2).saturating_add(FIRST_GRANT).min(self.limit.saturating_sub(sent));
        if !due || next <= self.granted {
            return None;
        }
        self.granted = next;
        Some(next)
    }
}

/// Reports of some hundred MB.
const FIRST_GRANT: u64 = 256 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever both ends may do, they do. What goes each way, in steps of a train.
    fn run(limit: u64, sends: bool, receives: bool) -> (u64, u64) {
        let mut allowance = Allowance::new(limit);
        let (mut sent, mut received) = (0, 0);
        for _ in 0..100_000 {
            let (more, come) = ((allowance.own() - sent).min(65_536), (allowance.granted() - received).min(65_536));
            sent += if sends { more } else { more.min(40) };
            received += if receives { come } else { come.min(40) };
            allowance.renew(sent, received);
            assert!(sent + received <= limit && sent + allowance.granted() <= limit, "{sent} {received}");
        }
        (sent, received)
    }

    #[test]
    fn no_more_than_the_limit_and_nearly_all_of_it_either_way() {
        for limit in [0, 1, 100_000, 10 << 20, 1 << 30] {
            let (sent, received) = run(limit, true, true);
            assert_eq!(sent + received, limit);
        }
        let (sent, _) = run(100 << 20, true, false);
        assert!(sent > 90 << 20, "{sent}");
        let (_, received) = run(100 << 20, false, true);
        assert!(received > 95 << 20, "{received}");
    }

    #[test]
    fn a_grant_is_told_when_half_of_the_last_one_has_come() {
        let mut allowance = Allowance::new(10 << 20);
        assert_eq!(allowance.renew(0, FIRST_GRANT / 2 - 1), None);
        assert_eq!(allowance.renew(0, FIRST_GRANT / 2), Some(2 * FIRST_GRANT));
        assert_eq!(allowance.renew(0, FIRST_GRANT - 1), None);
        assert_eq!(allowance.renew(10 << 20, 4 * FIRST_GRANT), None, "all of the rest was sent");
    }
}
