//! Networks that let UDP pass in part, and what `haul proxy` and `haul fleet` do where it does not pass at all; ssh, where nothing else passes.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::Duration;

use e2e::{Daemon, Finished, Lab, Random, Running, Stopwatch, echo, eventually, is_echoed, listens_on, tree};
use rustix::process::{Pid, Signal, kill_process};

const PATIENCE: Duration = Duration::from_secs(90);
const SIZE: u64 = 8 << 20;
/// Of what goes through a proxy, there and back.
const BYTES: usize = 4 << 20;
const PORT: u16 = 8080;
const PORTS: &str = "60000-60009";

fn far(path: &Path) -> OsString {
    let mut operand = OsString::from("far:");
    operand.push(path);
    operand
}

fn haul(lab: &Lab, words: &[&str]) -> Command {
    let config = lab.ssh_config().to_owned();
    let mut command = lab.haul(&lab.near);
    command.args(words).arg("-F").arg(config);
    command
}

/// `haul proxy` to the far host: several connections at once, and a large one; what it said.
#[track_caller]
fn proxied(lab: &Lab, words: &[&str]) -> Finished {
    let port = echo(&lab.far);
    let mut command = haul(lab, &["proxy"]);
    command.args(words).arg("far").args(["-L", &format!("{PORT}:127.0.0.1:{port}")]);
    let proxy = Running::start(command);
    assert!(eventually(PATIENCE, || listens_on(&lab.near, PORT)), "{words:?}: the proxy does not listen");
    // Who comes before the login is over waits for a while, and no longer.
    let connected = || matches!(is_echoed(&lab.near, PORT, b"there?"), Ok(true));
    assert!(eventually(PATIENCE, connected), "{words:?}: the proxy does not connect");
    let (near, bytes) = (&lab.near, &*Random::seeded(2101).bytes(BYTES));
    let echoed: Vec<_> = thread::scope(|scope| {
        let lengths = [BYTES].into_iter().chain([1000; 8]);
        let asked: Vec<_> = lengths.map(|length| scope.spawn(move || is_echoed(near, PORT, &bytes[..length]))).collect();
        asked.into_iter().map(|asked| asked.join().expect("no panic")).collect()
    });
    proxy.signal(Signal::TERM);
    let finished = proxy.wait(PATIENCE);
    assert!(echoed.iter().all(|echoed| matches!(echoed, Ok(true))), "{words:?}: {echoed:?}: {finished}");
    let finished = finished.expect(0);
    lab.assert_no_process_left(Duration::from_secs(10));
    finished
}

/// `haul fleet put` to two members, and `get` from both; what they said.
#[track_caller]
fn fleet(lab: &Lab, words: &[&str]) -> [Finished; 2] {
    let (source, back) = (lab.place("set"), lab.place("back"));
    let members = [lab.place("one"), lab.place("two")];
    for file in 0..6 {
        tree::write_random(&source.join(format!("f{file}")), SIZE / 6, &mut Random::seeded(2110 + file));
    }
    let hosts = format!("far:{},far6:{}", members[0].display(), members[1].display());
    let run = |what: &str, operands: [OsString; 2]| {
        let mut command = haul(lab, &["fleet", what]);
        command.args(words).args(["-H", &hosts, "-rp"]).args(operands);
        Running::start(command).wait(PATIENCE).expect(0)
    };
    let put = run("put", [source.clone().into(), ".".into()]);
    let got = run("get", ["set".into(), back.clone().into()]);
    let names = |member: &Path| if member.join("set").is_dir() { tree::names(&member.join("set")).len() } else { 0 };
    assert_eq!(members.iter().map(|member| names(member)).sum::<usize>(), 6, "{put}");
    tree::assert_same(&source, &back.join("set"), tree::Exactness::Everything);
    lab.assert_no_process_left(Duration::from_secs(10));
    [put, got]
}

/// A file there and back; what both said.
#[track_caller]
fn copied(lab: &Lab, words: &[&str]) -> [Finished; 2] {
    let (source, there, back) = (lab.place("source"), lab.place("there"), lab.place("back"));
    tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(2102));
    let run = |from: OsString, to: OsString| lab.run_cp(words.iter().map(OsString::from).chain([from, to])).expect(0);
    let up = run(source.join("file").into(), far(&there));
    let down = run(far(&there.join("file")), back.clone().into());
    for copy in [&there, &back] {
        assert_eq!(tree::hash(&source.join("file")), tree::hash(&copy.join("file")));
    }
    [up, down]
}

