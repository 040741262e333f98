//! Rates for the connections of other programs, on this kernel. Needs root, clang at build time, cgroup2.

#[path = "../chance/mod.rs"]
mod chance;
mod fq;
mod queue;
#[path = "../wire/mod.rs"]
mod wire;

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use haul_tcp::{Pace, PaceClass, QueueSpec};

use crate::chance::Chance;

/// The process is in one cgroup at a time.
static ONE: Mutex<()> = Mutex::new(());

/// None where this machine does not let us, which is an error in CI.
fn may() -> Option<MutexGuard<'static, ()>> {
    let guard = ONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    match haul_tcp::obstacle() {
        Ok(()) => Some(guard),
        Err(error) => {
            skip::skip(error);
            None
        }
    }
}

/// So many connections on loopback, some data both ways, and the pacing rate of each at the side that connected, in bytes a second of payload. The kernel says 2^32 - 1 for none.
const PROGRAM: &str = r"
import socket, sys, time
to, count = sys.argv[1], int(sys.argv[2])
listener = socket.create_server((to, 0), family=socket.AF_INET6 if ':' in to else socket.AF_INET)
ends = []
for _ in range(count):
    near = socket.create_connection(listener.getsockname()[:2])
    ends.append((near, listener.accept()[0]))
for _ in range(20):
    for near, far in ends:
        near.sendall(b'x' * 1000); far.recv(1000, socket.MSG_WAITALL); far.sendall(b'y'); near.recv(1)
for near, _ in ends:
    mss = near.getsockopt(socket.IPPROTO_TCP, 2)
    print(near.getsockopt(socket.SOL_SOCKET, 47) & 0xffffffff, mss)
";

fn rates(to: &str, count: usize) -> Vec<(u64, u64)> {
    numbers(&["-c", PROGRAM, to, &count.to_string()])
}

/// What a program says, two numbers a line.
fn numbers(program: &[&str]) -> Vec<(u64, u64)> {
    let output = Command::new("python3").args(program).output().expect("python3");
    let Output { status, stdout, stderr } = output;
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let pair = |line: &str| {
        let (rate, mss) = line.split_once(' ').expect("two numbers");
        (rate.parse().expect("a rate"), mss.parse().expect("a size"))
    };
    String::from_utf8_lossy(&stdout).lines().map(pair).collect()
}

const NONE: u64 = u32::MAX as u64;

fn class(to: Option<&str>, bits_per_s: u64) -> PaceClass {
    PaceClass { to: to.map(|to| to.parse().expect("a network")), bits_per_s, follows: false }
}

#[test]
fn connections_of_a_class_share_its_rate_and_others_are_left_alone() {
    let Some(_guard) = may() else { return };
    let pace = Pace::new(&std::env::temp_dir().join("haul-pace-test-run"));
    let run = pace.run(&[class(Some("127.0.0.0/8"), 80_000_000)], None).expect("it runs");
    let [(rate, mss)] = rates("127.0.0.1", 1)[..] else { panic!("one connection") };
    // Both ends are in the cgroup: two connections to 127.0.0.1. 90 bytes of a full packet are no payload.
    let expected = 10_000_000 / 2 * mss / (mss + 90);
    assert!(rate.abs_diff(expected) <= 1, "{rate}, not {expected}");
    let three = rates("127.0.0.1", 3);
    assert!(three.iter().all(|(rate, mss)| rate.abs_diff(10_000_000 / 6 * mss / (mss + 90)) <= 1), "{three:?}");
    assert_eq!(rates("::1", 1)[0].0, NONE, "not of the class");
    run.leave().expect("back");
    assert_eq!(rates("127.0.0.1", 1)[0].0, NONE, "not of the cgroup");
    assert_eq!(run.status().expect("counted")[0].open, 0, "all have closed");
}

/// Two connections whose near ends are of the class; the rate of the first after both were in use, after the second has rested, and after it is in use again. Each is waited for:
/// the counts are of seconds.
const REST: &str = r"
import socket, sys, time
listener = socket.create_server(('127.9.8.5', 0))
most = int(sys.argv[1]) if len(sys.argv) > 1 else None
ends = []
for _ in range(2):
    near = socket.create_connection(listener.getsockname())
    ends.append((near, listener.accept()[0]))
