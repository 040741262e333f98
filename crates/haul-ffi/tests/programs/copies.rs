//! Copies, with a server of copies in this process and a program in C that uses it.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;
use std::{env, thread};

use haul::{Endpoint, Identity, PeerTrust, ServerConfig};
use haul_copy::{PROTOCOL, ServerSession};
use haul_files::{Access, Export, Ownership, Silent};
use haul_peer::keys::{self, KnownHosts};
use haul_peer::{DaemonHost, StateDir};
use haul_units::Cancel;

use crate::support::{Build, Workshop, builds_with_servers, program, run};

/// Serves `count` copies to and from `root`, and has the client's directory of keys know it; gives its port.
fn serve(root: &Path, state: &Path, count: usize) -> u16 {
    serve_at("127.0.0.1", root, state, count)
}

/// The same at another address of loopback.
fn serve_at(address: &str, root: &Path, state: &Path, count: usize) -> u16 {
    let state = StateDir::find(Some(state)).expect("a directory");
    let (client, _) = keys::load_or_make(&state).expect("a key");
    let identity = Identity::generate();
    let key = identity.public_key().fingerprint();
    let trust = PeerTrust::Pinned(vec![client.public_key().fingerprint()]);
    let config = ServerConfig { protocols: vec![PROTOCOL.to_vec()], ..ServerConfig::new(identity, trust) };
    let server = Endpoint::listen(format!("{address}:0").parse().expect("an address"), config).expect("a socket");
    let port = server.local_addr().port();
    let mut known = KnownHosts::load(state.known_hosts()).expect("known hosts");
    known.trust(&DaemonHost { host: address.into(), port }, key).expect("kept");
    let export = Export { name: "pub".into(), path: root.to_owned(), writable: true, ownership: Ownership::default() };
    thread::spawn(move || {
        for _ in 0..count {
            let Ok(connection) = server.accept() else { return };
            let access = Access::Exports(vec![export.clone()]);
            thread::spawn(move || {
                let Ok(session) = ServerSession::accept(connection) else { return };
                let (_, farewell) = session.serve(&access, None, &Silent, &Cancel::new());
                farewell.part(&Cancel::new());
            });
        }
    });
    port
}

#[test]
fn trees_go_and_come() {
    let place = Workshop::open();
    let (source, root, back, state) = (place.path("source"), place.path("root"), place.path("back"), place.path("state"));
    for dir in [&source.join("deep"), &root, &back] {
        fs::create_dir_all(dir).expect("a directory");
    }
    fs::write(source.join("small"), "content").expect("a file");
    fs::write(source.join("deep/large"), vec![7; 5 << 20]).expect("a file");
    for (turn, build) in builds_with_servers().into_iter().enumerate() {
        let target = format!("turn{turn}");
        fs::create_dir(root.join(&target)).expect("a directory");
        fs::create_dir(back.join(&target)).expect("a directory");
        fs::create_dir(root.join(&target).join("mirror")).expect("a directory");
        fs::write(root.join(&target).join("mirror/old"), "of an earlier time").expect("a file");
        let port = serve(&root, &state, 16);
        let mut command = place.program("tests/c/copy.c", build);
        command.arg(&state).arg(&source).arg(format!("haul://127.0.0.1:{port}/pub/{target}")).arg(back.join(&target));
        run(command);
        for copy in [root.join(&target), back.join(&target)] {
            assert_eq!(fs::read(copy.join("source/small")).expect("copied"), b"content");
            assert_eq!(fs::read(copy.join("source/deep/large")).expect("copied"), vec![7; 5 << 20]);
        }
    }
}

/// In the place of ssh, for a host whose addresses nobody reaches (240.0.0.0/4 is no network's): what is typed runs here.
const FAR: &str = r#"#!/bin/sh
for word; do
    [ "$word" = -G ] && echo "hostname 240.0.0.1" && exit 0
done
SSH_CONNECTION="240.0.0.2 50000 240.0.0.1 22"; export SSH_CONNECTION
exec /bin/sh -c "$word"
"#;

