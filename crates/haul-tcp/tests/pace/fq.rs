//! fq, where the kernel has it: departure times that are kept, and TCP that is paced once.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use haul_netdev::iproute::tc;
use haul_tcp::{Discipline, Pace, PaceClass, PaceRun, TcpError};

use crate::queue::{at_x, disciplines, seconds};
use crate::wire::{Wire, inside};
use crate::{class, may};

/// The run, with a queue by departure times, where the kernel has fq.
fn by_fq(pace: &Pace, classes: &[PaceClass]) -> Result<PaceRun, TcpError> {
    let run = pace.run(classes, Some(at_x(Some(Discipline::Fq))));
    if !matches!(run, Err(TcpError::NoDepartures(_))) {
        assert!(run.is_ok(), "{run:?}");
    }
    run
}

/// That the test could not be run, where it could not: in CI too, whose kernel has no fq.
fn said(run: Result<(), TcpError>) {
    if let Err(lack) = run {
        skip::skip_in_ci_too(lack);
    }
}

/// Time is asserted one way only: what is held cannot be faster, however busy this machine is.
#[test]
fn by_fq_each_datagram_leaves_at_its_time() {
    let Some(_guard) = may() else { return };
    let wire = Wire::lay("pace-f", &[["10.9.1.1/24", "10.9.1.2/24"], ["fd09::1/64", "fd09::2/64"]]);
    let far = inside(&wire.b, || UdpSocket::bind("10.9.1.2:0").expect("a port"));
    let to = far.local_addr().expect("an address");
    far.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
    said(inside(&wire.a, || {
        let before = disciplines();
        let pace = Pace::new(&std::env::temp_dir().join(format!("haul-pace-test-fq-{}", std::process::id())));
        let classes = [class(Some("10.9.1.2"), 8_000_000), class(Some("fd09::2"), 4_000_000)];
        let run = by_fq(&pace, &classes)?;
        // As many as the socket has room for, so that it is the discipline that they wait in: 1066 bytes each on the line.
        let near = UdpSocket::bind("10.9.1.1:0").expect("a port");
        let begun = now();
        for _ in 0..100 {
            near.send_to(&[7; 1000], to).expect("sent");
        }
        for count in 0..100_u32 {
            far.recv(&mut [0; 1000]).unwrap_or_else(|error| panic!("{count}: {error}"));
            let took = begun.elapsed();
            assert!(took >= Duration::from_micros(1066) * count, "{count} after {took:?}");
        }
        // As fast as a socket takes them: no packet is lost where it waits, and two classes are two.
        let (four, six) = (seconds("10.9.1.2", 500), seconds("fd09::2", 250));
        assert!(four >= 480.0 * 1066.0 * 8.0 / 8e6, "{four} s");
        assert!(six >= 230.0 * 1086.0 * 8.0 / 4e6, "{six} s");
        let told = tc(&["-s", "qdisc", "show", "dev", "x"]).expect("tc");
        assert!(told.contains("dropped 0,"), "{told}");
        run.leave().expect("back");
        drop(run);
        assert_eq!(disciplines(), before, "the kernel's default again");
        Ok(())
    }));
}

/// One connection, 1 MB at a time: the rate that it has and the seconds that each takes, before and after a line is read.
const TRANSFERS: &str = r"
import socket, sys, time
near = socket.create_connection((sys.argv[1], int(sys.argv[2])))
for _ in range(2):
    begin = time.monotonic()
    near.sendall(bytes(1000000)); near.recv(1)
    print(near.getsockopt(socket.SOL_SOCKET, 47) & 0xffffffff, time.monotonic() - begin, flush=True)
    sys.stdin.readline()
";

/// fq would pace it too, if it were let; and nobody would, once fq is gone.
#[test]
fn by_fq_a_connection_of_tcp_is_paced_by_its_own_timer_and_goes_on_so() {
    let Some(_guard) = may() else { return };
    let wire = Wire::lay("pace-t", &[["10.9.1.1/24", "10.9.1.2/24"]]);
    let listener = inside(&wire.b, || TcpListener::bind("10.9.1.2:0").expect("a port"));
    let port = listener.local_addr().expect("an address").port().to_string();
    said(inside(&wire.a, || {
        let pace = Pace::new(&std::env::temp_dir().join(format!("haul-pace-test-fqtcp-{}", std::process::id())));
        let mut run = Some(by_fq(&pace, &[class(Some("10.9.1.2"), 40_000_000)])?);
        let (near_in, near_out) = (Stdio::piped(), Stdio::piped());
        let program = ["-c", TRANSFERS, "10.9.1.2", &port];
        let mut near = Command::new("python3").args(program).stdin(near_in).stdout(near_out).spawn().expect("python3");
        let mut far = listener.accept().expect("a connection").0;
        let mut told = BufReader::new(near.stdout.take().expect("a pipe")).lines();
        let mut go = near.stdin.take().expect("a pipe");
        for queue in ["with", "without"] {
            far.read_exact(&mut vec![0; 1_000_000]).expect("read");
            far.write_all(b"y").expect("written");
            let line = told.next().expect("a line").expect("a line");
            let (rate, seconds) = line.split_once(' ').expect("two numbers");
            let (rate, seconds): (u64, f64) = (rate.parse().expect("a rate"), seconds.parse().expect("seconds"));
            // 5 MB/s on the line, 1448 bytes of 1538. What a start lets go at once is no tenth of it.
            assert!(rate.abs_diff(5_000_000 * 1448 / 1538) <= 1, "{queue}: {rate}");
            assert!(seconds >= 0.9 * 1e6 / rate as f64, "{queue}: {seconds} s");
            // The rate is TCP's own, and so is its timer.
            drop(run.take());
            go.write_all(b"\n").expect("written");
        }
        assert!(near.wait().expect("its end").success());
        Ok(())
    }));
}

#[expect(clippy::disallowed_methods, reason = "packets leave in real time")]
fn now() -> Instant {
    Instant::now()
}
