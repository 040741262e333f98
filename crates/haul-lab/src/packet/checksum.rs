//! The Internet checksum (RFC 1071).

/// Sum of the 16-bit words of `bytes`, not folded.
pub fn sum(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |byte| u64::from(*byte) << 8);
    words.map(|word| u64::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u64>() + odd
}

/// The sum in 16 bits, carries added.
pub fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Sum over the pseudo header of TCP or UDP (RFC 9293 3.1, RFC 8200 8.1), folded.
pub fn pseudo(addresses: &[u8], protocol: u8, len: usize) -> u16 {
    fold(sum(addresses) + u64::from(protocol) + (len as u64 >> 16) + (len as u64 & 0xffff))
}
