//! A far side that falls silent in the middle, and comes back: both are said, with the time that is left.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use rustix::process::Signal;

use crate::support::{Bench, Daemon, signal};

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
    assert!(silence >= 6.0 && (silence + left - 90.0).abs() < 0.01, "{stalled}");
    let mut rest = events.filter(|event| event["event"] != "progress");
    assert_eq!(rest.next().unwrap()["event"], "heard_again");
    assert_eq!(rest.last().unwrap()["exit_status"], 0);
    assert!(child.wait().unwrap().success());
    assert!(fs::read(client.path("copy")).unwrap() == original);
}
