//! Servers that are much faster than one that nobody has measured is taken for.

use std::time::Duration;

use haul_plan::simulated::{Site, play};
use haul_plan::{Catalogue, Settings};
use haul_units::Bytes;

/// What one server far away takes for 64 files of 125 MB over a line so fast, as a multiple of what the line takes. It is heard of in
/// blocks, or, where these are 0, at ticks.
fn stretch(gbps: f64, block: u64) -> f64 {
    let mut catalogue = Catalogue::new();
    let server = catalogue.add_server();
    for _ in 0..64 {
        let _ = catalogue.add_file(Bytes(125_000_000), &[server]);
    }
    let line = gbps * 125e6;
    let least = catalogue.total().as_u64() as f64 / line;
    let mut site = Site::new(line, Duration::from_millis(150));
    site.block = block;
    let played = play(catalogue, Settings::default(), &[site], line, &[server], least);
    assert!(played.is_done);
    played.seconds / least
}

#[test]
fn one_that_runs_dry_before_it_is_measured_is_soon_told_enough() {
    for gbps in [0.1, 1.0, 2.0, 5.0, 10.0] {
        for block in [0, 1 << 20] {
            let stretch = stretch(gbps, block);
            assert!(stretch < 1.1, "{gbps} Gbit/s, blocks of {block}: {stretch:.2} times the line's time");
        }
    }
}
