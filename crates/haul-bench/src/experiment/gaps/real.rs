//! The senders on real sockets: programs and the kernel in one host, an emulated line, a switch that drops PAUSE frames, and another host.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::time::Duration;

use haul_lab::{Line, NamespaceError, now};
use haul_pace::{InjectClass, InjectError, InjectSpec, InjectStats, Injector};
use haul_tcp::{Discipline, Pace, PaceClass, QueueSpec};
use haul_units::BitRate;

use super::cases::{Case, Seen, cases};
use super::show;
use crate::bench::Running;
use crate::experiment::{Ground, Report, Scale};

/// Who spaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Gaps,
    Kernel,
    TokenBucket,
    Queue,
    Trains,
    Nobody,
}

const ALL: [(&str, How); 6] = [
    ("gap frames", How::Gaps),
    ("the kernel's TCP (SO_MAX_PACING_RATE)", How::Kernel),
    ("a token bucket (tc tbf)", How::TokenBucket),
    ("UDP in a queue (haul pace --queue)", How::Queue),
    ("haul's trains", How::Trains),
    ("nobody", How::Nobody),
];

pub fn measured(scale: Scale, ground: &Ground<'_>) -> Report {
    let length = Duration::from_secs(scale.pick(1, 5));
    let (mut seen, mut notes) = (Vec::new(), Vec::new());
    for case in cases(scale) {
        for (name, how) in ALL {
            if !ground.go_on() {
                break;
            }
            ground.tell(&format!("{}, {name}", case.title()));
            match run(case, name, how, length, ground) {
                Ok(one) => seen.push(one),
                Err(error) => notes.push(format!("{}, {name}: failed, {error}", case.title())),
            }
        }
    }
    notes.push(
        "the line of the emulator has a clock of its own, in bytes; what other senders than gap frames give it gets its time when the emulator's thread sees it, some 10 to 100 us after".to_owned(),
    );
    Report { notes, ..show::report("real sockets, an emulated line and switch", &seen) }
}

