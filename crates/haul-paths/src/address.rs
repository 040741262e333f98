//! The peer's address, how it is proved, and how a change of it is followed.
//!
//! An authentic packet, newer than all before, from another address means that a client has moved or its NAT has rebound. Traffic keeps going to the old address
//! until the new one has answered a challenge, so that nobody can be flooded by a forged source. The first path is proved by the handshake; of a further one even
//! the first address must answer before data goes there. Each challenge has a nonce of its own that nobody can foresee, so its answer measures the round trip. Servers do not move: a client stays with the address
//! that it has chosen.
//!
//! ```text
//!   standing       what may leave towards the address
//!   proved         everything
//!   provisional    everything, within three times what came from it      the first address of a carried handshake
//!   unproved       challenges and their answers, within the same bound   a further path, or where somebody seems to have moved
//!   opening        challenges: this side has chosen the address
//! ```
//! A client may look elsewhere: besides where it has chosen to go, the other addresses of its server ([`crate::ServerAddresses`]) are asked, a few times each. The first that answers is where the path leads.
//! Sources: RFC 9000 8 and 9, draft-ietf-quic-multipath 4.1.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use haul_units::Time;

/// UDP payload of a packet with a challenge, or an answer to one, and nothing else: header, frame, tag.
pub const CHALLENGE_BYTES: usize = 16 + 9 + 16;
/// UDP payload of a control packet, at most: what every path carries.
pub const CONTROL_BYTES: usize = 1200;
/// What data leaves of the bound of a provisional address: a report and some challenges.
const RESERVE_BYTES: u64 = CONTROL_BYTES as u64 + 4 * CHALLENGE_BYTES as u64;
/// An address that is not proved gets so many times what came from it. // RFC 9000 8.1
const AMPLIFICATION: u64 = 3;
/// Challenges before a new address is given up, until something comes from it again.
const TRIES: u32 = 2;
/// The longest time between two challenges of an address that is asked until it answers: a firewall may be opened.
const INTERVAL_MAX: Duration = Duration::from_secs(30);
/// So many challenges are remembered of each address that is asked.
const REMEMBERED: usize = 4;
/// An address that the server has told gets so many challenges of a path, and then no more.
const TRIES_ELSEWHERE: u32 = 3;

/// Where a path leads.
#[derive(Debug)]
pub struct PeerAddress {
    current: SocketAddr,
    standing: Standing,
    /// Of `current`, while it is provisional or unproved.
    allowance: Allowance,
    candidate: Option<Candidate>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Proved,
    Provisional,
    Unproved,
    Opening,
}

/// What came from an address that has proved nothing, and what went there.
#[derive(Debug, Clone, Copy, Default)]
struct Allowance {
    received_bytes: u64,
    sent_bytes: u64,
}

impl Allowance {
    const fn room(&self) -> u64 {
        self.received_bytes.saturating_mul(AMPLIFICATION).saturating_sub(self.sent_bytes)
    }
}

/// An address that is being asked.
#[derive(Debug)]
struct Candidate {
    address: SocketAddr,
    /// Where it is another address than the current one, which has its own.
    allowance: Allowance,
    next_try: Time,
    tries: u32,
    /// The last challenges.
    asked: VecDeque<Challenge>,
    /// Asked until it answers.
    persistent: bool,
    /// Where else the peer may be, and how often it was asked there.
    elsewhere: Vec<(SocketAddr, u32)>,
}

/// A challenge that has left.
#[derive(Debug, Clone, Copy)]
struct Challenge {
    nonce: u64,
    at: Time,
    to: SocketAddr,
}

impl Candidate {
    fn new(now: Time, address: SocketAddr) -> Self {
        let allowance = Allowance::default();
        let (asked, elsewhere) = Default::default();
        Self { address, allowance, next_try: now, tries: 0, asked, persistent: false, elsewhere }
    }

