//! Round trips to networks that this side has connected to: what a connection's first timers go by before it has measured its own.
//!
//! A hello that is lost is repeated by a timer alone, and with nothing known that timer must suit a path of hundreds of milliseconds. An earlier connection to the same network knows better;
//! where it is wrong, what that costs is a hello sent twice.
//! Sources: RFC 9002 6.2.2 (a resumed connection may begin with the earlier one's round-trip time), RFC 9040 (what connections to a host, or to hosts of one network, may share).

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

/// Networks and the round trip that the newest connection to each has measured.
#[derive(Debug, Clone, Default)]
pub struct Familiar {
    /// The newest last.
    networks: VecDeque<(IpAddr, Duration)>,
}

impl Familiar {
    /// A connection to this host has measured that.
    pub fn note(&mut self, host: IpAddr, rtt: Duration) {
        let network = network(host);
        self.networks.retain(|(known, _)| *known != network);
        if self.networks.len() >= NETWORKS_MAX {
            self.networks.pop_front();
        }
        self.networks.push_back((network, rtt));
    }

    /// What is to be expected of a connection to this host.
    pub fn rtt(&self, host: IpAddr) -> Option<Duration> {
        let network = network(host);
        self.networks.iter().find(|(known, _)| *known == network).map(|(_, rtt)| *rtt)
    }
}

/// What is routed as one, most often: 24 bits of an IPv4 address (no shorter prefix passes between providers), 64 of an IPv6 address (RFC 7421).
fn network(host: IpAddr) -> IpAddr {
    match host.to_canonical() {
        IpAddr::V4(host) => (host & Ipv4Addr::new(255, 255, 255, 0)).into(),
        IpAddr::V6(host) => (host & Ipv6Addr::from_bits(u128::MAX << 64)).into(),
    }
}

/// More than a client speaks with at a time: 3 KB.
const NETWORKS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn host(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn hosts_of_a_network_are_alike() {
        let mut familiar = Familiar::default();
        assert_eq!(familiar.rtt(host("192.0.2.7")), None);
        familiar.note(host("192.0.2.7"), MS);
        familiar.note(host("2001:db8:0:7::1"), MS * 3);
        for (other, rtt) in [
            ("192.0.2.7", Some(MS)),
            ("192.0.2.200", Some(MS)),
            ("::ffff:192.0.2.9", Some(MS)),
            ("192.0.3.7", None),
            ("2001:db8:0:7:ffff::2", Some(MS * 3)),
            ("2001:db8:0:8::1", None),
        ] {
            assert_eq!(familiar.rtt(host(other)), rtt, "{other}");
        }
        familiar.note(host("192.0.2.9"), MS * 2);
        assert_eq!((familiar.rtt(host("192.0.2.7")), familiar.networks.len()), (Some(MS * 2), 2), "the newest counts");
    }

    #[test]
    fn the_oldest_makes_room() {
        let mut familiar = Familiar::default();
        let net = |n: usize| host(&format!("198.51.{n}.1"));
        (0..NETWORKS_MAX).for_each(|n| familiar.note(net(n), MS));
        familiar.note(net(0), MS);
        familiar.note(net(NETWORKS_MAX), MS);
        assert_eq!(familiar.networks.len(), NETWORKS_MAX);
        assert_eq!((familiar.rtt(net(0)), familiar.rtt(net(1))), (Some(MS), None));
    }
}
