//! Bulk transfer over quinn, memory to memory over loopback: one connection, one stream, beside which haul is measured.
//!
//! The shape is that of quinn's own benchmark: client and server on a thread each, with a current-thread tokio runtime each, and a
//! source block sent again and again. Everything that can be set is set for speed: windows far above what loopback needs, large socket
//! buffers, segmentation offload, AES-128-GCM, a fixed packet size without discovery, no copy on writing, unordered reading.
//!
//!     quinn-bulk [--seconds N] [--bytes N] [--packet BYTES] [--window BYTES] [--acks-every N]
//!
//! Or one end alone, called like the drivers of UDT and SRT, over any path: with a window as large as is asked for, and a congestion control that
//! starts as quinn has it.
//!
//!     quinn-bulk receive ADDRESS PORT --window BYTES --congestion cubic|bbr (--seconds N | --bytes N)
//!     quinn-bulk send    ADDRESS PORT --window BYTES --congestion cubic|bbr [--bytes N]

mod meter;
mod transport;

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn::{Endpoint, EndpointConfig, TokioRuntime, VarInt};
use tokio::runtime::{Builder, Runtime};

use crate::meter::Meter;
use crate::transport::{client_config, server_config, socket};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let plan = Plan::from_args()?;
    match plan.role {
        Role::Both => compare(plan),
        Role::Receive(address) => receive(plan, address),
        Role::Send(address) => deliver(plan, address),
    }
}

/// Both ends, over loopback.
fn compare(plan: Plan) -> Result<(), Failure> {
    let socket = socket(LOOPBACK)?;
    let to = socket.local_addr()?;
    let server_config = server_config(plan)?;
    let server = thread::spawn(move || serve(socket, server_config, None));
    let sent = send(plan, to, client_config(plan)?)?;
    let received = server.join().map_err(|_| "the server panicked")??;
    println!(
        "quinn: {:.2} Gbit/s payload, {} packets of {} B, {} lost, cpu per packet: sender {:.0} ns, receiver {:.0} ns",
        received.bytes as f64 * 8.0 / sent.wall.as_nanos() as f64,
        sent.packets,
        plan.packet_bytes,
        sent.lost_packets,
        sent.cpu.as_nanos() as f64 / sent.packets.max(1) as f64,
        received.cpu.as_nanos() as f64 / sent.packets.max(1) as f64,
    );
    Ok(())
}

fn receive(plan: Plan, address: SocketAddr) -> Result<(), Failure> {
    let socket = socket(address)?;
    println!("listening");
    serve(socket, server_config(plan)?, Some(plan)).map(drop)
}

