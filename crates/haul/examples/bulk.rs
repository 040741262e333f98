//! Bulk transfer over one connection on loopback, memory to memory, encrypted: what a user of the library gets.
//!
//! A fixed source is sent as blocks (or, with `--ordered`, on an ordered stream) and dropped at the other end. Packets are as on an Ethernet
//! of 1500 bytes.
//!
//!     bulk [--ordered] [--seconds N] [--bytes N] [--packet BYTES] [--block BYTES] [--rate RATE] [--stats]

use std::error::Error;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use haul::{ClientConfig, Connection, ControllerChoice, Endpoint, Identity, PeerTrust, ServerConfig, TransportConfig};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let plan = Plan::from_args()?;
    let identity = Identity::generate();
    let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
    let config = ServerConfig { transport: plan.transport(), ..ServerConfig::new(identity, PeerTrust::Anyone) };
    let server = Endpoint::listen("127.0.0.1:0".parse()?, config)?;
    let to = server.local_addr();
    let receiving = thread::spawn(move || receive(plan, &server));
    let sent = send(plan, to, trust)?;
    let received = receiving.join().map_err(|_| "the receiver panicked")??;
    println!(
        "haul{}: {:.2} Gbit/s payload, {} packets of {} B, {} lost, cpu per packet: {:.0} ns both sides",
        if plan.ordered { ", ordered" } else { "" },
        received as f64 * 8.0 / sent.wall.as_nanos() as f64,
        sent.packets,
        sent.packet_bytes,
        sent.lost_packets,
        sent.cpu.as_nanos() as f64 / sent.packets.max(1) as f64,
    );
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    ordered: bool,
    stats: bool,
    time: Duration,
    total_bytes: u64,
    packet_bytes: u16,
    block_bytes: usize,
    controller: Option<ControllerChoice>,
}

impl Plan {
    fn from_args() -> Result<Self, Failure> {
        let mut plan = Self {
            ordered: false,
            stats: false,
            time: Duration::from_secs(3),
            total_bytes: u64::MAX,
            packet_bytes: 1472,
            block_bytes: 1 << 20,
            controller: None,
        };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--ordered" => plan.ordered = true,
                "--stats" => plan.stats = true,
                "--seconds" => plan.time = Duration::from_secs_f64(value()?.parse()?),
                "--bytes" => plan.total_bytes = value()?.parse()?,
                "--packet" => plan.packet_bytes = value()?.parse()?,
                "--block" => plan.block_bytes = value()?.parse::<usize>()?.clamp(1, haul::MAX_BLOCK),
                "--rate" => plan.controller = Some(ControllerChoice::Fixed(value()?.parse()?)),
                _ => return Err(format!("unknown argument {arg}").into()),
            }
        }
        Ok(plan)
    }

    fn transport(&self) -> TransportConfig {
        let defaults = TransportConfig::default();
        let controller = self.controller.unwrap_or(defaults.controller);
        TransportConfig { max_packet: self.packet_bytes, controller, ..defaults }
    }
}

struct Outcome {
    packets: u64,
    lost_packets: u64,
    packet_bytes: u64,
    wall: Duration,
    cpu: Duration,
}

fn send(plan: Plan, to: SocketAddr, trust: PeerTrust) -> Result<Outcome, Failure> {
    let endpoint = Endpoint::bind("127.0.0.1:0".parse()?)?;
    let config = ClientConfig { transport: plan.transport(), ..ClientConfig::new(trust) };
    let connection = endpoint.connect(to, config)?;
    let (start, cpu_start) = (now(), process_cpu_time());
    let go_on = |bytes: u64| now() - start < plan.time && bytes < plan.total_bytes;
    let mut bytes = 0;
    if plan.ordered {
        let source = vec![0xA5; plan.block_bytes];
        let mut stream = connection.open_uni()?;
        while go_on(bytes) {
            stream.write_all(&source)?;
            bytes += source.len() as u64;
        }
        stream.finish()?;
        stream.wait_acknowledged()?;
    } else {
        let blocks = connection.open_blocks()?;
        while go_on(bytes) {
            let mut block = blocks.buffer();
            if block.capacity() < plan.block_bytes {
                block = vec![0xA5; plan.block_bytes];
            }
            // SAFETY: buffers come back with their bytes, and all of them were filled when they were made: the source is fixed, as in a
            // program that sends what it has in memory.
            unsafe { block.set_len(plan.block_bytes) };
            bytes += block.len() as u64;
            blocks.send(block)?;
        }
        blocks.finish()?;
    }
    let (wall, cpu) = (now() - start, process_cpu_time().saturating_sub(cpu_start));
    let stats = connection.stats();
    if plan.stats {
        eprintln!("{stats:#?}");
    }
    connection.close(0, "done");
    Ok(Outcome { packets: stats.sent_pkts, lost_packets: stats.lost_pkts, packet_bytes: stats.packet_size.0, wall, cpu })
}

fn receive(plan: Plan, server: &Endpoint) -> Result<u64, Failure> {
    let connection: Connection = server.accept()?;
    let mut bytes = 0;
    if plan.ordered {
        let mut stream = connection.accept_uni()?;
        let mut buffer = vec![0; 256 << 10];
        loop {
            match stream.read(&mut buffer)? {
                0 => break,
                read => bytes += read as u64,
            }
        }
    } else {
        let blocks = connection.accept_blocks()?;
        while let Some(block) = blocks.recv()? {
            bytes += block.len() as u64;
        }
    }
    connection.closed();
    Ok(bytes)
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// CPU time of all threads, in the kernel too.
fn process_cpu_time() -> Duration {
    #[cfg(unix)]
    {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes one timespec.
        unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    }
    #[cfg(not(unix))]
    Duration::ZERO
}
