//! `HAUL_TORTURE_MINUTES` (1 unless set) of torture by `HAUL_TORTURE_SEED` (1 unless set; `random` for one of the clock's).

use std::time::Duration;

use torture::{minutes, seed, torture};

#[test]
fn copies_survive_everything() {
    let time = Duration::from_secs_f64(minutes("HAUL_TORTURE_MINUTES") * 60.0);
    let Some(tally) = torture(seed("HAUL_TORTURE_SEED"), time) else { return };
    println!("{tally:?}");
    assert!(tally.rounds > 0, "not one round");
}