    fn persistent(now: Time, address: SocketAddr) -> Self {
        Self { persistent: true, ..Self::new(now, address) }
    }

    /// The challenge with this nonce.
    fn challenge(&self, nonce: u64) -> Option<Challenge> {
        self.asked.iter().find(|challenge| challenge.nonce == nonce).copied()
    }

    /// Which address elsewhere is asked next: one that was asked less often than the chosen one, until that is often enough.
    fn next_elsewhere(&self) -> Option<usize> {
        self.elsewhere.iter().position(|(_, asked)| *asked < self.tries.min(TRIES_ELSEWHERE))
    }

    /// Who is asked next.
    fn next_address(&self) -> SocketAddr {
        self.next_elsewhere().and_then(|at| self.elsewhere.get(at)).map_or(self.address, |(address, _)| *address)
    }

    fn is_elsewhere(&self, address: SocketAddr) -> bool {
        self.elsewhere.iter().any(|(other, _)| *other == address)
    }

    /// A challenge leaves, which is due every `interval`.
    fn on_asked(&mut self, challenge: Challenge, interval: Duration) {
        match self.next_elsewhere().and_then(|at| self.elsewhere.get_mut(at)) {
            Some((_, asked)) => *asked += 1,
            None => self.tries += 1,
        }
        let places = self.elsewhere.len() + 1;
        while self.asked.len() >= REMEMBERED * places {
            self.asked.pop_front();
        }
        self.asked.push_back(challenge);
        let doublings = if self.persistent { self.tries.saturating_sub(1).min(16) } else { 0 };
        // Those elsewhere have their turns in between.
        let pause =
            if self.next_elsewhere().is_some() { interval / places as u32 } else { interval.saturating_mul(1 << doublings) };
        self.next_try = challenge.at + pause.min(interval.max(INTERVAL_MAX));
    }
}

/// An address has answered a challenge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Proof {
    /// Where the path has led so far.
    pub old: SocketAddr,
    /// Data was not allowed there: the path begins here.
    pub is_first: bool,
    /// From the challenge to its answer.
    pub rtt: Duration,
}

impl PeerAddress {
    /// An address that the handshake has proved, or that this side has chosen.
    pub fn new(current: SocketAddr) -> Self {
        Self { current, standing: Standing::Proved, allowance: Allowance::default(), candidate: None }
    }

    /// An address that has proved nothing yet.
    pub fn unproved(current: SocketAddr) -> Self {
        Self { standing: Standing::Unproved, ..Self::new(current) }
    }

    /// An address to which data may go at once, within a bound; from it came and to it went so many bytes already. It is asked until it answers.
    pub fn provisional(now: Time, current: SocketAddr, received_bytes: u64, sent_bytes: u64) -> Self {
        let candidate = Some(Candidate::persistent(now, current));
        let allowance = Allowance { received_bytes, sent_bytes };
        Self { standing: Standing::Provisional, allowance, candidate, ..Self::new(current) }
    }

    /// An address to which this side opens a path: it is asked until it answers.
    pub fn opening(now: Time, current: SocketAddr) -> Self {
        let candidate = Some(Candidate::persistent(now, current));
        Self { standing: Standing::Opening, candidate, ..Self::new(current) }
    }

    /// Whether the peer has shown that it is at [`Self::current`].
    pub fn is_proved(&self) -> bool {
        self.standing == Standing::Proved
    }

    /// Whether data may go to [`Self::current`].
    pub fn is_open(&self) -> bool {
        matches!(self.standing, Standing::Proved | Standing::Provisional)
    }

    /// Where packets go.
    pub const fn current(&self) -> SocketAddr {
        self.current
    }

    /// UDP payload that may leave towards `to` now.
    pub fn room(&self, to: SocketAddr) -> u64 {
        match (&self.candidate, self.standing) {
            (_, Standing::Proved | Standing::Opening) if to == self.current => u64::MAX,
            _ if to == self.current => self.allowance.room(),
            (Some(candidate), _) if candidate.address == to => candidate.allowance.room(),
            (Some(candidate), _) if candidate.is_elsewhere(to) => u64::MAX,
            _ => 0,
        }
    }

