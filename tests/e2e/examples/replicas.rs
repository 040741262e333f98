//! One file from its three replicas, on servers behind lines of 100, 300 and 600 Mbit/s and 40 ms: as root, `cargo run --release -p e2e --example replicas -- [MB] [kill]`.
//!
//! Prints the rate of the whole job, and from a tenth to nine tenths of the file, beside the sum of the lines; with `kill` the fastest server is killed half way. The file is compared in the end.

use std::error::Error;
use std::fs;
use std::time::Duration;

use e2e::{Random, Running, Sites, eventually, tree};
use haul_lab::LinkOptions;
use haul_units::BitRate;
use rustix::process::{Signal, kill_process};
use serde_json::Value;

const LINES_MBPS: [u64; 3] = [100, 300, 600];
const PATIENCE: Duration = Duration::from_secs(900);

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let size: u64 = words.next().map_or(Ok(2000), |word| word.parse::<u64>())? * 1_000_000;
    let kills = words.next().is_some_and(|word| word == "kill");
    let line = |mbps| LinkOptions { rate: BitRate::mbps(mbps), rtt: Duration::from_millis(40), ..LinkOptions::default() };
    let Some(sites) = Sites::open(&LINES_MBPS.map(line)) else { return Ok(()) };
    let place = |site: usize| sites.scratch().join(format!("disk{site}"));
    for site in 1..=3 {
        fs::create_dir(place(site))?;
    }
    tree::write_random(&place(1).join("large"), size, &mut Random::seeded(1));
    for site in [2, 3] {
        fs::hard_link(place(1).join("large"), place(site).join("large"))?;
    }
    let hosts: Vec<String> = (1..=3).map(|site| format!("site{site}:{}", place(site).display())).collect();
    let target = sites.scratch().join("target");
    let mut command = sites.haul(sites.hub());
    command.args(["fleet", "get", "--json", "-F"]).arg(sites.ssh_config()).args(["-H", &hosts.join(","), "large"]).arg(&target);
    let running = Running::start(command);
    if kills {
        let carried = || (1..=3).map(|site| sites.delivered_bytes(site)).sum::<u64>();
        assert!(eventually(PATIENCE, || carried() >= size / 2), "half of it has not come");
        for pid in sites.site(3).processes(&["haul", "remote"]) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    let finished = running.wait(PATIENCE).expect(0);
    assert!(tree::hash(&target) == tree::hash(&place(1).join("large")), "another content has come");

    let text = String::from_utf8_lossy(&finished.stdout);
    let events: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of = |event: &str| events.iter().filter(move |value| value["event"] == event).collect::<Vec<_>>();
    let summary = of("summary").pop().ok_or("no summary")?;
    let sum = LINES_MBPS.iter().sum::<u64>() as f64 * 1e6;
    let share = |bits: f64, seconds: f64| {
        format!("{:.1} Mbit/s, {:.1} % of the lines", bits / seconds / 1e6, bits / seconds / sum * 100.0)
    };
    let points: Vec<(f64, f64)> = of("progress")
        .into_iter()
        .filter_map(|value| Some((value["at_s"].as_f64()?, value["bytes_arrived"].as_f64()? * 8.0)))
        .collect();
    let bits = size as f64 * 8.0;
    let passed = |part: f64| points.iter().find(|(_, bits_there)| *bits_there >= part * bits);
    println!("{} MB in {} s", size / 1_000_000, summary["elapsed_s"]);
    println!("whole job: {}", share(bits, summary["elapsed_s"].as_f64().ok_or("no time")?));
    if let (Some(first), Some(last)) = (passed(0.1), passed(0.9)) {
        println!("from a tenth to nine tenths: {}", share(last.1 - first.1, last.0 - first.0));
    }
    for member in summary["members"].as_array().into_iter().flatten() {
        println!("{}: {} bytes", member["member"], member["bytes"]);
    }
    Ok(())
}
