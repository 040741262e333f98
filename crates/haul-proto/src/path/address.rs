//! The peer's address, and how a change of it is followed.
//!
//! An authentic packet, newer than all before, from another address means that the peer has moved or its NAT has rebound. Traffic keeps going to the old address
//! until the new one has answered a challenge, so that nobody can be flooded by a forged source. Source: RFC 9000 9.3.

use std::net::SocketAddr;
use std::time::Duration;

use haul_units::Time;

/// Challenges before a new address is given up.
const TRIES: u8 = 5;

/// Where a path leads.
#[derive(Debug)]
pub struct PeerAddress {
    current: SocketAddr,
    candidate: Option<Candidate>,
}

#[derive(Debug)]
struct Candidate {
    address: SocketAddr,
    nonce: u64,
    next_try: Time,
    tries: u8,
}

impl PeerAddress {
    /// An address that the handshake has proved.
    pub const fn new(current: SocketAddr) -> Self {
        Self { current, candidate: None }
    }

    /// Where packets go.
    pub const fn current(&self) -> SocketAddr {
        self.current
    }

    /// The newest packet so far came from `from`. `nonce`: unpredictable.
    pub fn on_newest_from(&mut self, now: Time, from: SocketAddr, nonce: impl FnOnce() -> u64) {
        if from == self.current {
            self.candidate = None;
        } else if self.candidate.as_ref().is_none_or(|candidate| candidate.address != from) {
            self.candidate = Some(Candidate { address: from, nonce: nonce(), next_try: now, tries: 0 });
        }
    }

    /// A challenge to send now: where to, and with which nonce.
    pub fn poll_challenge(&mut self, now: Time, interval: Duration) -> Option<(SocketAddr, u64)> {
        let candidate = self.candidate.as_mut().filter(|candidate| now >= candidate.next_try)?;
        if candidate.tries == TRIES {
            self.candidate = None;
            return None;
        }
        candidate.tries += 1;
        candidate.next_try = now + interval;
        Some((candidate.address, candidate.nonce))
    }

    /// When the next challenge is due.
    pub fn timer(&self) -> Time {
        self.candidate.as_ref().map_or(Time::NEVER, |candidate| candidate.next_try)
    }

    /// An answer to a challenge has come. Returns the old address if the path now leads elsewhere.
    pub fn on_response(&mut self, nonce: u64) -> Option<SocketAddr> {
        let candidate = self.candidate.take_if(|candidate| candidate.nonce == nonce)?;
        Some(std::mem::replace(&mut self.current, candidate.address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_counts_only_after_its_answer() {
        let (old, new): (SocketAddr, SocketAddr) = ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap());
        let mut peer = PeerAddress::new(old);
        peer.on_newest_from(Time::ZERO, new, || 42);
        peer.on_newest_from(Time::ZERO, new, || 43);
        assert_eq!(peer.poll_challenge(Time::ZERO, Duration::from_secs(1)), Some((new, 42)));
        assert_eq!(peer.poll_challenge(Time::ZERO, Duration::from_secs(1)), None);
        assert_eq!(peer.on_response(7), None);
        assert_eq!(peer.current(), old);
        assert_eq!(peer.on_response(42), Some(old));
        assert_eq!(peer.current(), new);
        assert_eq!(peer.on_response(42), None);
    }

    #[test]
    fn silence_ends_the_challenges() {
        let mut peer = PeerAddress::new("10.0.0.1:1".parse().unwrap());
        peer.on_newest_from(Time::ZERO, "10.0.0.2:2".parse().unwrap(), || 42);
        let mut now = Time::ZERO;
        let mut sent = 0;
        while peer.timer() != Time::NEVER {
            sent += u32::from(peer.poll_challenge(now, Duration::from_secs(1)).is_some());
            now += Duration::from_secs(1);
        }
        assert_eq!(sent, u32::from(TRIES));
    }
}
