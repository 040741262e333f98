//! Copies with a server that has an address on each of two links that have nothing to do with each other.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use e2e::tree;
use e2e::{Daemon, Finished, Lab, Random, Running, eventually};
use serde_json::Value;

const SIZE: u64 = 30 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

struct TwoLinks {
    lab: Lab,
    source: PathBuf,
    root: PathBuf,
}

impl TwoLinks {
    /// The direct link has IPv4, or IPv6 alone.
    fn open(is_ipv6: bool, seed: u64) -> Option<Self> {
        let lab = Lab::open()?;
        lab.direct_link("30mbit", is_ipv6);
        let (source, root) = (lab.place("source"), lab.place("root"));
        tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(seed));
        Some(Self { lab, source, root })
    }

    fn start(&self, from: impl Into<OsString>, to: impl Into<OsString>) -> Running {
        Running::start(self.lab.cp([OsString::from("--json"), "--via".into(), "all".into(), from.into(), to.into()]))
    }

    fn copy(&self, from: impl Into<OsString>, to: impl Into<OsString>) -> Finished {
        self.start(from, to).wait(PATIENCE).expect(0)
    }

    fn assert_same(&self, copy: &Path) {
        assert_eq!(tree::hash(&self.source.join("file")), tree::hash(copy));
    }
}

/// What each path has carried, by its interface.
fn carried(finished: &Finished) -> Vec<(String, u64)> {
    let said = String::from_utf8_lossy(&finished.stdout);
    let summary: Value = serde_json::from_str(said.lines().last().expect("a summary")).expect("JSON");
    let paths = summary["paths"].as_array().expect("paths").clone();
    let number = |path: &Value, key: &str| path[key].as_u64().unwrap_or(0);
    let of = |path: &Value| {
        let interface = path["interface"].as_str().unwrap_or_default().to_owned();
        (interface, number(path, "sent_bytes") + number(path, "received_bytes"))
    };
    paths.iter().map(of).collect()
}

#[track_caller]
fn assert_both_carry(finished: &Finished) {
    let carried = carried(finished);
    let names: Vec<_> = carried.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["wan", "direct"], "{finished}");
    assert!(carried.iter().all(|(_, bytes)| *bytes > SIZE / 5), "both carry: {carried:?} {finished}");
}

#[test]
fn a_copy_uses_the_address_that_the_server_has_on_each_link() {
    for (is_ipv6, seed) in [(false, 1811), (true, 1812)] {
        let Some(links) = TwoLinks::open(is_ipv6, seed) else { return };
        let daemon = Daemon::start_everywhere(&links.lab, &links.root, &[]);
        let back = links.lab.place("back");
        assert_both_carry(&links.copy(links.source.join("file"), daemon.url("")));
        assert_both_carry(&links.copy(daemon.url("file"), back.as_os_str()));
        links.assert_same(&links.root.join("file"));
        links.assert_same(&back.join("file"));
        // Through ssh, the far side is found the same way.
        let inbox = links.lab.place("inbox");
        assert_both_carry(&links.copy(links.source.join("file"), format!("far:{}", inbox.display())));
        links.assert_same(&inbox.join("file"));
    }
}

#[test]
fn a_server_tells_of_an_address_that_comes_during_a_copy() {
    let Some(links) = TwoLinks::open(false, 1814) else { return };
    links.lab.address_far_direct(false);
    let daemon = Daemon::start_everywhere(&links.lab, &links.root, &[]);
    let mut running = links.start(links.source.join("file"), daemon.url(""));
    let carried = || links.lab.bytes_over(0);
    let under_way = eventually(PATIENCE, || carried() > SIZE / 10 || !running.runs());
    assert!(under_way && links.lab.bytes_over_direct() < SIZE / 100, "{} bytes by the other link", carried());
    links.lab.address_far_direct(true);
    assert_both_carry(&running.wait(PATIENCE).expect(0));
    links.assert_same(&links.root.join("file"));
}

#[test]
fn a_server_tells_what_its_operator_says() {
    let Some(links) = TwoLinks::open(false, 1813) else { return };
    let daemon = Daemon::start_everywhere(&links.lab, &links.root, &["--address", "10.77.9.2"]);
    assert_both_carry(&links.copy(links.source.join("file"), daemon.url("there")));
    daemon.stop();
    let daemon = Daemon::start_everywhere(&links.lab, &links.root, &["--address", "none"]);
    let before = links.lab.bytes_over_direct();
    let finished = links.copy(links.source.join("file"), daemon.url("again"));
    let asked = links.lab.bytes_over_direct() - before;
    assert!(asked < SIZE / 100 && carried(&finished).len() <= 2, "{asked} bytes on a link where nobody is known: {finished}");
    links.assert_same(&links.root.join("again"));
}
