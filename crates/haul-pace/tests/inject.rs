//! An injector on an emulated line, with real sockets at both ends. Needs root.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use haul_lab::{Line, LineReport, Namespace};
use haul_netdev::ethernet::on_line;
use haul_netdev::iproute::ip;
use haul_pace::{InjectClass, InjectError, InjectSpec, InjectStats, Injector, InterfaceError};
use haul_units::{BitRate, Bytes};

const LINE: BitRate = BitRate::mbps(200);
const RATE: BitRate = BitRate::mbps(50);

/// None where the machine does not let us, which is an error in CI.
fn lay() -> Option<Line> {
    match Line::lay(LINE) {
        Ok(line) => Some(line),
        Err(error) => {
            skip::skip(error);
            None
        }
    }
}

/// Runs something in a host.
fn within<T: Send>(host: &Namespace, body: impl FnOnce() -> T + Send) -> T {
    host.within(body).unwrap()
}

fn spec() -> InjectSpec {
    let class = InjectClass { to: Line::FAR.parse().unwrap(), rate: RATE, follows: false };
    InjectSpec { interface: Line::INTERFACE.to_owned(), line: Some(LINE), classes: vec![class] }
}

/// A TCP flow of so many bytes through an injector, and what it and the line say then.
fn transfer(line: &Line, size: usize) -> (InjectStats, LineReport) {
    let listener = within(&line.far, || TcpListener::bind((Line::FAR, 5001)).unwrap());
    let receiver = std::thread::spawn(move || {
        let mut content = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut content).unwrap();
        content
    });
    let content: Vec<u8> = (0..size).map(|n| (n / 7) as u8).collect();
    let injector = within(&line.near, || {
        let injector = Injector::start(&spec()).unwrap();
        let mut stream = TcpStream::connect((Line::FAR, 5001)).unwrap();
        stream.write_all(&content).unwrap();
        injector
    });
    assert!(receiver.join().unwrap() == content, "what arrives is what was sent");
    let stats = injector.stats();
    injector.stop().unwrap();
    (stats, line.report())
}

#[test]
fn packets_of_a_program_are_spaced_by_gaps_that_the_switch_drops() {
    let Some(line) = lay() else { return };
    let (stats, report) = transfer(&line, 4 << 20);
    assert!(stats.gaps > 1000 && report.pauses.abs_diff(stats.gaps) <= stats.gaps / 10, "{stats:?} {} seen", report.pauses);
    assert_eq!(stats.dropped, 0, "{stats:?}");
    // Three bytes of four are gaps, while packets wait.
    assert!(stats.gap_bytes > Bytes::mib(6).0, "{stats:?}");
    // A full frame each 246 us, by the line's own clock; what this process did not get done in time, it has counted.
    let place = RATE.time_for(Bytes(1538)).as_nanos() as u64;
    let near = |&(low, high, _): &(u64, u64, u64)| high > place - place / 20 && low < place + place / 20;
    let exact: u64 = report.gaps.histogram().classes().filter(near).map(|(_, _, count)| count).sum();
    // Two gaps are others around a silence, and around a pause of TCP's own at its start.
    let excused = 2 * stats.silences + report.gaps.count() / 10;
    assert!(exact + excused >= report.gaps.count(), "{exact} of {} gaps, {stats:?}", report.gaps.count());
    assert!(exact * 2 > report.gaps.count(), "{exact} of {} gaps, {stats:?}", report.gaps.count());
}

/// A window of fifty packets each 40 ms is fifty places: nobody has named a rate, and the line could carry ten times as much.
#[test]
fn a_class_that_follows_spaces_the_window_over_its_round_trip() {
    let round_trip = Duration::from_millis(40);
    let line = match Line::lay_far(LINE, round_trip) {
        Ok(line) => line,
        Err(error) => return skip::skip(error),
    };
    // The receiver's room bounds what is in flight, and a window that is not used does not grow.
    let room = 50 * 1448;
    let listener = within(&line.far, || TcpListener::bind((Line::FAR, 5001)).unwrap());
    rustix::net::sockopt::set_socket_recv_buffer_size(&listener, room).unwrap();
    let receiver = std::thread::spawn(move || {
        let (mut stream, mut room) = (listener.accept().unwrap().0, vec![0; 65_536]);
        let mut received = 0;
        while let Ok(length @ 1..) = stream.read(&mut room) {
            received += length;
        }
        received
    });
    let class = InjectClass { rate: BitRate::MAX, follows: true, ..spec().classes[0] };
    let (injector, asked) = within(&line.near, || {
        let injector = Injector::start(&InjectSpec { classes: vec![class], ..spec() }).unwrap();
        assert_eq!(injector.targets(), [None]);
        let mut stream = TcpStream::connect((Line::FAR, 5001)).unwrap();
        let (mut asked, piece) = (Vec::new(), vec![7; 32 << 10]);
        for _ in 0..128 {
            stream.write_all(&piece).unwrap();
            asked.extend(injector.targets().into_iter().flatten());
        }
        (injector, asked)
    });
    assert_eq!(receiver.join().unwrap(), 128 * (32 << 10));
    let stats = injector.stats();
    let last = asked.last().copied().unwrap();
    // What was asked for is a whole number of packets each round trip, as long as this machine takes for one.
    let packet = on_line(Bytes(1500)).0 * 8;
    let packets = last.as_bps() as f64 * round_trip.as_secs_f64() / packet as f64;
    assert!(packets > 8.0 && last < BitRate::mbps(100), "{packets} packets a round trip, {last}");
    // Most packets come at the distance that some target says: with bursts they would come one behind the other.
    let report = line.report();
    let behind = LINE.time_for(on_line(Bytes(1500))).as_nanos() as u64;
    let close: u64 = report.gaps.histogram().classes().filter(|&(_, high, _)| high < 2 * behind).map(|(_, _, count)| count).sum();
    assert!(close * 3 < report.gaps.count(), "{close} of {} packets came behind the one before, {stats:?}", report.gaps.count());
    injector.stop().unwrap();
}

