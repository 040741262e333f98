//! Copies that leave by several interfaces: both carry, cables are pulled and plugged in, spare ones carry only when they must.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use e2e::tree;
use e2e::{Daemon, Finished, Lab, Random, Running, eventually, pause};
use rustix::process::Signal;
use serde_json::Value;

const SIZE: u64 = 40 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// Two links, a daemon, a file to copy, and where both directions of it go.
struct Ways {
    lab: Lab,
    source: PathBuf,
    root: PathBuf,
    back: PathBuf,
    daemon: Daemon,
}

impl Ways {
    fn open(rate: &str, seed: u64) -> Option<Self> {
        let lab = Lab::open()?;
        lab.second_link(rate);
        let (source, root, back) = (lab.place("source"), lab.place("root"), lab.place("back"));
        tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(seed));
        let daemon = Daemon::start(&lab, &root);
        Some(Self { lab, source, root, back, daemon })
    }

    /// There, then back.
    fn directions(&self) -> [[OsString; 2]; 2] {
        let there = [self.source.join("file").into(), self.daemon.url("").into()];
        [there, [self.daemon.url("file").into(), OsString::from(&self.back)]]
    }

    fn start(&self, via: &str, operands: &[OsString; 2]) -> Running {
        let options = ["--json", "--via", via].map(OsString::from);
        Running::start(self.lab.cp(options.into_iter().chain(operands.iter().cloned())))
    }

    fn wait_for(&self, running: &mut Running, bytes: u64) {
        let start = self.passed();
        let under_way = eventually(Duration::from_secs(60), || self.passed() - start > bytes || !running.runs());
        assert!(under_way, "{} bytes have passed", self.passed() - start);
    }

    fn passed(&self) -> u64 {
        self.lab.bytes_over(0) + self.lab.bytes_over(1)
    }

    fn assert_same(&self) {
        let source = tree::hash(&self.source.join("file"));
        assert_eq!(source, tree::hash(&self.root.join("file")));
        assert_eq!(source, tree::hash(&self.back.join("file")));
    }
}

/// Each path, as the last event has it.
fn paths(finished: &Finished) -> Vec<Value> {
    let said = String::from_utf8_lossy(&finished.stdout);
    let summary: Value = serde_json::from_str(said.lines().last().expect("a summary")).expect("JSON");
    summary["paths"].as_array().expect("paths").clone()
}

fn passed(path: &Value) -> u64 {
    path["sent_bytes"].as_u64().unwrap_or(0) + path["received_bytes"].as_u64().unwrap_or(0)
}

#[test]
fn both_links_carry_and_ten_pulled_cables_end_nothing() {
    let Some(ways) = Ways::open("20mbit", 1801) else { return };
    for (via, operands) in ["wan,wan2", "all"].into_iter().zip(ways.directions()) {
        let mut running = ways.start(via, &operands);
        for turn in 0..10 {
            ways.wait_for(&mut running, SIZE / 48);
            ways.lab.plug(turn % 2, false);
            // The other one goes on before this one is back.
            ways.wait_for(&mut running, SIZE / 96);
            ways.lab.plug(turn % 2, true);
        }
        assert!(running.runs(), "all of that in one copy");
        let finished = running.wait(PATIENCE).expect(0);
        let paths = paths(&finished);
        let names: Vec<_> = paths.iter().map(|path| path["interface"].as_str().unwrap_or_default()).collect();
        assert_eq!(names, ["wan", "wan2"], "{finished}");
        assert!(paths.iter().all(|path| passed(path) > SIZE / 10), "both carry: {finished}");
    }
    ways.assert_same();
}

#[test]
fn a_backup_carries_only_while_the_other_is_gone() {
    let Some(ways) = Ways::open("50mbit", 1802) else { return };
    for operands in ways.directions() {
        let (before, start) = (ways.lab.bytes_over(1), ways.passed());
        let mut running = ways.start("wan2:backup,wan", &operands);
        ways.wait_for(&mut running, SIZE / 4);
        let idle = ways.lab.bytes_over(1) - before;
        // Where a machine stalls for longer than two probe timeouts the backup stands in, for a moment: one that took its turns would have half.
        let all = ways.passed() - start;
        assert!(idle < all / 5, "{idle} of {all} bytes by a backup that nobody needs");
        ways.lab.plug(0, false);
        assert!(eventually(Duration::from_secs(30), || ways.lab.bytes_over(1) - before > SIZE / 8), "the backup takes over");
        ways.lab.plug(0, true);
        let finished = running.wait(PATIENCE).expect(0);
        let paths = paths(&finished);
        assert_eq!([&paths[0]["class"], &paths[1]["class"]], ["normal", "backup"], "{finished}");
    }
    ways.assert_same();
}

