//! `haul tcp`, as its users type it. Needs root, and a kernel that takes congestion control as programs.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Prints the congestion control of a connection on loopback.
const PROGRAM: &str = r#"
import socket
listener = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(listener.getsockname())
print(near.getsockopt(socket.IPPROTO_TCP, 13, 16).rstrip(b"\0").decode())
"#;

/// Holds one open until its input ends.
const HELD: &str = r#"
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
near = socket.create_connection(listener.getsockname()); far = listener.accept()[0]
near.sendall(b"x" * 100000); far.recv(100000, socket.MSG_WAITALL)
print("open", flush=True); sys.stdin.read()
print(near.getsockopt(socket.IPPROTO_TCP, 13, 16).rstrip(b"\0").decode())
"#;

/// A network namespace with a loopback, while nobody else of this machine's tests changes its TCP.
struct Rig {
    namespace: String,
    _turn: File,
}

impl Rig {
    /// None where this cannot be tested, which is an error in CI.
    fn open() -> Option<Self> {
        let turn = skip::kernel_tcp_turn(haul_tcp::obstacle())?;
        let namespace = format!("haul-tcp-cli{}", std::process::id());
        ip(&["netns", "add", &namespace]);
        ip(&["-n", &namespace, "link", "set", "lo", "up"]);
        Some(Self { namespace, _turn: turn })
    }

    fn python(&self, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace, "python3", "-c", program]);
        command
    }

    /// The congestion control of a new connection.
    fn law(&self) -> String {
        let output = self.python(PROGRAM).output().expect("python3");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A connection that stays.
    fn held(&self) -> Child {
        let mut child =
            self.python(HELD).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3: `make setup` installs it");
        let mut line = [0; 5];
        std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut line).expect("it is open");
        child
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let off = tcp(&["off"]);
        let _ = Command::new("ip").args(["netns", "delete", &self.namespace]).status();
        if !std::thread::panicking() {
            assert!(off.status.success(), "{}", printed(&off).1);
            let known = fs::read_to_string(AVAILABLE).expect("readable");
            assert!(!known.contains("haul_"), "{known}");
            let mounts = fs::read_to_string("/proc/self/mounts").expect("readable");
            assert!(!mounts.contains("/run/haul"), "{mounts}");
        }
    }
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().expect("iproute2: `make setup` installs it");
    assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn tcp(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_haul")).arg("tcp").args(arguments).output().expect("haul")
}

fn printed(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

/// What it prints where it does as it is told.
fn told(arguments: &[&str]) -> String {
    let output = tcp(arguments);
    let (out, err) = printed(&output);
    assert!(output.status.success(), "{arguments:?}: {out}{err}");
    out
}

#[test]
fn a_namespace_gets_a_mode_shows_it_and_gives_it_back() {
    let Some(rig) = Rig::open() else { return };
    let netns = rig.namespace.as_str();
    let before = rig.law();
    assert_eq!(told(&["on", "fair", "--netns", netns]), format!("fair: all in {netns}, its default\n"));
    assert_eq!(rig.law(), "haul_fair");
    assert_eq!(told(&["default", "--netns", netns]), "fair\n");
    assert!(told(&["default", "modest", "--netns", netns]).starts_with("modest: "));
    assert_eq!(rig.law(), "haul_modest");
    assert!(told(&["set", "jump-percent=30"]).contains("jump-percent           30 (usually 50)"));

    let mut held = rig.held();
    assert_eq!(told(&["switch", "aggressive", "--netns", netns]), "aggressive: 2 connections switched\n");
    let text = told(&["status", "--netns", netns]);
    assert!(text.contains("congestion control is loaded") && text.contains("2 connections in"), "{text}");
    assert!(text.lines().any(|line| line.contains("127.0.0.1:") && line.contains(" aggressive ")), "{text}");
    let status: serde_json::Value = serde_json::from_str(&told(&["status", "--netns", netns, "--json"])).expect("JSON");
    assert_eq!(
        (&status["loaded"], &status["default"], &status["settings"]["jump-percent"]),
        (&true.into(), &"modest".into(), &30.into())
    );
    assert_eq!(status["rules"][0]["way"], "default");
    let connections = status["connections"].as_array().expect("a list");
    assert!(connections.len() == 2 && connections.iter().all(|one| one["mode"] == "aggressive"), "{status}");
    assert!(connections.iter().any(|one| one["path"]["base_rtt_us"].as_u64() > Some(0)), "{status}");
    watched(netns);
    drop(held.stdin.take());
    let output = held.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "haul_aggressive");

    assert!(told(&["off"]).starts_with("off: modest: "));
    assert_eq!(rig.law(), before);
    assert_eq!(told(&["off"]), "nothing was on\n");
    assert!(told(&["status", "--netns", netns]).contains("is not loaded"));
}

