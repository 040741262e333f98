//! The coupled laws against the formulae of their RFC and drafts, over all windows and round-trip times that the integers are made for.

use crate::chance::Chance;
use crate::shim::{self, Share};

/// In the order of `enum law`.
const LIA: u32 = 9;
const OLIA: u32 = 10;
const BALIA: u32 = 11;
const LAWS: [u32; 3] = [LIA, OLIA, BALIA];

const PACKET: u32 = 1024;

/// Of whole packets.
fn share(window: u32, rtt_us: u32, unlost: u32) -> Share {
    Share { window: window * PACKET, rtt_us, unlost }
}

/// What a packet that is acknowledged adds to the window of the first, in packets.
fn rise(law: u32, shares: &[Share]) -> f64 {
    shim::coupled_rise(law, shares.as_ptr(), shares.len() as u32) as f64 / f64::from(1 << 30)
}

fn fallen(law: u32, shares: &[Share]) -> u32 {
    shim::coupled_fallen(law, shares.as_ptr(), shares.len() as u32)
}

/// The same as it is written.
fn exact(law: u32, shares: &[Share]) -> f64 {
    let window = |share: &Share| f64::from(share.window) / f64::from(PACKET);
    let rtt = |share: &Share| f64::from(share.rtt_us) / 1e6;
    let rate = |share: &Share| window(share) / rtt(share);
    let all: f64 = shares.iter().map(rate).sum();
    let most = |of: &dyn Fn(&Share) -> f64| shares.iter().map(of).fold(0.0, f64::max);
    let own = &shares[0];
    match law {
        LIA => {
            // RFC 6356 3: alpha = cwnd_total * max(cwnd_i / rtt_i^2) / (sum(cwnd_i / rtt_i))^2; min(alpha / cwnd_total, 1 / cwnd_i)
            (most(&|share| rate(share) / rtt(share)) / all.powi(2)).min(1.0 / window(own))
        }
        OLIA => {
            // draft-khalili 2.1, 2.2
            let quality = |share: &Share| f64::from(share.unlost).powi(2) / rtt(share);
            let (best, widest) = (most(&quality), most(&window));
            let is_wide = |share: &&Share| window(share) >= widest;
            let wide = shares.iter().filter(is_wide).count() as f64;
            let collected = shares.iter().filter(|share| quality(share) >= best && !is_wide(share)).count() as f64;
            let alpha = match own {
                _ if collected == 0.0 => 0.0,
                own if is_wide(&own) => -1.0 / (shares.len() as f64 * wide),
                own if quality(own) >= best => 1.0 / (shares.len() as f64 * collected),
                _ => 0.0,
            };
            rate(own) / rtt(own) / all.powi(2) + alpha / window(own)
        }
        _ => {
            // draft-walid 3.1: x_r / (rtt_r (sum x_k)^2) * (1 + a_r) / 2 * (4 + a_r) / 5
            let above = most(&rate) / rate(own);
            rate(own) / (rtt(own) * all.powi(2)) * (1.0 + above) / 2.0 * (4.0 + above) / 5.0
        }
    }
}

#[test]
fn one_subflow_is_reno() {
    for law in LAWS {
        for window in [2, 10, 333, 20_000, 500_000] {
            let alone = [share(window, 40_000, 500)];
            let off = rise(law, &alone) * f64::from(window) - 1.0;
            assert!(off.abs() < 1e-3, "law {law}: {window} packets, {off}");
            assert_eq!(fallen(law, &alone), (window / 2).max(2), "law {law}");
            // A round trip adds a packet, also where an acknowledgement adds less than the window's unit.
            let grown = shim::coupled_grown(law, alone.as_ptr(), 1, window);
            assert!(
                grown.abs_diff(u64::from((window + 1) * PACKET)) <= u64::from(PACKET / 20 + PACKET / window),
                "law {law}: {window}: {grown}"
            );
        }
    }
}

/// RFC 6356: n equal subflows grow by 1/n^2 of a packet each in a round trip, all together by 1/n.
#[test]
fn equal_subflows_grow_together_as_a_part_of_one() {
    for law in LAWS {
        for count in 1..=shim::company() as usize {
            let shares = vec![share(40, 50_000, 100); count];
            let round = 40.0 * rise(law, &shares) * (count * count) as f64;
            assert!((round - 1.0).abs() < 1e-3, "law {law}: {count} subflows: {round}");
        }
    }
}

/// Of Reno's growth: OLIA's alpha may add a half to a share that is nearly all.
fn most(law: u32) -> f64 {
    if law == OLIA { 1.501 } else { 1.001 }
}

/// As many of each order of magnitude.
fn up_to(chance: &mut Chance, bits: u64) -> u32 {
    let bits = chance.below(bits) + 1;
    chance.below(1 << bits).max(1) as u32
}

