//! Paths of one connection that may share a bottleneck: what they tell each other, and what part of their connection each of them is.
//!
//! A controller keeps its own estimates; what is shared is the rule. The rule is the connection's, and a path follows it with the part of the connection that it carries:
//!
//! ```text
//! window laws     as if the path had the whole connection's window, in time that passes slower by its part: 1/n of what one flow takes, n times
//! lia olia balia  their own growth and decrease over all paths, whatever they share (laws.rs)
//! modes           the queue that is wanted is the one that a flow with the whole rate would want (lfn/law/share.rs)
//! ```
//!
//! Who is in company with whom is the transport's to say. Sources: RFC 6356, and RFC 8699 for one rule over several rates.

pub(crate) mod laws;

/// Paths of one connection, at most.
const MOST: usize = 8;

/// What one path tells the others of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Share {
    /// Congestion window in bytes, without what recovery takes off for a round trip.
    pub window_bytes: f64,
    /// Smoothed round-trip time in seconds.
    pub rtt_seconds: f64,
    /// What arrives, in bytes a second.
    pub rate: f64,
    /// OLIA's l: bytes acknowledged since the last loss, or between the two before, whichever is more.
    pub unlost_bytes: f64,
}

impl Share {
    /// What a window of so many bytes and a round trip make; nothing where one of them is not known.
    pub fn of_window(window_bytes: f64, rtt_seconds: f64, unlost_bytes: f64) -> Self {
        let rate = if rtt_seconds > 0.0 { window_bytes / rtt_seconds } else { 0.0 };
        Self { window_bytes, rtt_seconds, rate, unlost_bytes }
    }

    fn is_known(&self) -> bool {
        self.rtt_seconds > 0.0 && self.rate > 0.0
    }
}

/// The paths of a connection that are taken to share a bottleneck, as one of them sees it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Company {
    shares: [Share; MOST],
    len: usize,
}

impl Company {
    /// A path by itself.
    pub const ALONE: Self =
        Self { shares: [Share { window_bytes: 0.0, rtt_seconds: 0.0, rate: 0.0, unlost_bytes: 0.0 }; MOST], len: 0 };

    /// A path, and the others that it is in company with. Others that do not know their rate yet do not count.
    pub fn new(own: Share, others: impl Iterator<Item = Share>) -> Self {
        let mut new = Self::ALONE;
        for share in std::iter::once(own).chain(others.filter(Share::is_known)).take(MOST) {
            new.shares[new.len] = share;
            new.len += 1;
        }
        if own.is_known() { new } else { Self { len: new.len.min(1), ..new } }
    }

    /// Whether there are others.
    pub const fn is_alone(&self) -> bool {
        self.len < 2
    }

    /// The part of what arrives on all of them that arrives on this one: above 0, and 1 for one alone.
    pub fn part(&self) -> f64 {
        let shares = self.shares();
        if self.is_alone() {
            return 1.0;
        }
        let all: f64 = shares.iter().map(|share| share.rate).sum();
        (shares[0].rate / all).clamp(LEAST_PART, 1.0)
    }

    /// All of them, this one first.
    pub(crate) fn shares(&self) -> &[Share] {
        &self.shares[..self.len]
    }
}

/// A path that carries less is one that is tried: its rule does not become another one for it.
const LEAST_PART: f64 = 1.0 / 64.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn share(rate: f64) -> Share {
        Share { rate, ..Share::of_window(1.0, 0.1, 0.0) }
    }

    #[test]
    fn parts_are_of_what_arrives_on_all() {
        assert!((Company::ALONE.part() - 1.0).abs() < 1e-12);
        assert!((Company::new(share(10.0), std::iter::empty()).part() - 1.0).abs() < 1e-12);
        let company = Company::new(share(10.0), [share(20.0), share(10.0)].into_iter());
        assert!((company.part() - 0.25).abs() < 1e-12 && !company.is_alone());
        assert!((Company::new(share(1.0), std::iter::once(share(1e9))).part() - LEAST_PART).abs() < 1e-12);
    }

    #[test]
    fn who_knows_nothing_does_not_count() {
        assert!(Company::new(share(10.0), std::iter::once(Share::default())).is_alone());
        let unknown = Company::new(Share::default(), std::iter::once(share(10.0)));
        assert!((unknown.part() - 1.0).abs() < 1e-12);
        assert!(Company::new(share(1.0), (0..20).map(|_| share(1.0))).shares().len() == MOST);
    }
}
