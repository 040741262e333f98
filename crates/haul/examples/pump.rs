//! What the system alone can do: the ceiling that the transport is compared with.
//!
//! Two threads pass trains of datagrams over loopback, memory to memory, through the library's own datagram layer, with no protocol
//! but a shared counter that keeps the receiver's buffer from overflowing. With `--aead` every datagram is sealed from a
//! source block into the train and opened from the train into a destination block (AES-128-GCM), as the transport does.
//!
//!     pump [--aead] [--seconds N] [--packet BYTES] [--no-offload] [--bytes N]

mod cpu;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use haul::udp::{Batch, MAX_TRAIN_BYTES, MAX_TRAIN_SEGMENTS, Options, Outgoing, Sent, Socket};

fn main() -> Result<(), Failure> {
    let plan = Plan::from_args()?;
    let offload = Options { segment_offload: plan.offload, receive_offload: plan.offload };
    let sender = Socket::bind("127.0.0.1:0".parse()?, offload)?;
    let receiver = Arc::new(Socket::bind("127.0.0.1:0".parse()?, offload)?);
    let to = receiver.local_addr();
    let shared = Arc::new(Shared::default());

    let receiving = thread::spawn({
        let (receiver, shared) = (receiver.clone(), shared.clone());
        move || receive(plan, &receiver, &shared)
    });
    let sending = thread::spawn({
        let shared = shared.clone();
        move || send(plan, &sender, to, &shared)
    });
    let sent = sending.join().map_err(|_| "the sender panicked")??;
    receiver.stop();
    let received = receiving.join().map_err(|_| "the receiver panicked")??;

    let what = match (plan.aead, plan.offload) {
        (false, true) => "pump",
        (true, true) => "pump+aead",
        (false, false) => "pump, single datagrams",
        (true, false) => "pump+aead, single datagrams",
    };
    println!(
        "{what}: {:.2} Gbit/s payload, {} packets of {} B, cpu per packet: sender {:.0} ns, receiver {:.0} ns",
        received.payload_bytes as f64 * 8.0 / sent.wall.as_nanos() as f64,
        received.packets,
        plan.packet_bytes,
        sent.cpu.as_nanos() as f64 / sent.packets.max(1) as f64,
        received.cpu.as_nanos() as f64 / received.packets.max(1) as f64,
    );
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Plan {
    aead: bool,
    offload: bool,
    packet_bytes: usize,
    time: Duration,
    total_bytes: u64,
}

impl Plan {
    fn from_args() -> Result<Self, Failure> {
        let mut plan =
            Self { aead: false, offload: true, packet_bytes: 1472, time: Duration::from_secs(3), total_bytes: u64::MAX };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
            match arg.as_str() {
                "--aead" => plan.aead = true,
                "--no-offload" => plan.offload = false,
                "--seconds" => plan.time = Duration::from_secs_f64(value()?.parse()?),
                "--packet" => plan.packet_bytes = value()?.parse::<usize>()?.clamp(OVERHEAD_BYTES + 1, 65_000),
                "--bytes" => plan.total_bytes = value()?.parse()?,
                _ => return Err(format!("unknown argument {arg}").into()),
            }
        }
        Ok(plan)
    }
}

/// What the receiver tells the sender.
#[derive(Default)]
struct Shared {
    received_bytes: AtomicU64,
    sender_waits: AtomicBool,
    sender: std::sync::OnceLock<Thread>,
}

