//! What the kernel tells of a TCP connection, and its congestion control.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;

use rustix::io::Errno;
use rustix::net::sockopt;

use crate::exit::Failure;
use crate::perf::sample::{PathSample, micros};
use std::time::Duration;

/// Larger than any kernel's `struct tcp_info` of today.
const INFO_BYTES: usize = 512;

/// A connection's `struct tcp_info`, as far as the kernel fills it.
#[derive(Debug, Clone)]
pub struct TcpInfo {
    bytes: Vec<u8>,
}

impl TcpInfo {
    /// Asks the kernel; an error where the socket is not one of TCP.
    pub fn of(stream: &impl AsRawFd) -> io::Result<Self> {
        let mut bytes = vec![0_u8; INFO_BYTES];
        let mut len = INFO_BYTES as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes, which `bytes` has, and puts into `len` how many.
        let result = unsafe {
            libc::getsockopt(stream.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, bytes.as_mut_ptr().cast(), &raw mut len)
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        bytes.truncate(len as usize);
        Ok(Self { bytes })
    }

    /// The field of 32 bits at this offset; 0 where the kernel is too old to have it.
    fn u32(&self, offset: usize) -> u64 {
        let field = self.bytes.get(offset..offset + 4).and_then(|field| field.try_into().ok());
        field.map_or(0, |field| u32::from_ne_bytes(field).into())
    }

    fn u64(&self, offset: usize) -> u64 {
        let field = self.bytes.get(offset..offset + 8).and_then(|field| field.try_into().ok());
        field.map_or(0, u64::from_ne_bytes)
    }

    /// Smallest round-trip time of the last minutes, the connection's beginning among them.
    pub fn min_rtt(&self) -> Option<Duration> {
        let micros = self.u32(offset::MIN_RTT);
        (micros != 0 && micros != u64::from(u32::MAX)).then(|| Duration::from_micros(micros))
    }

    /// Payload that has left, each byte once.
    pub fn sent_once(&self) -> u64 {
        self.u64(offset::BYTES_SENT).saturating_sub(self.u64(offset::BYTES_RETRANS))
    }

    /// As a sender's sample; `elapsed` since the connection began to send.
    pub fn sample(&self, elapsed: Duration) -> PathSample {
        let (busy, receiver, buffer) =
            (self.u64(offset::BUSY_TIME), self.u64(offset::RWND_LIMITED), self.u64(offset::SNDBUF_LIMITED));
        let rate = |bytes: u64| if bytes == u64::MAX { 0 } else { bytes.saturating_mul(8) };
        let segment = self.u32(offset::SND_MSS);
        let min_rtt = self.min_rtt().map_or(0, micros);
        PathSample {
            rtt_us: self.u32(offset::RTT),
            rtt_var_us: self.u32(offset::RTTVAR),
            min_rtt_us: min_rtt,
            queue_delay_us: self.u32(offset::RTT).saturating_sub(min_rtt),
            window_bytes: self.u32(offset::SND_CWND) * segment,
            in_flight_bytes: self.u32(offset::UNACKED) * segment,
            receive_window_bytes: self.u32(offset::SND_WND),
            packet_bytes: segment,
            pacing_bps: rate(self.u64(offset::PACING_RATE)),
            delivery_bps: rate(self.u64(offset::DELIVERY_RATE)),
            burst_p99_pkts: 0,
            phase: phase(self.bytes.get(1).copied().unwrap_or(0)).into(),
            sent_pkts: self.u32(offset::DATA_SEGS_OUT),
            lost_pkts: self.u32(offset::TOTAL_RETRANS),
            spurious_pkts: 0,
            marked_pkts: self.u32(offset::DELIVERED_CE),
            retransmitted_bytes: self.u64(offset::BYTES_RETRANS),
            wait_application_us: micros(elapsed).saturating_sub(busy),
            wait_window_us: busy.saturating_sub(receiver).saturating_sub(buffer),
            wait_credit_us: receiver.saturating_add(buffer),
            wait_pacing_us: 0,
            each: Vec::new(),
        }
    }
}

/// The kernel's name of a congestion state (`tcp_ca_state`).
const fn phase(state: u8) -> &'static str {
    match state {
        0 => "open",
        1 => "disorder",
        2 => "cwr",
        3 => "recovery",
        4 => "loss",
        _ => "",
    }
}

/// Offsets in Linux's `struct tcp_info` (include/uapi/linux/tcp.h): fields are only ever added at its end.
mod offset {
    pub const SND_MSS: usize = 16;
    pub const UNACKED: usize = 24;
    pub const RTT: usize = 68;
    pub const RTTVAR: usize = 72;
    pub const SND_CWND: usize = 80;
    pub const TOTAL_RETRANS: usize = 100;
    pub const PACING_RATE: usize = 104;
    pub const MIN_RTT: usize = 148;
    pub const DATA_SEGS_OUT: usize = 156;
    pub const DELIVERY_RATE: usize = 160;
    pub const BUSY_TIME: usize = 168;
    pub const RWND_LIMITED: usize = 176;
    pub const SNDBUF_LIMITED: usize = 184;
    pub const DELIVERED_CE: usize = 196;
    pub const BYTES_SENT: usize = 200;
    pub const BYTES_RETRANS: usize = 208;
    pub const SND_WND: usize = 228;
}

/// The congestion control of a connection.
pub fn congestion_of(stream: &TcpStream) -> Option<String> {
    sockopt::tcp_congestion(stream).ok()
}

/// Chooses the congestion control of a connection.
pub fn set_congestion(stream: &TcpStream, name: &str) -> Result<(), Failure> {
    sockopt::set_tcp_congestion(stream, name).map_err(|errno| {
        let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
        let hint = match errno {
            Errno::NOENT => format!("this kernel has: {}; others may need `modprobe tcp_{name}`", available.trim()),
            Errno::PERM => {
                format!("root may add it to net.ipv4.tcp_allowed_congestion_control (available: {})", available.trim())
            }
            _ => format!("this kernel has: {}", available.trim()),
        };
        Failure::new(format!("TCP congestion control `{name}`: {errno}")).hint(hint)
    })
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn the_kernel_s_counts_are_those_of_what_was_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&vec![7; 100_000]).unwrap();
        let mut arrived = vec![0; 100_000];
        server.read_exact(&mut arrived).unwrap();
        let info = TcpInfo::of(&client).unwrap();
        assert_eq!(info.sent_once(), 100_000);
        let sample = info.sample(Duration::from_secs(1));
        assert!(sample.rtt_us > 0 && sample.rtt_us < 1_000_000, "{sample:?}");
        assert!(sample.packet_bytes >= 500 && sample.window_bytes >= sample.packet_bytes, "{sample:?}");
        assert!(sample.sent_pkts >= 1 && sample.lost_pkts == 0, "{sample:?}");
    }

    #[test]
    fn an_unknown_congestion_control_is_explained() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let failure = set_congestion(&client, "nonesuch").unwrap_err();
        assert!(failure.message.contains("nonesuch") && failure.hint.unwrap().contains("this kernel has"), "{}", failure.message);
        let usual = congestion_of(&client).unwrap();
        assert_eq!(set_congestion(&client, &usual), Ok(()));
    }

    #[test]
    fn a_short_answer_of_an_old_kernel_reads_as_zero() {
        let info = TcpInfo { bytes: vec![1; 104] };
        assert_eq!((info.sent_once(), info.sample(Duration::ZERO).delivery_bps), (0, 0));
    }
}
