//! Both hosts behind NATs: they meet by a daemon that both reach, or go by way of it.

use std::ffi::OsString;
use std::fs::File;
use std::net::UdpSocket;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use e2e::{FULL_PORTS, Finished, Nat, Nats, Random, Running, echo, eventually, is_echoed, listens_on, tree};
use rustix::process::Signal;

const SIZE: u64 = 24 << 20;
const PATIENCE: Duration = Duration::from_secs(120);
const RELAY: [&str; 2] = ["--relay", "192.0.2.2"];
const PUNCHED: &str = "directly through both NATs, met by relay 192.0.2.2:7700";
const RELAYED: &str = "by way of relay 192.0.2.2:7700";

fn far(path: &Path) -> OsString {
    let mut operand = OsString::from("far:");
    operand.push(path);
    operand
}

/// A file there and back; what both said.
#[track_caller]
fn there_and_back(nats: &Nats, words: &[&str]) -> [Finished; 2] {
    let (source, there, back) = (nats.place("source"), nats.place("there"), nats.place("back"));
    tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(2201));
    let run = |from: OsString, to: OsString| {
        let words = words.iter().map(OsString::from);
        nats.run_cp(words.chain([from, to])).expect(0)
    };
    let up = run(source.join("file").into(), far(&there));
    let down = run(far(&there.join("file")), OsString::from(&back));
    for copy in [&there, &back] {
        assert_eq!(tree::hash(&source.join("file")), tree::hash(&copy.join("file")));
    }
    [up, down]
}

#[track_caller]
fn assert_said(finished: &[Finished], said: &[&str], not_said: &[&str]) {
    for finished in finished {
        assert!(said.iter().all(|word| finished.stderr.contains(word)), "not said: {said:?}: {finished}");
        assert!(not_said.iter().all(|word| !finished.stderr.contains(word)), "said: {not_said:?}: {finished}");
    }
}

#[test]
fn through_two_cones_both_punch_and_the_relay_carries_nothing() {
    let Some(nats) = Nats::open(Nat::Cone, Nat::Cone) else { return };
    nats.authorize_near(&["--only", "relay"]);
    let serving = nats.serve(&["--relay", "keys"]);
    nats.count();
    assert_said(&there_and_back(&nats, &RELAY), &[PUNCHED], &[RELAYED, "over TCP", "own connection"]);
    let [came, left] = nats.counted_bytes();
    assert!(came > 0 && came < 20_000 && left <= came, "{came} bytes came, {left} left");
    serving.stop();
}

#[test]
fn through_two_symmetric_nats_the_relay_carries_what_it_cannot_read() {
    let Some(nats) = Nats::open(Nat::Symmetric, Nat::Symmetric) else { return };
    nats.authorize_near(&[]);
    let serving = nats.serve(&["--relay", "keys"]);
    nats.count();
    let said = there_and_back(&nats, &RELAY);
    assert_said(&said, &[RELAYED, "of UDP payload"], &[PUNCHED, "over TCP", "own connection"]);
    let [came, left] = nats.counted_bytes();
    assert!(came > 2 * SIZE && left > 2 * SIZE && left <= came, "{came} bytes came, {left} left");
    let log = serving.stop();
    assert_eq!(log.stderr.matches("relayed").count(), 2, "{log}");
}