#[derive(Default)]
struct Outcome {
    packets: u64,
    payload_bytes: u64,
    wall: Duration,
    cpu: Duration,
}

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn send(plan: Plan, socket: &Socket, to: std::net::SocketAddr, shared: &Shared) -> Result<Outcome, Failure> {
    let _ = shared.sender.set(thread::current());
    let key = key()?;
    let source = vec![0xA5u8; BLOCK_BYTES];
    let payload_bytes = plan.packet_bytes - OVERHEAD_BYTES;
    let segments = (MAX_TRAIN_BYTES / plan.packet_bytes).clamp(1, MAX_TRAIN_SEGMENTS);
    let mut train = vec![0u8; segments * plan.packet_bytes];
    let mut outcome = Outcome::default();
    let (start, mut offset) = (now(), 0);
    while now() - start < plan.time && outcome.payload_bytes < plan.total_bytes {
        if plan.aead {
            for packet in train.chunks_exact_mut(plan.packet_bytes) {
                if offset + payload_bytes > source.len() {
                    offset = 0;
                }
                seal(&key, outcome.packets, &source[offset..offset + payload_bytes], packet)?;
                offset += payload_bytes;
                outcome.packets += 1;
            }
        } else {
            outcome.packets += segments as u64;
        }
        match socket.send(&Outgoing { to, from: None, ecn: 0, train: &train, segment_bytes: plan.packet_bytes })? {
            Sent::Taken => {}
            other => return Err(format!("{other:?}").into()),
        }
        outcome.payload_bytes += (segments * payload_bytes) as u64;
        wait_for_receiver(outcome.packets * plan.packet_bytes as u64, IN_FLIGHT_BYTES, shared);
    }
    wait_for_receiver(outcome.packets * plan.packet_bytes as u64, 0, shared);
    Ok(Outcome { wall: now() - start, cpu: cpu::thread_time(), ..outcome })
}

/// Waits while more than `allowed` bytes are on their way.
fn wait_for_receiver(sent_bytes: u64, allowed: u64, shared: &Shared) {
    let room = || sent_bytes - shared.received_bytes.load(Ordering::SeqCst) <= allowed;
    while !room() {
        shared.sender_waits.store(true, Ordering::SeqCst);
        if !room() {
            thread::park();
        }
        shared.sender_waits.store(false, Ordering::SeqCst);
    }
}

fn receive(plan: Plan, socket: &Socket, shared: &Shared) -> Result<Outcome, Failure> {
    let key = key()?;
    let mut destination = vec![0u8; BLOCK_BYTES];
    let mut offset = 0;
    let mut batch = Batch::new(8);
    let mut outcome = Outcome::default();
    while socket.receive(&mut batch)? > 0 {
        let mut bytes = 0;
        for received in batch.trains() {
            bytes += received.train.len() as u64;
            for packet in received.train.chunks(received.segment_bytes) {
                let payload_bytes = packet.len() - OVERHEAD_BYTES;
                if plan.aead {
                    if offset + payload_bytes > destination.len() {
                        offset = 0;
                    }
                    open(&key, packet, &mut destination[offset..offset + payload_bytes])?;
                    offset += payload_bytes;
                }
                outcome.packets += 1;
                outcome.payload_bytes += payload_bytes as u64;
            }
        }
        shared.received_bytes.fetch_add(bytes, Ordering::SeqCst);
        if shared.sender_waits.load(Ordering::SeqCst)
            && let Some(sender) = shared.sender.get()
        {
            sender.unpark();
        }
    }
    std::hint::black_box(&destination);
    Ok(Outcome { cpu: cpu::thread_time(), ..outcome })
}

fn key() -> Result<LessSafeKey, Failure> {
    Ok(LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &[7; 16]).map_err(|_| "no key")?))
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}

fn seal(key: &LessSafeKey, number: u64, payload: &[u8], packet: &mut [u8]) -> Result<(), Failure> {
    let (header, body) = packet.split_at_mut(HEADER_BYTES);
    header[..8].copy_from_slice(&number.to_be_bytes());
    let (cipher, tag) = body.split_at_mut(payload.len());
    key.seal_out_of_place_scatter(nonce(number), Aad::from(&*header), payload, cipher, &[], tag).map_err(|_| "seal".into())
}

fn open(key: &LessSafeKey, packet: &[u8], payload: &mut [u8]) -> Result<(), Failure> {
    let (header, body) = packet.split_at(HEADER_BYTES);
    let (cipher, tag) = body.split_at(payload.len());
    let number = u64::from_be_bytes(header[..8].try_into()?);
    key.open_separate_gather(nonce(number), Aad::from(header), cipher, tag, payload).map_err(|_| "open".into())
}

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// Clear header of a packet: about what the transport needs.
const HEADER_BYTES: usize = 24;

/// Header and tag.
const OVERHEAD_BYTES: usize = HEADER_BYTES + 16;

const BLOCK_BYTES: usize = 1 << 20;

/// What may be on its way: well inside the receiver's socket buffer.
const IN_FLIGHT_BYTES: u64 = 8 << 20;
