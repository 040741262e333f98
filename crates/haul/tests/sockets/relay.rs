//! A network that misbehaves: a UDP relay with seeded faults, and with a NAT that changes its mind.

use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use haul::{ClientConfig, Endpoint, ServerConfig};

use crate::support::{Pair, Random, accept, configs};

/// What happens to datagrams, in parts of a thousand, the same in both directions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    pub seed: u64,
    pub lost: u64,
    pub duplicated: u64,
    pub delayed: u64,
    pub corrupted: u64,
}

/// Passes datagrams between one client, which talks to [`Relay::addr`], and a server.
pub struct Relay {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

struct Shared {
    inside: UdpSocket,
    outside: Mutex<Arc<UdpSocket>>,
    client: Mutex<Option<SocketAddr>>,
    server: Mutex<Option<SocketAddr>>,
    stop: AtomicBool,
    /// What the server says is lost.
    mute: AtomicBool,
    harmed: AtomicU64,
}

impl Relay {
    pub fn start(faults: Faults) -> Self {
        let shared = Arc::new(Shared {
            inside: socket(),
            outside: Mutex::new(Arc::new(socket())),
            client: Mutex::default(),
            server: Mutex::default(),
            stop: AtomicBool::new(false),
            mute: AtomicBool::new(false),
            harmed: AtomicU64::new(0),
        });
        let run = |outward| {
            let shared = shared.clone();
            thread::spawn(move || shared.forward(outward, faults))
        };
        let threads = vec![run(true), run(false)];
        Self { shared, threads }
    }

    /// Where the client talks to.
    pub fn addr(&self) -> SocketAddr {
        self.shared.inside.local_addr().expect("bound")
    }

    /// Both ends of a connection through it, after `configure` has had its say.
    pub fn pair(&self, configure: impl FnOnce(&mut ClientConfig, &mut ServerConfig)) -> Pair {
        let (mut client_config, mut server_config) = configs();
        configure(&mut client_config, &mut server_config);
        let server = Endpoint::listen("127.0.0.1:0".parse().expect("an address"), server_config).expect("binds");
        self.forward_to(server.local_addr());
        let client = Endpoint::bind("127.0.0.1:0".parse().expect("an address")).expect("binds");
        let near = client.connect(self.addr(), client_config).expect("connects");
        let far = accept(&server);
        Pair { server, client, near, far }
    }

    pub fn forward_to(&self, server: SocketAddr) {
        *self.shared.server.lock().expect("no panic") = Some(server);
    }

    /// Whether all that the server says is lost from now on.
    pub fn mute(&self, mute: bool) {
        self.shared.mute.store(mute, Ordering::Relaxed);
    }

    /// From now on the server sees the client at another address.
    pub fn rebind(&self) {
        *self.shared.outside.lock().expect("no panic") = Arc::new(socket());
    }

    /// Where the server sees the client.
    pub fn outside_addr(&self) -> SocketAddr {
        self.shared.outside.lock().expect("no panic").local_addr().expect("bound")
    }

    /// Datagrams that met a fault.
    pub fn harmed(&self) -> u64 {
        self.shared.harmed.load(Ordering::Relaxed)
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().expect("no panic");
        }
    }
}

impl Shared {
    fn forward(&self, outward: bool, faults: Faults) {
        let mut random = Random(faults.seed.wrapping_mul(2) | u64::from(outward) | 1 << 40);
        let mut buffer = vec![0; 65_536];
        let mut delayed: Vec<(usize, Vec<u8>)> = Vec::new();
        while !self.stop.load(Ordering::Relaxed) {
            let outside = self.outside.lock().expect("no panic").clone();
            let (from, to) = if outward { (&self.inside, &*outside) } else { (&*outside, &self.inside) };
            let received = from.recv_from(&mut buffer);
            for (wait, _) in &mut delayed {
                *wait = wait.saturating_sub(1);
            }
            let mut ready: Vec<Vec<u8>> = delayed.extract_if(.., |(wait, _)| *wait == 0).map(|(_, datagram)| datagram).collect();
            match received {
                Ok((len, peer)) => {
                    if outward {
                        *self.client.lock().expect("no panic") = Some(peer);
                    }
                    self.treat(buffer[..len].to_vec(), faults, &mut random, &mut ready, &mut delayed);
                }
                // Quiet: what was held back goes.
                Err(_) => ready.extend(delayed.drain(..).map(|(_, datagram)| datagram)),
            }
            if !outward && self.mute.load(Ordering::Relaxed) {
                continue;
            }
            let target = if outward { &self.server } else { &self.client };
            if let Some(target) = *target.lock().expect("no panic") {
                for datagram in ready {
                    let _ = to.send_to(&datagram, target);
                }
            }
        }
    }

    fn treat(
        &self,
        mut datagram: Vec<u8>,
        faults: Faults,
        random: &mut Random,
        ready: &mut Vec<Vec<u8>>,
        delayed: &mut Vec<(usize, Vec<u8>)>,
    ) {
        let harm = || self.harmed.fetch_add(1, Ordering::Relaxed);
        if random.chance(faults.lost) {
            harm();
            return;
        }
        if random.chance(faults.corrupted) {
            harm();
            let at = random.below(datagram.len());
            datagram[at] ^= 1 << random.below(8);
        }
        if random.chance(faults.duplicated) {
            harm();
            ready.push(datagram.clone());
        }
        if random.chance(faults.delayed) {
            harm();
            delayed.push((1 + random.below(30), datagram));
        } else {
            ready.push(datagram);
        }
    }
}

pub fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("binds");
    socket.set_read_timeout(Some(Duration::from_millis(2))).expect("a timeout");
    socket2::SockRef::from(&socket).set_recv_buffer_size(8 << 20).expect("a buffer");
    socket
}
