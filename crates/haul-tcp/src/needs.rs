//! What a path asks of both ends: buffers that hold what is on the way, and what waits behind a packet that was lost.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use haul_units::{BitRate, Bytes};

use crate::clock;
use crate::error::TcpError;

/// The buffer in bandwidth-delay products: one is on the way, one waits for what was lost to come again, and the kernel's books of small packets take as much.
const PRODUCTS: u64 = 4;
/// How long a host may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// One limit of this system, and what a path needs of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit {
    /// Of sysctl.
    pub key: &'static str,
    /// Its three numbers: least, usual, most.
    pub has: [u64; 3],
    /// What the third should be at least.
    pub needs: Bytes,
}

impl Limit {
    /// Whether it is enough.
    pub fn is_met(&self) -> bool {
        self.has[2] >= self.needs.0
    }

    /// The command that makes it enough.
    pub fn command(&self) -> String {
        format!("sysctl -w {}=\"{} {} {}\"", self.key, self.has[0], self.has[1], self.needs.0)
    }
}

/// The time to a port of a host and back: that of opening a connection.
pub fn round_trip(host: &str, port: u16) -> Result<(SocketAddr, Duration), TcpError> {
    let failed = |source| TcpError::Unreached { host: host.to_owned(), source };
    let address = (host, port).to_socket_addrs().map_err(failed)?.next();
    let address = address.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    let begun = clock::now();
    match TcpStream::connect_timeout(&address, PATIENCE) {
        // A refusal has come all the way.
        Err(error) if error.kind() != io::ErrorKind::ConnectionRefused => Err(failed(error)),
        _ => Ok((address, begun.elapsed())),
    }
}

/// What a path of this rate and round-trip time needs of this system as a sender and as a receiver.
pub fn limits(rate: BitRate, round_trip: Duration) -> Result<Vec<Limit>, TcpError> {
    let product = u128::from(rate.as_bps()) * round_trip.as_micros() / 8_000_000;
    let needs = Bytes(u64::try_from(product).unwrap_or(u64::MAX).saturating_mul(PRODUCTS));
    [("net.ipv4.tcp_wmem", "/proc/sys/net/ipv4/tcp_wmem"), ("net.ipv4.tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem")]
        .into_iter()
        .map(|(key, file)| {
            let text = fs::read_to_string(file).map_err(TcpError::doing("reading the limits of TCP"))?;
            let mut numbers = text.split_whitespace().map(|word| word.parse().unwrap_or(0));
            let has = [0; 3].map(|_: u64| numbers.next().unwrap_or(0));
            Ok(Limit { key, has, needs })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_hold_several_bandwidth_delay_products() {
        let limits = limits(BitRate::from_bps(1_000_000_000), Duration::from_millis(100)).expect("a Linux");
        assert_eq!(limits.len(), 2);
        assert!(limits.iter().all(|limit| limit.needs == Bytes(50_000_000) && limit.has[0] > 0), "{limits:?}");
        let met = Limit { key: "x", has: [1, 2, 3], needs: Bytes(3) };
        assert!(met.is_met() && !Limit { needs: Bytes(4), ..met.clone() }.is_met());
        assert_eq!(met.command(), "sysctl -w x=\"1 2 3\"");
    }
}
