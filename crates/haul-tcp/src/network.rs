//! A network by its address and the number of bits that count.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A network, or one host; all bits behind those that count are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// Its first address.
    pub const fn address(&self) -> IpAddr {
        self.address
    }

    /// How many bits count, 0 to 32 or 128.
    pub const fn bits(&self) -> u8 {
        self.bits
    }

    /// All addresses.
    pub(crate) const EVERYTHING: Self = Self { address: IpAddr::V6(std::net::Ipv6Addr::UNSPECIFIED), bits: 0 };

    /// As the programs know addresses: IPv4 as `::ffff:a.b.c.d`, and so many bits more.
    pub(crate) fn mapped(&self) -> ([u8; 16], u32) {
        match self.address {
            IpAddr::V4(address) => (address.to_ipv6_mapped().octets(), u32::from(self.bits) + 96),
            IpAddr::V6(address) => (address.octets(), u32::from(self.bits)),
        }
    }

    /// The bits that count, set.
    pub(crate) fn mask(bits: u32) -> [u8; 16] {
        (u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0)).to_be_bytes()
    }
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no address, and no network as 10.1.0.0/16");
        let (address, bits) = text.split_once('/').map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), str::parse).map_err(|_| wrong())?;
        if bits > most {
            return Err(format!("{text:?}: an address has {most} bits"));
        }
        let first = match address {
            IpAddr::V4(four) => IpAddr::V4((four.to_bits() & u32::MAX.checked_shl(u32::from(32 - bits)).unwrap_or(0)).into()),
            IpAddr::V6(six) => IpAddr::V6((six.to_bits() & u128::MAX.checked_shl(u32::from(128 - bits)).unwrap_or(0)).into()),
        };
        if first == address { Ok(Self { address, bits }) } else { Err(format!("{text:?}: the network is {first}/{bits}")) }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn networks_are_written_as_usual() {
        for text in ["10.1.0.0/16", "0.0.0.0/0", "fd00::/8", "::/0", "192.168.1.7/32"] {
            assert_eq!(text.parse::<Network>().expect(text).to_string(), text);
        }
        assert_eq!("10.0.0.1".parse::<Network>().expect("a host").to_string(), "10.0.0.1/32");
        for wrong in ["10.1.0.1/16", "10.1.0.0/33", "nas", "10.1.0.0/", "10.1/16"] {
            assert!(wrong.parse::<Network>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_programs_see_both_families_alike() {
        let (address, bits) = "10.1.0.0/16".parse::<Network>().expect("a network").mapped();
        assert_eq!((&address[10..14], bits), (&[0xff, 0xff, 10, 1][..], 112));
        assert_eq!(Network::mask(0), [0; 16]);
        assert_eq!(Network::mask(128), [0xff; 16]);
        assert_eq!(Network::mask(12)[..3], [0xff, 0xf0, 0]);
    }
}
