//! The other end of connections, played by the test: it reads each packet off a TUN device and says what has arrived.
//!
//! So the kernel's TCP with a law in it is asked acknowledgement by acknowledgement, and its window is read after each: what it has is the law's, whatever else the machine does.

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::{Duration, Instant};

use haul_netdev::{Device, Layer};
use haul_tcp::Law;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, connect_unspec, socket_with, sockopt};

use crate::rig::Rig;
use crate::road::pause;
use crate::wire::{inside, ip};

/// Bytes of a packet's payload: of each, since options are in none.
pub const SEGMENT: u32 = 1000;
const OWN: [u8; 4] = [10, 93, 0, 2];
const KERNEL: [u8; 4] = [10, 93, 0, 1];
const PORT: u16 = 9;
/// A kernel that does not do what is waited for within this does not do it.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the window of an acknowledgement counts in: beyond what anybody sends.
const SCALE: u8 = 14;

const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// Of the kernel's congestion states.
const OPEN: u8 = 0;
const RECOVERY: u8 = 3;

/// The device, in the near namespace of the rig.
pub struct Stage<'a> {
    rig: &'a Rig,
    device: Device,
}

impl<'a> Stage<'a> {
    pub fn set(rig: &'a Rig) -> Self {
        let device = inside(&rig.wire.a, || {
            // Nothing is sent again because this process was held up, and nothing is known from an earlier connection.
            for (key, value) in [
                ("tcp_early_retrans", "0"),
                ("tcp_no_metrics_save", "1"),
                ("tcp_slow_start_after_idle", "0"),
                ("tcp_wmem", "4096 16777216 33554432"),
            ] {
                fs::write(format!("/proc/sys/net/ipv4/{key}"), value).expect("written");
            }
            Device::create("stage", Layer::Packets).expect("a TUN device")
        });
        let at = |words: &[&str]| ip(&[&["-n", &rig.wire.a], words].concat());
        at(&["link", "set", "stage", "txqueuelen", "100000", "gso_max_segs", "1", "up"]);
        at(&["address", "add", "10.93.0.1/24", "dev", "stage"]);
        at(&["route", "change", "10.93.0.0/24", "dev", "stage", "src", "10.93.0.1", "rto_min", "30s"]);
        Self { rig, device }
    }