if most:
    ends[0][0].setsockopt(socket.SOL_SOCKET, 47, most)
def use(used, enough):
    until = time.monotonic() + 20
    while True:
        for near, far in used:
            near.sendall(b'x' * 1000); far.recv(1000, socket.MSG_WAITALL)
        near = ends[0][0]
        rate, mss = near.getsockopt(socket.SOL_SOCKET, 47) & 0xffffffff, near.getsockopt(socket.IPPROTO_TCP, 2)
        if enough(rate * (mss + 90) / mss) or time.monotonic() > until:
            return print(rate, mss)
        time.sleep(0.01)
use(ends, lambda rate: True)
use(ends[:1], lambda rate: rate > 9e6 or rate == most)
use(ends, lambda rate: rate < 6e6)
";

#[test]
fn what_rests_leaves_its_part_to_what_sends() {
    let Some(_guard) = may() else { return };
    let pace = Pace::new(&std::env::temp_dir().join("haul-pace-test-rests"));
    let run = pace.run(&[class(Some("127.9.8.5"), 80_000_000)], None).expect("it runs");
    let found = numbers(&["-c", REST]);
    let expected = [5_000_000, 10_000_000, 5_000_000];
    let as_said = |((rate, mss), bytes): (&(u64, u64), u64)| rate.abs_diff(bytes * mss / (mss + 90)) <= 1;
    assert!(found.len() == 3 && found.iter().zip(expected).all(as_said), "{found:?}");
    let state = run.status().expect("counted")[0];
    assert_eq!((state.open, state.sending), (0, 0), "all have closed");
}

/// The kernel asks the program of the run first and that of the machine last.
#[test]
fn what_a_run_is_held_to_is_not_lifted_by_what_the_machine_is_held_to() {
    let Some(_guard) = may() else { return };
    let state = std::env::temp_dir().join(format!("haul-pace-test-both-{}", std::process::id()));
    let machine = On(Pace::new(&state));
    let pace = Pace::new(&std::env::temp_dir().join("haul-pace-test-both-run"));
    let of_test = |mbps: u64| [class(Some("127.9.8.4"), mbps * 1_000_000)];
    for (all, own) in [(800, 80), (8, 80)] {
        machine.0.on(&of_test(all), None).expect("on");
        let run = pace.run(&of_test(own), None).expect("it runs");
        let (rate, mss) = rates("127.9.8.4", 1)[0];
        let expected = all.min(own) * 125_000 * mss / (mss + 90);
        assert!(rate.abs_diff(expected) <= 1, "{rate}, not {expected}");
        run.leave().expect("back");
        let (rate, mss) = rates("127.9.8.4", 1)[0];
        assert!(rate.abs_diff(all * 125_000 * mss / (mss + 90)) <= 1, "{rate} outside of the run, of {all} Mbit/s");
    }
    assert!(machine.0.off().expect("off"));
    std::fs::remove_dir_all(state).expect("ours");
}

#[test]
fn what_an_application_asks_for_is_not_lifted_and_comes_back() {
    let Some(_guard) = may() else { return };
    let pace = Pace::new(&std::env::temp_dir().join("haul-pace-test-application"));
    let _run = pace.run(&[class(Some("127.9.8.5"), 80_000_000)], None).expect("it runs");
    let found = numbers(&["-c", REST, "7000000"]);
    // Two parts of 5 MB/s; alone it could have 10; two again.
    let (mss, least) = (found[0].1, |bytes: u64, mss: u64| (bytes * mss / (mss + 90)).min(7_000_000));
    let expected = [5_000_000, 10_000_000, 5_000_000].map(|bytes| least(bytes, mss));
    assert!(
        found.len() == 3 && found.iter().zip(expected).all(|((rate, _), expected)| rate.abs_diff(expected) <= 1),
        "{found:?}"
    );
}