#[track_caller]
fn assert_silent<'a>(finished: impl IntoIterator<Item = &'a Finished>) {
    for finished in finished {
        assert!(!finished.stderr.contains("UDP"), "{finished}");
    }
}

#[test]
fn a_proxy_goes_over_tcp_and_through_ssh() {
    let Some(lab) = Lab::open() else { return };
    lab.ssh_config();
    for way in ["tcp", "ssh"] {
        assert_silent([&proxied(&lab, &["--transport", way])]);
    }
    lab.block_udp();
    let told = proxied(&lab, &[]);
    assert!(told.stderr.contains("UDP is blocked inbound at far") && told.stderr.contains("over TCP"), "{told}");
    for way in ["tcp", "ssh"] {
        proxied(&lab, &["--transport", way]);
    }
}

#[test]
fn a_fleet_goes_over_tcp_and_through_ssh() {
    let Some(lab) = Lab::open() else { return };
    lab.ssh_config();
    lab.block_udp();
    for way in ["auto", "tcp", "ssh"] {
        let told = fleet(&lab, &["--transport", way]);
        // Nobody needs to be told of what he has asked for.
        assert!(told.iter().all(|told| told.stderr.contains("over TCP for now") == (way == "auto")), "{way}: {told:?}");
    }
}

#[test]
fn where_only_some_ports_pass_those_that_are_named_carry() {
    let Some(lab) = Lab::open() else { return };
    lab.ssh_config();
    lab.far.firewall("input", &format!("udp dport {PORTS} counter accept; meta l4proto udp drop;"));
    assert_silent(&copied(&lab, &["--udp-port", PORTS]));
    assert_silent([&proxied(&lab, &["--udp-port", PORTS])]);
    assert_silent(&fleet(&lab, &["--udp-port", PORTS]));
    let counted = lab.far.counted_bytes();
    assert!(counted[0] > 2 * SIZE, "{counted:?}");
    // Without the word another port is asked, and TCP carries.
    let told = copied(&lab, &[]);
    assert!(told.iter().all(|one| one.stderr.contains("over TCP")), "{told:?}");
}

/// A policer takes what is beyond its rate: haul finds the rate, and neither goes over nor creeps.
#[test]
fn where_udp_is_limited_to_a_rate_it_carries_at_that_rate() {
    let Some(lab) = Lab::open() else { return };
    lab.ssh_config();
    lab.router().firewall("forward", "meta l4proto udp limit rate over 2 mbytes/second burst 100 kbytes drop;");
    let watch = Stopwatch::start();
    assert_silent(&copied(&lab, &[]));
    let seconds = watch.elapsed().as_secs_f64();
    // 8 MiB there and 8 MiB back at 2 MB/s are 8.4 s.
    assert!((7.5..40.0).contains(&seconds), "{seconds} s");
    proxied(&lab, &[]);
    fleet(&lab, &[]);
}

/// IPv6's least, as tunnels have it, and no word from the router of what is too long for it.
#[test]
fn a_network_of_1280_bytes_that_says_nothing_carries_udp_and_tcp() {
    let Some(lab) = Lab::open() else { return };
    lab.ssh_config();
    lab.black_hole(1280);
    assert_silent(&copied(&lab, &[]));
    assert_silent([&proxied(&lab, &[])]);
    assert_silent(&fleet(&lab, &[]));
    let root = lab.place("root");
    let source = lab.place("source");
    tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(2103));
    let daemon = Daemon::start(&lab, &root);
    for (way, name) in [("udp", "by-udp"), ("tcp", "by-tcp")] {
        lab.run_cp([OsString::from("--transport"), way.into(), source.join("file").into(), daemon.url(name).into()]).expect(0);
        assert_eq!(tree::hash(&source.join("file")), tree::hash(&root.join(name)), "{way}");
    }
    lab.block_udp();
    copied(&lab, &[]);
}

