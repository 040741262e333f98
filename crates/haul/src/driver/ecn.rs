//! The codepoint of the IP header (RFC 3168 5).

use haul_proto::Ecn;

pub(super) const fn to_bits(ecn: Ecn) -> u8 {
    match ecn {
        Ecn::NotEct => 0b00,
        Ecn::Ect1 => 0b01,
        Ecn::Ect0 => 0b10,
        Ecn::Ce => 0b11,
    }
}

pub(super) const fn from_bits(bits: u8) -> Ecn {
    match bits & 0b11 {
        0b01 => Ecn::Ect1,
        0b10 => Ecn::Ect0,
        0b11 => Ecn::Ce,
        _ => Ecn::NotEct,
    }
}
