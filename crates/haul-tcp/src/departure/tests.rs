//! The program in this machine's kernel, asked about packets that are never sent; then at an interface, without a discipline. Needs root and clang at build time.

use std::net::UdpSocket;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use haul_netdev::iproute::ip;

use super::*;
use crate::clock;
use crate::kernel::netns::Namespace;
use crate::kernel::trial::{Packet, ask, give_priority};
use crate::laws::obstacle;

/// What the program says: the next one looks at it, or it is dropped.
const PASSES: i32 = -1;
const DROPPED: i32 = 2;
/// Of the discipline.
const HANDLE: u32 = 0x4861_0000;
const AROUND_FRAME: u64 = 24;
const NS_PER_S: u64 = 1_000_000_000;
/// How long packets may wait.
const HORIZON_NS: u64 = 2 * NS_PER_S;

/// The program with these rates, in bits a second, for as long as something is done with it. Where this machine does not let us that is said, which is an error in CI.
fn with_program(rates: &[u64], act: impl FnOnce(BorrowedFd<'_>)) {
    if let Err(lack) = obstacle() {
        return skip::skip(lack);
    }
    let classes: Vec<_> = rates.iter().map(|rate| PaceClass { to: None, bits_per_s: *rate, follows: false }).collect();
    let library = Library::open().expect("libbpf");
    let object = load(&library, &classes).expect("the verifier takes it");
    act(object.program(PROGRAM).expect("a program"));
}

/// A packet of a class, all its frames' headers counted.
fn of(class: u32, wire_bytes: u32) -> Packet {
    Packet { priority: HANDLE + class + 1, wire_bytes, ..Packet::default() }
}

/// When it is to leave; None: it is dropped.
fn time(program: BorrowedFd<'_>, packet: Packet) -> Option<u64> {
    let mut left = packet;
    match ask(program, &mut left).expect("asked") {
        PASSES => Some(left.time_ns),
        said => {
            assert_eq!((said, left.time_ns), (DROPPED, packet.time_ns));
            None
        }
    }
}

fn now() -> u64 {
    u64::try_from(clock::since_start().as_nanos()).expect("a time")
}

/// A class's first packet, after which it is busy for a second: whatever else this machine does meanwhile, what follows waits for it.
fn busy(program: BorrowedFd<'_>, class: u32, bits_per_s: u64) -> u64 {
    let frames = 40;
    let wire_bytes = u32::try_from(bits_per_s / 8 - frames * AROUND_FRAME).expect("a rate that a packet fills for a second");
    let first = Packet { segments: 40, ..of(class, wire_bytes) };
    time(program, first).expect("it leaves") + NS_PER_S
}

#[test]
fn packets_of_a_class_leave_as_a_line_of_its_rate_would_send_them() {
    // 1514 bytes are 1538 on the line: 30,760,000 ns and a third of one.
    const BITS_PER_S: u64 = 399_997;
    with_program(&[BITS_PER_S], |program| {
        let before = now();
        let free = busy(program, 0, BITS_PER_S);
        assert!((before..=now()).contains(&(free - NS_PER_S)), "the first leaves at once");
        for count in 0..30_u64 {
            // What the first took is not a whole second: its bytes are whole.
            let first_bits = BITS_PER_S / 8 * 8;
            let expected = free - NS_PER_S + (first_bits + count * 1538 * 8) * NS_PER_S / BITS_PER_S;
            assert_eq!(time(program, of(0, 1514)), Some(expected), "{count}");
        }
    });
}

#[test]
fn a_class_waits_for_no_other() {
    with_program(&[400_000, 0, 80_000], |program| {
        let free = busy(program, 0, 400_000);
        let before = now();
        let other = time(program, of(2, 9976)).expect("it leaves");
        assert!((before..=now()).contains(&other), "a class that has sent nothing leaves at once");
        assert_eq!(time(program, of(0, 1514)), Some(free));
        assert_eq!(time(program, of(2, 60)), Some(other + NS_PER_S), "10,000 bytes at 10 kB/s before it");
    });
}

#[test]
fn a_time_without_packets_is_not_saved_up() {
    with_program(&[400_000], |program| {
        let one = time(program, of(0, 60)).expect("it leaves");
        let free = one + 84 * 8 * NS_PER_S / 400_000;
        while now() < free + 20_000_000 {
            pause(Duration::from_millis(1));
        }
        let before = now();
        let free = busy(program, 0, 400_000);
        assert!((before..=now()).contains(&(free - NS_PER_S)), "now, not when the class was free");
        assert_eq!(time(program, of(0, 1514)), Some(free), "a whole second after it, as if none had been without packets");
    });
}

#[test]
fn what_would_wait_longer_than_the_horizon_is_dropped_and_takes_nobodys_time() {
    with_program(&[80_000], |program| {
        // 0.9 s each.
        let packet = of(0, 8976);
        let times: Vec<_> = (0..20).map(|_| time(program, packet)).collect();
        let first = times[0].expect("it leaves");
        let expected = [0, 1, 2].map(|count| Some(first + count * 9 * NS_PER_S / 10));
        assert_eq!(times[..3], expected);
        assert_eq!(times[3..], [None; 17]);
        // Once the third is near enough: what was dropped is not counted.
        while now() < first + 27 * NS_PER_S / 10 - HORIZON_NS {
            pause(Duration::from_millis(5));
        }
        assert_eq!(time(program, packet), Some(first + 27 * NS_PER_S / 10));
    });
}

#[test]
fn each_frame_of_a_super_packet_has_what_is_around_it_and_none_is_shorter_than_the_least() {
    const BITS_PER_S: u64 = 400_000;
    with_program(&[BITS_PER_S], |program| {
        let mut free = busy(program, 0, BITS_PER_S);
        let frames = |segments: u32, wire_bytes: u32| Packet { segments, ..of(0, wire_bytes) };
        // What the kernel counts with, and how many bytes are on the line.
        let cases = [
            (frames(0, 1514), 1538),
            (frames(1, 1514), 1538),
            (frames(2, 2 * 1514), 2 * 1538),
            (frames(10, 9 * 1514 + 200), 10 * 24 + 9 * 1514 + 200),
            (frames(0, 40), 84),
            (frames(0, 60), 84),
            (frames(0, 61), 85),
            (frames(3, 150), 3 * 84),
        ];
        for (packet, bytes) in cases {
            assert_eq!(time(program, packet), Some(free), "{packet:?}");
            free += bytes * 8 * NS_PER_S / BITS_PER_S;
        }
        assert_eq!(time(program, of(0, 60)), Some(free));
    });
}

#[test]
fn a_later_time_that_the_sender_has_given_counts_and_an_earlier_one_does_not() {
    with_program(&[400_000], |program| {
        let free = busy(program, 0, 400_000);
        let later = Packet { time_ns: free + NS_PER_S / 2, ..of(0, 976) };
        assert_eq!(time(program, later), Some(later.time_ns));
        // It has taken the class's next 20 ms for all that, so that nobody waits for it.
        let earlier = Packet { time_ns: free - NS_PER_S, ..of(0, 976) };
        assert_eq!(time(program, earlier), Some(free + NS_PER_S / 50));
    });
}

#[test]
fn what_is_of_no_class_is_left_as_it_is() {
    with_program(&[400_000, 0], |program| {
        let priorities = [0, 6, HANDLE, HANDLE + 65, HANDLE - 1, u32::MAX, HANDLE + 2];
        for (priority, time_ns) in priorities.into_iter().flat_map(|priority| [(priority, 0), (priority, 77)]) {
            let packet = Packet { priority, time_ns, wire_bytes: 1514, segments: 1 };
            let mut left = packet;
            assert_eq!((ask(program, &mut left).expect("asked"), left), (PASSES, packet));
        }
        let mut own = of(0, 1514);
        ask(program, &mut own).expect("asked");
        assert_eq!(own.priority, 0, "what it was told by has been heard");
    });
}

/// Without the lock two get the same time in one round of four, on two processors: so there are some rounds.
#[test]
fn processors_that_send_at_once_get_a_time_each() {
    const BITS_PER_S: u64 = 100_000_000;
    with_program(&[BITS_PER_S; 16], |program| (0..16).for_each(|class| send_at_once(program, class, BITS_PER_S)));
}

fn send_at_once(program: BorrowedFd<'_>, class: u32, bits_per_s: u64) {
    const SENDERS: usize = 4;
    const EACH: usize = 4000;
    // 1538 bytes are 123,040 ns: as many as these wait no longer than packets may, if only just.
    let least = 1538 * 8 * NS_PER_S / bits_per_s;
    let all = Barrier::new(SENDERS);
    let mut times: Vec<u64> = thread::scope(|scope| {
        let send = || {
            all.wait();
            (0..EACH).map(|_| time(program, of(class, 1514)).expect("it leaves")).collect::<Vec<_>>()
        };
        let senders: Vec<_> = (0..SENDERS).map(|_| scope.spawn(send)).collect();
        senders.into_iter().flat_map(|sender| sender.join().expect("done")).collect()
    });
    times.sort_unstable();
    // Further apart only where this machine was slower than the class.
    let too_near = times.windows(2).find(|pair| pair[1] - pair[0] < least);
    assert_eq!((times.len(), too_near), (SENDERS * EACH, None));
}

/// Where no discipline holds anything packets leave at once, those that are to wait longer than the horizon are dropped all the same.
#[test]
fn at_an_interface_it_sees_what_leaves() {
    if let Err(lack) = obstacle() {
        return skip::skip(lack);
    }
    let own = Own::new();
    let act = || {
        ip(&["link", "set", "lo", "up"]).expect("up");
        let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port"));
        far.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
        let to = far.local_addr().expect("an address");
        let send = |count: usize| {
            for _ in 0..count {
                near.send_to(&[7; 110], to).expect("sent, or dropped as by a full queue");
            }
        };
        let received = || (0..1000).take_while(|_| far.recv(&mut [0; 200]).is_ok()).count();
        let link = at(1, &[PaceClass { to: None, bits_per_s: 80_000, follows: false }]).expect("at lo");
        send(150);
        let unclassed = received();
        give_priority(near.as_fd(), HANDLE + 1).expect("as root");
        let before = now();
        send(300);
        let (took, held) = (now() - before, received());
        drop(link);
        send(150);
        (unclassed, took, held, received())
    };
    let (unclassed, took, held, after) = Namespace::named(&own.0).expect("there").inside(act).expect("done");
    assert_eq!((unclassed, after), (150, 150), "of no class, and after its link");
    // Each is 176 bytes on the line, with all that is around 110: 17.6 ms.
    let each = 176 * 8 * NS_PER_S / 80_000;
    let [least, most] = [HORIZON_NS, HORIZON_NS + took].map(|time| usize::try_from(time / each + 1).expect("few"));
    assert!((least..=most).contains(&held), "{held}, not {least} to {most}");
}

/// A network namespace, which goes with it.
struct Own(String);

impl Own {
    fn new() -> Self {
        let name = format!("haul-departure-{}", std::process::id());
        ip(&["netns", "add", &name]).expect("a network namespace");
        Self(name)
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        let _ = ip(&["netns", "delete", &self.0]);
    }
}

#[expect(clippy::disallowed_methods, reason = "time without packets is what is tried")]
fn pause(time: Duration) {
    thread::sleep(time);
}
