//! Bulk transfer over quinn, memory to memory over loopback: one connection, one stream, beside which haul is measured.
//!
//! The shape is that of quinn's own benchmark: client and server on a thread each, with a current-thread tokio runtime each, and a
//! source block sent again and again. Everything that can be set is set for speed: windows far above what loopback needs, large socket
//! buffers, segmentation offload, AES-128-GCM, a fixed packet size without discovery, no copy on writing, unordered reading.
//!
//!     quinn-bulk [--seconds N] [--bytes N] [--packet BYTES] [--window MIB] [--acks-every N]

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{Endpoint, EndpointConfig, TokioRuntime, TransportConfig, VarInt};
use rustls::crypto::aws_lc_rs::{self, cipher_suite};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use tokio::runtime::{Builder, Runtime};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let plan = Plan::from_args()?;
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
    let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
    let certificate = CertificateDer::from(certified.cert);

    let socket = socket()?;
    let to = socket.local_addr()?;
    let server_config = server_config(plan, certificate.clone(), key)?;
    let server = thread::spawn(move || serve(socket, server_config));
    let sent = send(plan, to, client_config(plan, certificate)?)?;
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

#[derive(Debug, Clone, Copy)]
struct Plan {
    time: Duration,
    total_bytes: u64,
    packet_bytes: u16,
    window_bytes: u32,
    acks_every: Option<u32>,
}

impl Plan {
    fn from_args() -> Result<Self, Failure> {
        let mut plan = Self {
            time: Duration::from_secs(3),
            total_bytes: u64::MAX,
            packet_bytes: 1472,
            window_bytes: 2 << 20,
            acks_every: Some(20),
        };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let value = args.next().ok_or_else(|| format!("{arg} needs a value"))?;
            match arg.as_str() {
                "--seconds" => plan.time = Duration::from_secs_f64(value.parse()?),
                "--bytes" => plan.total_bytes = value.parse()?,
                "--packet" => plan.packet_bytes = value.parse()?,
                "--window" => plan.window_bytes = value.parse::<u32>()? << 20,
                "--acks-every" => plan.acks_every = Some(value.parse()?),
                _ => return Err(format!("unknown argument {arg}").into()),
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
        let endpoint = Endpoint::new(EndpointConfig::default(), None, socket()?, Arc::new(TokioRuntime))?;
        let connection = endpoint.connect_with(config, to, "localhost")?.await?;
        let block = Bytes::from(vec![0xA5; BLOCK_BYTES]);
        let mut stream = connection.open_uni().await?;
        let (start, cpu_start) = (now(), thread_cpu_time());
        let mut bytes = 0;
        while now() - start < plan.time && bytes < plan.total_bytes {
            stream.write_chunk(block.clone()).await?;
            bytes += block.len() as u64;
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

fn serve(socket: UdpSocket, config: quinn::ServerConfig) -> Result<Outcome, Failure> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let endpoint = Endpoint::new(EndpointConfig::default(), Some(config), socket, Arc::new(TokioRuntime))?;
        let connection = endpoint.accept().await.ok_or("no connection")?.await?;
        let mut stream = connection.accept_uni().await?;
        let cpu_start = thread_cpu_time();
        let mut bytes = 0;
        while let Some(chunk) = stream.read_chunk(usize::MAX, false).await? {
            bytes += chunk.bytes.len() as u64;
        }
        let cpu = thread_cpu_time().saturating_sub(cpu_start);
        connection.closed().await;
        Ok(Outcome { bytes, cpu, ..Outcome::default() })
    })
}

fn runtime() -> std::io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

fn socket() -> std::io::Result<UdpSocket> {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)?;
    socket.set_recv_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.set_send_buffer_size(SOCKET_BUFFER_BYTES)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    Ok(socket.into())
}

fn transport(plan: Plan) -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config
        .stream_receive_window(plan.window_bytes.into())
        .receive_window(plan.window_bytes.into())
        .send_window(u64::from(plan.window_bytes))
        .initial_mtu(plan.packet_bytes)
        .min_mtu(plan.packet_bytes)
        .mtu_discovery_config(None)
        .send_fairness(false);
    let mut congestion = quinn::congestion::CubicConfig::default();
    congestion.initial_window(u64::from(plan.window_bytes));
    config.congestion_controller_factory(Arc::new(congestion));
    if let Some(every) = plan.acks_every {
        let mut acks = quinn::AckFrequencyConfig::default();
        acks.ack_eliciting_threshold(VarInt::from_u32(every));
        config.ack_frequency_config(Some(acks));
    }
    Arc::new(config)
}

fn endpoint_provider() -> Arc<rustls::crypto::CryptoProvider> {
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = vec![cipher_suite::TLS13_AES_128_GCM_SHA256];
    Arc::new(provider)
}

fn server_config(
    plan: Plan,
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
) -> Result<quinn::ServerConfig, Failure> {
    let tls = rustls::ServerConfig::builder_with_provider(endpoint_provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key.into())?;
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(transport(plan));
    Ok(config)
}

fn client_config(plan: Plan, certificate: CertificateDer<'static>) -> Result<quinn::ClientConfig, Failure> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate)?;
    let tls = rustls::ClientConfig::builder_with_provider(endpoint_provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(transport(plan));
    Ok(config)
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

const SOCKET_BUFFER_BYTES: usize = 64 << 20;
