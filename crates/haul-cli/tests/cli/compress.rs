//! `--compress auto`: fewer bytes on a link that is waited for, the same content, and nothing of it where it cannot gain.

use std::fs;

use crate::support::{Bench, Daemon, Run};

const SIZE: usize = 40 << 20;

/// Lines that no two are alike, and a small part of their size packed.
fn text() -> Vec<u8> {
    let lines = (0..).flat_map(|at: u64| format!("{at:08} the quick brown haul jumps over the lazy link\n").into_bytes());
    lines.take(SIZE).collect()
}

/// Packets that a copy's sender sent.
fn packets(run: &Run) -> u64 {
    let summary = run.text();
    let summary: serde_json::Value = serde_json::from_str(summary.lines().last().unwrap()).unwrap();
    summary["path"]["sent_pkts"].as_u64().unwrap()
}

#[test]
fn what_becomes_smaller_does_so_on_a_slow_link_both_ways() {
    let (server, client) = (Bench::new(), Bench::new());
    let content = text();
    fs::write(client.path("up"), &content).unwrap();
    let daemon = Daemon::start(&server, &client, &[format!("home={}:rw", server.path("home").display())]);
    let cp = |words: &[&str]| client.haul([&["cp", "--json", "-l", "100M"], words].concat()).expect(0);
    let url = daemon.url("home/up");
    let plain = packets(&cp(&["up", &url]));
    assert!(fs::read(server.path("home/up")).unwrap() == content);
    fs::remove_file(server.path("home/up")).unwrap();
    let up = packets(&cp(&["--compress", "auto", "up", &url]));
    assert!(fs::read(server.path("home/up")).unwrap() == content, "what arrives is what was read");
    let down = packets(&cp(&["--compress", "auto", &url, "down"]));
    assert!(fs::read(client.path("down")).unwrap() == content);
    assert!(up * 3 < plain * 2 && down * 3 < plain * 2, "{plain} packets without, {up} and {down} with it");
    // To a stream it comes as it is, for what waits for its turn is not to become larger.
    let out = client.haul(["cp", "-q", "--compress", "auto", &url, "-"]).expect(0);
    assert!(out.stdout == content);
}

#[test]
fn what_cannot_become_smaller_goes_as_it_is() {
    let (server, client) = (Bench::new(), Bench::new());
    let original = fs::read(client.file("up", 3 << 20)).unwrap();
    let daemon = Daemon::start(&server, &client, &[format!("home={}:rw", server.path("home").display())]);
    client.haul(["cp", "-l", "40M", "--compress", "auto", "up", &daemon.url("home/up")]).expect(0);
    assert!(fs::read(server.path("home/up")).unwrap() == original);
    client.haul(["cp", "--compress", "always", "up", &daemon.url("home/up")]).expect(2).says(&["auto"]);
}
