//! Networks as the programs in the kernel know them: IPv4 as `::ffff:a.b.c.d`, and so many bits more.

use std::net::IpAddr;

use haul_units::Network;

/// All connections. The programs are told of no bits for it, so that IPv4 is meant as well.
pub(crate) const EVERYTHING: Network = Network::EVERY_IPV6;

/// Its address and its bits there.
pub(crate) fn mapped(network: Network) -> ([u8; 16], u32) {
    match network.address() {
        IpAddr::V4(address) => (address.to_ipv6_mapped().octets(), u32::from(network.bits()) + 96),
        IpAddr::V6(address) => (address.octets(), u32::from(network.bits())),
    }
}

/// The bits that count, set.
pub(crate) fn mask(bits: u32) -> [u8; 16] {
    (u128::MAX.checked_shl(128 - bits.min(128)).unwrap_or(0)).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_see_both_families_alike() {
        let (address, bits) = mapped("10.1.0.0/16".parse().expect("a network"));
        assert_eq!((&address[10..14], bits), (&[0xff, 0xff, 10, 1][..], 112));
        assert_eq!(mapped(EVERYTHING).1, 0);
        assert_eq!(mask(0), [0; 16]);
        assert_eq!(mask(128), [0xff; 16]);
        assert_eq!(mask(12)[..3], [0xff, 0xf0, 0]);
    }
}
