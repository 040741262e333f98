//! Two network namespaces with a link between them, and a machine that is as it was when the test is over.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use haul_tcp::{Choice, Law, Namespace, Place, Scope, Tcp, obstacle};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::objects;

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Beyond this, what was sent has filled every buffer many times.
const TRANSFER_BYTES: usize = 4 << 20;

/// A grace period of the kernel, and the last acknowledgements of connections that were closed.
const FREED_WITHIN: Duration = Duration::from_secs(20);

/// The machine for one test.
pub struct Rig {
    pub tcp: Tcp,
    pub a: String,
    pub b: String,
    pub place: Place,
    _turn: File,
}

impl Rig {
    /// None where this cannot be tested, which is said, and an error in CI.
    pub fn open() -> Option<Self> {
        let turn = skip::kernel_tcp_turn(obstacle())?;
        let memory = std::env::temp_dir().join(format!("haul-tcp-peers-{}.json", std::process::id()));
        let place = Place { memory, ..Place::default() };
        assert!(!place.state.join("journal.json").exists(), "haul tcp is on: its tests would put an end to that");
        let id = std::process::id();
        let (a, b) = (format!("haul-tcp-a{id}"), format!("haul-tcp-b{id}"));
        for name in [&a, &b] {
            ip(&["netns", "add", name]);
        }
        ip(&["link", "add", "x", "netns", &a, "type", "veth", "peer", "name", "x", "netns", &b]);
        for (name, address) in [(&a, "10.9.0.1/24"), (&b, "10.9.0.2/24")] {
            ip(&["-n", name, "address", "add", address, "dev", "x"]);
            ip(&["-n", name, "link", "set", "x", "up"]);
        }
        Some(Self { tcp: Tcp::new(place.clone()), a, b, place, _turn: turn })
    }

    pub fn namespace(&self) -> Namespace {
        Namespace::named(&self.a).expect("the namespace of the test")
    }

    pub fn scope(&self) -> Scope {
        Scope { namespace: Some(self.namespace()), ..Scope::default() }
    }

    /// Sends from a to b, and gives the law of the sender's socket.
    pub fn transfer(&self) -> Choice {
        Self::send(&self.a, &self.b, [10, 9, 0, 2])
    }

    /// The same from b to a.
    pub fn transfer_back(&self) -> Choice {
        Self::send(&self.b, &self.a, [10, 9, 0, 1])
    }

    /// A connection from a to b, and its other end.
    pub fn connection(&self) -> (TcpStream, TcpStream) {
        let listener = inside(&self.b, || TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port"));
        let address = SocketAddr::from(([10, 9, 0, 2], listener.local_addr().expect("an address").port()));
        let near = inside(&self.a, || TcpStream::connect(address).expect("connected"));
        (near, listener.accept().expect("a connection").0)
    }

    fn send(from: &str, to: &str, address: [u8; 4]) -> Choice {
        let listener = inside(to, || TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port"));
        let address = SocketAddr::from((address, listener.local_addr().expect("an address").port()));
        let reader = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut read = Vec::new();
            stream.read_to_end(&mut read).expect("bytes");
            read.len()
        });
        let law = inside(from, || {
            let mut stream = TcpStream::connect(address).expect("connected");
            stream.write_all(&vec![7; TRANSFER_BYTES]).expect("sent");
            law_of(&stream)
        });
        assert_eq!(reader.join().expect("read"), TRANSFER_BYTES);
        law
    }

    /// Nothing of the laws is in the kernel, nor in /run.
    pub fn expect_nothing_left(&self) {
        let known = fs::read_to_string(AVAILABLE).expect("readable");
        assert!(!known.contains("haul_"), "{known}");
        assert!(!self.place.bpf.exists(), "{} is there", self.place.bpf.display());
        assert!(!self.place.state.join("journal.json").exists(), "there is a journal");
        let mounts = fs::read_to_string("/proc/self/mounts").expect("readable");
        assert!(!mounts.contains("/run/haul"), "{mounts}");
    }

    /// Nor has the kernel any map or program of theirs; it frees them some time after the last connection that had one.
    #[expect(clippy::disallowed_methods, reason = "the kernel frees them when it has time")]
    pub fn expect_nothing_in_the_kernel() {
        let until = Instant::now() + FREED_WITHIN;
        loop {
            let left = objects::of_the_laws();
            if left.is_empty() {
                return;
            }
            assert!(Instant::now() < until, "{left:?}");
            pause(Duration::from_millis(50));
        }
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        let off = self.tcp.off(None);
        for name in [&self.a, &self.b] {
            // A test may have deleted one.
            told(&["netns", "delete", name]);
        }
        let _ = fs::remove_file(&self.place.memory);
        if !thread::panicking() {
            off.expect("off");
            self.expect_nothing_left();
            Self::expect_nothing_in_the_kernel();
        }
    }
}

/// The congestion control of a socket.
pub fn law_of(stream: &TcpStream) -> Choice {
    Choice::of_kernel(&rustix::net::sockopt::tcp_congestion(stream).expect("a name"))
}

pub fn own(law: Law) -> Choice {
    Choice::Own(law)
}

/// Does something in a namespace, on a thread of its own.
pub fn inside<T: Send>(name: &str, act: impl FnOnce() -> T + Send) -> T {
    let file = File::open(format!("/run/netns/{name}")).expect("a namespace");
    thread::scope(|scope| {
        let enter = || {
            move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).expect("entered");
            act()
        };
        scope.spawn(enter).join().expect("done")
    })
}

/// What `ip` says.
pub fn told(arguments: &[&str]) -> String {
    let output = Command::new("ip").args(arguments).output().expect("iproute2: `make setup` installs it");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output().expect("iproute2: `make setup` installs it");
    assert!(output.status.success(), "ip {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[expect(clippy::disallowed_methods, reason = "the kernel says nothing when it has freed something")]
fn pause(time: Duration) {
    thread::sleep(time);
}
