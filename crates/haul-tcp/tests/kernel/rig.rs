//! Two network namespaces with a link between them, and a machine that is as it was when the test is over.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use haul_tcp::{Choice, Law, Namespace, Place, Scope, Tcp, obstacle};

use crate::objects;
use crate::wire::{Addresses, Wire, inside};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Beyond this, what was sent has filled every buffer many times.
const TRANSFER_BYTES: usize = 4 << 20;

/// A grace period of the kernel, and the last acknowledgements of connections that were closed.
const FREED_WITHIN: Duration = Duration::from_secs(20);

pub const ADDRESSES: &Addresses = &[["10.9.0.1/24", "10.9.0.2/24"]];

/// The machine for one test.
pub struct Rig {
    pub tcp: Tcp,
    pub wire: Wire,
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
        let wire = Wire::lay("tcp", ADDRESSES);
        Some(Self { tcp: Tcp::new(place.clone()), wire, place, _turn: turn })
    }

    pub fn namespace(&self) -> Namespace {
        Namespace::named(&self.wire.a).expect("the namespace of the test")
    }

    pub fn scope(&self) -> Scope {
        Scope { namespace: Some(self.namespace()), ..Scope::default() }
    }

    /// Sends from a to b, and gives the law of the sender's socket.
    pub fn transfer(&self) -> Choice {
        Self::send(&self.wire.a, &self.wire.b, [10, 9, 0, 2])
    }

    /// The same from b to a.
    pub fn transfer_back(&self) -> Choice {
        Self::send(&self.wire.b, &self.wire.a, [10, 9, 0, 1])
    }

    /// A connection from a to b, and its other end.
    pub fn connection(&self) -> (TcpStream, TcpStream) {
        let listener = inside(&self.wire.b, || TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).expect("a port"));
        let address = SocketAddr::from(([10, 9, 0, 2], listener.local_addr().expect("an address").port()));
        let near = inside(&self.wire.a, || TcpStream::connect(address).expect("connected"));
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
        self.wire.cut();
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

#[expect(clippy::disallowed_methods, reason = "the kernel says nothing when it has freed something")]
fn pause(time: Duration) {
    thread::sleep(time);
}