/// Ended when dropped.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Nobody reaches the far side over UDP unless both meet by the relay, which says so.
#[test]
fn two_sides_meet_by_a_relay() {
    let place = Workshop::open();
    let Some(haul) = program("haul") else { return skip::skip("the program haul is not built (cargo build -p haul-cli)") };
    let (bin, near, far, log) = (place.path("bin"), place.path("near"), place.path("far"), place.path("log"));
    fs::create_dir(&bin).expect("a directory");
    fs::write(bin.join("ssh"), FAR).expect("a file");
    fs::set_permissions(bin.join("ssh"), Permissions::from_mode(0o755)).expect("a mode");
    let key = |words: &[&str], state: &Path| {
        let mut command = Command::new(&haul);
        command.arg("key").args(words).arg("--state").arg(state);
        String::from_utf8(run(command).stdout).expect("text").trim().to_owned()
    };
    key(&["authorize", &key(&["show"], &near), "--only", "relay"], &far);
    let mut serve = Command::new(&haul);
    serve.args(["serve", "--listen", "127.0.0.1:0", "--relay", "keys", "--state"]).arg(&far);
    let daemon = Daemon(serve.stderr(File::create(&log).expect("a file")).spawn().expect("haul"));
    let said = |words: &str| fs::read_to_string(&log).expect("a log").lines().any(|line| line.contains(words));
    while !said("listening") {
        thread::park_timeout(Duration::from_millis(20));
    }
    let text = fs::read_to_string(&log).expect("a log");
    let address = text.split("address=").nth(1).and_then(|rest| rest.split_whitespace().next()).expect("where it listens");
    key(&["trust", address, &key(&["show"], &far)], &near);
    fs::write(place.path("file"), vec![7; 3 << 20]).expect("a file");
    assert!(!said("has a pair of the relay"));
    let mut copy = place.program("tests/c/relay.c", Build::Plain);
    copy.arg(&near).arg(place.path("file")).arg(format!("far:{}", place.path("copied").display())).arg(address);
    let path: [&Path; 4] = [&bin, haul.parent().expect("a directory"), "/usr/bin".as_ref(), "/bin".as_ref()];
    copy.env("PATH", env::join_paths(path).expect("a path"));
    run(copy);
    assert_eq!(fs::read(place.path("copied")).expect("copied"), vec![7; 3 << 20]);
    assert!(said("has a pair of the relay"), "{}", fs::read_to_string(&log).expect("a log"));
    drop(daemon);
}

#[test]
fn a_fleet_sends_and_fetches() {
    let place = Workshop::open();
    let (source, state) = (place.path("source"), place.path("state"));
    fs::create_dir_all(&source).expect("a directory");
    for number in 0..4_u8 {
        fs::write(source.join(format!("part{number}")), vec![number; 300_000]).expect("a file");
    }
    for (turn, build) in builds_with_servers().into_iter().enumerate() {
        let servers: Vec<_> = (1..=3)
            .map(|number| {
                let root = place.path(&format!("root{turn}-{number}"));
                fs::create_dir_all(&root).expect("a directory");
                let address = format!("127.0.0.{number}");
                let port = serve_at(&address, &root, &state, 100);
                (root, format!("haul://{address}:{port}/pub"))
            })
            .collect();
        let back = place.path(&format!("back{turn}"));
        fs::create_dir_all(&back).expect("a directory");
        let hosts: Vec<&str> = servers.iter().map(|(_, host)| host.as_str()).collect();
        let mut command = place.program("tests/c/fleet.c", build);
        command.arg(&state).arg(hosts.join(",")).arg(&source).arg("sent").arg(&back);
        run(command);
        for number in 0..4_u8 {
            let name = format!("source/part{number}");
            assert_eq!(fs::read(back.join(&name)).expect("fetched"), vec![number; 300_000]);
            let copies = servers.iter().filter(|(root, _)| root.join("sent").join(&name).exists()).count();
            assert_eq!(copies, 2, "{name}");
        }
    }
}
