//! A network of IP addresses: an address, of which the first bits count.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// What is no network.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{0}` is no network: write ADDRESS or ADDRESS/BITS, for instance 10.0.0.0/8 or 2001:db8::/32")]
pub struct NetworkError(String);

/// `10.0.0.0/8`, or a single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// This address and no other.
    pub const fn host(address: IpAddr) -> Self {
        Self { address, bits: most_bits(address) }
    }

    /// Its address, of which the first bits count.
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
        let wrong = || NetworkError(text.to_owned());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let Some(bits) = bits else { return Ok(Self::host(address.to_canonical())) };
        let bits = bits.parse().ok().filter(|&bits: &u8| bits <= most_bits(address)).ok_or_else(wrong)?;
        Ok(Self { address, bits })
    }
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
}
