//! Copies, with a server of copies in this process and a program in C that uses it.

use std::fs;
use std::path::Path;

use haul::{Endpoint, Identity, PeerTrust, ServerConfig};
use haul_copy::{PROTOCOL, ServerSession};
use haul_files::{Access, Export, Ownership, Silent};
use haul_peer::keys::{self, KnownHosts};
use haul_peer::{DaemonHost, StateDir};
use haul_units::Cancel;

use crate::support::{Workshop, builds_with_servers, run};

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
    std::thread::spawn(move || {
        for _ in 0..count {
            let Ok(connection) = server.accept() else { return };
            let access = Access::Exports(vec![export.clone()]);
            std::thread::spawn(move || {
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