/// For programs, and with other commands; what a pair may have is bounded where that was said.
#[test]
fn what_carries_is_in_the_json_and_pipes_and_measurements_go_the_same_way() {
    let Some(nats) = Nats::open(Nat::Symmetric, Nat::Symmetric) else { return };
    nats.authorize_near(&[]);
    let serving = nats.serve(&["--relay", "keys", "--relay-limit", "80M"]);
    let (source, there) = (nats.place("source"), nats.place("there"));
    tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(2202));
    let words = RELAY.iter().map(OsString::from).chain(["--json".into(), source.join("file").into(), far(&there)]);
    let finished = nats.run_cp(words).expect(0);
    let summary = finished.event("summary");
    assert_eq!((&summary["carried_by"], &summary["relay"]), (&"relay".into(), &"192.0.2.2:7700".into()), "{finished}");
    assert!(summary["relayed_bytes"].as_u64().is_some_and(|bytes| bytes > SIZE), "{finished}");
    // 24 MiB at 80 Mbit/s are 2.5 s, of which a quarter of one may come as a burst.
    assert!(summary["elapsed_s"].as_f64().is_some_and(|seconds| seconds > 2.2), "{finished}");
    let input = || Stdio::from(File::open(source.join("file")).expect("the file"));
    let pipe = nats.haul_to_far(&["pipe"], RELAY.iter().chain(&["far", "--", "cat"]));
    let piped = Running::start_with(pipe, input()).wait(PATIENCE).expect(0);
    assert_eq!(blake3::hash(&piped.stdout), tree::hash(&source.join("file")));
    let perf = Running::start(nats.haul_to_far(&["perf"], RELAY.iter().chain(&["-t", "2", "far"]))).wait(PATIENCE).expect(0);
    assert_said(&[piped, perf], &[RELAYED], &[PUNCHED, "over TCP"]);
    nats.count();
    let member = nats.place("member");
    let hosts = format!("far:{}", member.display());
    let words = ["-H", &hosts].into_iter().map(OsString::from).chain([source.join("file").into(), ".".into()]);
    let fleet = Running::start(nats.haul_to_far(&["fleet", "put"], RELAY.iter().map(OsString::from).chain(words)));
    assert_said(&[fleet.wait(PATIENCE).expect(0)], &[RELAYED], &["over TCP"]);
    let [came, _] = nats.counted_bytes();
    assert!(came > SIZE, "{came} bytes came to the relay from the fleet");
    assert_eq!(tree::hash(&member.join("file")), tree::hash(&source.join("file")));
    serving.stop();
}

/// `haul proxy --relay` to the far host, with something said through it, there and back.
#[track_caller]
fn proxied(nats: &Nats, bytes: &[u8]) -> Finished {
    const PORT: u16 = 8080;
    let port = echo(&nats.far);
    let forward = format!("{PORT}:127.0.0.1:{port}");
    let proxy = Running::start(nats.haul_to_far(&["proxy"], RELAY.iter().chain(&["far", "-L", &forward])));
    assert!(eventually(PATIENCE, || listens_on(&nats.near, PORT)), "the proxy does not listen");
    // Who comes before the login is over waits for a while, and no longer.
    let connected = || matches!(is_echoed(&nats.near, PORT, b"there?"), Ok(true));
    assert!(eventually(PATIENCE, connected), "the proxy does not connect");
    let echoed = is_echoed(&nats.near, PORT, bytes);
    proxy.signal(Signal::TERM);
    let finished = proxy.wait(PATIENCE);
    assert!(matches!(echoed, Ok(true)), "{echoed:?}: {finished}");
    finished.expect(0)
}

/// What forwards ports, takes a remote shell's place or runs rsync goes the same way: by the relay, counted there, or straight where both have met by it.
#[test]
fn proxy_rsh_and_rsync_go_by_a_relay_too() {
    for (kind, way, by_relay) in [(Nat::Symmetric, RELAYED, true), (Nat::Cone, PUNCHED, false)] {
        let Some(nats) = Nats::open(kind, kind) else { return };
        nats.authorize_near(&[]);
        let serving = nats.serve(&["--relay", "keys"]);
        let (source, there) = (nats.place("source"), nats.place("there"));
        let content = Random::seeded(2205).bytes(SIZE as usize / 4);
        std::fs::write(source.join("file"), &content).expect("a file");
        let counted = |what: &str, done: &dyn Fn() -> Finished, least: u64| {
            let before = nats.counted_bytes()[0];
            assert_said(&[done()], &[way], &["over TCP", "own connection"]);
            let came = nats.counted_bytes()[0] - before;
            assert_eq!(came > least, by_relay, "{what}: {came} bytes came to the relay");
        };
        nats.count();
        counted("proxy", &|| proxied(&nats, &content), SIZE / 4);
        counted(
            "rsh",
            &|| {
                let input = Stdio::from(File::open(source.join("file")).expect("the file"));
                let rsh = nats.haul_to_far(&["rsh"], RELAY.iter().chain(&["far", "cat"]));
                let finished = Running::start_with(rsh, input).wait(PATIENCE).expect(0);
                assert!(finished.stdout == content, "{finished}");
                finished
            },
            SIZE / 4,
        );
        counted(
            "rsync",
            &|| {
                let shell = format!("ssh -F {}", nats.ssh_config().display());
                let mut rsync = nats.haul(&nats.near, &["rsync"]);
                rsync.args(RELAY).args(["-a", "-e", &shell]).arg(source.join("file")).arg(far(&there));
                let finished = Running::start(rsync).wait(PATIENCE).expect(0);
                assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
                finished
            },
            SIZE / 4,
        );
        serving.stop();
    }
}

