//! `haul lab bench` as a user runs it: small cells with real programs over the emulated WAN, and what is left when it is killed.
//!
//! Needs root, iperf3, openssh and iproute2; says so where they are missing, and fails there if `CI` is set.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod network;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const HAUL: &str = env!("CARGO_BIN_EXE_haul");

#[test]
fn bytes_in_memory_are_measured_where_they_arrive() {
    let Some(()) = possible() else { return };
    let dir = tempfile::tempdir().unwrap();
    let options = "--rate 20M --rtt 10ms --loss 0.1% --tools haul,cubic,udt,srt,quic-bbr --seconds 2 --repeat 2";
    let output = bench(&options.split(' ').collect::<Vec<_>>(), dir.path());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let results = results(dir.path());
    let order: Vec<_> = results.iter().map(|turn| turn["tool"].as_str().unwrap()).collect();
    assert_eq!(order, ["haul", "cubic", "udt", "srt", "quic-bbr"].repeat(2), "they take turns");
    for turn in &results {
        if let Some(why) = turn["outcome"]["skipped"].as_str() {
            assert!(!["haul", "cubic"].contains(&turn["tool"].as_str().unwrap()) && why.contains("there is no "), "{turn}");
            continue;
        }
        // What an idle machine gives is not asserted; that nothing arrives faster than the link is, and that what fills it in its sleep has carried a tenth.
        let (mean, bytes) = (turn["mean_bps"].as_f64().unwrap(), turn["bytes"].as_f64().unwrap());
        let least = if ["haul", "cubic"].contains(&turn["tool"].as_str().unwrap()) { 2e6 } else { 1e5 };
        assert!(turn["outcome"] == "done" && (least..20e6).contains(&mean), "{turn}");
        assert!((bytes * 8.0 / 2.0 - mean).abs() < 10.0 && turn["series"].as_array().unwrap().len() >= 10, "{turn}");
        assert!(turn["sender"]["cpu_s"].as_f64().unwrap() > 0.0 && turn["receiver"]["memory_bytes"].as_f64().unwrap() > 0.0);
        assert!(text.contains(turn["settings"].as_str().unwrap()));
    }
    assert_eq!(fs::read_to_string(dir.path().join("results.csv")).unwrap().lines().count(), results.len() + 1);
    assert!(fs::read_to_string(dir.path().join("time-1.svg")).unwrap().contains("TCP CUBIC"));
    assert!(fs::read(dir.path().join("time-1.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn files_are_copied_and_compared() {
    let Some(()) = possible() else { return };
    let dir = tempfile::tempdir().unwrap();
    let options = "--rate 100M --rtt 4ms --tools haul-cp,haul-cp-again,scp,tar,sftp,rsync,gridftp --repeat 1";
    for files in ["1x300KB", "20x8KiB"] {
        let options: Vec<_> = options.split(' ').chain(["--files", files]).collect();
        let output = bench(&options, dir.path());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        for turn in results(dir.path()) {
            let optional = ["rsync", "gridftp"].contains(&turn["tool"].as_str().unwrap());
            assert!(turn["outcome"] == "done" || optional && turn["outcome"]["skipped"].is_string(), "{turn}");
            let settings = turn["settings"].as_str().unwrap();
            let again = settings.contains("--mode quickstart") && settings.contains("once before");
            assert_eq!(again, turn["tool"] == "haul-cp-again", "{turn}");
        }
    }
}

#[test]
fn a_program_that_is_missing_is_named_with_what_brings_it() {
    let Some(()) = possible() else { return };
    let dir = tempfile::tempdir().unwrap();
    let output = command(&["--tools", "cubic,udt", "--seconds", "1", "--repeat", "1"], dir.path())
        .env("PATH", dir.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("TCP CUBIC") && text.contains("skipped: there is no iperf3") && text.contains("apt-get install iperf3"),
        "{text}"
    );
}

#[test]
fn wrong_combinations_are_refused_before_anything_is_measured() {
    let Some(()) = possible() else { return };
    let dir = tempfile::tempdir().unwrap();
    for (options, message) in [
        (["--tools", "scp", "--seconds", "1"], "scp only copies files: ask for that with --files"),
        (["--tools", "ftp", "--seconds", "1"], "no tool `ftp`"),
        (["--files", "many", "--rtt", "1ms"], "write for instance 1x1GB"),
        (["--rate", "0", "--rtt", "1ms"], "rate of zero"),
    ] {
        let output = bench(&options, dir.path());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && said.contains(message), "{said}");
    }
}

#[test]
fn nothing_is_left_when_it_is_killed_or_interrupted() {
    let Some(()) = possible() else { return };
    let allowed = || fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
    let before = allowed();
    // A client that is at work in memory, one that copies, and the moment when the emulator has just been started.
    let memory = ["--tools", "cubic", "--seconds", "60", "--rate", "20M"];
    let files = ["--tools", "scp", "--files", "1x100MB", "--rate", "20M"];
    for (options, at_work, signal) in [
        (memory, "iperf3 --client", Signal::KILL),
        (memory, "iperf3 --client", Signal::INT),
        (files, "scp -q", Signal::KILL),
        (files, "scp -q", Signal::TERM),
        (files, "lab wan emulate", Signal::KILL),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut running = command(&options, dir.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let namespaces = wait_for(&mut running, at_work);
        kill_process(Pid::from_child(&running), signal).unwrap();
        running.wait().unwrap();
        assert_gone(running.id(), &namespaces, &format!("{at_work}, {signal:?}"));
        assert_eq!(allowed(), before, "a setting of the machine is another one");
    }
}

/// Waits until a process of this bench with this in its command line is there; the network namespaces of its descendants, but the machine's.
fn wait_for(running: &mut Child, at_work: &str) -> Vec<PathBuf> {
    let limit = now() + Duration::from_secs(60);
    let ours = format!("bench-{}-", running.id());
    loop {
        assert!(now() < limit && running.try_wait().unwrap().is_none(), "the bench does not come to `{at_work}`");
        let lines = processes();
        // The command that enters the host has both; the program itself has the command.
        if lines.iter().any(|(_, line)| line.contains(&ours) && line.contains(at_work)) {
            let net = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
            let machine = net("self").unwrap();
            return descendants(running.id()).iter().filter_map(|pid| net(pid)).filter(|link| *link != machine).collect();
        }
    }
}

/// Children, their children, and so on; daemons on the hosts are children of the emulator.
fn descendants(of: u32) -> Vec<String> {
    let parent = |pid: &str| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in brackets may contain anything.
        stat.rsplit(") ").next()?.split(' ').nth(1).map(str::to_owned)
    };
    let all: Vec<(String, String)> = processes().into_iter().filter_map(|(pid, _)| Some((parent(&pid)?, pid))).collect();
    let mut found = vec![of.to_string()];
    let mut next = 0;
    while next < found.len() {
        let children: Vec<String> = all.iter().filter(|(parent, _)| *parent == found[next]).map(|(_, pid)| pid.clone()).collect();
        found.extend(children);
        next += 1;
    }
    found
}

#[track_caller]
fn assert_gone(bench: u32, namespaces: &[PathBuf], what: &str) {
    let ours = format!("bench-{bench}-");
    let inside = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/net")).is_ok_and(|link| namespaces.contains(&link));
    let left = || processes().into_iter().filter(|(pid, line)| line.contains(&ours) || inside(pid)).collect::<Vec<_>>();
    let limit = now() + Duration::from_secs(10);
    while !left().is_empty() && now() < limit {}
    assert_eq!(left(), Vec::new(), "processes are left: {what}");
    let mounts = fs::read_to_string("/proc/mounts").unwrap();
    assert!(!mounts.contains("/run/netns/bench"), "a mount is left: {what}");
    assert!(!Path::new("/run/netns/bench").exists(), "a directory is left: {what}");
}

/// Number and command line of every process but this one.
fn processes() -> Vec<(String, String)> {
    let this = std::process::id().to_string();
    let pid =
        |entry: fs::DirEntry| entry.file_name().into_string().ok().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let line = |pid: String| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        Some((pid, String::from_utf8_lossy(&line).replace('\0', " ")))
    };
    fs::read_dir("/proc").unwrap().filter_map(Result::ok).filter_map(pid).filter(|pid| *pid != this).filter_map(line).collect()
}

fn results(dir: &Path) -> Vec<Value> {
    let text = fs::read_to_string(dir.join("results.json")).unwrap();
    let results: Value = serde_json::from_str(&text).unwrap();
    results["rows"].as_array().unwrap().iter().flat_map(|row| row["measurements"].as_array().unwrap().clone()).collect()
}

fn bench(options: &[&str], dir: &Path) -> Output {
    command(options, dir).output().unwrap()
}

fn command(options: &[&str], dir: &Path) -> Command {
    // Where the PATH is this directory, it has what the emulator needs and nothing else.
    for program in ["ip", "ss"] {
        let place =
            ["/usr/bin", "/usr/sbin", "/bin", "/sbin"].iter().map(|dir| Path::new(dir).join(program)).find(|path| path.exists());
        if !dir.join(program).exists() {
            symlink(place.unwrap(), dir.join(program)).unwrap();
        }
    }
    let mut command = Command::new(HAUL);
    command.args(["lab", "bench"]).args(options).arg("--out").arg(dir).env_remove("HAUL_LAB_NAME").stdin(Stdio::null());
    command
}

/// Nothing where these tests cannot run.
fn possible() -> Option<()> {
    network::possible("tests of the bench", &["ip", "ss", "iperf3", "ssh", "sshd", "scp"])
}

#[expect(clippy::disallowed_methods, reason = "these tests watch real processes")]
fn now() -> Instant {
    Instant::now()
}
