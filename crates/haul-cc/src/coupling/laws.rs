//! The coupled laws of Multipath TCP: what the window of one path grows by for what is acknowledged, and what a loss leaves of it.
//!
//! All three are Reno on one path. In bytes as the RFC and the drafts have them, with the packet as their MSS; paths are taken to have packets of one size.
//! Sources: RFC 6356 (LIA), draft-khalili-mptcp-congestion-control-05 (OLIA), draft-walid-mptcp-congestion-control-04 (BALIA).

use super::Share;

/// LIA: packets that the window of the first path grows by for each packet acknowledged there.
pub(crate) fn lia(shares: &[Share], packet: f64) -> f64 {
    let Some(own) = shares.first() else { return 0.0 };
    let window: f64 = shares.iter().map(|share| share.window_bytes).sum();
    let rate: f64 = shares.iter().map(|share| share.rate).sum();
    let best = shares.iter().map(|share| share.rate / share.rtt_seconds).fold(0.0, f64::max);
    // RFC 6356 3 Eq. 2: alpha = cwnd_total * MAX(cwnd_i / rtt_i^2) / (SUM(cwnd_i / rtt_i))^2
    let alpha = window * best / (rate * rate);
    // RFC 6356 3 Eq. 1: MIN(alpha * bytes_acked * MSS_i / cwnd_total, bytes_acked * MSS_i / cwnd_i)
    (alpha * packet / window).min(packet / own.window_bytes)
}

/// OLIA, the same; it may be below zero.
pub(crate) fn olia(shares: &[Share], packet: f64) -> f64 {
    let Some(own) = shares.first() else { return 0.0 };
    let rate: f64 = shares.iter().map(|share| share.rate).sum();
    // draft-khalili 2.2: (w_r / rtt_r^2) / (SUM(w_p / rtt_p))^2 + alpha_r / w_r, times MSS_r * bytes_acked
    packet * (own.rate / own.rtt_seconds / (rate * rate) + olia_alpha(shares) / own.window_bytes)
}

/// BALIA, the same.
pub(crate) fn balia(shares: &[Share], packet: f64) -> f64 {
    let Some(own) = shares.first() else { return 0.0 };
    let rate: f64 = shares.iter().map(|share| share.rate).sum();
    let above = balia_alpha(shares);
    // draft-walid 3.1: x_r / (rtt_r * (SUM x_k)^2) * (1 + a_r) / 2 * (4 + a_r) / 5
    packet * own.rate / (own.rtt_seconds * rate * rate) * (1.0 + above) / 2.0 * (4.0 + above) / 5.0
}

/// BALIA's a_r: how far the fastest path is above the first.
pub(crate) fn balia_alpha(shares: &[Share]) -> f64 {
    let fastest = shares.iter().map(|share| share.rate).fold(0.0, f64::max);
    shares.first().map_or(1.0, |own| fastest / own.rate)
}

/// The part of the window that BALIA leaves after a loss.
pub(crate) fn balia_left(above: f64) -> f64 {
    // draft-walid 3.1: w_r - w_r / 2 * MIN(a_r, 1.5)
    1.0 - above.min(1.5) / 2.0
}

/// OLIA's alpha_r of the first path: from those with the largest windows to those that are better than their window says.
fn olia_alpha(shares: &[Share]) -> f64 {
    // draft-khalili 2.1: best paths have the largest l_p^2 / rtt_p
    let quality = |share: &Share| share.unlost_bytes * share.unlost_bytes / share.rtt_seconds;
    let best = shares.iter().map(quality).fold(0.0, f64::max);
    let largest = shares.iter().map(|share| share.window_bytes).fold(0.0, f64::max);
    let is_best = |share: &Share| quality(share) >= best;
    let is_largest = |share: &Share| share.window_bytes >= largest;
    let collected = shares.iter().filter(|share| is_best(share) && !is_largest(share)).count() as f64;
    let paths = shares.len() as f64;
    match shares.first() {
        _ if collected == 0.0 => 0.0,
        Some(own) if is_largest(own) => -1.0 / (paths * shares.iter().filter(|share| is_largest(share)).count() as f64),
        Some(own) if is_best(own) => 1.0 / (paths * collected),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAWS: [fn(&[Share], f64) -> f64; 3] = [lia, olia, balia];

    fn share(window: f64, rtt: f64, unlost: f64) -> Share {
        Share::of_window(window, rtt, unlost)
    }

    #[test]
    fn one_path_is_reno() {
        for law in LAWS {
            let growth = law(&[share(20_000.0, 0.1, 300_000.0)], 1000.0);
            assert!((growth - 1.0 / 20.0).abs() < 1e-12, "{growth}");
        }
        assert!((balia_left(balia_alpha(&[share(20.0, 0.1, 1.0)])) - 0.5).abs() < 1e-12);
    }

    /// RFC 6356's trap: of n equal paths each grows by 1/n^2 packets a round trip, all together by 1/n.
    #[test]
    fn equal_paths_grow_together_as_a_part_of_one() {
        for law in LAWS {
            for count in [2usize, 4, 8] {
                let shares = vec![share(10.0, 0.05, 100.0); count];
                let round = 10.0 * law(&shares, 1.0);
                let expected = 1.0 / (count * count) as f64;
                assert!((round - expected).abs() < 1e-9, "{count}: {round}, not {expected}");
            }
        }
    }

    #[test]
    fn lia_is_never_faster_than_reno_and_prefers_short_round_trips() {
        let (near, far) = (share(100.0, 0.01, 10.0), share(2.0, 0.2, 10.0));
        assert!(lia(&[near, far], 1.0) <= 1.0 / 100.0);
        assert!(lia(&[far, near], 1.0) <= 1.0 / 2.0);
        // RFC 6356 3 by hand: alpha = 102 * (100 / 1e-4) / (10_000 + 10)^2
        let alpha: f64 = 102.0 * 1e6 / (10_010.0 * 10_010.0);
        assert!((lia(&[far, near], 1.0) - alpha / 102.0).abs() < 1e-12);
    }

    #[test]
    fn olia_moves_to_the_better_path() {
        // The second loses less than its small window says: it takes what the first gives.
        let (large, better) = (share(30.0, 0.1, 40.0), share(5.0, 0.1, 400.0));
        assert!((olia_alpha(&[large, better]) + 0.5).abs() < 1e-12);
        assert!((olia_alpha(&[better, large]) - 0.5).abs() < 1e-12);
        assert!(olia(&[large, better], 1.0) * 30.0 < olia(&[better, large], 1.0) * 5.0);
        let (best, small) = (share(30.0, 0.1, 400.0), share(5.0, 0.1, 40.0));
        assert!(olia_alpha(&[small, best]).abs() < 1e-12, "the best is the largest already");
    }

    #[test]
    fn balia_gives_slow_paths_more_and_cuts_them_deeper() {
        let (fast, slow) = (share(40.0, 0.1, 1.0), share(20.0, 0.1, 1.0));
        assert!((balia_left(balia_alpha(&[fast, slow])) - 0.5).abs() < 1e-12);
        assert!((balia_left(balia_alpha(&[slow, fast])) - 0.25).abs() < 1e-12, "a_r = 2 counts as 1.5");
        let plain = 200.0 / (0.1 * 600.0 * 600.0);
        // (1 + 2) / 2 * (4 + 2) / 5
        assert!((balia(&[slow, fast], 1.0) - plain * 1.8).abs() < 1e-12);
    }
}