#[derive(Debug, thiserror::Error)]
enum RunError {
    #[error(transparent)]
    Line(#[from] haul_lab::LineError),
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    #[error(transparent)]
    Inject(#[from] InjectError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Pace(#[from] haul_tcp::TcpError),
    #[error("tc: {0}")]
    Tc(String),
}

fn run(case: Case, name: &str, how: How, length: Duration, ground: &Ground<'_>) -> Result<Seen, RunError> {
    let line = Line::lay(case.line)?;
    if how == How::Trains {
        return trains(case, name, length, &line, ground);
    }
    if how == How::Queue {
        let by = line.near.within(|| datagrams(case, length))??;
        return Ok(seen(case, name, &line, by.map_or_else(String::new, |by| by.to_string())));
    }
    let listener = line.far.within(|| TcpListener::bind((Line::FAR, PORT)))??;
    let receiver = std::thread::spawn(move || -> io::Result<u64> {
        let (mut stream, mut room, mut bytes) = (listener.accept()?.0, vec![0; 1 << 16], 0);
        loop {
            match stream.read(&mut room)? {
                0 => return Ok(bytes),
                count => bytes += count as u64,
            }
        }
    });
    let remark = line.near.within(|| send(case, how, length))??;
    receiver.join().unwrap_or_else(|_| Err(io::Error::other("the receiver failed")))?;
    Ok(seen(case, name, &line, remark.unwrap_or_default()))
}

fn seen(case: Case, name: &str, line: &Line, remark: String) -> Seen {
    Seen { case, sender: name.to_owned(), gaps: line.report().gaps.histogram().clone(), remark }
}

/// In the near host: a stream as fast as it goes.
fn send(case: Case, how: How, length: Duration) -> Result<Option<String>, RunError> {
    let injector = match how {
        How::Gaps => {
            let class = InjectClass { to: haul_units::Network::host(far()), rate: case.rate, follows: false };
            let spec = InjectSpec { interface: Line::INTERFACE.to_owned(), line: Some(case.line), classes: vec![class] };
            Some(Injector::start(&spec)?)
        }
        How::TokenBucket => {
            let rate = format!("{}bit", case.rate.as_bps());
            // tbf counts frames without what is around them.
            let arguments =
                ["qdisc", "replace", "dev", Line::INTERFACE, "root", "tbf", "rate", &rate, "burst", "16kb", "latency", "100ms"];
            let output = Command::new("tc").args(arguments).output()?;
            if !output.status.success() {
                return Err(RunError::Tc(String::from_utf8_lossy(&output.stderr).trim().to_owned()));
            }
            None
        }
        How::Kernel | How::Queue | How::Trains | How::Nobody => None,
    };
    let mut stream = TcpStream::connect((Line::FAR, PORT))?;
    if how == How::Kernel {
        // The kernel counts payload with its headers, not what Ethernet adds (1448 + 66 of 1538).
        limit(&stream, case.rate.scaled(1514.0 / 1538.0))?;
    }
    let content = vec![0x5a; 1 << 18];
    let end = now() + length;
    while now() < end {
        stream.write_all(&content)?;
    }
    drop(stream);
    let Some(injector) = injector else { return Ok(None) };
    let InjectStats { silences, dropped, .. } = injector.stats();
    injector.stop()?;
    Ok(Some(format!("the line fell silent {silences} times, {dropped} packets dropped")))
}

/// In the near host: datagrams as fast as the socket takes them, which nobody reads. What has held them.
fn datagrams(case: Case, length: Duration) -> Result<Option<Discipline>, RunError> {
    let class = PaceClass { to: Some(haul_units::Network::host(far())), bits_per_s: case.rate.as_bps(), follows: false };
    let run = Pace::default().run(&[class], Some(QueueSpec { interface: Line::INTERFACE, by: None }))?;
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let end = now() + length;
    while now() < end {
        socket.send_to(&[0x5a; FULL_DATAGRAM], (Line::FAR, PORT))?;
    }
    Ok(run.queue_by())
}

/// `haul perf` at a limited rate.
fn trains(case: Case, name: &str, length: Duration, line: &Line, ground: &Ground<'_>) -> Result<Seen, RunError> {
    let haul = ground.programs.haul();
    let port = PORT.to_string();
    let mut server = line.far.within(|| {
        let mut command = Command::new(haul);
        command.args(["perf", "--server", "--one-off", "--bind", Line::FAR, "--port", &port]);
        Running::start(command)
    })??;
    let mut client = line.near.within(|| {
        let mut command = Command::new(haul);
        let to = format!("{}:{port}", Line::FAR);
        // The limit is on payload: 1399 bytes of 1538 on the line, or near it.
        let rate = case.rate.scaled(1399.0 / 1538.0).as_bps().to_string();
        command.args(["perf", "--client", &to, "--bitrate", &rate, "--time", &length.as_secs_f64().to_string(), "--json"]);
        Running::start(command)
    })??;
    let limit = now() + length + Duration::from_secs(20);
    let ended = client.wait_until(limit)?;
    server.wait_until(now() + Duration::from_secs(5))?;
    let remark = match ended {
        Some(ended) if ended.status == 0 => String::new(),
        _ => client.last_words(),
    };
    Ok(seen(case, name, line, remark))
}

fn limit(stream: &TcpStream, rate: BitRate) -> io::Result<()> {
    let rate = rate.bytes_per_second();
    let length = size_of_val(&rate) as u32;
    // SAFETY: the value has the size told.
    let result = unsafe {
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, (&raw const rate).cast(), length)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn far() -> std::net::IpAddr {
    std::net::Ipv4Addr::new(10, 88, 0, 2).into()
}

const PORT: u16 = 5001;
/// A full frame with the headers of UDP, IPv4 and Ethernet.
const FULL_DATAGRAM: usize = 1472;