/// Nothing else passes between the two but ssh: that carries the rest, and nothing that has come is sent again.
#[test]
fn a_copy_whose_relay_dies_goes_on_through_ssh() {
    let Some(nats) = Nats::open(Nat::Symmetric, Nat::Symmetric) else { return };
    nats.authorize_near(&[]);
    nats.count();
    for (seed, is_push) in [(2206, true), (2207, false)] {
        let serving = nats.serve(&["--relay", "keys", "--relay-limit", "16M"]);
        let (source, there) = (nats.place("source"), nats.place("there"));
        tree::write_random(&source.join("file"), SIZE, &mut Random::seeded(seed));
        let operands =
            if is_push { [source.join("file").into(), far(&there)] } else { [far(&source.join("file")), OsString::from(&there)] };
        let before = nats.counted_bytes()[0];
        let words = RELAY.iter().map(OsString::from).chain(["--json".into()]).chain(operands);
        let copy = Running::start(nats.haul_to_far(&["cp"], words));
        let relayed = || nats.counted_bytes()[0] - before;
        assert!(eventually(PATIENCE, || relayed() > SIZE / 4), "{} bytes were relayed", relayed());
        serving.kill();
        let finished = copy.wait(PATIENCE).expect(0);
        assert_eq!(tree::hash(&source.join("file")), tree::hash(&there.join("file")));
        assert_said(std::slice::from_ref(&finished), &[RELAYED, "has brought nothing for", "through ssh's own connection"], &[]);
        let summary = finished.event("summary");
        assert_eq!(summary["carried_by"], "ssh", "{finished}");
    }
}

/// Then the far side sees the jump host where it looks for who has logged in, and sends its first datagrams there.
#[test]
fn by_a_jump_host_both_meet_all_the_same() {
    for (kind, way) in [(Nat::Cone, PUNCHED), (Nat::Symmetric, RELAYED)] {
        let Some(mut nats) = Nats::open(kind, kind) else { return };
        nats.jump_by_public();
        nats.authorize_near(&[]);
        let serving = nats.serve(&["--relay", "keys"]);
        assert_said(&there_and_back(&nats, &RELAY), &[way], &["over TCP", "own connection"]);
        serving.stop();
    }
}

/// A cone tells its peer where to send, and takes an answer from there alone.
#[test]
fn a_symmetric_nat_on_one_side_is_enough_for_the_relay_to_be_needed() {
    for (near, far) in [(Nat::Cone, Nat::Symmetric), (Nat::Symmetric, Nat::Cone)] {
        let Some(nats) = Nats::open(near, far) else { return };
        nats.authorize_near(&[]);
        let serving = nats.serve(&["--relay", "keys"]);
        assert_said(&there_and_back(&nats, &RELAY), &[RELAYED], &[PUNCHED]);
        serving.stop();
    }
}

/// What a full cone has given a port, anybody may answer to: a symmetric one too, from wherever.
#[test]
fn a_full_cone_on_one_side_lets_a_symmetric_nat_through() {
    let ports = format!("{}-{}", FULL_PORTS.start, FULL_PORTS.end - 1);
    for (near, far) in [(Nat::Full, Nat::Symmetric), (Nat::Symmetric, Nat::Full)] {
        let Some(nats) = Nats::open(near, far) else { return };
        nats.authorize_near(&[]);
        let serving = nats.serve(&["--relay", "keys"]);
        let words = if far == Nat::Full { ["--udp-port", &ports].to_vec() } else { Vec::new() };
        assert_said(&there_and_back(&nats, &[&RELAY[..], &words].concat()), &[PUNCHED], &[RELAYED, "over TCP"]);
        serving.stop();
    }
}

