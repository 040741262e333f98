//! What a path asks of both ends: buffers that hold what is on the way, and what waits behind a packet that was lost.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use haul_units::{BitRate, Bytes};

use crate::clock;
use crate::connection::{Connection, product};
use crate::error::TcpError;
use crate::kernel::netns::Namespace;
use crate::tcp::Tcp;

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
    let needs = buffer(product(rate, round_trip));
    [SEND, RECEIVE].into_iter().map(|key| limit(key, needs)).collect()
}

/// A limit of a network namespace that a connection of it needs to be larger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lack {
    /// Which, and what the connection needs of it.
    pub limit: Limit,
    /// The other end of the connection that needs most.
    pub peer: SocketAddr,
    /// What it has had on the way at once.
    pub on_the_way: Bytes,
    /// The network namespace, where it has a name.
    namespace: Option<String>,
}

impl Lack {
    /// What is too small, and for whom.
    pub fn words(&self) -> String {
        let (verb, limit) = (if self.limit.key == SEND { "sent to" } else { "received from" }, &self.limit);
        format!(
            "{}: {} is too small for what is {verb} {} ({} are on the way at once): {} needed",
            limit.key,
            Bytes(limit.has[2]),
            self.peer,
            self.on_the_way,
            limit.needs
        )
    }

    /// The command that makes it enough.
    pub fn command(&self) -> String {
        let within = self.namespace.as_ref().map_or_else(String::new, |name| format!("ip netns exec {name} "));
        format!("{within}{}", self.limit.command())
    }
}

impl Tcp {
    /// Which buffers of a namespace are too small for the paths of its connections, as they use them now.
    pub fn lacks(&self, namespace: &Namespace) -> Result<Vec<Lack>, TcpError> {
        let connections = match self.connections(namespace) {
            Err(TcpError::NothingOn) => return Ok(Vec::new()),
            connections => connections?,
        };
        let most = |on_the_way: fn(&Connection) -> Bytes| {
            let one = connections.iter().max_by_key(|connection| on_the_way(connection))?;
            Some((one.peer, on_the_way(one)))
        };
        let mut lacks = Vec::new();
        for (key, most) in [(SEND, most(Connection::sent_in_round)), (RECEIVE, most(|connection| connection.received_in_round))] {
            let Some((peer, on_the_way)) = most else { continue };
            let limit = namespace.inside(|| limit(key, buffer(on_the_way)))??;
            if !limit.is_met() {
                lacks.push(Lack { limit, peer, on_the_way, namespace: namespace.name().map(str::to_owned) });
            }
        }
        Ok(lacks)
    }
}

fn buffer(on_the_way: Bytes) -> Bytes {
    Bytes(on_the_way.0.saturating_mul(PRODUCTS))
}

/// That of the network namespace of this thread.
fn limit(key: &'static str, needs: Bytes) -> Result<Limit, TcpError> {
    let file = format!("/proc/sys/{}", key.replace('.', "/"));
    let text = fs::read_to_string(file).map_err(TcpError::doing("reading the limits of TCP"))?;
    let mut numbers = text.split_whitespace().map(|word| word.parse().unwrap_or(0));
    Ok(Limit { key, has: [0; 3].map(|_: u64| numbers.next().unwrap_or(0)), needs })
}

const SEND: &str = "net.ipv4.tcp_wmem";
const RECEIVE: &str = "net.ipv4.tcp_rmem";

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
