//! Bulk transfer over one connection, memory to memory, encrypted: what a user of the library gets.
//!
//! A fixed source is sent as blocks (or, with `--ordered`, on an ordered stream) and dropped at the other end. Packets are as on an Ethernet
//! of 1500 bytes. Both ends are in this process and talk over loopback, or one is elsewhere: `--listen` is the receiver, `--to` the sender.
//!
//!     bulk [--listen ADDR | --to ADDR] [--ordered] [--seconds N] [--bytes N] [--packet BYTES] [--block BYTES] [--rate RATE | --mode NAME]
//!          [--memory BYTES] [--paths N] [--stats] [--trace MILLISECONDS]

use std::error::Error;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use haul::{
    BitRate, Bytes, ClientConfig, Connection, ControllerChoice, Endpoint, Identity, PeerTrust, ServerConfig, TransportConfig,
};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let plan = Plan::from_args()?;
    if let Some(to) = plan.to {
        let sent = send(plan, to, PeerTrust::Anyone)?;
        plan.report(sent.bytes, &sent);
        return Ok(());
    }
    let identity = Identity::generate();
    let trust = PeerTrust::Pinned(vec![identity.public_key().fingerprint()]);
    let config = ServerConfig { transport: plan.transport(), ..ServerConfig::new(identity, PeerTrust::Anyone) };
    let server = Endpoint::listen(plan.listen.map_or_else(|| "127.0.0.1:0".parse(), Ok)?, config)?;
    if plan.listen.is_some() {
        let bytes = receive(plan, &server)?;
        println!("received {bytes} B, cpu: {:.3} s, peak memory: {} KiB", process_cpu_time().as_secs_f64(), peak_memory_kib());
        return Ok(());
    }
    let to = server.local_addr();
    let receiving = thread::spawn(move || receive(plan, &server));
    let sent = send(plan, to, trust)?;
    let received = receiving.join().map_err(|_| "the receiver panicked")??;
    plan.report(received, &sent);
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
    listen: Option<SocketAddr>,
    to: Option<SocketAddr>,
    trace: Option<Duration>,
    memory: Option<Bytes>,
    paths: u8,
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
            listen: None,
            to: None,
            trace: None,
            memory: None,
            paths: 1,
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
                "--mode" => plan.controller = Some(value()?.parse()?),
                "--listen" => plan.listen = Some(value()?.parse()?),
                "--to" => plan.to = Some(value()?.parse()?),
                "--trace" => plan.trace = Some(Duration::from_millis(value()?.parse()?)),
                "--paths" => plan.paths = value()?.parse()?,
                "--memory" => plan.memory = Some(value()?.parse()?),
                _ => return Err(format!("unknown argument {arg}").into()),
            }
        }
        Ok(plan)
    }

    fn transport(&self) -> TransportConfig {
        let defaults = TransportConfig::default();
        let controller = self.controller.unwrap_or(defaults.controller);
        let memory = self.memory.unwrap_or(defaults.memory);
        TransportConfig { max_packet: self.packet_bytes, controller, memory, paths: self.paths, ..defaults }
    }

    fn report(&self, received: u64, sent: &Outcome) {
        println!(
            "haul{}: {:.2} Gbit/s payload, {} packets of {} B, {} lost, cpu per packet: {:.0} ns {}",
            if self.ordered { ", ordered" } else { "" },
            received as f64 * 8.0 / sent.wall.as_nanos() as f64,
            sent.packets,
            sent.packet_bytes,
            sent.lost_packets,
            sent.cpu.as_nanos() as f64 / sent.packets.max(1) as f64,
            if self.to.is_some() { "this side" } else { "both sides" },
        );
        if self.stats {
            eprintln!("peak memory: {} KiB", peak_memory_kib());
        }
    }
}

struct Outcome {
    bytes: u64,
    packets: u64,
    lost_packets: u64,
    packet_bytes: u64,
    wall: Duration,
    cpu: Duration,
}

fn send(plan: Plan, to: SocketAddr, trust: PeerTrust) -> Result<Outcome, Failure> {
    let any = if plan.to.is_some() { "0.0.0.0:0" } else { "127.0.0.1:0" };
    let endpoint = Endpoint::bind(any.parse()?)?;
    let config = ClientConfig { transport: plan.transport(), ..ClientConfig::new(trust) };
    let connection = endpoint.connect(to, config)?;
    let (start, cpu_start) = (now(), process_cpu_time());
    let over = Arc::new(AtomicBool::new(false));
    let tracing = plan.trace.map(|every| {
        let (connection, over) = (connection.clone(), over.clone());
        thread::spawn(move || trace(&connection, every, &over))
    });
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
    over.store(true, Ordering::Relaxed);
    if let Some(tracing) = tracing {
        tracing.join().map_err(|_| "the trace panicked")?;
    }
    if plan.stats {
        eprintln!("{stats:#?}\n{:#?}", connection.paths());
    }
    connection.close(0, "done");
    Ok(Outcome { bytes, packets: stats.sent_pkts, lost_packets: stats.lost_pkts, packet_bytes: stats.packet_size.0, wall, cpu })
}

/// Prints what the connection says of itself, until the transfer is over.
#[expect(clippy::disallowed_methods, reason = "a sample at intervals")]
fn trace(connection: &Connection, every: Duration, over: &AtomicBool) {
    let start = now();
    let mut last = connection.stats();
    eprintln!(
        "   ms phase      bandwidth   pacing  arrives  rtt ms  queue  window MB  flight  lost  waits: app window credit pacing  buffered"
    );
    while !over.load(Ordering::Relaxed) {
        thread::sleep(every);
        let stats = connection.stats();
        let mbps = |rate: BitRate| rate.as_bps() as f64 / 1e6;
        let mb = |bytes: Bytes| bytes.as_u64() as f64 / 1e6;
        let part = |now: Duration, before: Duration| 100.0 * now.saturating_sub(before).as_secs_f64() / every.as_secs_f64();
        let (waits, before) = (stats.waits, last.waits);
        eprintln!(
            "{:5} {:10} {:9.0} {:8.0} {:8.0} {:7.2} {:6.2} {:10.2} {:7.2} {:5}  {:8.0}% {:5.0}% {:5.0}% {:5.0}% {:8.1}",
            now().duration_since(start).as_millis(),
            stats.controller.phase,
            stats.controller.bandwidth.map_or(0.0, mbps),
            mbps(stats.pacing_rate),
            8e-6 * (stats.acknowledged.as_u64() - last.acknowledged.as_u64()) as f64 / every.as_secs_f64(),
            stats.rtt.as_secs_f64() * 1e3,
            stats.queue_delay.as_secs_f64() * 1e3,
            mb(stats.window),
            mb(stats.in_flight),
            stats.lost_pkts - last.lost_pkts,
            part(waits.application, before.application),
            part(waits.window, before.window),
            part(waits.credit, before.credit),
            part(waits.pacing, before.pacing),
            mb(stats.buffered),
        );
        last = stats;
    }
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

/// The most memory that the process has had.
fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok()).unwrap_or(0)
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
