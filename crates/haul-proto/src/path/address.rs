//! The peer's address, how it is proved, and how a change of it is followed.
//!
//! An authentic packet, newer than all before, from another address means that the peer has moved or its NAT has rebound. Traffic keeps going to the old address
//! until the new one has answered a challenge, so that nobody can be flooded by a forged source. The first path is proved by the handshake; of a further one even
//! the first address must answer before data goes there. Each challenge has a nonce of its own, so its answer measures the round trip.
//! Sources: RFC 9000 8.2 and 9.3, draft-ietf-quic-multipath 4.1.

use std::net::SocketAddr;
use std::time::Duration;

use haul_units::Time;

/// Challenges before a new address is given up, until something comes from it again: with the answer to a challenge of its own it gets no more than three times what
/// it sent. // RFC 9000 8
const TRIES: u64 = 2;
/// The longest time between two challenges of a path that this side opens: it does not give up, for a firewall may be opened.
const INTERVAL_MAX: Duration = Duration::from_secs(30);
/// So many challenges are remembered.
const REMEMBERED: usize = 4;

/// Where a path leads.
#[derive(Debug)]
pub struct PeerAddress {
    current: SocketAddr,
    /// `current` has answered.
    proved: bool,
    candidate: Option<Candidate>,
}

#[derive(Debug)]
struct Candidate {
    address: SocketAddr,
    /// Of the first challenge; each one after it has the next number.
    nonce: u64,
    next_try: Time,
    tries: u64,
    /// When the last challenges left: that of try n at `n % REMEMBERED`.
    asked_at: [Time; REMEMBERED],
    /// Asked until it answers.
    persistent: bool,
}

impl Candidate {
    const fn new(now: Time, address: SocketAddr, nonce: u64) -> Self {
        Self { address, nonce, next_try: now, tries: 0, asked_at: [now; REMEMBERED], persistent: false }
    }

    /// When the challenge with this nonce left.
    fn asked_at(&self, nonce: u64) -> Option<Time> {
        let index = nonce.wrapping_sub(self.nonce);
        let known = index < self.tries && index + REMEMBERED as u64 >= self.tries;
        known.then(|| self.asked_at[(index % REMEMBERED as u64) as usize])
    }
}

/// An address has answered a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    /// Where the path has led so far.
    pub old: SocketAddr,
    /// That address had never been proved: the path begins here.
    pub is_first: bool,
    /// From the challenge to its answer.
    pub rtt: Duration,
}

impl PeerAddress {
    /// An address that the handshake has proved.
    pub const fn new(current: SocketAddr) -> Self {
        Self { current, proved: true, candidate: None }
    }

    /// An address that has proved nothing yet.
    pub const fn unproved(current: SocketAddr) -> Self {
        Self { current, proved: false, candidate: None }
    }

    /// An address to which this side opens a path: it is asked until it answers.
    pub const fn opening(now: Time, current: SocketAddr, nonce: u64) -> Self {
        let candidate = Candidate { persistent: true, ..Candidate::new(now, current, nonce) };
        Self { current, proved: false, candidate: Some(candidate) }
    }

    /// Whether the peer has shown that it is at [`Self::current`].
    pub const fn is_proved(&self) -> bool {
        self.proved
    }

    /// Where packets go.
    pub const fn current(&self) -> SocketAddr {
        self.current
    }

    /// The newest packet so far came from `from`. `nonce`: unpredictable.
    pub fn on_newest_from(&mut self, now: Time, from: SocketAddr, nonce: impl FnOnce() -> u64) {
        if from == self.current && self.proved {
            self.candidate = None;
        } else if self.candidate.as_ref().is_none_or(|candidate| candidate.address != from) {
            self.candidate = Some(Candidate::new(now, from, nonce()));
        }
    }

    /// A challenge to send now: where to, and with which nonce.
    pub fn poll_challenge(&mut self, now: Time, interval: Duration) -> Option<(SocketAddr, u64)> {
        let candidate = self.candidate.as_mut().filter(|candidate| now >= candidate.next_try)?;
        if candidate.tries == TRIES && !candidate.persistent {
            self.candidate = None;
            return None;
        }
        let nonce = candidate.nonce.wrapping_add(candidate.tries);
        candidate.asked_at[(candidate.tries % REMEMBERED as u64) as usize] = now;
        let doublings = if candidate.persistent { candidate.tries.min(16) as u32 } else { 0 };
        candidate.next_try = now + interval.saturating_mul(1 << doublings).min(interval.max(INTERVAL_MAX));
        candidate.tries += 1;
        Some((candidate.address, nonce))
    }

    /// When the next challenge is due.
    pub fn timer(&self) -> Time {
        self.candidate.as_ref().map_or(Time::NEVER, |candidate| candidate.next_try)
    }

    /// An answer to a challenge has come. Returns what it proves, if it is one to a challenge of this path's.
    pub fn on_response(&mut self, now: Time, nonce: u64) -> Option<Proof> {
        let candidate = self.candidate.take_if(|candidate| candidate.asked_at(nonce).is_some())?;
        let rtt = candidate.asked_at(nonce).map_or(Duration::ZERO, |at| now.since(at));
        let is_first = !std::mem::replace(&mut self.proved, true);
        let old = std::mem::replace(&mut self.current, candidate.address);
        Some(Proof { old, is_first, rtt })
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
        assert_eq!(peer.on_response(Time::ZERO, 7), None);
        assert_eq!(peer.on_response(Time::ZERO, 43), None, "not asked yet");
        assert_eq!(peer.current(), old);
        let later = Time::ZERO + Duration::from_millis(30);
        assert_eq!(peer.on_response(later, 42), Some(Proof { old, is_first: false, rtt: Duration::from_millis(30) }));
        assert_eq!(peer.current(), new);
        assert_eq!(peer.on_response(later, 42), None);
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
        assert_eq!(sent, TRIES as u32);
    }

    #[test]
    fn a_path_that_is_opened_asks_on_and_more_seldom_until_its_answer() {
        let address: SocketAddr = "10.0.0.2:2".parse().unwrap();
        let mut peer = PeerAddress::opening(Time::ZERO, address, u64::MAX);
        let mut asked = Vec::new();
        for second in 0..100 {
            let now = Time::ZERO + Duration::from_secs(second);
            asked.extend(peer.poll_challenge(now, Duration::from_secs(1)).map(|(_, nonce)| (second, nonce)));
        }
        assert_eq!(asked.iter().map(|(second, _)| *second).collect::<Vec<_>>(), [0, 1, 3, 7, 15, 31, 61, 91]);
        assert!(!peer.is_proved());
        let now = Time::ZERO + Duration::from_secs(100);
        assert_eq!(peer.on_response(now, asked[0].1), None, "long forgotten");
        let proof = peer.on_response(now, asked[6].1).unwrap();
        assert_eq!((proof.is_first, proof.rtt), (true, Duration::from_secs(39)));
        assert!(peer.is_proved() && peer.timer() == Time::NEVER);
    }

    #[test]
    fn an_address_never_proved_is_asked_again_when_it_speaks_again() {
        let address: SocketAddr = "10.0.0.2:2".parse().unwrap();
        let mut peer = PeerAddress::unproved(address);
        assert_eq!(peer.timer(), Time::NEVER, "nobody is asked unprompted");
        for nonce in [7, 70] {
            peer.on_newest_from(Time::ZERO, address, || nonce);
            let tries = (0..9).filter_map(|_| peer.poll_challenge(peer.timer(), Duration::from_secs(1))).count();
            assert_eq!(tries, TRIES as usize);
        }
    }
}
