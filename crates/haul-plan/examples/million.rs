//! What a plan costs: `cargo run --release -p haul-plan --example million -- [FILES] [SERVERS]`.
//!
//! Files of 1 MB, each on two servers of 1 Gbit/s that share a link of 10 Gbit/s: how long the catalogue takes to make, how long all orders and arrivals of the job take the
//! plan and the simulated servers together, and how much memory there is in the end.

use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

use haul_plan::simulated::{Site, play};
use haul_plan::{Catalogue, Settings};
use haul_units::Bytes;

const GBPS: f64 = 1e9 / 8.0;

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let files: u64 = words.next().map_or(Ok(1_000_000), |word| word.parse())?;
    let servers: usize = words.next().map_or(Ok(13), |word| word.parse())?;

    let begun = now();
    let mut catalogue = Catalogue::new();
    let ids: Vec<_> = (0..servers).map(|_| catalogue.add_server()).collect();
    for number in 0..files as usize {
        catalogue.add_file(Bytes(1_000_000), &[ids[number % servers], ids[(number + 1) % servers]])?;
    }
    println!("{files} files, {servers} servers: catalogue {:.2} s, {}", begun.elapsed().as_secs_f64(), memory());

    let sites: Vec<Site> = ids.iter().map(|_| Site::new(GBPS, Duration::from_millis(150))).collect();
    let total_s = files as f64 * 1e6 / (10.0 * GBPS).min(servers as f64 * GBPS);
    let begun = now();
    let played = play(catalogue, Settings::default(), &sites, 10.0 * GBPS, &ids, total_s);
    let took = begun.elapsed().as_secs_f64();
    println!(
        "job of {:.0} s played in {took:.2} s: {} orders, {:.2} us a file, {}; done: {}",
        played.seconds,
        played.orders,
        took * 1e6 / files.max(1) as f64,
        memory(),
        played.is_done
    );
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a program that measures")]
fn now() -> Instant {
    Instant::now()
}

/// The most memory that this process ever had.
fn memory() -> String {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or("memory not known").replace('\t', " ")
}