/// Windows of 2 packets to half a million, round-trip times of 1 us to 33 s, in any company.
#[test]
fn integers_are_what_the_formulae_say() {
    let mut chance = Chance(88_172_645_463_325_252);
    let mut largest = [0.0_f64; 3];
    for _ in 0..200_000 {
        let count = 1 + chance.below(shim::company().into()) as usize;
        let wide = chance.below(4) == 0;
        let shares: Vec<Share> = (0..count)
            .map(|_| {
                let rtt_us = if wide { up_to(&mut chance, 25) } else { 1_000 + up_to(&mut chance, 19) };
                share(1 + up_to(&mut chance, if wide { 18 } else { 14 }), rtt_us, up_to(&mut chance, if wide { 31 } else { 18 }))
            })
            .collect();
        let rates = shares.iter().map(|of| f64::from(of.window / PACKET) / f64::from(of.rtt_us));
        if rates.fold(0.0, f64::max) * f64::from(shares[0].rtt_us) > f64::from(1 << 28) {
            // Nobody has so much on its way.
            continue;
        }
        for (law, largest) in LAWS.into_iter().zip(&mut largest) {
            let (is, wanted) = (rise(law, &shares), exact(law, &shares));
            let reno = 1.0 / (f64::from(shares[0].window) / f64::from(PACKET));
            // Of what Reno would grow by: where one round trip is thousands of times another, the window that stands for the other is a few units.
            let off = (is - wanted).abs() / reno;
            *largest = largest.max(off);
            let near = off < 1e-2 || law == OLIA && is_near_a_tie(&shares);
            assert!(near, "law {law}: {is} and not {wanted}: {shares:?}");
            assert!(is <= reno * most(law), "law {law}: {is} is more than Reno's {reno}: {shares:?}");
        }
    }
    println!("off by so much of Reno's growth at the most: {largest:?}");
}

/// Two l^2 / rtt that are so near each other that the bits which are left out of large l decide.
fn is_near_a_tie(shares: &[Share]) -> bool {
    let quality = |share: &Share| f64::from(share.unlost).powi(2) / f64::from(share.rtt_us);
    let best = shares.iter().map(quality).fold(0.0, f64::max);
    let near = shares.iter().filter(|share| quality(share) > best * 0.99).count();
    near > 1 || shares.iter().any(|share| share.unlost >= 1 << 19)
}

#[test]
fn the_ends_of_the_ranges_overflow_nothing() {
    let ends = [Share { window: 0, rtt_us: 0, unlost: 0 }, Share { window: u32::MAX, rtt_us: u32::MAX, unlost: u32::MAX }];
    let (narrow, wide) = (share(2, 1, u32::MAX), Share { window: u32::MAX, rtt_us: 1, unlost: 1 });
    let far = share(2, u32::MAX, 0);
    for law in LAWS {
        for own in [ends[0], ends[1], narrow, wide, far] {
            for other in [ends[0], ends[1], narrow, wide, far] {
                let shares = [&[own][..], &vec![other; shim::company() as usize - 1]].concat();
                let reno = f64::from(PACKET) / f64::from(own.window.clamp(1, (1 << 29) - 1));
                let is = rise(law, &shares);
                assert!(is.abs() <= reno * most(law), "law {law}: {is}, Reno {reno}: {shares:?}");
                assert!(fallen(law, &shares) <= (own.window / PACKET).max(2), "law {law}: {shares:?}");
            }
        }
    }
}

/// The second loses less than its small window says: it takes what the first gives.
#[test]
fn olia_moves_to_the_better_subflow() {
    let (large, better) = (share(16, 100_000, 40), share(10, 100_000, 400));
    let (down, up) = (rise(OLIA, &[large, better]), rise(OLIA, &[better, large]));
    assert!((down * 16.0 - 256.0 / (26.0 * 26.0) + 0.5).abs() < 1e-3 && down < 0.0, "{down}");
    assert!((up * 10.0 - 100.0 / (26.0 * 26.0) - 0.5).abs() < 1e-3, "{up}");
    let grown = shim::coupled_grown(OLIA, [large, better].as_ptr(), 2, 3_000);
    assert!((9..12).contains(&(grown / u64::from(PACKET))), "it gives until they are alike: {grown}");
    assert_eq!(
        shim::coupled_grown(OLIA, [share(2, 100_000, 1), share(1, 100_000, 900)].as_ptr(), 2, 3_000),
        2 * u64::from(PACKET)
    );
    let (best, small) = (share(30, 100_000, 400), share(5, 100_000, 40));
    assert!(rise(OLIA, &[small, best]) > 0.0 && rise(OLIA, &[best, small]) > 0.0, "the best is the largest already");
}

#[test]
fn olia_counts_since_the_last_loss_or_between_the_two_before() {
    assert_eq!(
        [(0, 100, 150), (0, 100, 350), (40, 100, 150)].map(|(first, second, now)| shim::unlost(first, second, now)),
        [100, 250, 60]
    );
    // The counter runs over.
    assert_eq!(shim::unlost(u32::MAX - 9, 20, 25), 30);
}

#[test]
fn balia_gives_slow_subflows_more_and_cuts_them_deeper() {
    let (fast, slow) = (share(40, 100_000, 1), share(20, 100_000, 1));
    assert_eq!((fallen(BALIA, &[fast, slow]), fallen(BALIA, &[slow, fast])), (20, 5), "a_r = 2 counts as 1.5");
    // (1 + 2) / 2 * (4 + 2) / 5
    assert!((rise(BALIA, &[slow, fast]) - 20.0 / 3600.0 * 1.8).abs() < 1e-6);
    assert_eq!((fallen(LIA, &[slow, fast]), fallen(OLIA, &[slow, fast])), (10, 10));
}

/// RFC 6356 3: nowhere faster than Reno, and together as fast as Reno on the best path.
#[test]
fn lia_is_never_faster_than_reno() {
    let (near, far) = (share(100, 10_000, 10), share(2, 200_000, 10));
    assert!(rise(LIA, &[near, far]) <= 1.0 / 100.0);
    // By hand: max(w / rtt^2) / (sum w / rtt)^2 = 1e6 / 10_010^2
    assert!((rise(LIA, &[far, near]) - 1e6 / (10_010.0 * 10_010.0)).abs() < 1e-6);
}
