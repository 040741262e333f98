//! How many clients a listener takes, of one key, from one address, and with how much memory: `haul serve` and `haul proxy serve` alike.

use std::fs;
use std::net::UdpSocket;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::support::{Bench, Daemon, Run, says};

/// A bound that leaves room for one client, what the next one is told, and whether another key of the same address is told so too.
const BOUNDS: [(&str, &str, &str, bool); 4] = [
    ("--max-clients", "1", "the server has as many clients as it takes", true),
    ("--max-per-key", "1", "the server takes no more than 1 connections with one key", false),
    ("--max-per-address", "1", "the server takes no more than 1 connections from one address", true),
    // A client takes 14 MiB at least.
    ("--max-memory", "20M", "the memory that the server has for clients is given out", true),
];

#[test]
fn a_daemon_keeps_to_its_bounds_and_gives_places_back() {
    for (option, value, refusal, of_all) in BOUNDS {
        let [server, first, second] = [Bench::new(), Bench::new(), Bench::new()];
        fs::create_dir(server.path("in")).unwrap();
        server.file("in/file", 1000);
        for (client, name) in [(&first, "first"), (&second, "second")] {
            server.haul(["key", "authorize", &client.key(), "--name", name]).expect(0);
        }
        let daemon = Daemon::start_with(&server, &["--root", "in=in:rw", option, value]);
        for client in [&first, &second] {
            client.haul(["key", "trust", &daemon.address, &daemon.key]).expect(0);
        }
        let get = |client: &Bench| client.haul(["cp", &daemon.url("in/file"), "."]);
        let refused = |run: Run| run.expect(2).says(&["error: ", refusal, "hint: try again later"]);
        // One that has nothing to send yet keeps its place.
        let mut holder = first.command(["cp", "-q", "-", &daemon.url("in/held")]);
        let mut holder = holder.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        daemon.logs("connected");
        refused(get(&first));
        daemon.logs("turned away");
        if of_all {
            refused(get(&second));
        } else {
            get(&second).expect(0);
        }
        drop(holder.stdin.take());
        assert_eq!(holder.wait().unwrap().code(), Some(0), "{option}: who was there first is served to the end");
        daemon.logs("copied client=\"first\"");
        // The place is free when the client has been seen off, a moment later.
        let freed = (0..100).any(|_| {
            thread::park_timeout(Duration::from_millis(100));
            get(&first).code == Some(0)
        });
        assert!(freed, "{option}: the place was not given back");
        get(&second).expect(0);
    }
}

#[test]
fn a_proxy_keeps_to_the_same_bounds() {
    for (option, value, refusal, of_all) in BOUNDS {
        let [server, first, second] = [Bench::new(), Bench::new(), Bench::new()];
        for client in [&first, &second] {
            server.haul(["key", "authorize", &client.key()]).expect(0);
        }
        let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (port, key) = (address.port().to_string(), server.key());
        let serve = ["proxy", "serve", "-B", "127.0.0.1", "-p", &port, "--to", "127.0.0.1:9", option, value];
        let (_server, _log) = says(&server, &serve, "listening");
        let remote = address.to_string();
        let connect = ["proxy", "connect", &remote, "--key", &key, "--listen", "127.0.0.1:0"];
        let (_holder, _said) = says(&first, &connect, "connected");
        let refused = |client: &Bench| {
            let (mut turned_away, said) = says(client, &connect, refusal);
            assert!(said.recv_timeout(Duration::from_secs(30)).is_ok_and(|line| line == "hint: try again later"));
            assert_eq!(turned_away.0.wait().unwrap().code(), Some(2));
        };
        refused(&first);
        if of_all {
            refused(&second);
        } else {
            says(&second, &connect, "connected");
        }
    }
}

#[test]
fn names_take_their_part_of_the_memory_and_no_more() {
    let (server, client) = (Bench::new(), Bench::new());
    fs::create_dir(server.path("in")).unwrap();
    server.haul(["key", "authorize", &client.key()]).expect(0);
    // A quarter of it is 4 MiB, of which one copy may have half.
    let daemon = Daemon::start_with(&server, &["--root", "in=in:rw", "--max-memory", "16M"]);
    client.haul(["key", "trust", &daemon.address, &daemon.key]).expect(0);
    for (tree, links) in [("few", 1_000), ("many", 12_000)] {
        client.file(&format!("{tree}/file"), 1);
        for n in 0..links {
            fs::hard_link(client.path(tree).join("file"), client.path(tree).join(format!("{n:0>200}"))).unwrap();
        }
    }
    let put = |tree: &str| client.haul(["cp", "-rp", tree, &daemon.url("in/")]);
    put("few").expect(0);
    put("many").expect(2).says(&["no memory is left for so many directories and hard links"]);
    // What it had is given back.
    put("few").expect(0);
}
