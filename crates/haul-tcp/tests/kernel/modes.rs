//! The modes, as they run in the kernel, where the other end and the line between are the test's.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

use haul_tcp::Law;
use haul_units::BitRate;

use crate::line::Line;
use crate::rig::{Rig, own};
use crate::stage::{Flow, Stage, now};

/// Of the line: packets a second, and the round trip of an empty queue. 40 packets are under way at once.
const RATE: u32 = 2_000;
const ROUND_TRIP: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(30);
/// That of a look at the path, and one that fills most of it.
const LOOK: u32 = 4;
const FULL: u32 = 30;

/// Alone on a path for long, `modest` keeps a queue and has not seen the path without it: it lets it run empty for a round trip, and goes on as before. Another law that
/// comes in between has the window of before.
#[test]
fn modest_looks_at_its_path_and_goes_on() {
    let Some(rig) = Rig::open() else { return };
    rig.tcp.on(&own(Law::Modest), &rig.scope()).expect("on");
    // The smallest round-trip time is looked for three times while it is kept.
    rig.tcp.set("base-rtt-s=2").expect("set");
    let stage = Stage::set(&rig);
    let mut flows = [stage.connect(Law::Modest, ROUND_TRIP)];
    let mut line = Line::new(&stage, RATE, ROUND_TRIP);
    for _ in 0..2 {
        until(&mut line, &mut flows, "the path is full", |window| window >= FULL);
        until(&mut line, &mut flows, "it is empty", |window| window <= LOOK);
    }
    flows[0].give(Law::Westwood);
    assert!(flows[0].window() >= FULL, "{}", flows[0].window());
}

/// What a socket may send at most (`SO_MAX_PACING_RATE`, by which `haul pace` holds connections to their rates) holds for the modes, which set their rates themselves.
#[test]
fn no_mode_sends_faster_than_its_socket_may() {
    let Some(rig) = Rig::open() else { return };
    let most = BitRate::mbps(16);
    for law in [Law::Fair, Law::Quickstart, Law::Modest, Law::Aggressive] {
        rig.tcp.on(&own(law), &rig.scope()).expect("on");
        let (mut near, mut far) = rig.connection();
        let port = near.local_addr().expect("an address").port();
        let mut pacing = |near: &mut TcpStream| {
            for _ in 0..20 {
                near.write_all(&[7; 1000]).and_then(|()| far.read_exact(&mut [0; 1000])).expect("sent");
                far.write_all(&[7]).and_then(|()| near.read_exact(&mut [0])).expect("sent");
            }
            let seen = rig.tcp.connections(&rig.namespace()).expect("connections");
            let connection = seen.into_iter().find(|connection| connection.own_port == port).expect("it is shown");
            assert_eq!(connection.law, own(law));
            connection.pacing.expect("it paces")
        };
        let free = pacing(&mut near);
        assert!(free > most, "{law:?}: {free} with nothing to bound it");
        may_send(&near, most);
        let bounded = pacing(&mut near);
        assert!(bounded <= most, "{law:?}: {bounded}");
    }
}

fn may_send(stream: &TcpStream, most: BitRate) {
    let bytes_per_s = (most.as_bps() / 8) as libc::c_uint;
    let (value, length) = ((&raw const bytes_per_s).cast(), size_of_val(&bytes_per_s) as libc::socklen_t);
    // SAFETY: the value has the size that is told.
    let set = unsafe { libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value, length) };
    assert_eq!(set, 0);
}

fn until(line: &mut Line<'_>, flows: &mut [Flow], what: &str, is: impl Fn(u32) -> bool) {
    let begun = now();
    line.carry(flows, |flows| !is(flows[0].window()) && begun.elapsed() < PATIENCE, |_, _| false);
    assert!(is(flows[0].window()), "not within {PATIENCE:?}: {what}, but {}", flows[0].window());
}
