//! What waits at an interface: where it waits, what stands there before and after.

use std::process::{Command, Stdio};
use std::time::Duration;

use haul_netdev::iproute::{tc, tc_batch};
use haul_tcp::{Discipline, Pace, QueueSpec};

use crate::wire::{Wire, inside};
use crate::{On, VICTIM, VICTIM_KEEPS, VICTIM_QUEUE, class, may, pause};

/// Does something on a host with one interface, `x`, whose other end is on another one.
pub fn on_a_wire(name: &str, act: impl FnOnce() + Send) {
    let wire = Wire::lay(&format!("pace-{name}"), &[["10.9.1.1/24", "10.9.1.2/24"], ["fd09::1/64", "fd09::2/64"]]);
    inside(&wire.a, act);
}

/// A queue at its interface.
pub const fn at_x(by: Option<Discipline>) -> QueueSpec<'static> {
    QueueSpec { interface: "x", by }
}

/// The queueing disciplines of the near host.
pub fn disciplines() -> String {
    tc(&["qdisc", "show", "dev", "x"]).expect("tc")
}

/// Seconds that so many datagrams of 1000 bytes take to leave, at the socket: it waits where there is no room for what waits.
const DATAGRAMS: &str = r"
import socket, sys, time
to, count = sys.argv[1], int(sys.argv[2])
s = socket.socket(socket.AF_INET6 if ':' in to else socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 10000)
begin = time.monotonic()
for _ in range(count):
    s.sendto(bytes(1000), (to, 9))
print(time.monotonic() - begin)
";

pub fn seconds(to: &str, count: usize) -> f64 {
    let output = Command::new("python3").args(["-c", DATAGRAMS, to, &count.to_string()]).output().expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("seconds")
}

/// Time is asserted one way only: what is held cannot be faster, however busy this machine is.
#[test]
fn datagrams_wait_at_the_interface_and_what_is_of_no_class_does_not() {
    let Some(_guard) = may() else { return };
    on_a_wire("q", || {
        let before = disciplines();
        let pace = Pace::new(&std::env::temp_dir().join(format!("haul-pace-test-queue-{}", std::process::id())));
        let classes = [class(Some("10.9.1.2"), 8_000_000), class(Some("fd09::2"), 4_000_000), class(Some("10.8.0.0/16"), 8_000)];
        let run = pace.run(&classes, Some(at_x(Some(Discipline::Htb)))).expect("it runs");
        assert_eq!(run.queue_by(), Some(Discipline::Htb));
        // 1066 bytes of 1000 are on the line (1086 with IPv6); what is in the socket's buffer and the bucket has not waited.
        let (four, six) = (seconds("10.9.1.2", 500), seconds("fd09::2", 250));
        assert!(four >= 480.0 * 1066.0 * 8.0 / 8e6, "{four} s");
        assert!(six >= 230.0 * 1086.0 * 8.0 / 4e6, "{six} s");
        let counted = || {
            let told = tc(&["-s", "class", "show", "dev", "x"]).expect("tc");
            [" 500 pkt", " 250 pkt", " 0 pkt"].iter().all(|count| told.contains(count)).then_some(()).ok_or(told)
        };
        // The last ones may be waiting still.
        let last = (0..1000).find_map(|_| counted().inspect_err(|_| pause(Duration::from_millis(1))).ok());
        assert!(last.is_some(), "{:?}", counted());
        assert!(pace.run(&classes, Some(at_x(None))).expect_err("twice").to_string().contains("another `haul pace`"));
        run.leave().expect("back");
        drop(run);
        assert_eq!(disciplines(), before, "the kernel's default again");
    });
}

#[test]
fn a_kernel_without_fq_says_so_and_has_htb_in_its_place() {
    let Some(_guard) = may() else { return };
    on_a_wire("w", || {
        let before = disciplines();
        let pace = Pace::new(&std::env::temp_dir().join(format!("haul-pace-test-without-{}", std::process::id())));
        let by = |by| pace.run(&[class(None, 8_000_000)], Some(at_x(by))).map(|run| run.queue_by().map(|by| (by, disciplines())));
        let (expected, word) = match by(Some(Discipline::Fq)) {
            Ok(found) => {
                assert_eq!(found.map(|(by, _)| by), Some(Discipline::Fq));
                (Discipline::Fq, "qdisc fq 4861: ")
            }
            Err(error) => {
                let said = error.to_string();
                assert!(said.contains("this kernel cannot hold packets until their departure times: it has no fq"), "{said}");
                (Discipline::Htb, "qdisc htb 4861: ")
            }
        };
        assert_eq!(disciplines(), before);
        let (found, standing) = by(None).expect("it runs").expect("a queue");
        assert!(found == expected && standing.contains(word), "{found}: {standing}");
        assert_eq!(disciplines(), before);
    });
}

