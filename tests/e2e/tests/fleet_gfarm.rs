//! A fleet whose members reach one Gfarm, with a storage server on each of three sites behind lines of their own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use e2e::{Gfarm, Random, Running, Sites, eventually, tree};
use haul_lab::LinkOptions;
use serde_json::Value;

const PATIENCE: Duration = Duration::from_secs(120);
const SITES: usize = 3;

fn command(sites: &Sites, what: &str, hosts: &str, words: &[&str]) -> Command {
    let mut command = sites.haul(sites.hub());
    command.args(["fleet", what, "--json", "-F"]).arg(sites.ssh_config()).args(["-H", hosts]).args(words);
    command
}

/// A file in Gfarm, on so many of its servers, and what it is a copy of.
fn file(sites: &Sites, gfarm: &Gfarm<'_>, size: u64, servers: usize) -> PathBuf {
    let source = sites.scratch().join("source");
    tree::write_random(&source, size, &mut Random::seeded(91));
    gfarm.program("gfreg", &[text(&source), "gfarm:/large"]);
    gfarm.spread("/large", servers);
    source
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

#[test]
fn a_file_comes_faster_from_three_storage_servers_than_from_one() {
    let Some(sites) = Sites::on_ethernet(SITES, "40mbit") else { return };
    let Some(gfarm) = Gfarm::on_sites(&sites, SITES) else { return };
    let source = file(&sites, &gfarm, 24 << 20, SITES);
    let fetch = |hosts: &str| {
        let target = sites.scratch().join(format!("from-{hosts}"));
        let before: Vec<_> = (1..=SITES).map(|site| sites.passed_bytes(site)).collect();
        let finished = Running::start(command(&sites, "get", hosts, &["gfarm:/large", text(&target)])).wait(PATIENCE).expect(0);
        assert_eq!(tree::hash(&source), tree::hash(&target));
        let carried: Vec<_> = (1..=SITES).map(|site| sites.passed_bytes(site) - before[site - 1]).collect();
        (finished.event("summary"), carried)
    };
    let (one, by_one) = fetch("site1");
    // Each member reads what lies on its own site: nothing crosses a line that is not on its way to the client.
    assert!(by_one[1..].iter().all(|&bytes| bytes < 2 << 20), "{by_one:?}");
    let (three, by_three) = fetch("site1,site2,site3");
    assert!(by_three.iter().all(|&bytes| bytes > 4 << 20), "each line carries its part: {by_three:?}");
    assert!(by_three.iter().sum::<u64>() < 36 << 20, "{by_three:?}");
    let seconds = |told: &Value| told["elapsed_s"].as_f64().expect("a time");
    assert!(seconds(&three) < seconds(&one), "{three} {one}");
}

#[test]
fn storage_servers_that_die_and_replicas_that_vanish_cost_nothing_but_time() {
    let Some(sites) = Sites::on_ethernet(SITES, "30mbit") else { return };
    let Some(gfarm) = Gfarm::on_sites(&sites, SITES) else { return };
    let source = file(&sites, &gfarm, 24 << 20, SITES);
    let target = sites.scratch().join("target");
    let mut running = Running::start(command(&sites, "get", "site1,site2,site3", &["gfarm:/large", text(&target)]));
    let before: Vec<_> = (1..=SITES).map(|site| sites.passed_bytes(site)).collect();
    let comes_from = |site: usize| sites.passed_bytes(site) - before[site - 1] > 2 << 20;
    assert!(eventually(PATIENCE, || (1..=SITES).all(comes_from)), "nothing has come");
    assert!(running.runs(), "it is over already");
    gfarm.kill(&sites.site(3).address);
    gfarm.program("gfrm", &["-h", &sites.site(2).address, "gfarm:/large"]);
    let finished = running.wait(PATIENCE).expect(0);
    assert_eq!(tree::hash(&source), tree::hash(&target), "{finished}");
    assert_eq!(gfarm.program("gfwhere", &["gfarm:/large"]).matches(&sites.site(2).address).count(), 0, "the replica is gone");
}

#[test]
fn the_status_of_a_fleet_has_the_storage_servers() {
    let Some(sites) = Sites::on_ethernet(2, "100mbit") else { return };
    let Some(gfarm) = Gfarm::on_sites(&sites, 2) else { return };
    gfarm.kill(&sites.site(2).address);
    let down = || gfarm.program("gfhost", &["-l"]).lines().any(|line| line.starts_with('-') || line.starts_with('x'));
    assert!(eventually(PATIENCE, down), "the metadata server has not noticed");
    let told = Running::start(command(&sites, "status", "site1:gfarm:/", &[])).wait(PATIENCE).expect(0);
    let member: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    let place = &member["status"]["places"][0];
    let storage = place["storage"].as_array().unwrap_or_else(|| panic!("storage servers: {told}"));
    let of = |site: usize| {
        storage.iter().find(|server| server["host"] == *sites.site(site).address).unwrap_or_else(|| panic!("{told}"))
    };
    assert!(of(1)["load1"].is_f64() && of(1)["free_bytes"].as_u64() > Some(0), "{told}");
    assert!(of(2)["load1"].is_null() && of(2)["free_bytes"].is_null(), "{told}");
    let mut table = sites.haul(sites.hub());
    table.args(["fleet", "status", "-F"]).arg(sites.ssh_config()).args(["-H", "site1:gfarm:/"]);
    let table = Running::start(table).wait(PATIENCE).expect(0);
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    assert!(table.contains(&format!("on {}", sites.site(1).address)) && table.contains("down"), "{table}");
}

/// The emulator's links end in tunnels; libgfarm would crash there, and haul with it.
#[test]
fn a_host_where_libgfarm_would_crash_is_told_so() {
    let Some(sites) = Sites::open(&[LinkOptions::default()]) else { return };
    if Gfarm::on_sites(&sites, 0).is_none() {
        return;
    }
    let mut command = sites.haul(sites.site(1));
    command.args(["cp", "gfarm:/large"]).arg(format!("site1:{}", sites.scratch().display())).arg("-F").arg(sites.ssh_config());
    let told = Running::start(command).wait(PATIENCE).expect(2);
    assert!(told.stderr.contains("libgfarm 2.7 crashes on a host with a tunnel, and wan0 is one"), "{told}");
}
