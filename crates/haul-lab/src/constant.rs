//! A constant flow of UDP over real sockets: the source and the sink of what [`haul_sim::Cbr`] is in simulation.
//!
//! ```text
//!   datagram: 8 bytes "haul cbr", 8 bytes number, 8 bytes clock of the source in ns, both big-endian, then zeros up to its size
//! ```
//!
//! The source stamps each packet when it hands it to the kernel, so that its own lateness is no jitter; the sink stamps it when it gets it, so
//! that its own is.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use haul_sim::{CbrConfig, CbrInterval, CbrMeter};
use haul_units::{Bytes, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use crate::clock::now;

/// What a sink has seen; also in JSON, as one program tells another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConstantReport {
    /// Packets that came, each once.
    pub received_pkts: u64,
    /// Part of the packets up to the newest that did not come.
    pub loss: f64,
    /// Mean interarrival jitter (RFC 3550).
    pub jitter_s: f64,
    /// Second by second: end, packets that came, packets that did not, jitter in seconds.
    pub intervals: Vec<(f64, u64, u64, f64)>,
}

/// Sends a constant flow for as long as it says.
pub fn send_constant(to: SocketAddr, config: &CbrConfig) -> io::Result<()> {
    let socket = UdpSocket::bind((if to.is_ipv4() { "0.0.0.0" } else { "::" }, 0))?;
    socket.connect(to)?;
    let mut packet = vec![0; config.packet.saturating_sub(HEADERS).as_u64().clamp(STAMP_BYTES as u64, 65_507) as usize];
    packet[..8].copy_from_slice(MAGIC);
    let start = now();
    for number in 0u64.. {
        let offset = config.rate.time_for(Bytes(config.packet.as_u64().saturating_mul(number)));
        if config.lasts.is_some_and(|lasts| offset >= lasts) {
            break;
        }
        wait_until(&socket, start + offset, PollFlags::empty())?;
        packet[8..16].copy_from_slice(&number.to_be_bytes());
        packet[16..24].copy_from_slice(&now().as_nanos().to_be_bytes());
        match socket.send(&packet) {
            // Nobody listens yet, or the queue of the device is full: what a constant flow loses, it loses.
            Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionRefused | io::ErrorKind::WouldBlock) => {}
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {}
            other => drop(other?),
        }
    }
    Ok(())
}

/// Takes a constant flow until nothing has come for `silence` after its first packet.
pub fn receive_constant(socket: &UdpSocket, silence: Duration) -> io::Result<ConstantReport> {
    let mut buffer = vec![0; 1 << 16];
    let mut meter: Option<CbrMeter> = None;
    socket.set_nonblocking(true)?;
    loop {
        let limit = if meter.is_some() { now() + silence } else { Time::NEVER };
        if !wait_until(socket, limit, PollFlags::IN)? {
            break;
        }
        let length = match socket.recv(&mut buffer) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => continue,
            other => other?,
        };
        if let Some((number, sent)) = read(&buffer[..length]) {
            let meter = meter.get_or_insert_with(|| CbrMeter::new(Bytes(length as u64), Duration::from_secs(1)));
            meter.on_packet(number, sent, now());
        }
    }
    Ok(report(&meter.unwrap_or_else(|| CbrMeter::new(Bytes::ZERO, Duration::from_secs(1)))))
}

/// What a packet says; nothing of one that is somebody else's.
fn read(packet: &[u8]) -> Option<(u64, Time)> {
    let word = |at: usize| Some(u64::from_be_bytes(packet.get(at..at + 8)?.try_into().ok()?));
    packet.starts_with(MAGIC).then_some(())?;
    Some((word(8)?, Time::from_nanos(word(16)?)))
}

fn report(meter: &CbrMeter) -> ConstantReport {
    let interval = |seen: &CbrInterval| (seen.end.as_secs_f64(), seen.received_pkts, seen.lost_pkts, seen.jitter.as_secs_f64());
    ConstantReport {
        received_pkts: meter.received_pkts(),
        loss: meter.loss(),
        jitter_s: meter.mean_jitter().as_secs_f64(),
        intervals: meter.intervals().iter().map(interval).collect(),
    }
}

/// Waits for a point in time or for the socket; true if the socket is ready.
fn wait_until(socket: &UdpSocket, limit: Time, flags: PollFlags) -> io::Result<bool> {
    loop {
        let left = limit.since(now());
        if left.is_zero() && flags.is_empty() {
            return Ok(false);
        }
        let timeout = Timespec { tv_sec: left.as_secs().min(LONGEST_S) as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::new(socket, flags)], Some(&timeout)) {
            Ok(0) if now() >= limit => return Ok(false),
            Ok(0) | Err(rustix::io::Errno::INTR) => {}
            // An error on the socket is told by the call that follows.
            Ok(_) if flags.is_empty() => return Ok(false),
            Ok(_) => return Ok(true),
            Err(error) => return Err(error.into()),
        }
    }
}

const MAGIC: &[u8; 8] = b"haul cbr";
const STAMP_BYTES: usize = 24;
/// IP and UDP.
const HEADERS: Bytes = Bytes(28);
const LONGEST_S: u64 = 3600;

#[cfg(test)]
mod tests {
    use haul_units::BitRate;

    use super::*;

    #[test]
    fn what_is_sent_over_loopback_arrives() {
        let sink = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let to = sink.local_addr().expect("it has one");
        let config = CbrConfig { lasts: Some(Duration::from_millis(50)), ..CbrConfig::new(BitRate::mbps(12)) };
        let receiver = std::thread::spawn(move || receive_constant(&sink, Duration::from_millis(500)));
        send_constant(to, &config).expect("it can be sent");
        let report = receiver.join().expect("no panic").expect("it can be received");
        // 12 Mbit/s are 1000 packets of 1500 bytes a second.
        assert_eq!((report.received_pkts, report.loss), (50, 0.0));
        let stored = serde_json::to_string(&report).expect("plain numbers");
        assert_eq!(serde_json::from_str::<ConstantReport>(&stored).ok(), Some(report));
    }

    #[test]
    fn datagrams_of_others_are_not_counted() {
        assert_eq!(read(b"haul cbr"), None);
        assert_eq!(read(&[0; 100]), None);
        let mut packet = [0u8; 24];
        packet[..8].copy_from_slice(MAGIC);
        packet[15] = 7;
        assert_eq!(read(&packet), Some((7, Time::ZERO)));
    }
}
