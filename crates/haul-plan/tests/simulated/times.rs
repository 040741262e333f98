//! When a job begins, and the rest after each file: what the paper's client could set.

use std::time::Duration;

use haul_plan::Settings;
use haul_plan::simulated::play;
use haul_units::Time;

use crate::properties::{Job, assert_whole};

#[test]
fn nothing_comes_before_the_start_and_each_server_rests_after_each_file() {
    let (rate, file) = (125e6, 12_500_000);
    let job =
        Job { rates: vec![rate], rtts: vec![Duration::from_millis(100)], client: 10.0 * rate, files: vec![(file, vec![0]); 5] };
    let (catalogue, ids) = job.catalogue();
    let start_at = Time::ZERO + Duration::from_secs(7);
    let settings = Settings { start_at, pause: Duration::from_secs(2), ..Settings::default() };
    let played = play(catalogue, settings, &job.sites(), job.client, &ids, 20.0);
    assert_whole(&job, &played);
    // Five files of a tenth of a second, and four rests.
    let least = 7.0 + 0.5 + 8.0;
    assert!((least..least + 1.5).contains(&played.seconds), "{:.2} s, and {least} s at least", played.seconds);
}

/// Longer than a server with something to send may be silent.
#[test]
fn who_has_waited_for_work_is_not_taken_for_silent() {
    let holders = vec![0, 1];
    let job = Job {
        rates: vec![125e6, 125e6],
        rtts: vec![Duration::from_millis(100); 2],
        client: 250e6,
        files: vec![(12_500_000, holders); 6],
    };
    for (start, pause) in [(7, 0), (0, 4)] {
        let (catalogue, ids) = job.catalogue();
        let start_at = Time::ZERO + Duration::from_secs(start);
        let settings = Settings { start_at, pause: Duration::from_secs(pause), ..Settings::default() };
        let played = play(catalogue, settings, &job.sites(), job.client, &ids, 20.0);
        assert_whole(&job, &played);
        assert_eq!((played.wasted, played.twice), (0, 0), "{start} {pause}: {played:?}");
    }
}
