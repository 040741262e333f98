//! When a job begins, and the rest after each file: what the paper's client could set.

use std::time::Duration;

use haul_plan::PlacementSettings;
use haul_units::Time;

use crate::world::{Site, play};

#[test]
fn nothing_is_sent_before_the_start_and_each_member_rests_after_each_file() {
    let rate = 125e6;
    let start_at = Time::ZERO + Duration::from_secs(7);
    let settings = PlacementSettings { start_at, pause: Duration::from_secs(2), ..PlacementSettings::default() };
    let played = play(settings, &[Site::new(rate, Duration::from_millis(100))], &[12_500_000; 5], 10.0 * rate);
    assert!(played.held.iter().all(|holders| holders.len() == 1) && played.held.len() == 5, "{played:?}");
    // Five files of a tenth of a second, and four rests.
    let least = 7.0 + 0.5 + 8.0;
    assert!((least..least + 3.0).contains(&played.seconds), "{:.2} s, and {least} s at least", played.seconds);
}
