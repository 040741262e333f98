//! What the kernel tells of a TCP connection, and its congestion control.

use std::fs;
use std::io;
use std::net::TcpStream;
use std::time::Duration;

use haul_peer::TcpInfo;
use haul_units::PeerText;

use crate::kernel;
use crate::sample::{PathSample, micros};

/// Payload that has left, each byte once.
pub fn sent_once(info: &TcpInfo) -> u64 {
    info.u64(offset::BYTES_SENT).saturating_sub(info.u64(offset::BYTES_RETRANS))
}

/// As a sender's sample; `elapsed` since the connection began to send.
pub fn sample(info: &TcpInfo, elapsed: Duration) -> PathSample {
    let (busy, receiver, buffer) =
        (info.u64(offset::BUSY_TIME), info.u64(offset::RWND_LIMITED), info.u64(offset::SNDBUF_LIMITED));
    let rate = |bytes: u64| if bytes == u64::MAX { 0 } else { bytes.saturating_mul(8) };
    let segment = info.u32(offset::SND_MSS);
    let min_rtt = info.min_rtt().map_or(0, micros);
    PathSample {
        rtt_us: info.u32(offset::RTT),
        rtt_var_us: info.u32(offset::RTTVAR),
        min_rtt_us: min_rtt,
        queue_delay_us: info.u32(offset::RTT).saturating_sub(min_rtt),
        window_bytes: info.u32(offset::SND_CWND) * segment,
        in_flight_bytes: info.u32(offset::UNACKED) * segment,
        receive_window_bytes: info.u32(offset::SND_WND),
        packet_bytes: segment,
        pacing_bps: rate(info.u64(offset::PACING_RATE)),
        delivery_bps: rate(info.u64(offset::DELIVERY_RATE)),
        burst_p99_pkts: 0,
        phase: phase(info.u8(offset::STATE)).into(),
        sent_pkts: info.u32(offset::DATA_SEGS_OUT),
        lost_pkts: info.u32(offset::TOTAL_RETRANS),
        spurious_pkts: 0,
        marked_pkts: info.u32(offset::DELIVERED_CE),
        retransmitted_bytes: info.u64(offset::BYTES_RETRANS),
        wait_application_us: micros(elapsed).saturating_sub(busy),
        wait_window_us: busy.saturating_sub(receiver).saturating_sub(buffer),
        wait_credit_us: receiver.saturating_add(buffer),
        wait_pacing_us: 0,
        each: Vec::new(),
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
    pub const STATE: usize = 1;
    pub const SND_MSS: usize = 16;
    pub const UNACKED: usize = 24;
    pub const RTT: usize = 68;
    pub const RTTVAR: usize = 72;
    pub const SND_CWND: usize = 80;
    pub const TOTAL_RETRANS: usize = 100;
    pub const PACING_RATE: usize = 104;
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
    kernel::congestion_of(stream)
}

/// This system's TCP has no such congestion control for us.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.text())]
pub struct CongestionError {
    /// What was asked for.
    pub name: PeerText,
    /// What the system says: `NotFound` where it has none of this name, `PermissionDenied` where it is not for everybody.
    pub source: io::Error,
    /// What this kernel has, with blanks between.
    pub available: String,
}

impl CongestionError {
    fn text(&self) -> String {
        match self.source.kind() {
            io::ErrorKind::NotFound => format!("this kernel's TCP has no congestion control `{}`", self.name),
            _ => format!("TCP congestion control `{}`: {}", self.name, self.source),
        }
    }
}

/// Chooses the congestion control of a connection.
pub fn set_congestion(stream: &TcpStream, name: &str) -> Result<(), CongestionError> {
    kernel::set_congestion(stream, name).map_err(|source| {
        let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
        CongestionError { name: name.into(), source, available: available.trim().to_owned() }
    })
}

#[cfg(unix)]
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
        assert_eq!(sent_once(&info), 100_000);
        let path = sample(&info, Duration::from_secs(1));
        assert!(path.rtt_us > 0 && path.rtt_us < 1_000_000, "{path:?}");
        assert!(path.packet_bytes >= 500 && path.window_bytes >= path.packet_bytes, "{path:?}");
        assert!(path.sent_pkts >= 1 && path.lost_pkts == 0, "{path:?}");
    }

    #[test]
    fn an_unknown_congestion_control_is_explained() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let error = set_congestion(&client, "nonesuch").unwrap_err();
        assert!(error.to_string().contains("nonesuch") && !error.available.is_empty(), "{error:?}");
        let usual = congestion_of(&client).unwrap();
        assert!(error.available.split(' ').any(|name| name == usual), "{error:?}");
        set_congestion(&client, &usual).unwrap();
    }

    #[test]
    fn a_short_answer_of_an_old_kernel_reads_as_zero() {
        let info = TcpInfo::from_bytes(vec![1; 104]);
        assert_eq!((sent_once(&info), sample(&info, Duration::ZERO).delivery_bps), (0, 0));
    }
}
