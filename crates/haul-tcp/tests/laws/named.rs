//! The named algorithms against their papers.

use crate::shim;

/// Windows are in 1/1024 of a packet.
const PACKET: u64 = 1024;

#[test]
fn roots_are_whole_and_the_largest_that_fit() {
    for x in (0..70_000).chain((0..32).map(|bit| 1 << bit)).chain([u32::MAX]) {
        let root = u64::from(shim::square_root(x));
        assert!(root * root <= u64::from(x) && (root + 1) * (root + 1) > u64::from(x), "{x}: {root}");
    }
    for x in (0..70_000).chain((0..62).map(|bit| 1 << bit)).chain((1..1 << 20).step_by(997).map(|k: u64| k * k * k)) {
        let root = u128::from(shim::cube_root(x));
        assert!(root.pow(3) <= u128::from(x) && (root + 1).pow(3) > u128::from(x), "{x}: {root}");
    }
}

/// RFC 3649, appendix B: windows, a(w), b(w) in hundredths.
#[test]
fn highspeed_is_the_table_of_its_rfc() {
    let rows = [
        (38, 1, 50),
        (118, 2, 44),
        (221, 3, 41),
        (347, 4, 38),
        (495, 5, 37),
        (663, 6, 35),
        (851, 7, 34),
        (1058, 8, 33),
        (1793, 11, 30),
        (3039, 15, 27),
        (10661, 30, 21),
    ];
    for (window, rise, fall) in rows {
        assert_eq!(shim::highspeed_rise(window), rise, "a({window})");
        let fell = 100 * (window - shim::highspeed_fallen(window)) / window;
        assert!(fell.abs_diff(fall) <= 1, "b({window}) is 0.{fell}");
    }
    assert_eq!((shim::highspeed_rise(1), shim::highspeed_rise(37), shim::highspeed_fallen(37)), (1, 1, 19));
    assert!(shim::highspeed_rise(1 << 30) <= 73);
}

/// The time from a loss to the window before it does not depend on the window: ln(8/7) / ln(1.01) = 13.4 round trips.
#[test]
fn scalable_recovers_in_the_same_time_at_any_window() {
    for window in [100_u64, 1_000, 10_000, 100_000] {
        let mut now = u64::from(shim::scalable_fallen(window as u32)) * PACKET;
        let mut rounds = 0;
        while now < window * PACKET {
            let packets = now / PACKET;
            now += packets * u64::from(shim::scalable_rise(packets as u32));
            rounds += 1;
        }
        assert!((13..=15).contains(&rounds), "{rounds} round trips at {window} packets");
    }
}

/// Each step is half of what is left, bounded; beyond the maximum it grows.
#[test]
fn bic_searches_by_halving() {
    let wmax = 1_000 * PACKET;
    assert_eq!(shim::bic_step(600 * PACKET, wmax), 32 * PACKET);
    assert_eq!(shim::bic_step(960 * PACKET, wmax), 20 * PACKET);
    let mut now = 875 * PACKET;
    let mut steps = Vec::new();
    while now + PACKET / 100 < wmax && steps.len() < 100 {
        let step = shim::bic_step(now, wmax);
        steps.push(step);
        now += step;
    }
    assert!(now <= wmax && steps.len() < 30, "{} steps to {now}", steps.len());
    assert!(steps.windows(2).all(|pair| pair[1] <= pair[0]), "{steps:?}");
    let beyond: Vec<u64> = [0, 1, 5, 20, 90].map(|more| shim::bic_step(wmax + more * PACKET, wmax) / PACKET).into();
    assert_eq!(beyond, [1, 1, 5, 20, 32]);
}

/// In equilibrium alpha packets wait: w (1 - baseRTT / RTT) = alpha.
#[test]
fn fast_comes_to_rest_with_alpha_packets_waiting() {
    for (packets_per_second, base_us, alpha) in [(8_333_u64, 40_000_u64, 20_u32), (83_333, 100_000, 200), (833, 20_000, 8)] {
        let bdp = packets_per_second * base_us / 1_000_000;
        for start in [10, bdp * 3] {
            let mut window = start * PACKET;
            for _ in 0..200 {
                let waits = (window / PACKET).saturating_sub(bdp);
                let rtt = base_us + waits * 1_000_000 / packets_per_second;
                window = shim::fast_next(window, base_us as u32, rtt as u32, alpha);
            }
            let waiting = (window / PACKET).saturating_sub(bdp);
            assert!(waiting.abs_diff(u64::from(alpha)) <= 2, "{waiting} packets wait, not {alpha}, from {start}");
        }
    }
    assert_eq!(shim::fast_next(10 * PACKET, 1_000, 1_000, 10_000), 20 * PACKET, "at most doubled");
}

#[test]
fn fast_takes_alpha_by_the_rate() {
    let at = |packets_per_second: u64| shim::fast_alpha((packets_per_second << 24) / 1_000_000);
    assert_eq!([500, 8_000, 80_000, 800_000].map(at), [8, 20, 200, 2_000]);
}

#[test]
fn westwood_falls_to_what_was_delivered() {
    let rate = (8_333_u64 << 24) / 1_000_000;
    let filtered = (0..60).fold(0, |filtered, _| shim::westwood_filter(filtered, rate));
    assert!(shim::westwood_fallen(filtered, 40_000).abs_diff(333) <= 2);
    assert_eq!(shim::westwood_fallen(0, 40_000), 2);
}

/// RFC 9438 4.2: after a reduction to 0.7 the maximum is met again after K = cbrt(W_max (1 - 0.7) / 0.4) seconds.
#[test]
fn cubic_meets_its_maximum_after_k() {
    for packets in [100_u64, 1_000, 10_000] {
        let wmax = packets * PACKET;
        let k = shim::cubic_k_ms(wmax, wmax * 7 / 10);
        let exact = (packets as f64 * 0.3 / 0.4).cbrt() * 1000.0;
        assert!((f64::from(k) - exact).abs() < 3.0, "{k} ms, not {exact}");
        assert_eq!(shim::cubic_window(wmax, k, k.into()), wmax);
        assert!((shim::cubic_window(wmax, k, 0) as f64 / wmax as f64 - 0.7).abs() < 0.01);
        let later = shim::cubic_window(wmax, k, u64::from(k) + 2_000) - wmax;
        assert!(later.abs_diff(3 * PACKET + PACKET / 5) < 8, "0.4 * 2^3 packets after two seconds more: {later}");
    }
}
