//! A FatTree of network namespaces: hosts, and switches that route, whose lines have the rate and the buffer that were asked for.
//!
//! ```text
//!   core           c1      c2      c3      c4          routes down to a pod
//!                   |\ ..                              up: equal paths, chosen by a hash of addresses and ports
//!   aggregation    a1  a2   (in each of k pods)        a seed for each switch, or all of them would choose alike
//!                   | X |
//!   edge           e1  e2
//!                  /\  /\
//!   hosts         h h  h h
//! ```
//!
//! A line is a veth pair with a token bucket at each end: its rate, and a buffer in bytes. It takes packet after packet (`gso_max_segs 1`), for one of 64 KB would
//! pass a buffer that has no room for it. There is no delay but what packets take on lines and in buffers.
//!
//! The namespaces have no names: they live as long as this process holds them, or a thread is in one. So nothing is left of a tree, however its process ends, and there
//! is nothing that could be found stale.
//! Sources: Al-Fares, Loukissas, Vahdat, "A scalable, commodity data center network architecture" (2008) for the tree; RFC 2992 for the choice among equal paths.
//!
//! | module | idea |
//! |---|---|
//! | `plan` | which nodes, lines, addresses and routes: pure |
//! | `lines` | what iproute2 is told of a node: pure |
//! | `lay` | doing it |

mod lay;
mod lines;
mod plan;

use std::time::Duration;

use haul_units::{BitRate, Bytes};

pub use self::lay::{Tree, TreeError, TreeHost};

/// What tree to lay.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TreeSpec {
    /// Ports of a switch, an even number of 2 to 16: so many pods, and a quarter of its cube hosts.
    pub ports: u8,
    /// Rate of IP bytes on a host's line.
    pub host: BitRate,
    /// Between an edge switch and one of the aggregation.
    pub aggregation: BitRate,
    /// Between a switch of the aggregation and one of the core.
    pub core: BitRate,
    /// The buffer before each line, each way.
    pub buffer: Bytes,
    /// The least time after which the hosts' TCP sends again what nobody answers; 200 ms where nobody asks.
    pub least_timeout: Duration,
    /// Decides how switches choose among equal paths.
    pub seed: u64,
}

#[cfg(test)]
impl TreeSpec {
    /// For tests.
    const fn tried(ports: u8) -> Self {
        Self {
            ports,
            host: BitRate::mbps(10),
            aggregation: BitRate::mbps(20),
            core: BitRate::mbps(40),
            buffer: Bytes(100_000),
            least_timeout: Duration::from_secs(2),
            seed: 1,
        }
    }
}