/// How many have logged in at the far host.
fn logins(lab: &Lab) -> usize {
    let log = std::fs::read_to_string(lab.scratch().join("sshd.log")).unwrap_or_default();
    log.matches("Accepted publickey").count()
}

/// What further logins have been given to carry.
fn carried_bytes(further: &[Pid]) -> u64 {
    let of = |pid: &Pid| {
        let counts = std::fs::read_to_string(format!("/proc/{}/io", pid.as_raw_nonzero())).unwrap_or_default();
        let count = |name| counts.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        count("rchar:").unwrap_or(0)
    };
    further.iter().map(of).sum()
}

/// What ssh alone is to carry, for eight seconds: the file, where it goes, and the copy under way.
fn begun_through_ssh(lab: &Lab, seed: u64, is_push: bool) -> ([PathBuf; 2], Running) {
    lab.limit("50mbit");
    let (source, there) = (lab.place("source").join("file"), lab.place("there"));
    tree::write_random(&source, 48 << 20, &mut Random::seeded(seed));
    let operands = if is_push { [source.clone().into(), far(&there)] } else { [far(&source), OsString::from(&there)] };
    let words = ["--transport", "ssh"].map(OsString::from).into_iter().chain(operands);
    ([source, there.join("file")], Running::start(lab.cp(words)))
}

#[test]
fn where_ssh_carries_more_logins_join_it_and_they_go_with_the_copy() {
    for (seed, is_push) in [(2101, true), (2102, false)] {
        let Some(lab) = Lab::open() else { return };
        let (copies, running) = begun_through_ssh(&lab, seed, is_push);
        let finished = running.wait(PATIENCE).expect(0);
        assert_eq!(tree::hash(&copies[0]), tree::hash(&copies[1]));
        // ssh's own, the one that was tried, and three more beside it. The link is full with them; on a machine that is too busy to fill it, four more are tried.
        assert!(finished.stderr.contains("through 4 logins of ssh to far"), "{finished}");
        let carrying = if finished.stderr.contains("through 8 logins of ssh to far") { 8 } else { 4 };
        assert_eq!(logins(&lab), 1 + carrying, "{finished}");
        let left = || [lab.near.processes(&["127.0.0.1:", "-W"]), lab.far.processes(&["haul remote"])].concat();
        assert!(eventually(Duration::from_secs(15), || left().is_empty()), "left behind: {:?}", left());
    }
}

#[test]
fn a_far_side_that_forwards_nothing_is_asked_once_and_ssh_s_channel_carries_on() {
    let Some(lab) = Lab::open() else { return };
    lab.ssh_config();
    let keys = lab.scratch().join("authorized_keys");
    let key = std::fs::read_to_string(&keys).expect("the user's key");
    std::fs::write(&keys, format!("no-port-forwarding {key}")).expect("writing authorized_keys");
    let (copies, running) = begun_through_ssh(&lab, 2103, true);
    let finished = running.wait(PATIENCE).expect(0);
    assert_eq!(tree::hash(&copies[0]), tree::hash(&copies[1]));
    assert_eq!(logins(&lab), 2, "{finished}");
    assert!(!finished.stderr.contains("logins"), "{finished}");
}

#[test]
fn where_further_logins_die_the_first_one_carries_on() {
    for (seed, is_push) in [(2104, true), (2105, false)] {
        let Some(lab) = Lab::open() else { return };
        let (copies, mut running) = begun_through_ssh(&lab, seed, is_push);
        assert!(eventually(Duration::from_secs(60), || logins(&lab) >= 5) && running.runs(), "{} logins", logins(&lab));
        let further = || lab.near.processes(&["127.0.0.1:", "-W"]);
        assert!(eventually(Duration::from_secs(30), || carried_bytes(&further()) > 4 << 20), "they carry nothing");
        let further = further();
        assert_eq!(further.len(), 4);
        for pid in further {
            let _ = kill_process(pid, Signal::KILL);
        }
        let finished = running.wait(PATIENCE).expect(0);
        assert_eq!(tree::hash(&copies[0]), tree::hash(&copies[1]));
        assert_eq!(logins(&lab), 5, "no more are tried: {finished}");
    }
}