/// It tells the program of now when it closes, as it was told to by the one before.
#[test]
fn a_connection_from_before_is_not_counted_when_it_closes() {
    let Some(_guard) = may() else { return };
    let state = std::env::temp_dir().join(format!("haul-pace-test-before-{}", std::process::id()));
    let on = On(Pace::new(&state));
    let of_test = |bits_per_s| [class(Some("127.9.8.3"), bits_per_s)];
    on.0.on(&of_test(80_000_000), None).expect("on");
    let listener = TcpListener::bind("127.9.8.3:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let connection = || {
        let near = TcpStream::connect(address).expect("connected");
        (near, listener.accept().expect("a connection").0)
    };
    let before = connection();
    assert_eq!(on.0.status().expect("status")[0].open, 1);
    on.0.on(&of_test(8_000_000), None).expect("replaced");
    assert_eq!(on.0.status().expect("status")[0].open, 0);
    let after = connection();
    // The end that waits for the other one's closes last.
    for (near, far) in [before, after] {
        assert!(on.0.status().expect("status")[0].open <= 1);
        drop((far, near));
    }
    for _ in 0..1000 {
        if on.0.status().expect("status")[0].open != 1 {
            break;
        }
        pause(Duration::from_millis(1));
    }
    let state_now = on.0.status().expect("status")[0];
    assert_eq!((state_now.open, state_now.sending), (0, 0));
    on.0.off().expect("off");
    std::fs::remove_dir_all(state).expect("ours");
}

#[test]
fn the_longest_network_counts_and_one_without_is_for_all() {
    let Some(_guard) = may() else { return };
    let pace = Pace::new(&std::env::temp_dir().join("haul-pace-test-longest"));
    let classes = [class(None, 8_000_000), class(Some("127.0.0.0/8"), 80_000_000), class(Some("127.0.0.1"), 800_000_000)];
    let _run = pace.run(&classes, None).expect("it runs");
    // The end that accepts has 127.0.0.1 for its peer, whoever was called, and ::1 itself: where both ends are in one class they share it.
    let near = |to: &str, bytes: u64, ends: u64| {
        let (rate, mss) = rates(to, 1)[0];
        let expected = bytes / ends * mss / (mss + 90);
        assert!(rate.abs_diff(expected) <= 1, "{to}: {rate}, not {expected}");
    };
    near("127.0.0.1", 100_000_000, 2);
    near("127.0.0.2", 10_000_000, 1);
    near("::1", 1_000_000, 2);
}

#[test]
fn a_class_that_follows_lets_a_window_go_each_round_trip() {
    let Some(_guard) = may() else { return };
    let pace = Pace::new(&std::env::temp_dir().join("haul-pace-test-follows"));
    let _run = pace.run(&[PaceClass { follows: true, ..class(None, 0) }], None).expect("it runs");
    // 10 packets of 65483 bytes in well below 100 ms; what is found is no limit of ours and no nonsense.
    let (rate, mss) = rates("127.0.0.1", 1)[0];
    assert!(rate > 10 * mss * 10, "{rate}");
}

/// What is on is taken back, also by a test that fails.
struct On(Pace);

impl Drop for On {
    fn drop(&mut self) {
        let _ = self.0.off();
    }
}

#[test]
fn what_is_on_is_shown_replaced_and_taken_back() {
    let Some(_guard) = may() else { return };
    let state = std::env::temp_dir().join(format!("haul-pace-test-on-{}", std::process::id()));
    let pace = On(Pace::new(&state));
    let On(pace) = &pace;
    assert_eq!(pace.status().expect("nothing is on"), []);
    assert!(!pace.off().expect("nothing to take back"));
    // An address that no other test of this machine uses.
    pace.on(&[class(Some("127.9.8.7"), 80_000_000)], None).expect("on");
    pace.on(&[class(Some("127.9.8.7"), 8_000_000)], None).expect("replaced");
    let (rate, mss) = rates("127.9.8.7", 1)[0];
    assert!(rate.abs_diff(1_000_000 * mss / (mss + 90)) <= 1, "{rate}");
    let states = pace.status().expect("status");
    assert_eq!((states.len(), states[0].class.bits_per_s, states[0].open), (1, 8_000_000, 0));
    assert!(pace.off().expect("off"));
    assert_eq!(rates("127.9.8.7", 1)[0].0, NONE);
    assert_eq!(pace.status().expect("status"), []);
    assert!(!std::fs::read_to_string("/proc/mounts").expect("mounts").contains("haul-pace-test-on"), "still mounted");
    std::fs::remove_dir_all(state).expect("ours");
}

