//! Ctrl-C in the middle, and the same command again.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::Signal;

use crate::support::{Bench, Daemon, Run, signal};

const SIZE: usize = 12 << 20;

/// Starts a slow copy with `--json`, interrupts it when something has arrived, and returns how it ended.
fn interrupted(client: &Bench, source: &str, target: &str) -> Run {
    let args = ["cp", "--json", "-l", "16M", source, target];
    let mut child = client.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    for line in lines {
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_ne!(event["event"], "summary", "too fast to interrupt");
        if event["bytes_arrived"].as_u64().is_some_and(|bytes| bytes > 0) {
            let file = &event["file"];
            assert!(file["name"].as_str().is_some_and(|name| name.ends_with("file") || name.ends_with("copy")), "{event}");
            assert_eq!(file["size"], SIZE, "{event}");
            assert!(file["arrived"].as_u64().is_some_and(|bytes| bytes > 0 && bytes <= SIZE as u64), "{event}");
            break;
        }
    }
    signal(&child, Signal::INT);
    child.wait_with_output().unwrap().into()
}

fn daemon() -> (Bench, Bench, Daemon) {
    let (server, client) = (Bench::new(), Bench::new());
    let root = format!("home={}:rw", server.path("home").display());
    let daemon = Daemon::start(&server, &client, &[root]);
    (server, client, daemon)
}

#[test]
fn an_interrupted_download_goes_on_where_it_was() {
    let (server, client, daemon) = daemon();
    let original = fs::read(server.file("home/file", SIZE)).unwrap();
    interrupted(&client, &daemon.url("home/file"), "copy").expect(130);
    assert!(!client.path("copy").exists(), "no half file under the name");
    client
        .haul(["cp", &daemon.url("home/file"), "copy"])
        .expect(0)
        .says(&["going on with a copy", "were there from an interrupted copy"]);
    assert_eq!(fs::read(client.path("copy")).unwrap(), original);
    let left: Vec<_> = fs::read_dir(client.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 5, "only the copy and the places of the test: {left:?}");
}

#[test]
fn an_interrupted_upload_goes_on_where_it_was() {
    let (server, client, daemon) = daemon();
    let original = fs::read(client.file("file", SIZE)).unwrap();
    interrupted(&client, "file", &daemon.url("home/copy")).expect(130);
    client
        .haul(["cp", "file", &daemon.url("home/copy")])
        .expect(0)
        .says(&["going on with a copy", "were there from an interrupted copy"]);
    assert_eq!(fs::read(server.path("home/copy")).unwrap(), original);
    assert_eq!(fs::read_dir(server.path("home")).unwrap().count(), 1, "nothing else is left");
}

/// A stand-in for ssh that never gets anywhere; it tells its process id.
fn hanging_ssh(bench: &Bench) -> String {
    let ssh = bench.script("ssh", "for word; do [ \"$word\" = -G ] && exit 1; done\necho $$ > \"$0.pid\"\nexec sleep 1000");
    ssh.to_str().unwrap().to_owned()
}

/// The stand-in's process, once it runs.
fn hanging(bench: &Bench) -> rustix::fd::OwnedFd {
    let file = bench.path("bin/ssh.pid");
    let id = loop {
        if let Ok(Some(id)) = fs::read_to_string(&file).map(|text| text.trim().parse().ok()) {
            break id;
        }
        std::thread::park_timeout(Duration::from_millis(10));
    };
    fs::remove_file(file).unwrap();
    let id = rustix::process::Pid::from_raw(id).unwrap();
    rustix::process::pidfd_open(id, rustix::process::PidfdFlags::empty()).unwrap()
}

/// By then a process has gone that was told to go. It goes within a second; what waits for a timer of haul's or of ssh's goes after 10 s at the earliest, and is
/// too late.
const SOON: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// Whether a process is gone soon.
fn goes(process: &rustix::fd::OwnedFd) -> bool {
    let mut end = [PollFd::new(process, PollFlags::IN)];
    poll(&mut end, Some(&SOON)).unwrap() == 1
}

/// Waits for a child that is to end soon; one that does not is killed, and has no status then.
fn ended(mut child: Child) -> Run {
    let process =
        rustix::process::pidfd_open(rustix::process::Pid::from_child(&child), rustix::process::PidfdFlags::empty()).unwrap();
    if !goes(&process) {
        child.kill().unwrap();
    }
    child.wait_with_output().unwrap().into()
}

/// SIGHUP, which the program heeds unless it was started by one that ignores it, as these tests may be (`nohup make test`): then SIGTERM.
fn hang_up() -> Signal {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let is_ignored = u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 1;
    if is_ignored { Signal::TERM } else { Signal::HUP }
}

#[test]
fn the_first_signal_ends_whatever_waits_for_ssh() {
    let bench = Bench::new();
    bench.file("x", 10);
    let ssh = hanging_ssh(&bench);
    let commands: [&[&str]; 5] = [
        &["cp", "-S", &ssh, "x", "far:"],
        &["pipe", "-S", &ssh, "far", "--", "cat"],
        &["perf", "-S", &ssh, "far"],
        &["proxy", "-S", &ssh, "far", "-L", "0:localhost:1"],
        &["cp", "-S", &ssh, "far:x", "y"],
    ];
    let signals = [Signal::INT, Signal::TERM, hang_up(), Signal::INT, hang_up()];
    for (args, how) in commands.into_iter().zip(signals) {
        let child = bench.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let ssh = hanging(&bench);
        signal(&child, how);
        let run = ended(child);
        assert_eq!(run.code, Some(130), "{args:?}: {}", run.stderr);
        assert!(!run.stderr.contains("kept"), "nothing had arrived: {}", run.stderr);
        assert!(goes(&ssh), "{args:?}: ssh stays");
    }
}

#[test]
fn ssh_does_not_outlive_a_kill() {
    let bench = Bench::new();
    bench.file("x", 10);
    let ssh = hanging_ssh(&bench);
    let mut child = bench.command(["cp", "-S", &ssh, "x", "far:"]).stderr(Stdio::piped()).spawn().unwrap();
    let ssh = hanging(&bench);
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(goes(&ssh), "ssh stays");
}

#[test]
fn a_far_side_that_never_answers_is_left_at_the_first_signal() {
    let bench = Bench::new();
    bench.file("x", 10);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let (port, key) = (silent.local_addr().unwrap().port(), bench.key());
    let answer = serde_json::json!({ "ready": { "version": "0", "port": port, "server": key, "token": "AAAA", "addresses": ["127.0.0.1"] } });
    let ssh = bench.script(
        "ssh",
        &format!(
            "for word; do [ \"$word\" = -G ] && exit 1; done\necho 'HAUL/1 {answer}'\necho $$ > \"$0.pid\"\nexec sleep 1000"
        ),
    );
    let args = ["cp", "-S", ssh.to_str().unwrap(), "x", "127.0.0.1:"];
    let child = bench.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let far = hanging(&bench);
    // Once it asks over UDP.
    silent.recv_from(&mut [0; 2048]).unwrap();
    signal(&child, Signal::INT);
    ended(child).expect(130).says(&["interrupted: nothing has arrived this time"]);
    assert!(goes(&far), "ssh stays");
}
