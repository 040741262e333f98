//! Servers whose connections do not share the client's link as their work does.

use std::time::Duration;

use haul_plan::Policy;
use haul_plan::simulated::{BIN, Played, Site};

use crate::properties::{Job, assert_whole};

const RTT: Duration = Duration::from_millis(150);
const MBPS: f64 = 1e6 / 8.0;

/// Five servers behind lines of 1 Gbit/s and eight behind `slow`, before a client of 1 Gbit/s; each has 30 files of 12.5 MB of its own.
fn fleet(slow: f64) -> Job {
    let rates = (0..13).map(|at| if at < 5 { 1000.0 * MBPS } else { slow * MBPS }).collect();
    let files = (0..13 * 30).map(|number| (12_500_000, vec![number % 13])).collect();
    Job { rates, rtts: vec![RTT; 13], client: 1000.0 * MBPS, files }
}

fn weighted(job: &Job, weights: &[f64]) -> Vec<Site> {
    let sites = job.sites().into_iter().zip(weights.iter().cycle());
    sites.map(|(site, weight)| Site { weight: *weight, ..site }).collect()
}

/// What came each second, as a part of the link, from the fourth to that in which so much of all had.
fn shares(job: &Job, played: &Played, part: f64) -> Vec<f64> {
    let bins = played.arrived.iter().map(Vec::len).max().unwrap_or(0);
    let at = |bin: usize| played.arrived.iter().filter_map(|server| server.get(bin)).sum::<u64>();
    let mut sum = 0;
    let mut until = || {
        (0..bins).position(|bin| {
            sum += at(bin);
            sum as f64 > played.counted as f64 * part
        })
    };
    let until = until().unwrap_or(bins);
    (3..until).map(|bin| at(bin) as f64 / BIN.as_secs_f64() / job.client).collect()
}

#[test]
fn all_end_together_however_the_link_is_shared() {
    let job = fleet(100.0);
    // As those of connections of one controller that began at different moments: a sixth of an even share, and twice as much.
    for weights in [
        &[2.0, 1.6, 2.0, 0.4, 1.8, 0.3, 0.3, 1.0, 1.2, 0.3, 1.0, 1.1, 1.0][..],
        &[1.0, 3.0],
        &[5.0, 5.0, 5.0, 1.0, 1.0, 1.0, 1.0],
    ] {
        let sites = weighted(&job, weights);
        let bound = job.bound_s();
        let left_alone = job.play(Policy::RoundRobin, &sites);
        assert!(left_alone.seconds > bound * 1.1, "{:.1} of {bound:.1} s: nothing to be gained", left_alone.seconds);
        let played = job.play(Policy::Dynamic, &sites);
        assert_whole(&job, &played);
        assert!(played.seconds < bound * 1.04, "{weights:?}: {:.2} s, and {bound:.2} s at best", played.seconds);
        let least = shares(&job, &played, 0.9).into_iter().fold(1.0, f64::min);
        assert!(least > 0.93, "{least:.3} of the link");
    }
}

/// Connections that come late to a full link begin with little, and find more only slowly: they are told that there is room once others make it.
#[test]
fn who_begins_with_little_is_told_of_the_room_that_others_make() {
    let job = fleet(100.0);
    for little in [2.0, 10.0, 30.0] {
        for slow_ones in [&[2][..], &[4, 11], &[0, 6, 7, 12]] {
            let mut sites = weighted(&job, &[1.0, 1.5, 2.0]);
            for (at, site) in sites.iter_mut().enumerate() {
                let begins = if slow_ones.contains(&at) { little } else { 120.0 };
                (site.begins, site.grows) = (begins * MBPS, 1.03);
            }
            let bound = job.bound_s();
            let played = job.play(Policy::Dynamic, &sites);
            assert_whole(&job, &played);
            assert!(played.seconds < bound * 1.06, "{little} {slow_ones:?}: {:.1} s of {bound:.1} s", played.seconds);
        }
    }
}

/// Whose own line is slow is late whatever the others do: they are not held back for it.
#[test]
fn nobody_waits_for_a_slow_line() {
    let mut job = fleet(100.0);
    job.rates[12] = 10.0 * MBPS;
    job.rates[11] = 30.0 * MBPS;
    let played = job.play(Policy::Dynamic, &weighted(&job, &[1.0, 2.0, 0.5]));
    assert_whole(&job, &played);
    let longest = played.seconds / job.bound_s();
    assert!(longest < 1.02, "{longest:.3} of what the slow line takes");
    let shares = shares(&job, &played, 0.8);
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    assert!(mean > 0.97, "{mean:.3} of the link: {shares:.2?}");
}

/// One that began first leaves a link that nobody fills, as nobody knows that there is room: they are told.
#[test]
fn who_has_little_is_told_of_the_room_that_one_leaves_who_is_through() {
    for files in [12, 20, 30] {
        let mut job = fleet(1000.0);
        // The first has most of the link, and is soon through.
        job.files.retain(|(_, holders)| holders != &[0]);
        job.files.extend((0..files).map(|_| (12_500_000, vec![0])));
        for little in [2.0, 10.0, 30.0] {
            let mut sites = weighted(&job, &[1.0]);
            for (at, site) in sites.iter_mut().enumerate() {
                (site.begins, site.grows) = (if at == 0 { 900.0 } else { little } * MBPS, 1.03);
            }
            let bound = job.bound_s();
            let played = job.play(Policy::Dynamic, &sites);
            assert_whole(&job, &played);
            assert!(played.seconds < bound * 1.15, "{files} files, {little}: {:.1} s of {bound:.1} s", played.seconds);
        }
    }
}