/// Sends until the receiver goes away, or all bytes have arrived.
fn deliver(plan: Plan, address: SocketAddr) -> Result<(), Failure> {
    match send(plan, address, client_config(plan)?) {
        Err(error) if error.is::<quinn::WriteError>() || error.is::<quinn::StoppedError>() => Ok(()),
        result => result.map(drop),
    }
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    role: Role,
    time: Duration,
    total_bytes: u64,
    packet_bytes: u16,
    window_bytes: u32,
    acks_every: Option<u32>,
    congestion: Congestion,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Both,
    Receive(SocketAddr),
    Send(SocketAddr),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Congestion {
    /// A window that is open from the start: there is nothing to find out on loopback.
    Open,
    Cubic,
    Bbr,
}

impl Plan {
    fn from_args() -> Result<Self, Failure> {
        let mut args = std::env::args().skip(1).peekable();
        let role = args.next_if(|arg| !arg.starts_with('-'));
        let mut plan = Self {
            role: Role::Both,
            time: Duration::from_secs(3),
            total_bytes: u64::MAX,
            packet_bytes: 1472,
            window_bytes: 2 << 20,
            acks_every: Some(20),
            congestion: Congestion::Open,
        };
        if let Some(role) = role {
            let mut word = || args.next().ok_or("an address and a port are missing");
            let address = SocketAddr::new(word()?.parse()?, word()?.parse()?);
            plan.role = if role == "receive" { Role::Receive(address) } else { Role::Send(address) };
            (plan.time, plan.acks_every, plan.congestion) = (FOREVER, Some(10), Congestion::Cubic);
        }
        while let Some(arg) = args.next() {
            let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
            match arg.as_str() {
                "--seconds" => plan.time = Duration::from_secs_f64(value.parse()?),
                "--bytes" => plan.total_bytes = value.parse()?,
                "--packet" => plan.packet_bytes = value.parse()?,
                "--window" => plan.window_bytes = value.parse()?,
                "--acks-every" => plan.acks_every = Some(value.parse()?),
                "--congestion" if value == "cubic" => plan.congestion = Congestion::Cubic,
                "--congestion" if value == "bbr" => plan.congestion = Congestion::Bbr,
                _ => return Err(format!("unknown argument {arg} {value}").into()),
            }
        }
        Ok(plan)
    }
}

#[derive(Default)]
struct Outcome {
    bytes: u64,
    packets: u64,
    lost_packets: u64,
    wall: Duration,
    cpu: Duration,
}

fn send(plan: Plan, to: SocketAddr, config: quinn::ClientConfig) -> Result<Outcome, Failure> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let from = if to.ip().is_loopback() { LOOPBACK } else { SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)) };
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket(from)?, Arc::new(TokioRuntime))?;
        let connection = endpoint.connect_with(config, to, "localhost")?.await?;
        let block = Bytes::from(vec![0xA5; BLOCK_BYTES]);
        let mut stream = connection.open_uni().await?;
        let (start, cpu_start) = (now(), thread_cpu_time());
        let mut bytes = 0;
        while now() - start < plan.time && bytes < plan.total_bytes {
            let left = (plan.total_bytes - bytes).min(BLOCK_BYTES as u64);
            stream.write_chunk(block.slice(..left as usize)).await?;
            bytes += left;
        }
        stream.finish()?;
        stream.stopped().await?;
        let wall = now() - start;
        let path = connection.stats().path;
        let outcome = Outcome {
            bytes,
            packets: path.sent_packets,
            lost_packets: path.lost_packets,
            wall,
            cpu: thread_cpu_time().saturating_sub(cpu_start),
        };
        connection.close(VarInt::from_u32(0), b"done");
        endpoint.wait_idle().await;
        Ok(outcome)
    })
}

/// Takes what comes; with a plan, it is told as it comes, and the program ends as planned.
fn serve(socket: UdpSocket, config: quinn::ServerConfig, told: Option<Plan>) -> Result<Outcome, Failure> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket, Arc::new(TokioRuntime))?;
        let connection = endpoint.accept().await.ok_or("no connection")?.await?;
        let meter = told.map(Meter::start);
        let mut stream = connection.accept_uni().await?;
        let cpu_start = thread_cpu_time();
        let mut bytes = 0;
        while let Some(chunk) = stream.read_chunk(usize::MAX, false).await? {
            bytes += chunk.bytes.len() as u64;
            if let Some(meter) = &meter {
                meter.add(chunk.bytes.len());
            }
        }
        let cpu = thread_cpu_time().saturating_sub(cpu_start);
        connection.closed().await;
        Ok(Outcome { bytes, cpu, ..Outcome::default() })
    })
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// CPU time that the calling thread has used, in the kernel too.
fn thread_cpu_time() -> Duration {
    #[cfg(target_os = "linux")]
    {
        // User and system time in ticks would be too coarse; schedstat counts nanoseconds.
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        Duration::from_nanos(text.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
    }
    #[cfg(not(target_os = "linux"))]
    Duration::ZERO
}

const BLOCK_BYTES: usize = 1 << 20;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Until the other end has enough.
const FOREVER: Duration = Duration::from_secs(100_000);
