//! `HAUL_TORTURE_MINUTES` (1 unless set) of torture by `HAUL_TORTURE_SEED` (1 unless set; `random` for one of the clock's).

use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[expect(clippy::disallowed_methods, reason = "a seed that nobody chose, asked for by name and printed")]
fn seed() -> u64 {
    match std::env::var("HAUL_TORTURE_SEED") {
        Ok(word) if word == "random" => SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |time| time.as_secs()),
        Ok(word) => word.parse().expect("HAUL_TORTURE_SEED is a number, or `random`"),
        Err(_) => 1,
    }
}

#[test]
fn copies_survive_everything() {
    let minutes = std::env::var("HAUL_TORTURE_MINUTES").ok().map_or(1.0, |text| text.parse().expect("a number of minutes"));
    let Some(tally) = torture::torture(seed(), Duration::from_secs_f64(minutes * 60.0)) else { return };
    println!("{tally:?}");
    assert!(tally.rounds > 0, "not one round");
}
