//! Where the server of a carried handshake may be.
//!
//! The client is complete before it has heard the server over UDP, so its addresses are tried with a connection that is already in use: the first flight, and data, go to the
//! likeliest; when the handshake's timer asks again, it asks at all of them. The first authentic answer decides, and the connection goes on there. Source: the idea of RFC 8305 (Happy Eyeballs).
//!
//! The likeliest gets each flight twice: without it the server understands nothing of the first window of data, and it is one small packet.

use std::net::SocketAddr;

/// The addresses, until one has answered.
#[derive(Debug, Default)]
pub struct Whereabouts {
    /// The likeliest last, and twice: a flight ends there.
    addresses: Vec<SocketAddr>,
    /// Where the flight under way goes.
    asked: usize,
}

impl Whereabouts {
    /// The likeliest first.
    pub fn new(addresses: &[SocketAddr]) -> Self {
        let twice = addresses.first();
        Self { addresses: addresses.iter().rev().chain(twice).copied().collect(), asked: addresses.len().saturating_sub(1) }
    }

    /// Whether it may be there.
    pub fn contains(&self, address: SocketAddr) -> bool {
        self.addresses.contains(&address)
    }

    /// Where the flight under way goes, if that is to be tried out.
    pub fn current(&self) -> Option<SocketAddr> {
        self.addresses.get(self.asked).copied()
    }

    /// The flight has left; false if there is nowhere else to send it.
    pub fn advance(&mut self) -> bool {
        let more = self.asked + 1 < self.addresses.len();
        self.asked += usize::from(more);
        more
    }

    /// All of them are asked, from the least likely on.
    pub const fn ask_all(&mut self) {
        self.asked = 0;
    }

    /// One has answered.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_likeliest_first_then_all() {
        let [a, b, c] = [1, 2, 3].map(|port| SocketAddr::from(([192, 0, 2, 1], port)));
        let mut candidates = Whereabouts::new(&[a, b, c]);
        assert_eq!((candidates.current(), candidates.advance()), (Some(a), true));
        assert_eq!((candidates.current(), candidates.advance()), (Some(a), false));
        candidates.ask_all();
        assert_eq!((candidates.current(), candidates.advance()), (Some(c), true));
        assert_eq!((candidates.current(), candidates.advance()), (Some(b), true));
        assert_eq!((candidates.current(), candidates.advance()), (Some(a), true));
        assert_eq!((candidates.current(), candidates.advance()), (Some(a), false));
        assert!(candidates.contains(b));
        candidates.clear();
        assert_eq!((candidates.current(), candidates.advance(), candidates.contains(b)), (None, false, false));
    }
}
