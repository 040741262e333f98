//! `haul serve --audit`: what is written down of a daemon's life, and that nobody else writes there.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Bench, Daemon, signal};

/// A daemon with a root to read, one to write, and an audit log in a directory of its own; a client that may use it.
fn pair(audit: &str, options: &[&str]) -> (Bench, Bench, Daemon) {
    let (server, client) = (Bench::new(), Bench::new());
    for name in ["pub", "in", "log"] {
        fs::create_dir(server.path(name)).unwrap();
    }
    server.haul(["key", "authorize", &client.key(), "--name", "client"]).expect(0);
    let daemon = Daemon::start_with(&server, &[&["--root", "pub=pub", "--root", "in=in:rw", "--audit", audit], options].concat());
    client.haul(["key", "trust", &daemon.address, &daemon.key]).expect(0);
    (server, client, daemon)
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Waits until there is an event of this kind with this text in its line.
#[track_caller]
fn wait_for(path: &Path, event: &str, text: &str) -> Value {
    let found = || lines(path).into_iter().find(|line| line["event"] == event && line.to_string().contains(text));
    for _ in 0..200 {
        if let Some(line) = found() {
            return line;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(100));
    }
    panic!("no `{event}` with `{text}` in {:#?}", lines(path));
}

fn end(daemon: &mut Daemon) {
    signal(&daemon.child, Signal::TERM);
    assert_eq!(daemon.child.wait().unwrap().code(), Some(0));
}

#[test]
fn every_event_of_a_daemons_life_is_written_down() {
    let (server, client, mut daemon) = pair("log/audit", &[]);
    let (log, key) = (server.path("log/audit"), client.key());
    assert_eq!(fs::metadata(&log).unwrap().permissions().mode() & 0o777, 0o600);
    client.file("mine/a", 3000);
    client.file("mine/b", 4000);
    client.haul(["cp", "-r", "mine", &daemon.url("in/")]).expect(0);
    server.file("pub/there", 5000);
    client.haul(["cp", &daemon.url("pub/there"), &daemon.url("pub/not"), "."]).expect(1);
    client.haul(["cp", "mine/a", &daemon.url("pub/a")]).expect(2);
    client.haul(["perf", "-t", "1", &daemon.url("")]).expect(0);
    let stranger = Bench::new();
    stranger.haul(["key", "trust", &daemon.address, &daemon.key]).expect(0);
    stranger.haul(["cp", &daemon.url("pub/there"), "."]).expect(2);
    server.haul(["key", "authorize", &key, "--only", "cp"]).expect(0);
    client.haul(["perf", "-t", "1", &daemon.url("")]).expect(2);
    signal(&daemon.child, Signal::HUP);
    wait_for(&log, "reloaded", "done");
    end(&mut daemon);

    let started = wait_for(&log, "started", "");
    assert_eq!((started["key"].as_str(), &started["roots"]), (Some(&*daemon.key), &serde_json::json!(["pub", "in"])));
    assert_eq!(format!("{}:{}", started["address"].as_str().unwrap(), started["port"]), daemon.address);
    let pushed = wait_for(&log, "copied", "received");
    let is = |line: &Value, what: &str| line[what].as_str().map(str::to_owned).unwrap_or_default();
    assert_eq!([is(&pushed, "client"), is(&pushed, "key"), is(&pushed, "address")], ["client", &key, "127.0.0.1"]);
    assert_eq!([is(&pushed, "service"), is(&pushed, "result")], ["cp", "done"]);
    assert_eq!((pushed["files"].as_u64(), pushed["bytes"].as_u64()), (Some(2), Some(7000)));
    assert_eq!((&pushed["roots"], &pushed["paths"]), (&serde_json::json!(["in"]), &serde_json::json!(["in/"])));
    assert!(pushed["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0) && pushed["time"].as_str().unwrap().ends_with('Z'));
    let pulled = wait_for(&log, "copied", "sent");
    assert_eq!((is(&pulled, "result"), pulled["problems"].as_u64()), ("partial".into(), Some(1)));
    assert!(is(&pulled, "why").contains("not: No such file"), "{pulled}");
    assert_eq!((pulled["files"].as_u64(), &pulled["paths"]), (Some(1), &serde_json::json!(["pub/there", "pub/not"])));
    let failed = wait_for(&log, "copied", "failed");
    assert!(is(&failed, "why").contains("read-only"), "{failed}");
    let measured = wait_for(&log, "measured", "done");
    assert!(measured["bytes"].as_u64().is_some_and(|bytes| bytes > 0) && is(&measured, "direction") == "received", "{measured}");
    let unknown = wait_for(&log, "refused", &stranger.key());
    assert!(unknown["client"].is_null() && is(&unknown, "why").contains("not authorised"), "{unknown}");
    let refused = wait_for(&log, "refused", "measuring");
    assert_eq!((is(&refused, "client"), is(&refused, "service")), ("client".into(), "perf".into()));
    assert_eq!(is(&wait_for(&log, "stopped", ""), "result"), "");

    let times: Vec<String> = lines(&log).iter().map(|line| is(line, "time")).collect();
    assert!(times.is_sorted() && times.iter().all(|time| time.len() == 24), "{times:?}");

    // Whoever was admitted has ended, under its number.
    let all = lines(&log);
    let numbers = |event: &str| -> Vec<u64> {
        let mut numbers: Vec<u64> =
            all.iter().filter(|line| line["event"] == event).map(|line| line["connection"].as_u64().unwrap()).collect();
        numbers.sort_unstable();
        numbers
    };
    assert_eq!(numbers("admitted").len(), 4, "{all:#?}");
    assert_eq!(numbers("admitted"), numbers("ended"));
    assert_eq!(
        (all.first().map(|line| is(line, "event")), all.last().map(|line| is(line, "event"))),
        (Some("started".into()), Some("stopped".into()))
    );
}

#[test]
fn who_is_ended_is_named_with_the_reason() {
    let (server, client, mut daemon) = pair("log/audit", &[]);
    let log = server.path("log/audit");
    let endless = || {
        let mut command = client.command(["cp", "-q", "--reconnect", "0", "-", &daemon.url("in/endless")]);
        command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut first = endless();
    wait_for(&log, "admitted", "");
    server.haul(["key", "revoke", "client"]).expect(0);
    signal(&daemon.child, Signal::HUP);
    assert!(wait_for(&log, "copied", "stopped")["why"].as_str().unwrap().contains("was revoked"));
    assert!(wait_for(&log, "ended", "revoked")["seconds"].is_f64());
    // It ends by itself, though its standard input is open and has nothing to say.
    let ended = (0..200).any(|_| {
        std::thread::park_timeout(std::time::Duration::from_millis(100));
        first.try_wait().unwrap().is_some()
    });
    let _ = first.kill();
    assert!(ended && first.wait().unwrap().code() == Some(2), "a copy from standard input that the server stopped goes on");
    end(&mut daemon);
}

#[test]
fn no_name_forges_a_line() {
    let (server, client, mut daemon) = pair("log/audit", &[]);
    client.file("x", 10);
    let forged = "%0a%7b%22event%22%3a%22stopped%22%7d%0a%1b%5b2J%e2%80%ae%ff";
    client.haul(["cp", "x", &daemon.url(&format!("in/{forged}"))]).expect(0);
    client.haul(["cp", &daemon.url(&format!("{forged}/x")), "."]).expect(2);
    end(&mut daemon);
    let text = fs::read_to_string(server.path("log/audit")).unwrap();
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()) && !text.contains('\u{202e}'), "{text:?}");
    let events: Vec<Value> = lines(&server.path("log/audit"));
    assert_eq!(events.iter().filter(|line| line["event"] == "stopped").count(), 1, "{events:#?}");
    let copied: Vec<&Value> = events.iter().filter(|line| line["event"] == "copied").collect();
    assert_eq!(copied.len(), 2);
    assert!(
        copied
            .iter()
            .all(|line| line["paths"][0].as_str().unwrap().contains("\\n{\"event\":\"stopped\"}\\n\\u{1b}[2J\\u{202e}\\xff")),
        "{copied:#?}"
    );
}

/// The daemon is locked in to its roots by then (Landlock): the new file is made all the same.
#[test]
fn a_renamed_log_is_made_anew_at_sighup() {
    let (server, client, mut daemon) = pair("log/audit", &[]);
    let (log, old) = (server.path("log/audit"), server.path("log/audit.1"));
    client.file("x", 10);
    client.haul(["cp", "x", &daemon.url("in/1")]).expect(0);
    wait_for(&log, "ended", "");
    fs::rename(&log, &old).unwrap();
    client.haul(["cp", "x", &daemon.url("in/2")]).expect(0);
    wait_for(&old, "copied", "in/2");
    assert!(!log.exists());
    signal(&daemon.child, Signal::HUP);
    daemon.logs("reading roots and keys again");
    client.haul(["cp", "x", &daemon.url("in/3")]).expect(0);
    wait_for(&log, "copied", "in/3");
    // Once more, without a rotation: the same file goes on.
    signal(&daemon.child, Signal::HUP);
    daemon.logs("reading roots and keys again");
    end(&mut daemon);
    let events = |path: &Path| lines(path).into_iter().map(|line| line["event"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!(events(&log).first().map(String::as_str), Some("reloaded"));
    assert_eq!(events(&log).iter().filter(|event| *event == "reloaded").count(), 2);
    assert!(!events(&old).contains(&"reloaded".to_owned()));
}

#[test]
fn a_log_that_clients_could_reach_is_refused() {
    let server = Bench::new();
    fs::create_dir_all(server.path("pub/log")).unwrap();
    let run = server.haul(["serve", "--listen", "127.0.0.1:0", "--root", "pub=pub", "--audit", "pub/log/audit"]);
    run.expect(2).says(&["the audit log would be below", "which is exported", "hint: "]);
    let run = server.haul(["serve", "--listen", "127.0.0.1:0", "--root", "pub=pub", "--audit", "nowhere/audit"]);
    run.expect(2).says(&["error: the audit log: nowhere: No such file"]);
    let run =
        server.haul(["serve", "--listen", "127.0.0.1:0", "--root", "pub=pub", "--audit", "journal", "--journal-socket", "none"]);
    run.expect(2).says(&["error: the audit log: none: No such file", "hint: ", "--audit FILE"]);
}

#[test]
fn the_journal_hears_the_same() {
    let place = Bench::new();
    let hears = UnixDatagram::bind(place.path("journal")).unwrap();
    hears.set_read_timeout(Some(std::time::Duration::from_secs(30))).unwrap();
    let socket = place.path("journal").display().to_string();
    let (server, client, mut daemon) = pair("journal", &["--journal-socket", &socket]);
    server.file("pub/x", 10);
    client.haul(["cp", &daemon.url("pub/x"), "."]).expect(0);
    end(&mut daemon);
    let mut buffer = vec![0; 1 << 16];
    let mut entries = Vec::new();
    while !entries.iter().any(|entry: &String| entry.contains("HAUL_EVENT=stopped\n")) {
        let length = hears.recv(&mut buffer).unwrap();
        entries.push(String::from_utf8(buffer[..length].to_vec()).unwrap());
    }
    let copied = entries.iter().find(|entry| entry.contains("HAUL_EVENT=copied\n")).unwrap();
    for line in
        ["HAUL_CLIENT=client", "HAUL_BYTES=10", "HAUL_PATHS=pub/x", "MESSAGE=copied client 127.0.0.1 cp sent done", "PRIORITY=6"]
    {
        assert!(copied.lines().any(|found| found == line), "no {line} in {copied}");
    }
}
