//! Proofs that need no state: cookies, admission tokens and tokens to return with.
//!
//! ```text
//! cookie     1, minted: u64 ns, HMAC(1, minted, address, port, attempt, client's id, version) cut to 16 bytes
//! admission  2, expiry: u64 ns, id: u64, HMAC(2, expiry, id) cut to 16 bytes
//! return     3, expiry: u64 ns, id: u64, round trip: u32 us, HMAC(3, expiry, id, round trip, address) cut to 16 bytes
//! ```
//! A cookie shows that a client receives at the address it sends from; it holds for one attempt from that address within half a minute. An admission token
//! is given to a client by another way (ssh) and saves it the round trip that a cookie costs; it holds from any address, so it proves none, until it expires. It passes in clear: who takes it
//! for good takes each once, and its bearer for a stranger. A token to
//! return with is given inside a connection and saves the next one from that address the round trip (RFC 9000 8.1.3); who may have had the address since is not known, so the next one
//! proves it again. All die with the endpoint's secret. HMAC-SHA256 throughout.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use haul_units::Time;

/// How long a cookie holds. A client answers a RETRY at once, so one slow round trip and a few lost packets fit in.
pub const COOKIE_LIFETIME: Duration = Duration::from_secs(30);

const MAC_BYTES: usize = 16;
const COOKIE: u8 = 1;
const ADMISSION: u8 = 2;
const RETURN: u8 = 3;
/// Of a token to return with.
pub const RETURN_BYTES: usize = 37;

/// What a token binds besides the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    /// The client's random number for the handshake.
    pub attempt: u64,
    /// The client's connection id.
    pub client_cid: u32,
    /// The protocol version it uses.
    pub version: u8,
}

/// What a valid token proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The client receives at its address; this long ago it was sent the cookie.
    Address {
        /// Between the RETRY and the packet that brought the cookie: at least a round trip.
        age: Duration,
    },
    /// The client, or whoever has seen its first packet, was invited; its address is still to be proved.
    Invitation {
        /// The token's number: one is good for one connection.
        id: u64,
    },
    /// An earlier connection from this address was given the token; the address is still to be proved.
    Return {
        /// The token's number: one is good for one connection.
        id: u64,
        /// What the earlier connection has seen of the round trip.
        rtt: Duration,
    },
}

/// Mints and checks an endpoint's tokens.
#[derive(Debug)]
pub struct CookieJar {
    key: hmac::Key,
}

impl CookieJar {
    /// From an unpredictable `secret`, one an endpoint.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }

    /// A cookie for `from`.
    pub fn mint(&self, now: Time, from: SocketAddr, bound: Bound) -> [u8; 25] {
        let mut cookie = [0; 25];
        cookie[0] = COOKIE;
        cookie[1..9].copy_from_slice(&now.as_nanos().to_be_bytes());
        let mac = self.cookie_mac(now.as_nanos(), from, bound);
        cookie[9..].copy_from_slice(&mac);
        cookie
    }

    /// An admission token that holds until `expiry`; `id` tells tokens apart and need not be secret.
    pub fn admit(&self, expiry: Time, id: u64) -> [u8; 33] {
        let mut token = [0; 33];
        token[0] = ADMISSION;
        token[1..9].copy_from_slice(&expiry.as_nanos().to_be_bytes());
        token[9..17].copy_from_slice(&id.to_be_bytes());
        let mac = self.mac(&[&token[..17]]);
        token[17..].copy_from_slice(&mac);
        token
    }

    /// With which a client at this address may return until `expiry`; `id` tells tokens apart and need not be secret.
    pub fn let_return(&self, expiry: Time, id: u64, rtt: Duration, client: IpAddr) -> [u8; RETURN_BYTES] {
        let mut token = [0; RETURN_BYTES];
        token[0] = RETURN;
        token[1..9].copy_from_slice(&expiry.as_nanos().to_be_bytes());
        token[9..17].copy_from_slice(&id.to_be_bytes());
        token[17..21].copy_from_slice(&u32::try_from(rtt.as_micros()).unwrap_or(u32::MAX).to_be_bytes());
        let mac = self.mac(&[&token[..21], &octets(client)]);
        token[21..].copy_from_slice(&mac);
        token
    }

    /// What `token` proves of a client at `from`; `None`: nothing.
    pub fn check(&self, now: Time, from: SocketAddr, bound: Bound, token: &[u8]) -> Option<Proof> {
        let (head, mac) = token.split_at_checked(token.len().checked_sub(MAC_BYTES)?)?;
        let (kind, head) = head.split_first()?;
        let (time, rest) = head.split_first_chunk()?;
        let time = u64::from_be_bytes(*time);
        match (*kind, rest.len()) {
            (COOKIE, 0) => {
                verify_slices_are_equal(mac, &self.cookie_mac(time, from, bound)).ok()?;
                let age = now.as_nanos().checked_sub(time).map(Duration::from_nanos)?;
                (age <= COOKIE_LIFETIME).then_some(Proof::Address { age })
            }
            (ADMISSION, 8) => {
                verify_slices_are_equal(mac, &self.mac(&[&[ADMISSION], head])).ok()?;
                let id = u64::from_be_bytes(rest.try_into().ok()?);
                (now.as_nanos() <= time).then_some(Proof::Invitation { id })
            }
            (RETURN, 12) => {
                verify_slices_are_equal(mac, &self.mac(&[&[RETURN], head, &octets(from.ip())])).ok()?;
                let (id, rtt) = rest.split_first_chunk()?;
                let rtt = Duration::from_micros(u32::from_be_bytes(rtt.try_into().ok()?).into());
                (now.as_nanos() <= time).then_some(Proof::Return { id: u64::from_be_bytes(*id), rtt })
            }
            _ => None,
        }
    }