#[test]
fn classes_that_say_nothing_are_refused() {
    let pace = Pace::new(&std::env::temp_dir().join("haul-pace-test-nothing"));
    let error = pace.run(&[class(Some("10.0.0.0/8"), 0)], None).expect_err("no rate");
    assert!(error.to_string().contains("10.0.0.0/8 has no rate"), "{error}");
    assert!(pace.run(&[], None).is_err());
}

/// Set for the process that is to be killed: the interface of its queue.
const VICTIM_QUEUE: &str = "HAUL_PACE_VICTIM_QUEUE";
/// Whether it is to outlive a process that is not killed.
const VICTIM_KEEPS: &str = "HAUL_PACE_VICTIM_KEEPS";

/// Set for the process that is to be killed: where its state is.
const VICTIM: &str = "HAUL_PACE_VICTIM";

/// Rates that are switched on, off, for one program, and killed in the middle of it: what was asked last is in force, and `off` leaves nothing.
#[test]
fn any_order_of_commands_with_kills_leaves_nothing() {
    let Some(_guard) = may() else { return };
    let state = std::env::temp_dir().join(format!("haul-pace-test-order-{}", std::process::id()));
    let on = On(Pace::new(&state));
    let On(pace) = &on;
    let seed = std::env::var("E2E_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(7);
    println!("E2E_SEED={seed}");
    let mut chance = Chance(seed);
    // What the machine is known to hold; none after a kill, which may have come at any moment.
    let mut held = Some(NONE);
    for step in 0..30 {
        let mbps = 8 * (1 + chance.below(100));
        let what = chance.below(6);
        println!("{step}: {what} {mbps}");
        match what {
            0 | 1 => {
                pace.on(&[class(Some("127.9.8.6"), mbps * 1_000_000)], None).expect("on");
                held = Some(mbps * 125_000);
            }
            2 => {
                pace.off().expect("off");
                held = Some(NONE);
            }
            3 => {
                let run = pace.run(&[class(Some("127.9.8.5"), 8_000_000)], None).expect("it runs");
                run.leave().expect("back");
            }
            _ => {
                kill_one(&state, chance.below(60));
                held = None;
            }
        }
        pace.status().expect("status");
        let (rate, mss) = rates("127.9.8.6", 1)[0];
        match held {
            Some(NONE) => assert_eq!(rate, NONE),
            Some(bytes) => assert!(rate.abs_diff(bytes * mss / (mss + 90)) <= 1, "{rate}, not of {bytes}"),
            None => {}
        }
    }
    pace.off().expect("off");
    assert_eq!(rates("127.9.8.6", 1)[0].0, NONE);
    let mounts = std::fs::read_to_string("/proc/mounts").expect("mounts");
    assert!(!mounts.contains("haul-pace-test-order"), "{mounts}");
    drop(on);
    std::fs::remove_dir_all(state).expect("ours");
}

/// Another process switches on and off and runs all the time, and is killed at some moment.
fn kill_one(state: &Path, after_ms: u64) {
    let mut victim = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "the_one_that_is_killed", "--nocapture"])
        .env(VICTIM, state)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("started");
    pause(Duration::from_millis(after_ms));
    victim.kill().expect("killed");
    victim.wait().expect("ended");
}

/// No test of its own: what [`kill_one`] starts.
#[test]
fn the_one_that_is_killed() {
    let Some(state) = std::env::var_os(VICTIM) else { return };
    let pace = Pace::new(Path::new(&state));
    let queue = std::env::var(VICTIM_QUEUE).ok();
    let queue = queue.as_deref().map(|interface| QueueSpec { interface, by: None });
    let keeps = std::env::var(VICTIM_KEEPS).map_or([true, true], |keeps| [!keeps.is_empty(), keeps.is_empty()]);
    loop {
        if keeps[0] {
            pace.on(&[class(Some("127.9.8.6"), 80_000_000)], queue).expect("on");
        }
        if keeps[1] {
            drop(pace.run(&[class(Some("127.9.8.6"), 8_000_000)], queue).expect("it runs"));
        }
        pace.off().expect("off");
    }
}

#[expect(clippy::disallowed_methods, reason = "the moment of a kill is what is tried")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
