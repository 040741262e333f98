//! Running a daemon: reading its files again, becoming another user, being locked in.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use haul_serve::{Locked, Open};
use rustix::process::Signal;

use crate::support::{Bench, Daemon, Run, says, signal};

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
    let serve = ["serve", "--listen", "127.0.0.1:0", "--root", &export];
    let _as_root = says(&server, &serve, "runs as root");
    let run = server.haul([&serve[..], &["--user", "nobody"]].concat()).expect(2);
    let run = run.says(&["--user nobody: it must be able to read", "authorized_keys", "chmod go+r "]);
    assert!(!run.stderr.contains("runs as root"), "{}", run.stderr);
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

/// Whether this kernel locks anybody in; else the test is skipped. Asked in a thread of its own: nothing undoes it.
fn has_landlock() -> bool {
    let locked = thread::spawn(|| Open::default().lock_in().unwrap()).join().unwrap();
    if locked == Locked::No {
        skip::skip("this kernel has no Landlock");
    }
    locked != Locked::No
}

#[test]
fn a_daemon_opens_nothing_outside_whatever_it_is_led_to() {
    if !has_landlock() {
        return;
    }
    let (server, client) = (Bench::new(), Bench::new());
    server.file("in/file", 1000);
    // Without a look at whose the file is, nothing else keeps it from being read.
    let daemon = Daemon::start_with(&server, &["--no-strict-modes", "--root", &root(&server, "in", ":rw")]);
    introduce(&server, &client, &daemon, "client");
    client.haul(["cp", &daemon.url("in/file"), "."]).expect(0);
    let (keys, outside) = (server.path("config/haul/authorized_keys"), server.path("outside"));
    fs::rename(&keys, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &keys).unwrap();
    let listed = server.haul(["key", "--no-strict-modes", "list"]).expect(0).text();
    assert!(listed.contains(&client.key()), "who is not locked in reads it: {listed}");
    client.haul(["cp", &daemon.url("in/file"), "again"]).expect(2).says(&["not authorised there"]);
    daemon.logs("authorized_keys: Permission denied");
    assert!(!client.path("again").exists());
}

/// Where roots can be added the process as a whole is free. A directory that was opened below a root, and is no longer below it, is one that no path leads to any more, and no check of paths keeps from
/// being written to.
#[test]
fn each_client_of_a_daemon_is_locked_in_to_its_roots() {
    if !has_landlock() {
        return;
    }
    let (server, client) = (Bench::new(), Bench::new());
    fs::create_dir_all(server.path("in/sub")).unwrap();
    let file = server.path("roots");
    fs::write(&file, root(&server, "in", ":rw")).unwrap();
    let daemon = Daemon::start_with(&server, &["--roots-file", file.to_str().unwrap()]);
    introduce(&server, &client, &daemon, "client");
    let copy = waiting_copy(&client, &daemon, "sub/x");
    // Its stage, in the directory that it has opened.
    let has_begun = || {
        let mut names = fs::read_dir(server.path("in/sub")).unwrap();
        names.any(|entry| entry.unwrap().path().join("journal").exists())
    };
    let began = (0..200).any(|_| {
        thread::park_timeout(Duration::from_millis(100));
        has_begun()
    });
    assert!(began, "no stage");
    fs::rename(server.path("in/sub"), server.path("outside")).unwrap();
    // With the end of its input the file would get its name.
    let run = Run::from(copy.wait_with_output().unwrap());
    assert_ne!(run.code, Some(0), "{}", run.stderr);
    daemon.logs("Permission denied");
    assert!(!server.path("outside/x").exists());
}