    /// UDP payload of data that may leave.
    pub fn data_room(&self) -> u64 {
        self.room(self.current).saturating_sub(RESERVE_BYTES)
    }

    /// Whether even a report must wait until something comes from there.
    pub fn is_held(&self) -> bool {
        self.is_open() && self.room(self.current) < CONTROL_BYTES as u64
    }

    /// So much UDP payload has left towards `to`.
    pub fn on_sent(&mut self, to: SocketAddr, bytes: u64) {
        let allowance = match &mut self.candidate {
            _ if to == self.current => &mut self.allowance,
            Some(candidate) if candidate.address == to => &mut candidate.allowance,
            _ => return,
        };
        allowance.sent_bytes += bytes;
    }

    /// An authentic packet of so many bytes has come from `from`, for the first time; `is_newest`: its number is above all before.
    pub fn on_packet_from(&mut self, now: Time, from: SocketAddr, bytes: u64, is_newest: bool) {
        if from == self.current {
            self.allowance.received_bytes += bytes;
            if is_newest && self.is_proved() {
                self.candidate = None;
                return;
            }
        }
        match &mut self.candidate {
            Some(candidate) if candidate.address == from => candidate.allowance.received_bytes += bytes,
            _ if is_newest => {
                let mut candidate = Candidate::new(now, from);
                candidate.allowance.received_bytes = bytes;
                candidate.persistent = from == self.current && self.standing == Standing::Provisional;
                self.candidate = Some(candidate);
            }
            _ => {}
        }
    }

    /// A challenge to send now: where to, and with which nonce. `nonce`: one that nobody can foresee.
    pub fn poll_challenge(&mut self, now: Time, interval: Duration, nonce: impl FnOnce() -> u64) -> Option<(SocketAddr, u64)> {
        let address = self.candidate.as_ref().filter(|candidate| now >= candidate.next_try)?.next_address();
        let has_room = self.room(address) >= CHALLENGE_BYTES as u64;
        let candidate = self.candidate.as_mut()?;
        if candidate.tries >= TRIES && !candidate.persistent {
            self.candidate = None;
            return None;
        }
        if !has_room {
            return None;
        }
        let nonce = nonce();
        candidate.on_asked(Challenge { nonce, at: now, to: address }, interval);
        Some((address, nonce))
    }

    /// A client's path that does not know whether its server answers may find it at one of these addresses too.
    pub fn look_elsewhere(&mut self, now: Time, addresses: impl IntoIterator<Item = SocketAddr>) {
        let current = self.current;
        let is_other = |to: &SocketAddr| *to != current && to.is_ipv4() == current.is_ipv4();
        let mut others = addresses.into_iter().filter(is_other).peekable();
        if others.peek().is_none() {
            return;
        }
        let candidate = self.candidate.get_or_insert_with(|| Candidate::persistent(now, current));
        for other in others {
            if !candidate.is_elsewhere(other) {
                candidate.elsewhere.push((other, 0));
                candidate.next_try = candidate.next_try.min(now);
            }
        }
    }

    /// Whether the peer may speak from there: where it is, or where it is looked for.
    pub fn may_be_at(&self, from: SocketAddr) -> bool {
        from == self.current || self.candidate.as_ref().is_some_and(|candidate| candidate.is_elsewhere(from))
    }

    /// When the next challenge is due.
    pub fn timer(&self) -> Time {
        let candidate = self.candidate.as_ref().filter(|candidate| {
            let is_over = candidate.tries >= TRIES && !candidate.persistent;
            is_over || self.room(candidate.next_address()) >= CHALLENGE_BYTES as u64
        });
        candidate.map_or(Time::NEVER, |candidate| candidate.next_try)
    }

