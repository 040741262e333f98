//! Two hosts with a router between them whose ways to the second host are narrow, and flows across it, of TCP and of Multipath TCP.
//!
//! The second host has two addresses, of which it tells a Multipath TCP connection the second: so such a connection has two subflows, over the same narrow
//! link or over one each. The delay is that of the queues.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use haul_tcp::Namespace;
use rustix::net::{
    AddressFamily, Protocol, SocketFlags, SocketType, bind, connect, connect_unspec, ipproto, listen, socket_with, sockopt,
};

use crate::wire::{inside, ip, told};

/// Of each narrow link.
pub const RATE_MBPS: u32 = 20;
/// Its queue: sixty packets, 36 ms.
const QUEUE_BYTES: u32 = 60 * 1514;

/// Handshakes and ends of connections, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(15);
/// Nothing comes or goes for so long.
const STILL: Duration = Duration::from_millis(500);

/// Whether the second address of the far host is behind the same narrow link as the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Shared,
    Apart,
}

/// The namespaces, and what is in them.
pub struct Road {
    pub a: String,
    r: String,
    b: String,
}

/// The far host's first address, on the first narrow link.
const FIRST: Ipv4Addr = Ipv4Addr::new(10, 91, 1, 2);

impl Road {
    pub fn lay(name: &str, shape: Shape) -> Self {
        let [a, r, b] = ["a", "r", "b"].map(|end| format!("haul-mp-{name}-{end}{}", std::process::id()));
        let road = Self { a, r, b };
        for name in [&road.a, &road.r, &road.b] {
            ip(&["netns", "add", name]);
            ip(&["-n", name, "link", "set", "lo", "up"]);
        }
        let Self { a, r, b } = &road;
        link("x", [(a, "10.90.0.1/24"), (r, "10.90.0.254/24")]);
        link("y", [(r, "10.91.1.254/24"), (b, "10.91.1.2/24")]);
        link("z", [(r, "10.92.1.254/24"), (b, "10.92.1.2/24")]);
        ip(&["-n", a, "route", "add", "default", "via", "10.90.0.254"]);
        ip(&["-n", b, "route", "add", "default", "via", "10.91.1.254"]);
        inside(r, || {
            for (key, value) in
                [("ip_forward", "1"), ("conf/all/rp_filter", "0"), ("conf/y/rp_filter", "0"), ("conf/x/rp_filter", "0")]
            {
                std::fs::write(format!("/proc/sys/net/ipv4/{key}"), value).expect("written");
            }
        });
        // What the scheduler of Multipath TCP has given to a subflow waits there also when the subflow's window has become small, and all that comes after it at
        // the far end: so it is given no more than the path takes in some round trips, and there is room for the rest, lest links rest meanwhile.
        for (end, key, buffers) in [(a, "tcp_wmem", "4096 524288 524288"), (b, "tcp_rmem", "4096 8388608 33554432")] {
            inside(end, || std::fs::write(format!("/proc/sys/net/ipv4/{key}"), buffers).expect("written"));
        }
        let (rate, queue) = (format!("{RATE_MBPS}mbit"), QUEUE_BYTES.to_string());
        for narrow in ["y", "z"] {
            tc(&["-n", r, "qdisc", "add", "dev", narrow, "root", "tbf", "rate", &rate, "burst", "6000", "limit", &queue]);
        }
        let (second, dev) = if shape == Shape::Shared { ("10.91.1.3", "y") } else { ("10.92.1.2", "z") };
        if shape == Shape::Shared {
            ip(&["-n", b, "address", "add", "10.91.1.3/24", "dev", "y"]);
        }
        ip(&["-n", a, "mptcp", "limits", "set", "subflow", "1", "add_addr_accepted", "1"]);
        ip(&["-n", b, "mptcp", "limits", "set", "subflow", "1"]);
        ip(&["-n", b, "mptcp", "endpoint", "add", second, "dev", dev, "signal"]);
        road
    }

    /// Where flows begin.
    pub fn namespace(&self) -> Namespace {
        Namespace::named(&self.a).expect("the namespace of the test")
    }
}

impl Drop for Road {
    fn drop(&mut self) {
        for name in [&self.a, &self.r, &self.b] {
            told(&["netns", "delete", name]);
        }
    }
}

/// Packets of one segment each: one of many would be dropped by a queue as a whole.
fn link(name: &str, ends: [(&str, &str); 2]) {
    let [(near, _), (far, _)] = ends;
    ip(&["link", "add", name, "netns", near, "type", "veth", "peer", "name", name, "netns", far]);
    for (end, address) in ends {
        ip(&["-n", end, "link", "set", name, "gso_max_segs", "1", "up"]);
        ip(&["-n", end, "address", "add", address, "dev", name]);
    }
}

