//! One file from its three replicas, on servers behind lines of 100, 300 and 600 Mbit/s: as root, `cargo run --release -p e2e --example replicas -- [MB] [kill] [--kernel] [--mtu BYTES]`.
//!
//! The lines are the emulator's, with 40 ms; with `--kernel` they are token buckets of the kernel's (`tc`, of iproute2), which take no process's time and add no delay. Prints the rate of the whole job, and
//! from a tenth to nine tenths of the file, beside the sum of the lines and beside what of a file these carry in packets of that length; with `kill` the fastest server is killed half way. The file is
//! compared in the end.

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
/// Headers of IP and UDP, haul's own and its authentication tag.
const HEADERS_BYTES: u16 = 20 + 8 + 28 + 16;
/// haul's longest packet, of jumbo frames.
const LONGEST_BYTES: u16 = 9000;

struct Asked {
    bytes: u64,
    kills: bool,
    kernel: bool,
    mtu: u16,
}

impl Asked {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Box<dyn Error>> {
        let mut asked = Self { bytes: 2_000_000_000, kills: false, kernel: false, mtu: 1500 };
        while let Some(word) = words.next() {
            match &*word {
                "kill" => asked.kills = true,
                "--kernel" => asked.kernel = true,
                "--mtu" => asked.mtu = words.next().ok_or("--mtu: how many bytes?")?.parse()?,
                size => asked.bytes = size.parse::<u64>().map_err(|error| format!("{size}: {error}"))? * 1_000_000,
            }
        }
        if !(1300..=LONGEST_BYTES).contains(&asked.mtu) {
            return Err(format!("--mtu {}: from 1300 to {LONGEST_BYTES}", asked.mtu).into());
        }
        Ok(asked)
    }

    fn sites(&self) -> Option<Sites> {
        if self.kernel {
            return Sites::on_lines(&LINES_MBPS.map(BitRate::mbps), self.mtu);
        }
        let line = |mbps| LinkOptions { rate: BitRate::mbps(mbps), rtt: Duration::from_millis(40), ..LinkOptions::default() };
        Sites::open_with(&LINES_MBPS.map(line), self.mtu)
    }

    /// Bytes that have passed the line of a site.
    fn passed(&self, sites: &Sites, site: usize) -> u64 {
        if self.kernel { sites.passed_bytes(site) } else { sites.delivered_bytes(site) }
    }

    /// A rate, of the lines and of what these carry of a file.
    fn share(&self, bits: f64, seconds: f64) -> String {
        let (rate, sum) = (bits / seconds / 1e6, LINES_MBPS.iter().sum::<u64>() as f64);
        let bound = sum * f64::from(self.mtu - HEADERS_BYTES) / f64::from(self.mtu);
        let (of_sum, of_bound) = (rate / sum * 100.0, rate / bound * 100.0);
        format!(
            "{rate:.1} Mbit/s, {of_sum:.1} % of the lines, {of_bound:.1} % of the {bound:.1} Mbit/s of content that they carry"
        )
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let asked = Asked::parse(std::env::args().skip(1))?;
    let size = asked.bytes;
    let Some(sites) = asked.sites() else { return Ok(()) };
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
    if asked.kills {
        let carried = || (1..=3).map(|site| asked.passed(&sites, site)).sum::<u64>();
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
    let points: Vec<(f64, f64)> = of("progress")
        .into_iter()
        .filter_map(|value| Some((value["at_s"].as_f64()?, value["bytes_arrived"].as_f64()? * 8.0)))
        .collect();
    let bits = size as f64 * 8.0;
    let passed = |part: f64| points.iter().find(|(_, bits_there)| *bits_there >= part * bits);
    let lines = if asked.kernel { "the kernel's token buckets" } else { "the emulator, 40 ms" };
    println!("{} MB in {} s; lines: {lines}, packets of {} bytes", size / 1_000_000, summary["elapsed_s"], asked.mtu);
    println!("whole job: {}", asked.share(bits, summary["elapsed_s"].as_f64().ok_or("no time")?));
    if let (Some(first), Some(last)) = (passed(0.1), passed(0.9)) {
        println!("from a tenth to nine tenths: {}", asked.share(last.1 - first.1, last.0 - first.0));
    }
    for member in summary["members"].as_array().into_iter().flatten() {
        println!("{}: {} bytes", member["member"], member["bytes"]);
    }
    Ok(())
}