    /// An answer to a challenge has come. Returns what it proves, if it is one to a challenge of this path's.
    pub fn on_response(&mut self, now: Time, nonce: u64) -> Option<Proof> {
        let Challenge { at, to, .. } = self.candidate.as_ref()?.challenge(nonce)?;
        self.candidate = None;
        let is_first = !self.is_open();
        self.standing = Standing::Proved;
        let old = std::mem::replace(&mut self.current, to);
        Some(Proof { old, is_first, rtt: now.since(at) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn addresses() -> (SocketAddr, SocketAddr) {
        ("10.0.0.1:1".parse().unwrap(), "10.0.0.2:2".parse().unwrap())
    }

    #[test]
    fn an_address_counts_only_after_its_answer() {
        let (old, new) = addresses();
        let mut peer = PeerAddress::new(old);
        peer.on_packet_from(Time::ZERO, new, 100, true);
        peer.on_packet_from(Time::ZERO, new, 100, true);
        assert_eq!(peer.poll_challenge(Time::ZERO, SECOND, || 42), Some((new, 42)));
        assert_eq!(peer.poll_challenge(Time::ZERO, SECOND, || 43), None);
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
        let (old, new) = addresses();
        let mut peer = PeerAddress::new(old);
        peer.on_packet_from(Time::ZERO, new, 100, true);
        let mut now = Time::ZERO;
        let mut sent = 0;
        while peer.timer() != Time::NEVER {
            sent += u32::from(peer.poll_challenge(now, SECOND, || 42).is_some());
            now += SECOND;
        }
        assert_eq!(sent, TRIES);
    }

    #[test]
    fn three_times_what_came_is_all_that_leaves() {
        let (old, new) = addresses();
        let mut peer = PeerAddress::new(old);
        peer.on_packet_from(Time::ZERO, new, 33, true);
        assert_eq!((peer.room(new), peer.room(old), peer.room("10.0.0.3:3".parse().unwrap())), (99, u64::MAX, 0));
        assert!(peer.poll_challenge(Time::ZERO, SECOND, || 1).is_some());
        peer.on_sent(new, 41);
        peer.on_sent(new, 41);
        assert_eq!((peer.room(new), peer.timer()), (17, Time::NEVER), "another challenge would be too much");
        assert_eq!(peer.poll_challenge(Time::ZERO + SECOND, SECOND, || 2), None);
        peer.on_packet_from(Time::ZERO, new, 33, false);
        assert_eq!(peer.room(new), 116);
    }

    #[test]
    fn a_path_that_is_opened_asks_on_and_more_seldom_until_its_answer() {
        let address: SocketAddr = "10.0.0.2:2".parse().unwrap();
        let mut peer = PeerAddress::opening(Time::ZERO, address);
        let mut asked = Vec::new();
        for second in 0..100 {
            let now = Time::ZERO + Duration::from_secs(second);
            asked.extend(peer.poll_challenge(now, SECOND, || second + 1000).map(|(_, nonce)| (second, nonce)));
        }
        assert_eq!(asked.iter().map(|(second, _)| *second).collect::<Vec<_>>(), [0, 1, 3, 7, 15, 31, 61, 91]);
        assert!(!peer.is_open());
        let now = Time::ZERO + Duration::from_secs(100);
        assert_eq!(peer.on_response(now, asked[0].1), None, "long forgotten");
        let proof = peer.on_response(now, asked[6].1).unwrap();
        assert_eq!((proof.is_first, proof.rtt), (true, Duration::from_secs(39)));
        assert!(peer.is_proved() && peer.timer() == Time::NEVER);
    }

    #[test]
    fn elsewhere_is_asked_three_times_and_the_first_that_answers_is_where_the_path_leads() {
        let [home, a, b] = [1, 2, 3].map(|last| SocketAddr::from(([10, 0, 0, last], 7)));
        let mut peer = PeerAddress::opening(Time::ZERO, home);
        let v6 = SocketAddr::from(([0x2001, 0, 0, 0, 0, 0, 0, 1], 7));
        let mut asked = Vec::new();
        let mut now = Time::ZERO;
        for turn in 0..16 {
            now = now.max(peer.timer());
            asked.push(peer.poll_challenge(now, SECOND, || turn).unwrap().0);
            if turn == 0 {
                peer.look_elsewhere(now, [a, home, v6]);
                peer.look_elsewhere(now, [a, b]);
                assert_eq!(peer.timer(), now, "at once");
            }
        }
        let of = |address| asked.iter().filter(|to| **to == address).count();
        assert_eq!(asked[..7], [home, a, b, home, a, b, home]);
        assert_eq!((of(a), of(b), of(v6)), (3, 3, 0), "then the chosen one alone");
        assert!(peer.may_be_at(a) && !peer.may_be_at(v6) && peer.room(a) > 0 && peer.room(v6) == 0);
        peer.look_elsewhere(now, [a, b]);
        assert_ne!(peer.timer(), now, "they have been asked");
        let proof = peer.on_response(now, 5).unwrap();
        assert!(proof.is_first && proof.old == home && peer.current() == b && !peer.may_be_at(a));
    }

    #[test]
    fn a_path_that_leaves_from_elsewhere_may_arrive_elsewhere() {
        let (home, other) = addresses();
        let mut peer = PeerAddress::new(home);
        peer.look_elsewhere(Time::ZERO, [other]);
        assert_eq!(peer.poll_challenge(Time::ZERO, SECOND, || 1), Some((home, 1)));
        assert_eq!(peer.poll_challenge(peer.timer(), SECOND, || 2), Some((other, 2)));
        assert!(peer.is_proved() && peer.current() == home);
        assert!(!peer.on_response(Time::ZERO + SECOND, 2).unwrap().is_first);
        assert!(peer.current() == other && peer.timer() == Time::NEVER);
    }

    #[test]
    fn an_address_never_proved_is_asked_again_when_it_speaks_again() {
        let address: SocketAddr = "10.0.0.2:2".parse().unwrap();
        let mut peer = PeerAddress::unproved(address);
        assert_eq!(peer.timer(), Time::NEVER, "nobody is asked unprompted");
        for _ in 0..2 {
            peer.on_packet_from(Time::ZERO, address, 41, true);
            let tries = (0..9).filter_map(|_| peer.poll_challenge(peer.timer(), SECOND, || 7)).count();
            assert_eq!(tries, TRIES as usize);
        }
    }

    #[test]
    fn a_provisional_address_takes_data_within_its_bound_and_all_of_it_once_it_has_answered() {
        let (address, other) = addresses();
        let mut peer = PeerAddress::provisional(Time::ZERO, address, 2400, 100);
        assert!(peer.is_open() && !peer.is_proved() && !peer.is_held());
        assert_eq!((peer.room(address), peer.data_room()), (7100, 7100 - RESERVE_BYTES));
        peer.on_sent(address, 6000);
        assert!(peer.is_held() && peer.data_room() == 0 && peer.timer() == Time::ZERO, "challenges still go");
        assert_eq!(peer.poll_challenge(Time::ZERO, SECOND, || 5), Some((address, 5)));
        let proof = peer.on_response(Time::ZERO + SECOND, 5).unwrap();
        assert!(!proof.is_first && proof.old == address && peer.data_room() > 1 << 60);
        // Somebody else had sent the first packet on: whoever goes on is asked, and has the path.
        let mut peer = PeerAddress::provisional(Time::ZERO, address, 1200, 0);
        peer.on_packet_from(Time::ZERO, other, 1200, true);
        assert_eq!(peer.poll_challenge(Time::ZERO, SECOND, || 6), Some((other, 6)));
        assert_eq!(peer.on_response(Time::ZERO + SECOND, 6).unwrap().old, address);
        assert!(peer.is_proved() && peer.current() == other);
    }
}