fn tc(arguments: &[&str]) {
    let output = Command::new("tc").args(arguments).output().expect("iproute2: `make setup` installs it");
    assert!(output.status.success(), "tc {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What sends from the near host to the far one from its start to its end.
pub struct Flow {
    /// At the far host.
    pub port: u16,
    over: Arc<AtomicBool>,
    near: TcpStream,
    reader: JoinHandle<()>,
    writer: Option<JoinHandle<()>>,
    /// Further subflows come to its port.
    _listener: TcpListener,
}

impl Flow {
    /// TCP, by Reno.
    pub fn single(road: &Road) -> Self {
        Self::begin(road, None, Some("reno"))
    }

    /// Multipath TCP, by what is the default of the near host.
    pub fn multipath(road: &Road) -> Self {
        Self::begin(road, Some(ipproto::MPTCP), None)
    }

    /// TCP, by what is the default of the near host.
    pub fn by_default(road: &Road) -> Self {
        Self::begin(road, None, None)
    }

    fn begin(road: &Road, protocol: Option<Protocol>, law: Option<&str>) -> Self {
        let listener = inside(&road.b, || {
            let socket = socket(protocol);
            bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0)).expect("a port");
            listen(&socket, 1).expect("it listens");
            TcpListener::from(socket)
        });
        let port = listener.local_addr().expect("an address").port();
        let near = inside(&road.a, || {
            let socket = socket(protocol);
            if let Some(law) = law {
                sockopt::set_tcp_congestion(&socket, law).expect("the kernel has it");
            }
            connect(&socket, &SocketAddrV4::new(FIRST, port)).expect("connected");
            TcpStream::from(socket)
        });
        let (far, _) = listener.accept().expect("a connection");
        let over = Arc::new(AtomicBool::new(false));
        let reader = receive(far, Arc::clone(&over));
        Self { port, over, near, reader, writer: None, _listener: listener }
    }

    /// It sends as fast as it can.
    pub fn start(&mut self) {
        let near = self.near.try_clone().expect("another descriptor");
        self.writer = Some(send(near, Arc::clone(&self.over)));
    }

    /// At once, whatever is still to be sent.
    pub fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(writer) = self.writer {
            writer.join().expect("it went to its end");
        }
        // Closed, it would send what it has still got first.
        connect_unspec(&self.near).expect("it is reset");
        self.reader.join().expect("it went to its end");
    }
}

fn socket(protocol: Option<Protocol>) -> OwnedFd {
    socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, protocol).expect("a socket")
}

fn send(mut to: TcpStream, over: Arc<AtomicBool>) -> JoinHandle<()> {
    to.set_write_timeout(Some(STILL)).expect("a time");
    thread::spawn(move || {
        let piece = vec![7; 64 << 10];
        while !over.load(Ordering::Relaxed) {
            if let Err(error) = to.write(&piece) {
                assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}");
            }
        }
    })
}

fn receive(mut from: TcpStream, over: Arc<AtomicBool>) -> JoinHandle<()> {
    // A reset may be among what the queue drops.
    from.set_read_timeout(Some(STILL)).expect("a time");
    thread::spawn(move || {
        let mut piece = vec![0; 64 << 10];
        let mut goes_on = true;
        while goes_on {
            goes_on = match from.read(&mut piece) {
                Ok(bytes) => bytes > 0,
                Err(error) => error.kind() == ErrorKind::WouldBlock && !over.load(Ordering::Relaxed),
            };
        }
        assert!(over.load(Ordering::Relaxed), "nobody has ended it");
    })
}

/// Whether this kernel has Multipath TCP; that it has not is said.
pub fn multipath() -> bool {
    let there = Path::new("/proc/sys/net/mptcp/enabled").exists();
    if !there {
        skip::skip("this kernel has no Multipath TCP");
    }
    there
}

/// Waits for something.
#[expect(clippy::disallowed_methods, reason = "the kernel says nothing of it when it has ended a connection")]
pub fn until(what: &str, is: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is() {
        assert!(Instant::now() < end, "not within {PATIENCE:?}: {what}");
        pause(Duration::from_millis(20));
    }
}

#[expect(clippy::disallowed_methods, reason = "what is measured takes its time")]
pub fn pause(time: Duration) {
    thread::sleep(time);
}