/// One look at the connections, then an interrupt.
fn watched(netns: &str) {
    let mut watch = Command::new(env!("CARGO_BIN_EXE_haul"))
        .args(["tcp", "watch", "--netns", netns])
        .stdout(Stdio::piped())
        .spawn()
        .expect("haul");
    // It is held until the end: what is written to nobody is an error.
    let mut lines = BufReader::new(watch.stdout.take().expect("piped")).lines();
    let row = lines.by_ref().map_while(Result::ok).find(|line| line.contains("127.0.0.1:"));
    assert!(row.is_some_and(|row| row.contains(" aggressive ")));
    let interrupted = Command::new("kill").args(["-INT", &watch.id().to_string()]).status().expect("kill");
    assert!(interrupted.success());
    let status = watch.wait().expect("it ends");
    assert!(status.success(), "{status}");
}

#[test]
fn programs_get_a_mode_by_their_cgroup_and_by_run() {
    let Some(rig) = Rig::open() else { return };
    let run = |command: &[&str]| tcp(&[&["run", "--mode", "aggressive", "--"], command].concat());
    let output = run(&["python3", "-c", PROGRAM]);
    assert_eq!(printed(&output).0, "haul_aggressive\n", "{}", printed(&output).1);
    assert_eq!(run(&["sh", "-c", "exit 7"]).status.code(), Some(7));
    let output = run(&["haul-no-such-program"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(printed(&output).1.contains("haul-no-such-program: No such file"));
    assert_eq!(told(&["off"]), "nothing was on\n", "what `run` has done is taken back");

    let mounts = fs::read_to_string("/proc/self/mounts").expect("readable");
    let root = mounts.lines().find_map(|line| line.split_once(' ')?.1.split_once(" cgroup2 ")).expect("cgroup2").0.to_owned();
    let group = format!("{root}/{}", rig.namespace);
    fs::create_dir(&group).expect("a cgroup");
    let said = told(&["on", "westwood", "--cgroup", &group]);
    assert!(said.contains(&format!("by a program at {group}")), "{said}");
    let inside = |program: &str| {
        let script = format!("echo 0 > {group}/cgroup.procs && exec python3 -c '{program}'");
        let output = Command::new("sh").args(["-c", &script]).output().expect("sh");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(inside(PROGRAM), "haul_westwood\n");
    assert_ne!(rig.law(), "haul_westwood", "not of the cgroup");
    assert!(told(&["off", "--cgroup", &group]).starts_with("off: westwood: "));
    assert_ne!(inside(PROGRAM), "haul_westwood\n");
    fs::remove_dir(&group).expect("nobody is in it");
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let Some(rig) = Rig::open() else { return };
    let netns = rig.namespace.as_str();
    for (arguments, words) in [
        (&["on", "nonesuch", "--netns", netns][..], "no congestion control is called \"nonesuch\"; there are fair, quickstart"),
        (&["on", "fair", "--netns", "absent"], "`ip netns list` has the names"),
        (&["on", "fair", "--to", "10.0.0.0/33"], "is no network"),
        (&["on", "fair", "--cgroup", "/tmp"], "not a directory of the cgroup2 file system"),
        (&["on"], "<MODE>"),
        (&["set", "jump-percent=30"], "`haul tcp on MODE` loads them"),
        (&["install", "--print"], "nothing is on that could be installed"),
        (&["watch", "--every", "0"], "it may be 1 to 3600"),
        (&["run", "--mode", "fair"], "<CMD>..."),
        (&["check", "nonesuch.invalid"], "nonesuch.invalid"),
    ] {
        let output = tcp(arguments);
        let (out, err) = printed(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {out}{err}");
        assert!(err.contains(words), "{arguments:?}: {err}");
    }
    told(&["on", "quickstart", "--netns", netns]);
    for (setting, words) in [
        ("jump-percent=300", "a whole number from 1 to 100"),
        ("what=1", "no setting is called \"what\"; there are fast-alpha"),
        ("jump-percent", "jump-percent"),
    ] {
        let output = tcp(&["set", setting]);
        assert_eq!(output.status.code(), Some(2), "{setting}");
        assert!(printed(&output).1.contains(words), "{setting}: {}", printed(&output).1);
    }
    assert!(told(&["install", "--print"]).contains(&format!("on quickstart --netns {netns}")));
}

#[test]
fn a_path_is_checked_and_what_it_lacks_comes_with_its_command() {
    let Some(_rig) = Rig::open() else { return };
    let near = told(&["check", "127.0.0.1", "--port", "1"]);
    assert!(near.contains("round trip") && near.contains("enough for 1.00 Gbit/s"), "{near}");
    // A rate that no buffer of this machine holds, even for the time to itself.
    let output = tcp(&["check", "127.0.0.1", "--port", "1", "--rate", "99999G"]);
    let (out, _) = printed(&output);
    assert_eq!(output.status.code(), Some(1), "{out}");
    assert!(out.contains("is too small") && out.contains("sysctl -w net.ipv4.tcp_wmem="), "{out}");
}

#[test]
fn without_the_rights_they_are_named() {
    let Some(rig) = Rig::open() else { return };
    let lacks = ["--bounding-set", "-bpf,-sys_admin", "--inh-caps", "-bpf,-sys_admin", env!("CARGO_BIN_EXE_haul")];
    let output = Command::new("setpriv").args(lacks).args(["tcp", "on", "fair", "--netns", &rig.namespace]).output();
    let (_, err) = printed(&output.expect("setpriv of util-linux"));
    assert!(err.contains("needs the rights CAP_BPF, CAP_SYS_ADMIN") && err.contains("run it with sudo"), "{err}");
}

/// The rules in force and the default of a namespace, as a program is told of them.
fn state(netns: &str) -> (serde_json::Value, serde_json::Value) {
    let status: serde_json::Value = serde_json::from_str(&told(&["status", "--netns", netns, "--json"])).expect("JSON");
    assert_eq!(status["loaded"], true);
    (status["rules"].clone(), status["default"].clone())
}

/// What a unit has for one of its keys. Nothing in it is quoted otherwise than a shell has it.
fn lines_of<'a>(unit: &'a str, key: &str) -> Vec<&'a str> {
    unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('=')).collect()
}

/// As a restart of the machine does: what is in the kernel and below /run is gone.
fn restart(rig: &Rig) {
    ip(&["netns", "delete", &rig.namespace]);
    let unmounted = Command::new("umount").arg("/run/haul/bpf").status().expect("umount");
    assert!(unmounted.success());
    fs::remove_file("/run/haul/tcp/journal.json").expect("there was a journal");
    // The kernel lets go of them some time after their last name.
    let gone = (0..1000).any(|_| {
        std::thread::yield_now();
        let known = fs::read_to_string(AVAILABLE).expect("readable");
        ip(&["netns", "list"]);
        !known.contains("haul_")
    });
    assert!(gone, "the laws are in the kernel still");
    ip(&["netns", "add", &rig.namespace]);
    ip(&["-n", &rig.namespace, "link", "set", "lo", "up"]);
}

#[test]
fn what_a_unit_starts_brings_the_same_back_after_a_restart() {
    let Some(rig) = Rig::open() else { return };
    let netns = rig.namespace.as_str();
    let route = ["-n", netns, "route", "add", "10.98.0.0/16", "dev", "lo"];
    ip(&route);
    told(&["on", "fair", "--netns", netns]);
    told(&["on", "aggressive", "--to", "10.98.0.0/16", "--netns", netns]);
    told(&["on", "modest", "--to", "10.99.0.7", "--netns", netns]);
    let before = state(netns);
    let ways: Vec<_> = before.0.as_array().expect("a list").iter().map(|rule| rule["way"].clone()).collect();
    assert_eq!(ways, ["default", "route", "cgroup"]);
    let unit = told(&["install", "--print"]);
    let (starts, stops) = (lines_of(&unit, "ExecStart"), lines_of(&unit, "ExecStop"));
    assert_eq!((starts.len(), stops.len()), (3, 1), "{unit}");

    restart(&rig);
    ip(&route);
    assert_ne!(rig.law(), "haul_fair");
    let run = |line: &str| {
        let output = Command::new("sh").args(["-c", line]).output().expect("sh");
        assert!(output.status.success(), "{line}: {}", printed(&output).1);
    };
    for line in starts {
        run(line);
    }
    assert_eq!(state(netns), before);
    assert_eq!(rig.law(), "haul_fair");
    assert_eq!(told(&["install", "--print"]), unit, "and a unit of it is the same");
    run(stops[0]);
    assert_eq!(told(&["off"]), "nothing was on\n");
    assert_ne!(rig.law(), "haul_fair");
}

#[test]
fn the_unit_is_one_that_systemd_takes() {
    let Some(rig) = Rig::open() else { return };
    told(&["on", "fair", "--netns", &rig.namespace]);
    let dir = tempfile::tempdir().expect("a directory");
    let file = dir.path().join("haul-tcp.service");
    fs::write(&file, told(&["install", "--print"])).expect("written");
    let output = match Command::new("systemd-analyze").arg("verify").arg(&file).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return skip::skip("there is no systemd-analyze (apt-get install systemd)");
        }
        output => output.expect("systemd-analyze"),
    };
    let (out, err) = printed(&output);
    assert!(output.status.success() && (out + &err).trim().is_empty(), "{err}");
}

