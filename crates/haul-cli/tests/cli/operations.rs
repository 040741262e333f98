//! Running a daemon: reading its files again, becoming another user, being locked in.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::Signal;

use crate::support::{Bench, Daemon, signal};

/// Lets a client in, and has it trust the daemon.
fn introduce(server: &Bench, client: &Bench, daemon: &Daemon, name: &str) {
    server.haul(["key", "authorize", &client.key(), "--name", name]).expect(0);
    client.haul(["key", "trust", &daemon.address, &daemon.key]).expect(0);
}

/// A copy to the daemon that waits for its input, which stays open.
fn waiting_copy(client: &Bench, daemon: &Daemon, name: &str) -> Child {
    let mut command = client.command(["cp", "-q", "-", &daemon.url(&format!("in/{name}"))]);
    command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn root(server: &Bench, name: &str, how: &str) -> String {
    fs::create_dir_all(server.path(name)).unwrap();
    format!("{name}={}{how}", server.path(name).display())
}

#[test]
fn a_reload_ends_the_revoked_and_nobody_else() {
    let (server, alice, bob) = (Bench::new(), Bench::new(), Bench::new());
    let daemon = Daemon::start_with(&server, &["--root", &root(&server, "in", ":rw")]);
    introduce(&server, &alice, &daemon, "alice");
    introduce(&server, &bob, &daemon, "bob");
    let stays = waiting_copy(&alice, &daemon, "alice");
    daemon.logs("client=\"alice\"");
    let ends = waiting_copy(&bob, &daemon, "bob");
    daemon.logs("client=\"bob\"");
    server.haul(["key", "revoke", "bob"]).expect(0);
    signal(&daemon.child, Signal::HUP);
    daemon.logs("ended: its key was revoked");
    // Its input still waits; with its end the client goes too.
    daemon.logs("stopped client=\"bob\"");
    assert_ne!(ends.wait_with_output().unwrap().status.code(), Some(0));
    // The input of this one ends now, and with it the copy.
    let stayed = stays.wait_with_output().unwrap();
    assert_eq!(stayed.status.code(), Some(0), "{}", String::from_utf8_lossy(&stayed.stderr));
    assert!(server.path("in/alice").exists(), "{:?}", fs::read_dir(server.path("in")).unwrap().collect::<Vec<_>>());
    assert!(!server.path("in/bob").exists());
}

#[test]
fn a_reload_reads_the_file_of_roots() {
    let (server, client) = (Bench::new(), Bench::new());
    server.file("one/file", 100);
    server.file("two/file", 100);
    let (one, two) = (root(&server, "one", ""), root(&server, "two", ":rw"));
    let file = server.path("roots");
    fs::write(&file, format!("# what there is\n{one}\n")).unwrap();
    let daemon = Daemon::start_with(&server, &["--roots-file", file.to_str().unwrap()]);
    introduce(&server, &client, &daemon, "client");
    let get = |path: &str| client.haul(["cp", &daemon.url(path), "."]);
    get("one/file").expect(0);
    get("two/file").expect(2).says(&["no such root"]);
    fs::write(&file, format!("{two}\n")).unwrap();
    signal(&daemon.child, Signal::HUP);
    daemon.logs("exporting root=\"two\"");
    // It is in force with the next client.
    get("two/file").expect(0);
    get("one/file").expect(2).says(&["no such root"]);
    fs::write(&file, format!("{one}\nnonsense\n")).unwrap();
    signal(&daemon.child, Signal::HUP);
    daemon.logs("the roots stay as they were");
    get("two/file").expect(0);
}

#[test]
fn it_becomes_another_user_for_good() {
    if !rustix::process::geteuid().is_root() {
        return skip::skip("this test needs root");
    }
    let (server, client) = (Bench::new(), Bench::new());
    let export = root(&server, "in", ":rw");
    server.haul(["key", "authorize", &client.key(), "--name", "client"]).expect(0);
    server.key();
    let run = server.haul(["serve", "--listen", "127.0.0.1:0", "--root", &export, "--user", "nobody"]).expect(2);
    run.says(&["--user nobody: it must be able to read", "authorized_keys", "chmod go+r "]);
    server.haul(["serve", "--root", &export, "--user", "no-such-user"]).expect(2).says(&["there is no such user here"]);
    // What it needs to read, readable; the root its own.
    let open = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    open(&server.path(""), 0o755);
    open(&server.path("config"), 0o755);
    open(&server.path("config/haul"), 0o755);
    open(&server.path("config/haul/authorized_keys"), 0o644);
    std::os::unix::fs::chown(server.path("in"), Some(65534), Some(65534)).unwrap();
    let daemon = Daemon::start_with(&server, &["--root", &export, "--user", "nobody"]);
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.child.id())).unwrap();
    for line in ["Uid:\t65534\t65534\t65534\t65534", "Gid:\t65534\t65534\t65534\t65534", "Groups:\t65534 \n"] {
        assert!(status.contains(line), "{line} in {status}");
    }
    client.haul(["key", "trust", &daemon.address, &daemon.key]).expect(0);
    client.file("x", 1000);
    client.haul(["cp", "x", &daemon.url("in/")]).expect(0);
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&fs::metadata(server.path("in/x")).unwrap()), 65534);
}

#[test]
fn those_whose_rights_have_changed_are_ended_without_a_signal() {
    let (server, client) = (Bench::new(), Bench::new());
    let daemon = Daemon::start_with(&server, &["--root", &root(&server, "in", ":rw")]);
    introduce(&server, &client, &daemon, "client");
    let copy = waiting_copy(&client, &daemon, "x");
    daemon.logs("client=\"client\"");
    // Other rights than those it came with, without another key.
    server.haul(["key", "authorize", &client.key(), "--read-only"]).expect(0);
    daemon.logs("ended: ");
    assert_ne!(copy.wait_with_output().unwrap().status.code(), Some(0));
}
