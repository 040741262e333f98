//! How the windows of one connection's subflows grow together.
//!
//! Each law gives what a window grows by for a packet that was acknowledged in congestion avoidance, and what is left of it after a loss.
//! Slow start and recovery stay each subflow's own. A connection of one subflow is Reno by any of them.
//! Sources: RFC 6356 (LIA), draft-khalili-mptcp-congestion-control-05 (OLIA), draft-walid-mptcp-congestion-control-04 (BALIA).
//! In packets: all subflows have packets of one size.

use super::TcpControl;

/// What one subflow tells the others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Share {
    /// Congestion window in packets.
    pub window_pkts: f64,
    /// Smoothed round-trip time in seconds.
    pub rtt_seconds: f64,
    /// OLIA's l: packets acknowledged since its last loss or between the two before, whichever is more.
    pub unlost_pkts: f64,
}

impl Share {
    /// Packets a second.
    fn rate(&self) -> f64 {
        self.window_pkts / self.rtt_seconds
    }
}

/// What the window of subflow `of` grows by for each packet acknowledged. `shares`: the subflows that carry data, this one among them.
pub(super) fn growth(control: TcpControl, shares: &[Share], of: usize) -> f64 {
    let Some(own) = shares.get(of) else { return 0.0 };
    let window: f64 = shares.iter().map(|share| share.window_pkts).sum();
    let rate: f64 = shares.iter().map(Share::rate).sum();
    match control {
        TcpControl::Lia => {
            // RFC 6356 3: alpha = cwnd_total * max(cwnd_i / rtt_i^2) / (sum(cwnd_i / rtt_i))^2; min(alpha / cwnd_total, 1 / cwnd_i)
            let best = shares.iter().map(|share| share.rate() / share.rtt_seconds).fold(0.0, f64::max);
            let alpha = window * best / (rate * rate);
            (alpha / window).min(1.0 / own.window_pkts)
        }
        TcpControl::Olia => {
            // draft-khalili 2.2: (w_r / rtt_r^2) / (sum(w_p / rtt_p))^2 + alpha_r / w_r
            own.rate() / own.rtt_seconds / (rate * rate) + shift(shares, of) / own.window_pkts
        }
        TcpControl::Balia => {
            // draft-walid 3.1: x_r / (rtt_r (sum x_k)^2) * (1 + a_r) / 2 * (4 + a_r) / 5
            let above = above(shares, own);
            own.rate() / (own.rtt_seconds * rate * rate) * (1.0 + above) / 2.0 * (4.0 + above) / 5.0
        }
        TcpControl::Reno | TcpControl::Cubic | TcpControl::Bbr => 1.0 / own.window_pkts,
    }
}

/// Part of the window that is left after a loss.
pub(super) fn left(control: TcpControl, shares: &[Share], of: usize) -> f64 {
    match (control, shares.get(of)) {
        // draft-walid 3.1: w_r - w_r / 2 * min(a_r, 1.5)
        (TcpControl::Balia, Some(own)) => 1.0 - above(shares, own).min(1.5) / 2.0,
        _ => 0.5,
    }
}

/// BALIA's a_r: how far the fastest subflow is above this one.
fn above(shares: &[Share], own: &Share) -> f64 {
    shares.iter().map(Share::rate).fold(0.0, f64::max) / own.rate()
}