/// In mounts of its own, where systemd seems to be there, and a `systemctl` that writes down what it is told.
#[test]
fn a_unit_is_installed_enabled_and_taken_away() {
    let Some(rig) = Rig::open() else { return };
    told(&["on", "modest", "--netns", &rig.namespace]);
    let printed_unit = told(&["install", "--print"]);
    let dir = tempfile::tempdir().expect("a directory");
    let (systemctl, told_of) = (dir.path().join("systemctl"), dir.path().join("told"));
    fs::write(&systemctl, format!("#!/bin/sh\necho \"$@\" >> {}\n", told_of.display())).expect("written");
    let script = "set -e
        chmod +x $DIR/systemctl
        mkdir -p $DIR/etc/systemd/system $DIR/run/systemd/system
        mount --bind $DIR/etc/systemd/system /etc/systemd/system
        mount --bind $DIR/run/systemd /run/systemd
        PATH=$DIR:$PATH
        $HAUL tcp install --remove
        $HAUL tcp install
        cp /etc/systemd/system/haul-tcp.service $DIR/installed
        $HAUL tcp install --remove
        ls -A /etc/systemd/system";
    let places = ["/etc/systemd/system", "/run/systemd"];
    if let Some(place) = places.iter().find(|place| !std::path::Path::new(place).is_dir()) {
        return skip::skip(format!("{place} is not there (apt-get install systemd)"));
    }
    let output = Command::new("unshare")
        .args(["--mount", "--propagation", "private", "sh", "-c", script])
        .env("DIR", dir.path())
        .env("HAUL", env!("CARGO_BIN_EXE_haul"))
        .output()
        .expect("unshare of util-linux");
    let (out, err) = printed(&output);
    assert!(output.status.success(), "{out}{err}");
    let said: Vec<&str> = out.lines().collect();
    let [none, installed, removed] = said.as_slice() else { panic!("the unit's file is left: {out}") };
    assert_eq!(*none, "no unit is installed");
    assert!(installed.contains("switches on at each start") && removed.contains("is removed"), "{out}");
    assert_eq!(fs::read_to_string(dir.path().join("installed")).expect("copied"), printed_unit);
    let steps = fs::read_to_string(told_of).expect("it was called");
    let steps: Vec<&str> = steps.lines().collect();
    assert_eq!(steps, ["daemon-reload", "enable haul-tcp.service", "disable haul-tcp.service", "daemon-reload"]);
}

#[test]
fn buffers_that_are_too_small_are_noted_when_it_is_switched_on() {
    let Some(rig) = Rig::open() else { return };
    let netns = rig.namespace.as_str();
    let mut held = rig.held();
    let small = rig.python("open('/proc/sys/net/ipv4/tcp_rmem', 'w').write('4096 8192 16384')").status().expect("python3");
    assert!(small.success());
    let output = tcp(&["on", "fair", "--netns", netns]);
    let (out, err) = printed(&output);
    assert!(output.status.success() && out.starts_with("fair: "), "{out}{err}");
    assert!(err.contains("net.ipv4.tcp_rmem: ") && err.contains("is too small for what is received from 127.0.0.1:"), "{err}");
    assert!(err.contains(&format!("`ip netns exec {netns} sysctl -w net.ipv4.tcp_rmem=\"4096 8192 ")), "{err}");
    let status: serde_json::Value = serde_json::from_str(&told(&["status", "--netns", netns, "--json"])).expect("JSON");
    assert!(status["lacks"].as_array().is_some_and(|lacks| lacks.iter().any(|lack| lack["limit"] == "net.ipv4.tcp_rmem")));
    drop(held.stdin.take());
    assert!(held.wait().expect("it ends").success());
}
