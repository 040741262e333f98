//! A network of IP addresses: an address, of which the first bits count.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// What is no network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NetworkError {
    /// It cannot be read.
    #[error("`{0}` is no network: write ADDRESS or ADDRESS/BITS, for instance 10.0.0.0/8 or 2001:db8::/32")]
    Unclear(String),
    /// Its address is not the first one, where that is asked for.
    #[error("`{text}`: the network is {network}")]
    NotFirst {
        /// What was written.
        text: String,
        /// What it is in.
        network: Network,
    },
}

/// `10.0.0.0/8`, or a single address; all bits behind those that count are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Every IPv6 address.
    pub const EVERY_IPV6: Self = Self { address: IpAddr::V6(Ipv6Addr::UNSPECIFIED), bits: 0 };

    /// This address and no other.
    pub const fn host(address: IpAddr) -> Self {
        Self { address, bits: most_bits(address) }
    }

    /// As it is read elsewhere, and written by its first address: where a network is routed, another one is a slip.
    pub fn exact(text: &str) -> Result<Self, NetworkError> {
        let (network, written) = parse(text)?;
        if network.address == written { Ok(network) } else { Err(NetworkError::NotFirst { text: text.to_owned(), network }) }
    }

    /// Its first address.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits count.
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// Whether an address is in it. An IPv4 address in IPv6's clothes is the IPv4 address.
    pub fn holds(&self, address: IpAddr) -> bool {
        let differ = match (self.address, address.to_canonical()) {
            (IpAddr::V4(one), IpAddr::V4(other)) => u128::from(one.to_bits() ^ other.to_bits()) << 96,
            (IpAddr::V6(one), IpAddr::V6(other)) => one.to_bits() ^ other.to_bits(),
            _ => return false,
        };
        differ.leading_zeros() >= u32::from(self.bits)
    }
}

const fn most_bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        parse(text).map(|(network, _)| network)
    }
}

/// The network, and the address by which it was written.
fn parse(text: &str) -> Result<(Network, IpAddr), NetworkError> {
    let wrong = || NetworkError::Unclear(text.to_owned());
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits)),
        None => (text, None),
    };
    let written: IpAddr = address.parse().map_err(|_| wrong())?;
    let Some(bits) = bits else {
        let written = written.to_canonical();
        return Ok((Network::host(written), written));
    };
    let bits = bits.parse().ok().filter(|&bits: &u8| bits <= most_bits(written)).ok_or_else(wrong)?;
    let address = match written {
        IpAddr::V4(four) => IpAddr::V4((four.to_bits() & u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0)).into()),
        IpAddr::V6(six) => IpAddr::V6((six.to_bits() & u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0)).into()),
    };
    Ok((Network { address, bits }, written))
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.bits == most_bits(self.address) { self.address.fmt(f) } else { write!(f, "{}/{}", self.address, self.bits) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bits_decide() {
        for (network, address, is) in [
            ("10.0.0.0/8", "10.9.8.7", true),
            ("10.0.0.0/8", "::ffff:10.9.8.7", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("192.0.2.1", "192.0.2.1", true),
            ("192.0.2.1", "192.0.2.2", false),
            ("0.0.0.0/0", "1.2.3.4", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:5::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "1.2.3.4", false),
        ] {
            let parsed: Network = network.parse().unwrap();
            assert_eq!(parsed.holds(address.parse().unwrap()), is, "{network} {address}");
            assert_eq!(parsed.to_string(), network);
        }
        for text in ["", "10.0.0.0/33", "x/8", "10.0.0.0/", "10.0.0/8", "/8", "10.0.0.0/-1"] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_network_is_that_of_its_first_address() {
        for (text, network) in [("10.1.2.3/16", "10.1.0.0/16"), ("2001:db8::1/32", "2001:db8::/32"), ("1.2.3.4/0", "0.0.0.0/0")] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), network);
            let error = Network::exact(text).expect_err(text);
            assert_eq!(error.to_string(), format!("`{text}`: the network is {network}"));
            assert_eq!(Network::exact(network), network.parse());
        }
        assert_eq!("10.0.0.1/32".parse(), Ok::<_, NetworkError>(Network::host("10.0.0.1".parse().unwrap())));
        assert_eq!(Network::exact("::/0"), Ok(Network::EVERY_IPV6));
        assert!(Network::exact("10.1.0.0/33").is_err());
    }
}
