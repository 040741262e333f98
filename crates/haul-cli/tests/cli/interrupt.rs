//! Ctrl-C in the middle, and the same command again.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

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
    assert_eq!(left.len(), 4, "only the copy and the places of the test: {left:?}");
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