#[test]
fn a_metered_link_stops_at_its_bytes() {
    let Some(ways) = Ways::open("50mbit", 1803) else { return };
    let limit = 5_000_000;
    for operands in ways.directions() {
        let before = ways.lab.bytes_over(1);
        let mut running = ways.start("wan,wan2:metered=5MB", &operands);
        ways.wait_for(&mut running, SIZE / 4);
        ways.lab.plug(0, false);
        // What a queue on the way drops counts too, and the start on a link of so few bytes fills one.
        let took_over = eventually(Duration::from_secs(30), || ways.lab.bytes_over(1) - before > limit / 2);
        assert!(took_over, "it takes over: {} bytes", ways.lab.bytes_over(1) - before);
        pause(Duration::from_secs(2));
        assert!(running.runs(), "the copy waits for the other link");
        ways.lab.plug(0, true);
        let finished = running.wait(PATIENCE).expect(0);
        let metered = passed(&paths(&finished)[1]);
        assert!(metered <= limit, "{metered} of {limit}: {finished}");
    }
    ways.assert_same();
}

#[test]
fn another_network_altogether_gets_a_path() {
    let Some(mut ways) = Ways::open("50mbit", 1804) else { return };
    ways.lab.plug(1, false);
    let [operands, _] = ways.directions();
    let mut running = ways.start("all", &operands);
    ways.wait_for(&mut running, SIZE / 4);
    ways.lab.replug_near(0);
    let finished = running.wait(PATIENCE).expect(0);
    let paths = paths(&finished);
    assert!(paths.iter().any(|path| path["interface"] == "cable1" && passed(path) > SIZE / 4), "{finished}");
    assert_eq!(tree::hash(&ways.source.join("file")), tree::hash(&ways.root.join("file")));
}

/// What a user has fixed is sent whether the interface takes it or not: the buffer of the second one's socket is full after 16 MB, and stays so.
#[test]
fn a_full_interface_holds_up_its_own_path_alone() {
    let Some(ways) = Ways::open("50mbit", 1806) else { return };
    ways.lab.choke(1, "1mbit");
    tree::write_random(&ways.source.join("large"), 160 << 20, &mut Random::seeded(1806));
    let operands = [ways.source.join("large").into_os_string(), ways.daemon.url("").into()];
    let options = ["--json", "--via", "wan,wan2", "--mode", "fixed:80M"].map(OsString::from);
    let mut running = Running::start(ways.lab.cp(options.into_iter().chain(operands)));
    // By then as much has gone to the second one.
    assert!(eventually(Duration::from_secs(60), || ways.lab.bytes_over(0) > 40 << 20), "{} bytes", ways.lab.bytes_over(0));
    let before = ways.lab.bytes_over(0);
    pause(Duration::from_secs(3));
    let meanwhile = ways.lab.bytes_over(0) - before;
    assert!(running.runs() && meanwhile > 6_000_000, "the first path at 40 Mbit/s: {meanwhile} bytes in 3 s");
    // What is in the second one's buffer takes two minutes more.
    running.signal(Signal::KILL);
    running.wait(PATIENCE);
}

#[test]
fn what_is_not_there_is_said() {
    let Some(ways) = Ways::open("50mbit", 1805) else { return };
    let [operands, _] = ways.directions();
    for (via, words) in [
        ("wan,wan9", "no interface is called wan9"),
        ("10.99.0.1", "no address of this machine"),
        ("lo6:spare", "no class of a way"),
    ] {
        let finished = ways.start(via, &operands).wait(PATIENCE).expect(2);
        assert!(finished.stderr.contains(words), "{via}: {finished}");
    }
}