#[test]
fn all_is_as_before_when_it_has_gone() {
    let Some(line) = lay() else { return };
    let routes = || within(&line.near, || ip(&["route"]).unwrap());
    let links = || within(&line.near, || ip(&["-br", "link"]).unwrap());
    let before = (routes(), links());
    let injector = within(&line.near, || Injector::start(&spec()).unwrap());
    assert!(routes().contains("haulpace0"), "{}", routes());
    assert!(injector.runs());
    drop(injector);
    assert_eq!((routes(), links()), before);
    // Two at once have a device each.
    let start = |to: &str| {
        let class = InjectClass { to: to.parse().unwrap(), rate: RATE, follows: false };
        within(&line.near, || Injector::start(&InjectSpec { classes: vec![class], ..spec() }).unwrap())
    };
    let both = [start("10.88.0.2"), start("10.88.0.3")];
    assert!(routes().contains("haulpace1"));
    drop(both);
    assert_eq!((routes(), links()), before);
}

#[test]
fn who_does_not_answer_gets_nothing_and_is_counted() {
    let Some(line) = lay() else { return };
    within(&line.near, || {
        let class = InjectClass { to: "10.88.0.9".parse().unwrap(), rate: RATE, follows: false };
        let injector = Injector::start(&InjectSpec { classes: vec![class], ..spec() }).unwrap();
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        for _ in 0..50 {
            socket.send_to(&[0; 100], "10.88.0.9:9").unwrap();
            if injector.stats().unresolved > 0 {
                return;
            }
            pause();
        }
        panic!("{:?}", injector.stats());
    });
}

#[test]
fn what_it_cannot_do_is_said() {
    let Some(line) = lay() else { return };
    within(&line.near, || {
        let start = |spec: InjectSpec| Injector::start(&spec).expect_err("refused");
        assert!(matches!(start(InjectSpec { classes: Vec::new(), ..spec() }), InjectError::NoClass));
        let fast = InjectClass { rate: BitRate::gbps(2), ..spec().classes[0] };
        let error = start(InjectSpec { classes: vec![fast], ..spec() });
        assert!(error.to_string().contains("Gbit/s to 10.88.0.2"), "{error}");
        // A TAP says 10 Gbit/s, and nothing keeps it to that.
        let error = start(InjectSpec { line: None, ..spec() });
        assert!(matches!(error, InjectError::Interface(InterfaceError::NoRate(_))), "{error}");
        let nowhere = InjectClass { to: "192.0.2.0/24".parse().unwrap(), rate: RATE, follows: false };
        let error = start(InjectSpec { classes: vec![nowhere], ..spec() });
        assert!(error.to_string().contains("no route leads to 192.0.2.0"), "{error}");
        std::fs::write("/proc/sys/net/ipv4/conf/line0/rp_filter", "1").unwrap();
        let error = start(spec());
        assert!(matches!(error, InjectError::Interface(InterfaceError::Strict(_))), "{error}");
    });
}

/// An injector whose interface has lost its carrier while packets wait.
fn without_carrier(line: &Line) -> Injector {
    let carrier = |word: &str| ip(&["link", "set", "dev", Line::INTERFACE, "carrier", word]).unwrap();
    within(&line.near, || {
        let injector = Injector::start(&spec()).unwrap();
        let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
        let send = || drop(socket.send_to(&[0; 1400], (Line::FAR, 9)));
        // Until the far host's address on the line is known.
        while injector.stats().packets == 0 {
            send();
            pause();
        }
        // A fifth of a second of the rate is kept: some of that waits when the carrier goes.
        (0..2000).for_each(|_| send());
        carrier("off");
        injector
    })
}

#[test]
fn a_carrier_that_is_lost_ends_it_and_its_routes() {
    let Some(line) = lay() else { return };
    let injector = without_carrier(&line);
    for _ in 0..1000 {
        if !injector.runs() {
            break;
        }
        pause();
    }
    if injector.runs() {
        let stats = injector.stats();
        // Its end would be waited for.
        std::mem::forget(injector);
        panic!("{stats:?}");
    }
    let routes = within(&line.near, || ip(&["route"]).unwrap());
    assert!(!routes.contains("haulpace"), "{routes}");
    let error = injector.stop().expect_err("it has ended by itself");
    assert!(error.to_string().contains("has taken nothing for 5 s"), "{error}");
}

#[test]
fn it_ends_at_once_where_there_is_no_carrier() {
    let Some(line) = lay() else { return };
    let injector = without_carrier(&line);
    // It stands still: nothing is counted any more.
    let mut before = 0;
    while injector.stats().gaps != before {
        before = injector.stats().gaps;
        (0..5).for_each(|_| pause());
    }
    let (told, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || told.send(injector.stop().is_ok()));
    // It would give up by itself after 5 s, with an error.
    assert_eq!(ended.recv_timeout(Duration::from_secs(20)), Ok(true));
}

#[expect(clippy::disallowed_methods, reason = "a network needs its time")]
fn pause() {
    std::thread::sleep(Duration::from_millis(20));
}
