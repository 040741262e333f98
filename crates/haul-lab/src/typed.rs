//! What people type of a WAN: its name, its hosts, the rates of their lines, links beside the first.

use std::str::FromStr;

use std::time::Duration;

use haul_units::{BitRate, Span};

use crate::options::{LinkOptions, QueueSize};

/// What cannot be understood, with what can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TypedError {
    /// No name.
    #[error("use up to 64 letters, digits, '-', '_' and '.'")]
    Name,
    /// No numbers of hosts.
    #[error("write the hosts of both sides, 1 to 64 each, for instance 3:1")]
    Hosts,
    /// No rate of a line.
    #[error("write a rate, for instance 100M, or one for several hosts: 1Gx5")]
    Access,
    /// No link.
    #[error("write the rate, the round-trip time and perhaps the queue of a link, for instance 1M,40ms,1s")]
    Beside,
}

/// A link beside others that is like them but for this.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Beside {
    /// Its rate, in both directions.
    pub rate: BitRate,
    /// Its round-trip time.
    pub rtt: Duration,
    /// Its queue, if it is another one.
    pub queue: Option<QueueSize>,
}

impl Beside {
    /// The link, beside one of these properties.
    pub fn link(&self, first: &LinkOptions) -> LinkOptions {
        let queue = self.queue.unwrap_or(first.queue);
        LinkOptions { rate: self.rate, back_rate: None, rtt: self.rtt, queue, ..first.clone() }
    }
}

impl FromStr for Beside {
    type Err = TypedError;

    fn from_str(text: &str) -> Result<Self, TypedError> {
        let mut words = text.split(',');
        let rate = words.next().and_then(|rate| rate.parse().ok());
        let rtt = words.next().and_then(|rtt| rtt.parse().ok());
        let queue = words.next().map(|queue| queue.parse().map_err(|_| TypedError::Beside)).transpose()?;
        match (rate, rtt, words.next()) {
            (Some(rate), Some(Span(rtt)), None) => Ok(Self { rate, rtt, queue }),
            _ => Err(TypedError::Beside),
        }
    }
}

/// How many hosts each side has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hosts(pub [u8; 2]);

/// The rate of the lines of one host or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Of each.
    pub rate: BitRate,
    /// Of so many.
    pub hosts: u8,
}

impl FromStr for Hosts {
    type Err = TypedError;

    fn from_str(text: &str) -> Result<Self, TypedError> {
        let counts = text.split_once(':').and_then(|(a, b)| Some([a.parse::<u8>().ok()?, b.parse::<u8>().ok()?]));
        counts.filter(|counts| counts.iter().all(|count| (1..=64).contains(count))).map(Self).ok_or(TypedError::Hosts)
    }
}

impl FromStr for Access {
    type Err = TypedError;

    fn from_str(text: &str) -> Result<Self, TypedError> {
        let (rate, hosts) = text.split_once('x').unwrap_or((text, "1"));
        let parsed =
            rate.parse::<BitRate>().ok().zip(hosts.parse().ok()).filter(|(rate, hosts)| *rate > BitRate::ZERO && *hosts > 0);
        parsed.map(|(rate, hosts)| Self { rate, hosts }).ok_or(TypedError::Access)
    }
}

/// The name of a WAN.
pub fn wan_name(text: &str) -> Result<String, TypedError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let is_name = !text.is_empty() && text.len() <= 64 && text.chars().all(plain);
    if is_name { Ok(text.to_owned()) } else { Err(TypedError::Name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_two_small_numbers() {
        assert_eq!("3:1".parse(), Ok(Hosts([3, 1])));
        for wrong in ["3", "0:1", "65:1", "1:1:1", ""] {
            assert_eq!(wrong.parse::<Hosts>(), Err(TypedError::Hosts), "{wrong}");
        }
    }

    #[test]
    fn a_line_has_a_rate_and_may_be_several() {
        assert_eq!("1Gx5".parse(), Ok(Access { rate: BitRate::gbps(1), hosts: 5 }));
        for wrong in ["", "x3", "1Gx", "1Gx0", "0", "1Gx300", "fast"] {
            assert_eq!(wrong.parse::<Access>(), Err(TypedError::Access), "{wrong}");
        }
    }

    #[test]
    fn a_link_beside_has_a_rate_a_round_trip_and_perhaps_a_queue() {
        let first = LinkOptions { seed: 7, back_rate: Some(BitRate::mbps(3)), ..LinkOptions::default() };
        let link = |text: &str| text.parse::<Beside>().map(|beside| beside.link(&first));
        let slow = LinkOptions { rate: BitRate::mbps(1), rtt: Duration::from_millis(40), back_rate: None, ..first.clone() };
        assert_eq!(link("1M,40ms"), Ok(slow.clone()));
        assert_eq!(link("1M,40ms,1s"), Ok(LinkOptions { queue: QueueSize::Time(Duration::from_secs(1)), ..slow }));
        for wrong in ["", "1M", "1M,", "fast,40ms", "1M,40", "1M,40ms,long", "1M,40ms,1s,1"] {
            assert_eq!(link(wrong), Err(TypedError::Beside), "{wrong}");
        }
    }

    #[test]
    fn a_name_can_be_a_part_of_a_path() {
        assert_eq!(wan_name("a-1_b.c"), Ok("a-1_b.c".to_owned()));
        for wrong in ["", "a b", "a/b", &"x".repeat(65)] {
            assert_eq!(wan_name(wrong), Err(TypedError::Name), "{wrong}");
        }
    }
}
