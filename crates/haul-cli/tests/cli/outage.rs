//! A far side that falls silent in the middle, and comes back: both are said, with the time that is left.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{Bench, Daemon, Run, signal};

#[test]
fn an_outage_is_told_when_it_begins_and_when_it_ends() {
    let (server, client) = (Bench::new(), Bench::new());
    let original = fs::read(server.file("home/file", 24 << 20)).unwrap();
    let daemon = Daemon::start(&server, &client, &[format!("home={}", server.path("home").display())]);
    let args = ["cp", "--json", "-l", "32M", &daemon.url("home/file"), "copy"];
    let mut child = client.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut events = lines.map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap());
    assert!(events.any(|event| event["bytes_arrived"].as_u64().is_some_and(|bytes| bytes > 0)), "it begins");
    signal(&daemon.child, Signal::STOP);
    let stalled = events.find(|event| matches!(event["event"].as_str(), Some("stalled" | "summary"))).unwrap();
    signal(&daemon.child, Signal::CONT);
    assert_eq!(stalled["event"], "stalled", "{stalled}");
    let (silence, left) = (stalled["silence_s"].as_f64().unwrap(), stalled["left_s"].as_f64().unwrap());
    // 5 s of a keep-alive and one on the way at the least; what is left is the rest of the time that was set.
    assert!((6.0..15.0).contains(&silence) && (silence + left - 90.0).abs() < 0.01, "{stalled}");
    let mut rest = events.filter(|event| event["event"] != "progress");
    assert_eq!(rest.next().unwrap()["event"], "heard_again");
    assert_eq!(rest.last().unwrap()["exit_status"], 0);
    assert!(child.wait().unwrap().success());
    assert!(fs::read(client.path("copy")).unwrap() == original);
}

/// A copy that begins while the daemon is gone and is tried again until it is there.
#[test]
fn a_copy_is_tried_again_and_succeeds() {
    let (server, client) = (Bench::new(), Bench::new());
    let original = fs::read(server.file("home/file", 1 << 20)).unwrap();
    let root = format!("home={}", server.path("home").display());
    let (address, url) = {
        let daemon = Daemon::start(&server, &client, std::slice::from_ref(&root));
        (daemon.address.clone(), daemon.url("home/file"))
    };
    // Without further tries it fails.
    client.haul(["cp", "--dead-after", "8", &url, "copy"]).expect(2);
    let mut child =
        client.command(["cp", "--retries", "5", "--dead-after", "8", &url, "copy"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.by_ref().any(|line| line.contains("trying again in 1 s")));
    let _daemon = Daemon::start_at(&server, &address, &["--root", &root]);
    let rest: Vec<String> = said.collect();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest:?}");
    assert!(fs::read(client.path("copy")).unwrap() == original);
}

/// rsync's word, with its meaning: so long a silence ends the copy, and the next one goes on.
#[test]
#[expect(clippy::disallowed_methods, reason = "a real silence takes real time")]
fn a_silence_of_the_timeout_ends_the_copy() {
    let (server, client) = (Bench::new(), Bench::new());
    let original = fs::read(server.file("home/file", 24 << 20)).unwrap();
    let daemon = Daemon::start(&server, &client, &[format!("home={}", server.path("home").display())]);
    let args = ["cp", "--json", "-l", "32M", "--timeout", "9", "--reconnect", "0", &daemon.url("home/file"), "copy"];
    let mut child = client.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut events = lines.map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap());
    assert!(events.any(|event| event["bytes_arrived"].as_u64().is_some_and(|bytes| bytes > 0)), "it begins");
    signal(&daemon.child, Signal::STOP);
    let stopped = Instant::now();
    let last = events.last().unwrap();
    let lasted = stopped.elapsed();
    let run = Run::from(child.wait_with_output().unwrap()).expect(2);
    signal(&daemon.child, Signal::CONT);
    assert_eq!(last["exit_status"], 2, "{last} {}", run.stderr);
    // The default is 90 s; a machine that is busy takes its time.
    assert!((8..60).contains(&lasted.as_secs()) && lasted > Duration::from_secs(8), "{lasted:?}: {}", run.stderr);
    client.haul(["cp", &daemon.url("home/file"), "copy"]).expect(0).says(&["from an interrupted copy"]);
    assert!(fs::read(client.path("copy")).unwrap() == original);
    client.haul(["cp", "--timeout", "9", "--dead-after", "9", "a", "b:"]).expect(2).says(&["--dead-after"]);
}

/// The daemon dies in the middle and does not come back: the copy waits for it as long as it was told to, and no longer; its next run goes on. One that comes back in that time is gone on with.
#[test]
#[expect(clippy::disallowed_methods, reason = "a real wait takes real time")]
fn a_daemon_that_is_gone_is_waited_for_as_long_as_asked() {
    let (server, client) = (Bench::new(), Bench::new());
    let original = fs::read(server.file("home/file", 24 << 20)).unwrap();
    let root = format!("home={}", server.path("home").display());
    let mut daemon = Daemon::start(&server, &client, std::slice::from_ref(&root));
    let (address, url) = (daemon.address.clone(), daemon.url("home/file"));
    let start = |reconnect: &str| {
        let args = ["cp", "--json", "-l", "32M", "--dead-after", "8", "--reconnect", reconnect, &url, "copy"];
        client.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let begins = |child: &mut Child| {
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("\"bytes_arrived\":") && !line.contains("\"bytes_arrived\":0")), "it begins");
        thread::spawn(move || lines.last())
    };

    let mut child = start("12");
    let last = begins(&mut child);
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    let killed = Instant::now();
    let run = Run::from(child.wait_with_output().unwrap()).expect(2);
    let waited = killed.elapsed();
    assert!(waited > Duration::from_secs(12), "{waited:?}: {}", run.stderr);
    assert!(waited < Duration::from_secs(60), "{waited:?}: {}", run.stderr);
    assert!(last.join().unwrap().unwrap().contains("\"exit_status\":2"));

    let mut daemon = Daemon::start_at(&server, &address, &["--root", &root]);
    client.haul(["cp", &url, "copy"]).expect(0).says(&["from an interrupted copy"]);
    assert!(fs::read(client.path("copy")).unwrap() == original);

    // One that comes back in time, to a client that has given its connection up.
    fs::remove_file(client.path("copy")).unwrap();
    let mut child = start("60");
    let last = begins(&mut child);
    signal(&daemon.child, Signal::STOP);
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    assert!(said.any(|line| line.contains("connecting again")));
    daemon.child.kill().unwrap();
    daemon.child.wait().unwrap();
    let _again = Daemon::start_at(&server, &address, &["--root", &root]);
    let rest: Vec<String> = said.collect();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest:?}");
    assert!(last.join().unwrap().unwrap().contains("\"exit_status\":0"));
    assert!(fs::read(client.path("copy")).unwrap() == original);
}