    /// A connection with a law of its own, whose other end answers after some time.
    pub fn connect(&self, law: Law, after: Duration) -> Flow {
        let near = inside(&self.rig.wire.a, || {
            let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::NONBLOCK, None).expect("a socket");
            sockopt::set_tcp_congestion(&socket, law.kernel_name()).expect("it is loaded");
            let asked = connect(&socket, &SocketAddr::from((OWN, PORT)));
            assert_eq!(asked, Err(rustix::io::Errno::INPROGRESS));
            TcpStream::from(socket)
        });
        let port = near.local_addr().expect("an address").port();
        let syn = loop {
            let packet = self.next(PATIENCE).expect("it opens a connection");
            if packet.port == port && packet.flags & SYN != 0 {
                break packet;
            }
        };
        pause(after);
        let first = syn.sequence.wrapping_add(1);
        let flow = Flow { near, port, acked: first, seen: first, above: BTreeSet::new() };
        // The largest segment, selective acknowledgements, the scale.
        let options = [2, 4, (SEGMENT >> 8) as u8, SEGMENT as u8, 1, 1, 4, 2, 1, 3, 3, SCALE];
        self.write(&flow, SYN | ACK, &options);
        flow.until("it is open", |_| flow.near.peer_addr().is_ok());
        // This one's window counts by the scale.
        self.acknowledge(&flow);
        flow
    }

    /// The next packet, if one comes in time.
    pub fn next(&self, within: Duration) -> Option<Packet> {
        let end = now() + within;
        let mut bytes = [0; 2048];
        loop {
            match rustix::io::read(&self.device, &mut bytes) {
                Ok(length) => {
                    if let Some(packet) = Packet::read(&bytes[..length]) {
                        return Some(packet);
                    }
                }
                Err(error) => {
                    assert_eq!(error, rustix::io::Errno::AGAIN);
                    let left = end.saturating_duration_since(now());
                    let time = Timespec::try_from(left).expect("a time");
                    let ready = poll(&mut [PollFd::new(&self.device.as_fd(), PollFlags::IN)], Some(&time)).expect("polled");
                    if ready == 0 {
                        return None;
                    }
                }
            }
        }
    }

    /// Says what has arrived of a flow: all below `acked`, and the ranges above it.
    pub fn acknowledge(&self, flow: &Flow) {
        let mut options = Vec::new();
        if !flow.above.is_empty() {
            let ranges = flow.ranges();
            options.extend([1, 1, 5, 2 + 8 * ranges.len() as u8]);
            for (from, to) in ranges {
                options.extend(from.to_be_bytes());
                options.extend(to.to_be_bytes());
            }
        }
        self.write(flow, ACK, &options);
    }

    fn write(&self, flow: &Flow, flags: u8, options: &[u8]) {
        let mut tcp = Vec::new();
        tcp.extend(PORT.to_be_bytes());
        tcp.extend(flow.port.to_be_bytes());
        tcp.extend(u32::from(flags & SYN == 0).to_be_bytes());
        tcp.extend(flow.acked.to_be_bytes());
        tcp.extend([(((20 + options.len()) / 4) << 4) as u8, flags]);
        tcp.extend(u16::MAX.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend(options);
        let length = tcp.len() as u16;
        let beside = [&OWN[..], &KERNEL, &[0, 6], &length.to_be_bytes()].concat();
        let sum = checksum(&[beside, tcp.clone()].concat());
        tcp[16..18].copy_from_slice(&sum.to_be_bytes());
        let mut packet = vec![0x45, 0];
        packet.extend((length + 20).to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        packet.extend([OWN, KERNEL].concat());
        let sum = checksum(&packet);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet.extend(tcp);
        assert_eq!(rustix::io::write(&self.device, &packet), Ok(packet.len()));
    }

    /// Has a flow send all that its window lets it.
    pub fn fill(&self, flow: &mut Flow) {
        let end = now() + PATIENCE;
        loop {
            flow.feed();
            while let Some(packet) = self.next(Duration::ZERO) {
                flow.see(&packet);
            }
            let info = flow.info();
            let in_flight = flow.seen.wrapping_sub(flow.acked) / SEGMENT;
            if in_flight == info.tcpi_unacked && in_flight >= info.tcpi_snd_cwnd {
                return;
            }
            assert!(now() < end, "{in_flight} packets came, the window is {}", info.tcpi_snd_cwnd);
        }
    }

    /// A round trip: all that is in flight is acknowledged, packet by packet.
    pub fn round(&self, flow: &mut Flow) {
        self.fill(flow);
        let end = flow.seen;
        while flow.acked != end {
            flow.acked = flow.acked.wrapping_add(SEGMENT);
            self.acknowledge(flow);
        }
        self.fill(flow);
    }

    /// Acknowledges until the window is so large.
    pub fn grow(&self, flow: &mut Flow, window: u32) {
        while flow.window() < window {
            self.fill(flow);
            flow.acked = flow.acked.wrapping_add(SEGMENT);
            self.acknowledge(flow);
            let acked = flow.acked;
            flow.until("the acknowledgement is taken", |info| flow.seen.wrapping_sub(acked) / SEGMENT <= info.tcpi_unacked);
        }
        self.fill(flow);
    }

    /// The first packet in flight is lost, and sent again: the threshold that the loss has set.
    pub fn lose(&self, flow: &mut Flow) -> u32 {
        self.fill(flow);
        let lost = flow.acked;
        let mut next = self.arrive_behind(flow, lost.wrapping_add(SEGMENT));
        let threshold = flow.until("it is lost", |info| info.tcpi_ca_state == RECOVERY).tcpi_snd_ssthresh;
        loop {
            let packet = self.next(PATIENCE).expect("it is sent again");
            flow.see(&packet);
            if packet.sequence == lost {
                break;
            }
        }
        // What was sent before the loss was known has to arrive too, for the recovery to be over.
        next = self.arrive_behind(flow, next);
        flow.above.clear();
        flow.acked = next;
        self.acknowledge(flow);
        flow.until("it has recovered", |info| info.tcpi_ca_state == OPEN);
        threshold
    }

    /// All that was sent from a packet on arrives, packet by packet: what comes next.
    fn arrive_behind(&self, flow: &mut Flow, mut next: u32) -> u32 {
        let end = flow.seen;
        while next != end {
            flow.above.insert(next);
            self.acknowledge(flow);
            next = next.wrapping_add(SEGMENT);
        }
        next
    }
}

/// One connection.
pub struct Flow {
    near: TcpStream,
    pub port: u16,
    /// All below has arrived.
    pub acked: u32,
    /// All below has been sent.
    seen: u32,
    /// Packets that have arrived out of order, by their first byte.
    pub above: BTreeSet<u32>,
}

impl Flow {
    /// It has always more to send.
    pub fn feed(&mut self) {
        let piece = [0; 8 * SEGMENT as usize];
        loop {
            match self.near.write(&piece) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Another law, from now on.
    pub fn give(&self, law: Law) {
        sockopt::set_tcp_congestion(&self.near, law.kernel_name()).expect("it is loaded");
    }

    fn see(&mut self, packet: &Packet) {
        assert_eq!(packet.port, self.port);
        assert!(packet.length == 0 || packet.length == SEGMENT, "a packet of {} bytes", packet.length);
        let end = packet.sequence.wrapping_add(packet.length);
        if packet.length > 0 && end.wrapping_sub(self.seen) < 1 << 31 {
            self.seen = end;
        }
    }

    /// A packet has arrived: what is known to be here afterwards.
    pub fn arrived(&mut self, packet: &Packet) {
        if packet.sequence.wrapping_sub(self.acked) < 1 << 31 {
            self.above.insert(packet.sequence);
        }
        while self.above.remove(&self.acked) {
            self.acked = self.acked.wrapping_add(SEGMENT);
        }
    }

    /// Of what has arrived above `acked`: the three highest, as there is room in the options for.
    fn ranges(&self) -> Vec<(u32, u32)> {
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for &first in &self.above {
            match ranges.last_mut().filter(|(_, end)| *end == first) {
                Some((_, end)) => *end = end.wrapping_add(SEGMENT),
                None => ranges.push((first, first.wrapping_add(SEGMENT))),
            }
        }
        ranges.into_iter().rev().take(3).collect()
    }

    pub fn window(&self) -> u32 {
        self.info().tcpi_snd_cwnd
    }

    /// The threshold of the recovery that goes on.
    pub fn threshold_in_recovery(&self) -> Option<u32> {
        let info = self.info();
        (info.tcpi_ca_state == RECOVERY).then_some(info.tcpi_snd_ssthresh)
    }

    fn info(&self) -> libc::tcp_info {
        let mut info = MaybeUninit::<libc::tcp_info>::zeroed();
        let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
        let fd = self.near.as_raw_fd();
        // SAFETY: the value is as long as is said, and made of integers, of which zero is one.
        let (result, info) = unsafe {
            let result = libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, info.as_mut_ptr().cast(), &raw mut length);
            (result, info.assume_init())
        };
        assert_eq!(result, 0);
        info
    }

    fn until(&self, what: &str, is: impl Fn(&libc::tcp_info) -> bool) -> libc::tcp_info {
        let end = now() + PATIENCE;
        loop {
            let info = self.info();
            if is(&info) {
                return info;
            }
            assert!(now() < end, "not within {PATIENCE:?}: {what}");
        }
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        // Closed, it would have to send what it has still got first.
        let _ = connect_unspec(&self.near);
    }
}

/// What the kernel has sent.
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    pub port: u16,
    pub sequence: u32,
    /// Of the payload.
    pub length: u32,
    flags: u8,
}

impl Packet {
    /// None if it is none of TCP over IPv4.
    fn read(bytes: &[u8]) -> Option<Self> {
        if bytes.first() != Some(&0x45) || bytes.get(9) != Some(&6) {
            return None;
        }
        let tcp = bytes.get(20..)?;
        let header = usize::from(tcp.get(12)? >> 4) * 4;
        Some(Self {
            port: u16::from_be_bytes(*tcp.first_chunk()?),
            sequence: u32::from_be_bytes(*tcp.get(4..)?.first_chunk()?),
            length: tcp.len().checked_sub(header)? as u32,
            flags: *tcp.get(13)?,
        })
    }
}

/// Of the Internet (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let pairs = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low)));
    let sum: u32 = pairs.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

#[expect(clippy::disallowed_methods, reason = "the kernel's TCP goes by the clock")]
pub fn now() -> Instant {
    Instant::now()
}