/// OLIA's alpha_r: from the subflows with the largest windows to those that are better than their window says.
fn shift(shares: &[Share], of: usize) -> f64 {
    let quality = |share: &Share| share.unlost_pkts * share.unlost_pkts / share.rtt_seconds;
    let most = |of: fn(&Share) -> f64| shares.iter().map(of).fold(0.0, f64::max);
    let (best, largest) = (shares.iter().map(quality).fold(0.0, f64::max), most(|share| share.window_pkts));
    let is_best = |share: &Share| quality(share) >= best;
    let is_largest = |share: &Share| share.window_pkts >= largest;
    let count = |which: &dyn Fn(&Share) -> bool| shares.iter().filter(|share| which(share)).count() as f64;
    let collected = count(&|share| is_best(share) && !is_largest(share));
    if collected == 0.0 {
        return 0.0;
    }
    let paths = shares.len() as f64;
    match &shares[of] {
        own if is_largest(own) => -1.0 / (paths * count(&is_largest)),
        own if is_best(own) => 1.0 / (paths * collected),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(window_pkts: f64, rtt_seconds: f64, unlost_pkts: f64) -> Share {
        Share { window_pkts, rtt_seconds, unlost_pkts }
    }

    const LAWS: [TcpControl; 3] = [TcpControl::Lia, TcpControl::Olia, TcpControl::Balia];

    #[test]
    fn one_subflow_is_reno() {
        for law in LAWS {
            let alone = [share(20.0, 0.1, 300.0)];
            assert!((growth(law, &alone, 0) - 1.0 / 20.0).abs() < 1e-12, "{law:?}");
            assert!((left(law, &alone, 0) - 0.5).abs() < 1e-12, "{law:?}");
        }
    }

    /// RFC 6356's alpha is 1 / n for n equal subflows, so that together they grow as one: by a packet a round trip.
    #[test]
    fn equal_subflows_share_the_growth_of_one() {
        for (law, of_one) in [(TcpControl::Lia, 1.0), (TcpControl::Olia, 1.0), (TcpControl::Balia, 1.0)] {
            for count in [2, 4, 8] {
                let shares = vec![share(10.0, 0.05, 100.0); count];
                // Windows are acknowledged once a round trip: n windows of w packets, each grown so much.
                let together = count as f64 * 10.0 * growth(law, &shares, 0);
                // As a part of the whole, one flow with all of it would grow by as much for n times the packets.
                let expected = of_one / count as f64;
                assert!((together - expected).abs() < 1e-9, "{law:?}, {count}: {together}, not {expected}");
            }
        }
    }

    #[test]
    fn lia_never_grows_faster_than_reno() {
        let shares = [share(2.0, 0.2, 10.0), share(100.0, 0.01, 10.0)];
        assert!(growth(TcpControl::Lia, &shares, 1) <= 1.0 / 100.0);
        assert!(growth(TcpControl::Lia, &shares, 0) <= 1.0 / 2.0);
    }

    /// The second loses less than its small window says: it takes what the first gives.
    #[test]
    fn olia_moves_to_the_better_subflow() {
        let shares = [share(30.0, 0.1, 40.0), share(5.0, 0.1, 400.0)];
        assert!((shift(&shares, 0) + 0.5).abs() < 1e-12 && (shift(&shares, 1) - 0.5).abs() < 1e-12);
        let (largest, better) = (growth(TcpControl::Olia, &shares, 0), growth(TcpControl::Olia, &shares, 1));
        assert!(largest * 30.0 < better * 5.0, "{largest}, {better}: a window of 5 grows by more than one of 30 in a round trip");
        assert!(shift(&[share(30.0, 0.1, 400.0), share(5.0, 0.1, 40.0)], 1).abs() < 1e-12, "the best is the largest already");
    }

    #[test]
    fn balia_gives_slow_subflows_more_and_cuts_them_deeper() {
        let shares = [share(40.0, 0.1, 1.0), share(20.0, 0.1, 1.0)];
        assert!((left(TcpControl::Balia, &shares, 0) - 0.5).abs() < 1e-12);
        assert!((left(TcpControl::Balia, &shares, 1) - 0.25).abs() < 1e-12, "a_r = 2 counts as 1.5");
        // a_r = 2: 1.5 * 1.2 times the plain x_r / (rtt (sum x)^2).
        let plain = 200.0 / (0.1 * 600.0 * 600.0);
        assert!((growth(TcpControl::Balia, &shares, 1) - plain * 1.8).abs() < 1e-12);
    }
}