    fn cookie_mac(&self, minted_ns: u64, from: SocketAddr, bound: Bound) -> [u8; MAC_BYTES] {
        self.mac(&[
            &[COOKIE, bound.version],
            &minted_ns.to_be_bytes(),
            &octets(from.ip()),
            &from.port().to_be_bytes(),
            &bound.attempt.to_be_bytes(),
            &bound.client_cid.to_be_bytes(),
        ])
    }

    fn mac(&self, parts: &[&[u8]]) -> [u8; MAC_BYTES] {
        mac(&self.key, parts)
    }
}

/// A dual-stack socket shows an IPv4 client as a mapped address: the same client.
fn octets(client: IpAddr) -> [u8; 16] {
    match client.to_canonical() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

fn mac(key: &hmac::Key, parts: &[&[u8]]) -> [u8; MAC_BYTES] {
    let mut context = hmac::Context::with_key(key);
    for part in parts {
        context.update(part);
    }
    let mut mac = [0; MAC_BYTES];
    mac.copy_from_slice(&context.sign().as_ref()[..MAC_BYTES]);
    mac
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUND: Bound = Bound { attempt: 5, client_cid: 6, version: 1 };

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn seconds(n: u64) -> Time {
        Time::ZERO + Duration::from_secs(n)
    }

    #[test]
    fn a_cookie_holds_for_its_address_attempt_and_time() {
        let jar = CookieJar::new(&[1; 32]);
        let home = address("192.0.2.1:4000");
        let cookie = jar.mint(seconds(100), home, BOUND);
        let check = |now, from: &str, bound| jar.check(seconds(now), address(from), bound, &cookie);
        assert_eq!(check(101, "192.0.2.1:4000", BOUND), Some(Proof::Address { age: Duration::from_secs(1) }));
        assert_eq!(check(101, "[::ffff:192.0.2.1]:4000", BOUND), Some(Proof::Address { age: Duration::from_secs(1) }));
        assert!(check(130, "192.0.2.1:4000", BOUND).is_some());
        assert_eq!(check(131, "192.0.2.1:4000", BOUND), None, "expired");
        assert_eq!(check(99, "192.0.2.1:4000", BOUND), None, "from the future");
        assert_eq!(check(101, "192.0.2.2:4000", BOUND), None, "another host");
        assert_eq!(check(101, "192.0.2.1:4001", BOUND), None, "another port");
        for other in [Bound { attempt: 9, ..BOUND }, Bound { client_cid: 9, ..BOUND }, Bound { version: 9, ..BOUND }] {
            assert_eq!(check(101, "192.0.2.1:4000", other), None);
        }
        assert_eq!(CookieJar::new(&[2; 32]).check(seconds(101), home, BOUND, &cookie), None, "another endpoint's");
    }

    #[test]
    fn an_admission_token_holds_from_anywhere_until_it_expires() {
        let jar = CookieJar::new(&[1; 32]);
        let token = jar.admit(seconds(60), 77);
        let anywhere = address("[2001:db8::1]:1");
        assert_eq!(jar.check(seconds(60), anywhere, BOUND, &token), Some(Proof::Invitation { id: 77 }));
        assert_eq!(jar.check(seconds(61), anywhere, BOUND, &token), None);
        assert_ne!(jar.admit(seconds(60), 78), token);
    }

    #[test]
    fn a_token_to_return_with_holds_for_its_address_from_any_port_until_it_expires() {
        let jar = CookieJar::new(&[1; 32]);
        let rtt = Duration::from_micros(81_234);
        let token = jar.let_return(seconds(60), 77, rtt, address("192.0.2.1:4000").ip());
        let check = |now, from: &str| jar.check(seconds(now), address(from), BOUND, &token);
        let proof = Some(Proof::Return { id: 77, rtt });
        assert_eq!((check(60, "192.0.2.1:4001"), check(60, "[::ffff:192.0.2.1]:9")), (proof, proof));
        assert_eq!(check(61, "192.0.2.1:4000"), None, "expired");
        assert_eq!(check(60, "192.0.2.2:4000"), None, "another host");
        assert_eq!(CookieJar::new(&[2; 32]).check(seconds(60), address("192.0.2.1:4000"), BOUND, &token), None);
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_noticed() {
        let jar = CookieJar::new(&[1; 32]);
        let from = address("192.0.2.1:4000");
        let returns = jar.let_return(seconds(60), 77, Duration::from_millis(1), from.ip());
        for token in [jar.mint(seconds(1), from, BOUND).to_vec(), jar.admit(seconds(60), 77).to_vec(), returns.to_vec()] {
            assert!(jar.check(seconds(1), from, BOUND, &token).is_some());
            for bit in 0..token.len() * 8 {
                let mut forged = token.clone();
                forged[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(jar.check(seconds(1), from, BOUND, &forged), None, "bit {bit}");
            }
            for length in 0..token.len() {
                assert_eq!(jar.check(seconds(1), from, BOUND, &token[..length]), None);
            }
        }
    }
}
