//! `--audit` of a daemon and of the other listeners: what is written down of their lives, and that nobody else writes there.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::Stdio;

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
        command.stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
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
    daemon.logs("reading roots again");
    client.haul(["cp", "x", &daemon.url("in/3")]).expect(0);
    wait_for(&log, "copied", "in/3");
    // Once more, without a rotation: the same file goes on.
    signal(&daemon.child, Signal::HUP);
    daemon.logs("reading roots again");
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

/// A listener that is no daemon, ended when dropped.
struct Listener(std::process::Child);

impl Listener {
    /// Starts one, and waits until it says so.
    fn start(place: &Bench, args: &[&str]) -> Self {
        let mut child = place.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        let (said, heard) = std::sync::mpsc::channel();
        let tell = said.clone();
        // Both are read to their ends, or it would block on a full pipe.
        std::thread::spawn(move || BufReader::new(out).lines().map_while(Result::ok).for_each(|line| drop(tell.send(line))));
        std::thread::spawn(move || BufReader::new(err).lines().map_while(Result::ok).for_each(|line| drop(said.send(line))));
        let listener = Self(child);
        while !heard.recv().expect("it says that it listens").contains("istening") {}
        listener
    }

    fn end(mut self) {
        signal(&self.0, Signal::TERM);
        self.0.wait().unwrap();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A UDP port that is free at this moment.
fn free_port() -> String {
    std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

fn events(log: &Path) -> Vec<String> {
    lines(log).iter().map(|line| line["event"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_pipe_writes_down_who_came_and_how_much_it_was() {
    let [server, client, stranger] = [Bench::new(), Bench::new(), Bench::new()];
    fs::create_dir(server.path("log")).unwrap();
    server.haul(["key", "authorize", &client.key(), "--name", "alice"]).expect(0);
    let (log, port, key) = (server.path("log/audit"), free_port(), server.key());
    let listener = Listener::start(&server, &["pipe", "-l", "-k", "-d", "-s", "127.0.0.1", &port, "--audit", "log/audit"]);
    stranger.haul_with_input(["pipe", "--key", &key, "127.0.0.1", &port], b"in").expect(2);
    client.haul_with_input(["pipe", "--key", &key, "127.0.0.1", &port], b"twelve bytes").expect(0);
    let ended = wait_for(&log, "ended", "alice");
    listener.end();
    assert_eq!((&ended["service"], ended["received_bytes"].as_u64()), (&"pipe".into(), Some(12)));
    assert_eq!((&ended["key"], &ended["sent_bytes"]), (&client.key().into(), &0.into()));
    assert!(wait_for(&log, "refused", &stranger.key())["why"].as_str().unwrap().contains("not authorised"));
    assert_eq!(events(&log), ["started", "refused", "admitted", "ended", "stopped"]);
    client.haul(["pipe", "--audit", "log", "127.0.0.1", &port]).expect(2).says(&["it goes with -l"]);
}

#[test]
fn a_proxy_writes_down_where_its_clients_went() {
    let [server, client] = [Bench::new(), Bench::new()];
    fs::create_dir(server.path("log")).unwrap();
    server.haul(["key", "authorize", &client.key(), "--name", "alice"]).expect(0);
    let target = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let to = target.local_addr().unwrap().to_string();
    let served = std::thread::spawn(move || {
        let (mut connection, _) = target.accept().unwrap();
        let mut heard = [0; 5];
        connection.read_exact(&mut heard).unwrap();
        connection.write_all(b"an answer").unwrap();
    });
    let (log, port, local, key) = (server.path("log/audit"), free_port(), free_port(), server.key());
    let serve = ["proxy", "serve", "-B", "127.0.0.1", "-p", &port, "--to", &to, "--audit", "log/audit"];
    let serving = Listener::start(&server, &serve);
    let connect = ["proxy", "connect", &format!("127.0.0.1:{port}"), "--key", &key, "--listen", &format!("127.0.0.1:{local}")];
    let connecting = Listener::start(&client, &connect);
    wait_for(&log, "admitted", "alice");
    let mut connection = std::net::TcpStream::connect(format!("127.0.0.1:{local}")).unwrap();
    connection.write_all(b"hello").unwrap();
    let mut heard = Vec::new();
    connection.read_to_end(&mut heard).unwrap();
    drop(connection);
    served.join().unwrap();
    let carried = wait_for(&log, "carried", &to);
    connecting.end();
    let ended = wait_for(&log, "ended", "alice");
    serving.end();
    assert_eq!(
        (&carried["client"], &carried["key"], &carried["result"]),
        (&"alice".into(), &client.key().into(), &"done".into())
    );
    for line in [&carried, &ended] {
        assert_eq!((line["sent_bytes"].as_u64(), line["received_bytes"].as_u64()), (Some(9), Some(5)), "{line}");
    }
    assert_eq!(events(&log), ["started", "admitted", "carried", "ended", "stopped"]);
}

#[test]
fn a_server_of_measurements_writes_down_who_measured() {
    let [server, client] = [Bench::new(), Bench::new()];
    fs::create_dir(server.path("log")).unwrap();
    let (log, port) = (server.path("log/audit"), free_port());
    let listener =
        Listener::start(&server, &["perf", "-s", "-B", "127.0.0.1", "-p", &port, "--max-time", "5", "--audit", "log/audit"]);
    client.haul(["perf", "-c", "127.0.0.1", "-p", &port, "-t", "1"]).expect(0);
    client.haul(["perf", "-c", "127.0.0.1", "-p", &port, "-t", "60"]).expect(2);
    let measured = wait_for(&log, "measured", "received");
    let refused = wait_for(&log, "refused", "perf");
    listener.end();
    assert!(measured["bytes"].as_u64().is_some_and(|bytes| bytes > 0) && measured["result"] == "done", "{measured}");
    assert!(refused["why"].is_string(), "{refused}");
    assert_eq!(events(&log), ["started", "admitted", "measured", "refused", "stopped"]);
}
