//! What a peer says cannot steer the terminal or pass for words of the program: on every way that words of a peer take.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use haul::{ClientConfig, Endpoint, Identity, PeerTrust, ServerConfig};

use crate::support::{Bench, Daemon, Run};

/// Clears the screen, forges a line, turns the reading direction, and a C1 control besides.
const EVIL: &str = "evil\u{1b}[2J\nerror: forged\r\u{202e}txt\u{9b}31m";

/// Nothing that a terminal obeys, and no line of the peer's own.
#[track_caller]
fn assert_harmless(text: &str) {
    let obeyed = |c: &char| c.is_control() && *c != '\n' || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    assert_eq!(text.chars().find(obeyed), None, "{text:?}");
    assert!(!text.lines().any(|line| line.starts_with("error: forged")), "{text:?}");
}

#[track_caller]
fn assert_run(run: &Run) {
    assert!(run.stderr.contains("evil") || run.text().contains("evil"), "it is shown: {} {}", run.stderr, run.text());
    assert_harmless(&run.stderr);
    assert_harmless(&run.text());
}

#[test]
fn the_far_side_s_failure_and_hint() {
    let bench = Bench::new();
    let answer = serde_json::json!({ "failed": { "error": EVIL, "hint": EVIL } });
    let ssh = bench.script("ssh", &format!("[ \"$*\" = \"${{*#*-G}}\" ] || exit 1\ncat <<'END'\nHAUL/1 {answer}\nEND"));
    assert_run(&bench.haul(["cp", "-S", ssh.to_str().unwrap(), "far:x", "."]).expect(2));
}

#[test]
fn what_a_shell_prints_there() {
    let bench = Bench::new();
    let ssh = bench.script("ssh", "printf 'evil\\033[2J\\033]0;title\\007\\n\\302\\233 banner\\n'; exit 1");
    assert_run(&bench.haul(["cp", "-S", ssh.to_str().unwrap(), "far:x", "."]).expect(2));
}

#[test]
fn what_ssh_passes_on_from_there() {
    let bench = Bench::new();
    let ssh = bench.script("ssh", "printf 'evil\\033[2J\\033]0;title\\007 in standard error\\r\\n' >&2; exit 255");
    assert_run(&bench.haul(["cp", "-S", ssh.to_str().unwrap(), "far:x", "."]).expect(2));
}

#[test]
fn a_close_reason() {
    let identity = Identity::generate();
    let config = ServerConfig { protocols: vec![b"haul-perf/1".to_vec()], ..ServerConfig::new(identity, PeerTrust::Anyone) };
    let endpoint = Endpoint::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), config).unwrap();
    let port = endpoint.local_addr().port().to_string();
    let server = thread::spawn(move || {
        let connection = endpoint.accept().unwrap();
        // Kept: a stream that is dropped is reset, and the client may hear of that first.
        let _streams = connection.accept_bi();
        connection.close(7, EVIL);
        connection.closed();
        endpoint.close();
    });
    let run = Bench::new().haul(["perf", "-c", "127.0.0.1", "-p", &port, "-t", "1"]);
    assert_run(&run.expect(2));
    server.join().unwrap();
}

/// A measuring server, ended when dropped.
struct Server {
    child: Child,
    lines: mpsc::Receiver<String>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    fn start(bench: &Bench, options: &[&str]) -> (Self, u16) {
        let args = [&["perf", "-s", "-p", "0", "-B", "127.0.0.1", "--json"], options].concat();
        let mut child = bench.command(args).stdout(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (tell, lines) = mpsc::channel();
        thread::spawn(move || stdout.lines().map_while(Result::ok).for_each(|line| drop(tell.send(line))));
        let server = Self { child, lines };
        let listening: serde_json::Value = serde_json::from_str(&server.next()).unwrap();
        let port = u16::try_from(listening["data"]["port"].as_u64().unwrap()).unwrap();
        (server, port)
    }

    fn next(&self) -> String {
        self.lines.recv_timeout(Duration::from_secs(20)).expect("the server says something")
    }
}

#[test]
fn a_stranger_gets_no_rate_that_gives_way_to_nobody_and_loads_no_module() {
    let bench = Bench::new();
    let asks = |port: u16, options: &[&str]| {
        let port = port.to_string();
        bench.haul([&["perf", "-c", "127.0.0.1", "-p", &port, "-R", "-t", "0.2"], options].concat())
    };
    let (_unbounded, port) = Server::start(&bench, &[]);
    let refused = asks(port, &["--mode", "fixed:20M"]).expect(2);
    refused.says(&[
        "error: 127.0.0.1",
        "the server sends at a fixed rate to nobody whom it does not know",
        "hint: ",
        "--max-bitrate",
    ]);
    let refused = asks(port, &["--tcp", "--congestion", "no_such_thing"]).expect(2);
    refused.says(&["the server has no TCP congestion control `no_such_thing` for this", "hint: it has: "]);
    let (_bounded, port) = Server::start(&bench, &["--max-bitrate", "50M"]);
    asks(port, &["--mode", "fixed:60M"]).expect(2).says(&["the server sends at 50.0 Mbit/s at most"]);
    asks(port, &["--mode", "fixed:20M"]).expect(0);
    asks(port, &["--mode", "aggressive"]).expect(0);
}

#[test]
fn what_a_stranger_asks_a_server_for() {
    let (server, port) = Server::start(&Bench::new(), &[]);
    let endpoint = Endpoint::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let config = ClientConfig { protocols: vec![b"haul-perf/1".to_vec()], ..ClientConfig::new(PeerTrust::Anyone) };
    let connection = endpoint.connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)), config).unwrap();
    let (mut send, mut receive) = connection.open_bi().unwrap();
    let plan = serde_json::json!({
        "ways": "up", "streams": 1, "block_bytes": 1000, "amount": { "time": 1000 }, "interval_us": 1_000_000, "mode": EVIL,
    });
    send.write_all(format!("{}\n", serde_json::json!({ "version": EVIL, "plan": plan })).as_bytes()).unwrap();
    // The refusal has the words too, and they are the server's then.
    let mut refusal = String::new();
    receive.read_to_string(&mut refusal).unwrap();
    assert_harmless(&serde_json::from_str::<serde_json::Value>(&refusal).unwrap()["refused"]["error"].to_string());
    connection.close(1, EVIL);
    let line = server.next();
    assert_harmless(&line);
    drop(connection);
}

#[test]
fn names_of_files() {
    let (server, client) = (Bench::new(), Bench::new());
    fs::create_dir(server.path("pub")).unwrap();
    fs::write(server.path("pub").join(EVIL), "content").unwrap();
    let daemon = Daemon::start(&server, &client, &[format!("pub={}", server.path("pub").display())]);
    assert_run(&client.haul(["cp", "-rv", &daemon.url("pub"), "here"]).expect(0));
    let run = client.haul(["cp", "-r", "--json", &daemon.url("pub"), "there"]).expect(0);
    assert_harmless(&run.text());
    let named = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["path"].as_str().is_some_and(|path| path.contains(EVIL))
    };
    assert!(run.text().lines().any(named), "a program gets the name as it is: {}", run.text());
    // Of the client's choice, in the daemon's log.
    let _ = client.haul(["cp", &daemon.url(&format!("pub/{}", "missing%1b[2J%0aerror: forged")), "."]);
    while let Ok(line) = daemon.log.recv_timeout(Duration::from_secs(5)) {
        assert_harmless(&line);
        if line.contains("missing") {
            return;
        }
    }
    panic!("the daemon logs what it could not copy");
}