#[test]
fn a_discipline_that_somebody_has_chosen_keeps_its_place() {
    let Some(_guard) = may() else { return };
    on_a_wire("c", || {
        tc_batch("qdisc add dev x root handle 7: pfifo limit 70\n").expect("a choice");
        let before = disciplines();
        let pace = On(Pace::new(&std::env::temp_dir().join(format!("haul-pace-test-chosen-{}", std::process::id()))));
        let error = pace.0.run(&[class(None, 8_000_000)], Some(at_x(None))).expect_err("taken");
        assert!(error.to_string().contains("x has a queueing discipline that somebody has chosen (pfifo 7:)"), "{error}");
        assert!(pace.0.on(&[class(None, 8_000_000)], Some(at_x(None))).is_err());
        let nowhere = QueueSpec { interface: "nowhere", by: None };
        let error = pace.0.run(&[class(None, 8_000_000)], Some(nowhere)).expect_err("no such interface");
        assert!(error.to_string().contains("no network interface is called \"nowhere\""), "{error}");
        assert_eq!((disciplines(), pace.0.queue_at()), (before, None));
    });
}

/// A slip of the pen in the name of the interface, or one where there can be no queue.
#[test]
fn what_cannot_be_had_leaves_what_is_on() {
    let Some(_guard) = may() else { return };
    let wire = Wire::lay("pace-t", &[["10.9.1.1/24", "10.9.1.2/24"]]);
    let state = std::env::temp_dir().join(format!("haul-pace-test-typo-{}", std::process::id()));
    let on = On(Pace::new(&state));
    let pace = &on.0;
    inside(&wire.a, || {
        pace.on(&[class(Some("127.9.8.2"), 80_000_000)], Some(at_x(None))).expect("on");
        let now = || (pace.status().expect("status"), pace.queue_at(), disciplines().contains(" 4861: "));
        let before = now();
        assert!(before.2);
        let nowhere = QueueSpec { interface: "xx", by: None };
        let error = pace.on(&[class(Some("127.9.8.2"), 8_000_000)], Some(nowhere)).expect_err("a typo");
        assert!(error.to_string().contains("no network interface is called \"xx\""), "{error}");
        assert_eq!(now(), before);
        // Its own place can be taken again.
        pace.on(&[class(Some("127.9.8.2"), 8_000_000)], Some(at_x(None))).expect("replaced");
        assert_eq!(pace.status().expect("status")[0].class.bits_per_s, 8_000_000);
    });
    assert!(pace.off().expect("off"));
    std::fs::remove_dir_all(state).expect("ours");
}

#[test]
fn a_queue_in_one_namespace_is_taken_back_from_another() {
    let Some(_guard) = may() else { return };
    let wire = Wire::lay("pace-n", &[["10.9.1.1/24", "10.9.1.2/24"]]);
    let state = std::env::temp_dir().join(format!("haul-pace-test-elsewhere-{}", std::process::id()));
    let pace = On(Pace::new(&state));
    let On(pace) = &pace;
    let of_test = [class(Some("10.9.1.2"), 8_000_000)];
    let before = inside(&wire.a, disciplines);
    inside(&wire.a, || pace.on(&of_test, Some(at_x(None))).expect("on"));
    let there = pace.queue_at().expect("a queue");
    assert_eq!((there.place.interface.as_str(), there.place.namespace.name()), ("x", Some(wire.a.as_str())));
    let standing = inside(&wire.a, disciplines);
    let word = if there.by == Discipline::Fq { "qdisc fq 4861:" } else { "qdisc htb 4861:" };
    assert!(standing.contains(word), "{standing}");
    assert!(pace.off().expect("off"));
    assert_eq!((inside(&wire.a, disciplines), pace.queue_at()), (before, None));
    // One that has gone with its namespace keeps nobody from anything.
    inside(&wire.b, || pace.on(&of_test, Some(at_x(None))).expect("on"));
    wire.cut();
    assert!(pace.off().expect("off"));
    std::fs::remove_dir_all(state).expect("ours");
}

/// Killed while its queue is there: it holds nobody, and the next command of haul pace takes it away.
#[test]
fn a_queue_of_a_run_that_was_killed_is_taken_away() {
    let Some(_guard) = may() else { return };
    on_a_wire("k", || {
        let before = disciplines();
        let state = std::env::temp_dir().join(format!("haul-pace-test-killed-{}", std::process::id()));
        let pace = Pace::new(&state);
        let ours = |there: &str| there.contains(" 4861:");
        for kept in ["", "kept"] {
            let mut victim = Command::new(std::env::current_exe().expect("this program"))
                .args(["--exact", "the_one_that_is_killed", "--nocapture"])
                .envs([(VICTIM, state.as_os_str()), (VICTIM_QUEUE, "x".as_ref()), (VICTIM_KEEPS, kept.as_ref())])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .expect("started");
            while !ours(&disciplines()) {
                pause(Duration::from_millis(1));
            }
            victim.kill().expect("killed");
            victim.wait().expect("ended");
            pace.off().expect("off");
            assert_eq!(disciplines(), before);
        }
        std::fs::remove_dir_all(state).expect("ours");
    });
}
