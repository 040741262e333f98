//! `haul cp --list-interrupted` and `--discard`: on this machine, behind ssh, at a daemon.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::rights::authorize;
use crate::ssh;
use crate::support::{Bench, Daemon};

/// What a copy leaves that was killed before it had said what it was.
fn left(bench: &Bench, path: &str) -> PathBuf {
    let stage = bench.path(path);
    fs::create_dir_all(&stage).unwrap();
    fs::set_permissions(&stage, Permissions::from_mode(0o700)).unwrap();
    fs::write(stage.join("journal"), "").unwrap();
    fs::write(stage.join("p1"), vec![1; 5000]).unwrap();
    stage
}

#[test]
fn interrupted_copies_are_listed_and_discarded() {
    let bench = Bench::new();
    let (one, two, three) =
        (left(&bench, "kept/.haul-00000001"), left(&bench, "kept/.haul-00000002"), left(&bench, "kept/.haul-00000003"));
    fs::write(bench.path("kept/precious"), "x").unwrap();
    bench.haul(["cp", "--list-interrupted", "kept"]).expect(0).says(&["kept/.haul-00000001", "kept/.haul-00000003", " ago"]);
    let lines = bench.haul(["cp", "--json", "--list-interrupted", "kept"]).expect(0).text();
    let events: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 3);
    assert_eq!((&events[0]["event"], &events[0]["running"]), (&"interrupted".into(), &false.into()));
    assert!(events[0]["bytes"].as_u64().unwrap() >= 5000);

    bench.haul(["cp", "--discard", "kept/.haul-00000002"]).expect(0).says(&["kept/.haul-00000002: discarded"]);
    assert!(one.exists() && !two.exists() && three.exists());
    fs::write(three.join("photos"), "x").unwrap();
    bench.haul(["cp", "--discard", "kept"]).expect(1).says(&["kept/.haul-00000003: stays"]);
    assert!(!one.exists() && three.join("photos").exists() && bench.path("kept/precious").exists());
    bench.haul(["cp", "--list-interrupted", "kept"]).expect(0).says(&["no interrupted copies"]);
    bench.haul(["cp", "--list-interrupted", "nowhere"]).expect(2);
    bench.haul(["cp", "--list-interrupted", "kept", "a", "b"]).expect(2);
}

#[test]
fn behind_ssh_it_is_the_same() {
    let bench = ssh::bench();
    let (one, two) = (left(&bench, "far/d/.haul-00000001"), left(&bench, "far/.haul-00000002"));
    let cp = |args: &[&str]| ssh::cp(&bench, args);
    cp(&["--list-interrupted", "far:d"]).expect(0).says(&["far:d/.haul-00000001  8.00 KiB", " ago"]);
    let event: serde_json::Value =
        serde_json::from_str(&cp(&["--json", "--list-interrupted", "me@far:"]).expect(0).text()).unwrap();
    assert_eq!((&event["event"], &event["path"]), (&"interrupted".into(), &"me@far:.haul-00000002".into()));
    cp(&["--list-interrupted", "far:nowhere"]).expect(2).says(&["far: nowhere: No such file or directory"]);
    cp(&["--discard", "far:d/.haul-00000002"]).expect(0).says(&["far:d/.haul-00000002: no interrupted copies"]);
    cp(&["--discard", "far:d/.haul-00000001"]).expect(0).says(&["far:d/.haul-00000001: discarded, 8.00 KiB"]);
    assert!(!one.exists() && two.exists());
    fs::write(two.join("photos"), "x").unwrap();
    cp(&["--discard", "far:"]).expect(1).says(&["far:.haul-00000002: stays"]);
    assert_eq!(fs::read(two.join("photos")).unwrap(), b"x");
}

#[test]
fn at_a_daemon_a_key_does_what_it_may() {
    let (server, client) = (Bench::new(), Bench::new());
    let roots = [("pub", ""), ("in", ":rw"), ("other", ":rw")].map(|(name, how)| {
        left(&server, &format!("{name}/.haul-0000000a"));
        format!("{name}={}{how}", server.path(name).display())
    });
    let outside = left(&server, ".haul-0000000b");
    let daemon = Daemon::start(&server, &client, &roots);
    let cp = |option: &str, path: &str| client.haul(["cp", option, &daemon.url(path)]);
    let kept = |name: &str| server.path(name).join(".haul-0000000a").exists();
    cp("--list-interrupted", "pub").expect(0).says(&["/pub/.haul-0000000a  8.00 KiB"]);
    cp("--discard", "pub").expect(2).says(&["pub: this root is read-only"]);
    for path in ["in/..", "in/../other", "missing"] {
        cp("--discard", path).expect(2);
    }
    assert!(kept("pub") && kept("in") && kept("other") && outside.exists());

    authorize(&server, &client, &["--read-only"]);
    cp("--list-interrupted", "in").expect(0).says(&["/in/.haul-0000000a"]);
    cp("--discard", "in").expect(2).says(&["read-only"]);
    authorize(&server, &client, &["--root", "in"]);
    cp("--list-interrupted", "other").expect(2);
    cp("--discard", "other").expect(2);
    assert!(kept("in") && kept("other"));
    cp("--discard", "in").expect(0).says(&["/in/.haul-0000000a: discarded"]);
    assert!(!kept("in") && kept("pub") && kept("other") && outside.exists());
}