/// Then what the far side sends to the port that this side sends from opens both, and nobody is asked.
#[test]
fn where_nats_keep_ports_no_relay_is_asked() {
    let Some(nats) = Nats::open(Nat::Same, Nat::Same) else { return };
    nats.authorize_near(&[]);
    let serving = nats.serve(&["--relay", "keys"]);
    assert_said(&there_and_back(&nats, &RELAY), &["far itself has sent some: it has, and UDP passes"], &["relay"]);
    let log = serving.stop();
    assert!(!log.stderr.contains("has a pair"), "{log}");
}

#[test]
fn who_is_not_let_in_by_the_relay_is_told_so_and_goes_through_ssh() {
    let Some(nats) = Nats::open(Nat::Cone, Nat::Cone) else { return };
    let through_ssh = "through ssh's own connection";
    for (options, words, why) in [
        (
            None,
            &["--relay", "keys"][..],
            "no help by relay 192.0.2.2:7700: 192.0.2.2:7700: this user's key is not authorised there",
        ),
        (
            Some("cp"),
            &["--relay", "keys"],
            "no help by relay 192.0.2.2:7700: it refuses: this user's key is not authorised for relaying",
        ),
        (Some("cp,relay"), &[], "no help by relay 192.0.2.2:7700: it refuses: this daemon does not relay"),
    ] {
        if let Some(options) = options {
            nats.authorize_near(&["--only", options]);
        }
        let root = format!("pub={}", nats.place("pub").display());
        let serving = nats.serve(&[&["--root", &root], words].concat());
        nats.count();
        assert_said(&there_and_back(&nats, &RELAY), &[why, through_ssh], &[PUNCHED, RELAYED]);
        assert_eq!(nats.counted_bytes(), [0, 0], "{why}");
        serving.stop();
    }
    // Nobody is there at all.
    assert_said(&there_and_back(&nats, &RELAY), &["no help by relay 192.0.2.2:7700: no answer over UDP", through_ssh], &[]);
}

#[test]
fn a_relay_for_anybody_is_one_and_shows_nothing_else_to_them() {
    let Some(nats) = Nats::open(Nat::Symmetric, Nat::Symmetric) else { return };
    let shared = nats.place("pub");
    tree::write_random(&shared.join("secret"), 1000, &mut Random::seeded(2203));
    let root = format!("pub={}", shared.display());
    let serving = nats.serve(&["--root", &root, "--relay", "anybody", "--relay-port", "7701"]);
    assert_said(&there_and_back(&nats, &RELAY), &[RELAYED], &[]);
    let there = nats.place("there");
    let words = [OsString::from("cp"), "haul://192.0.2.2/pub/secret".into(), there.clone().into()];
    let mut command = nats.haul(&nats.near, &[]);
    command.args(words);
    let refused = Running::start(command).wait(PATIENCE).expect(2);
    assert!(refused.stderr.contains("this user's key is not authorised there"), "{refused}");
    assert!(!there.join("secret").exists());
    serving.stop();
}

/// Neither noise, nor packets, nor messages with a proof that is none: nothing comes back, and nothing goes anywhere.
#[test]
fn a_stranger_gets_nothing_from_a_relay() {
    let Some(nats) = Nats::open(Nat::Same, Nat::Same) else { return };
    let serving = nats.serve(&["--relay", "anybody"]);
    nats.count();
    let heard = nats.near.run(|| {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        socket.set_read_timeout(Some(Duration::from_secs(1))).expect("a timeout");
        let mut random = Random::seeded(2204);
        for round in 0..200_usize {
            let mut datagram = random.bytes([64, 64, 1200, 1][round % 4]);
            if round % 4 == 0 {
                // A question of either end of some pair.
                let mark = [b"rhaulrl1".to_vec(), vec![1 + 2 * (round / 4 % 2) as u8, 0, 0, 0]].concat();
                datagram[..mark.len()].copy_from_slice(&mark);
            }
            socket.send_to(&datagram, "192.0.2.2:7701").expect("sends");
        }
        socket.recv_from(&mut [0; 2000]).is_ok()
    });
    let [came, left] = nats.counted_bytes();
    assert!(!heard && came > 60_000 && left == 0, "{came} bytes came, {left} left");
    serving.stop();
}
