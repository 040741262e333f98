//! Stateless resets: how an endpoint tells a peer that it has lost their connection, and how that is believed.
//!
//! A token follows from the endpoint's key and the connection's id alone, and the peer got it inside the handshake. So whoever knows the key can say that a connection is gone without remembering
//! anything about it: an endpoint that was started again with the same key, too. Whoever sends a packet with an id that nobody has can have its token; what makes that harmless is that a
//! key is used by one endpoint only (two that had the same key would tell each other's tokens), that ids are drawn from 2^32, and that [`ResetLimit`] lets no network ask for many. Source: RFC 9000 10.3 and 21.11.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use aws_lc_rs::hmac;
use haul_strangers::ReturnToken;
use haul_units::Time;

use crate::ConnectionId;
use crate::crypto::Secret;
use crate::identity::Identity;

/// With this token a peer says that it has lost a connection.
pub type ResetToken = [u8; TOKEN_BYTES];

const TOKEN_BYTES: usize = 16;

/// What a connection that is established has been given by its peer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Met {
    /// With which the peer says that it has lost the connection.
    pub reset_token: Option<ResetToken>,
    /// A client's server, and with what to return there.
    pub way_back: Option<(SocketAddr, ReturnToken)>,
}

/// The key from which an endpoint's reset tokens follow. It never shows its bytes.
#[derive(Clone)]
pub struct ResetKey(hmac::Key);

impl ResetKey {
    /// From 256 bits that nobody else knows, for one endpoint at a time.
    pub fn new(key: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }

    /// The key of whoever listens with this identity for `purpose`, the same after each start: clients then hear at once that the process they talked to is gone. The purpose tells the
    /// endpoints of one identity apart, by what they do and where they listen; two at once never share it. `None` for an X.509 identity.
    pub fn of_identity(identity: &Identity, purpose: &str) -> Option<Self> {
        identity.derive(b"haul reset key", purpose.as_bytes()).map(|secret| Self::from_secret(&secret))
    }

    pub(crate) fn from_secret(secret: &Secret) -> Self {
        Self::new(secret.bytes())
    }

    /// The token of a connection.
    pub fn token(&self, id: ConnectionId) -> ResetToken {
        cut(hmac::sign(&self.0, &[&b"haul reset"[..], &id.0.to_be_bytes()].concat()))
    }
}

impl std::fmt::Debug for ResetKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ResetKey")
    }
}

/// The tokens of an endpoint's peers, kept under their MACs: how long a lookup takes says nothing about a token.
pub(crate) struct PeerTokens {
    key: hmac::Key,
    connections: HashMap<ResetToken, ConnectionId>,
}

impl PeerTokens {
    pub(crate) fn new(secret: &Secret) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret.bytes()), connections: HashMap::new() }
    }

    /// The peer of this connection may reset it.
    pub(crate) fn insert(&mut self, token: &ResetToken, id: ConnectionId) {
        self.connections.insert(self.mac(token), id);
    }

    /// The connection that this token resets.
    pub(crate) fn find(&self, token: &ResetToken) -> Option<ConnectionId> {
        self.connections.get(&self.mac(token)).copied()
    }

    /// The connection is over.
    pub(crate) fn forget(&mut self, id: ConnectionId) {
        self.connections.retain(|_, other| *other != id);
    }

    fn mac(&self, token: &ResetToken) -> ResetToken {
        cut(hmac::sign(&self.key, token))
    }
}

/// Bounds the resets that leave, by the network that they go to.
///
/// A client needs one, so a few a second are enough for all that share an address. Networks fall into [`CLASSES`] by a keyed hash: what is kept does not grow, and nobody can choose whose class he is in.
pub(crate) struct ResetLimit {
    key: hmac::Key,
    /// When the resets allowed so far are paid for.
    paid_until: Box<[Time; CLASSES]>,
}

/// Of networks.
const CLASSES: usize = 256;
/// One reset in this time for a class,
const INTERVAL: Duration = Duration::from_millis(250);
/// but so many at once.
const BURST: u32 = 8;

impl ResetLimit {
    pub(crate) fn new(secret: &Secret) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret.bytes()), paid_until: Box::new([Time::ZERO; CLASSES]) }
    }

    /// Whether a reset may go there now; then it counts.
    pub(crate) fn allow(&mut self, now: Time, to: SocketAddr) -> bool {
        let class = hmac::sign(&self.key, &network(to.ip())).as_ref()[0];
        let paid_until = &mut self.paid_until[usize::from(class)];
        let allowed = *paid_until <= now + INTERVAL * (BURST - 1);
        if allowed {
            *paid_until = (*paid_until).max(now) + INTERVAL;
        }
        allowed
    }
}

/// What one subscriber has: a /24 of IPv4, a /48 of IPv6.
fn network(ip: IpAddr) -> [u8; 6] {
    match ip.to_canonical() {
        IpAddr::V4(ip) => {
            let [a, b, c, _] = ip.octets();
            [0, 0, 0, a, b, c]
        }
        IpAddr::V6(ip) => {
            let [a, b, c, d, e, f, ..] = ip.octets();
            [a, b, c, d, e, f]
        }
    }
}

fn cut(tag: hmac::Tag) -> ResetToken {
    let mut token = [0; TOKEN_BYTES];
    token.copy_from_slice(&tag.as_ref()[..TOKEN_BYTES]);
    token
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ConnectionId = ConnectionId(7);

    #[test]
    fn a_token_follows_from_key_and_connection_alone() {
        let key = ResetKey::new(&[1; 32]);
        assert_eq!(key.token(ID), ResetKey::new(&[1; 32]).token(ID));
        assert_ne!(key.token(ID), key.token(ConnectionId(8)));
        assert_ne!(key.token(ID), ResetKey::new(&[2; 32]).token(ID));
        assert_eq!(format!("{key:?}"), "ResetKey");
    }

    #[test]
    fn an_identitys_key_is_the_same_after_each_start_and_another_for_each_purpose() {
        let identity = Identity::generate();
        let token = |identity: &Identity, purpose| ResetKey::of_identity(identity, purpose).unwrap().token(ID);
        let again = Identity::from_pkcs8(&identity.to_pkcs8().unwrap()).unwrap();
        assert_eq!(token(&identity, "serve [::]:1"), token(&again, "serve [::]:1"));
        assert_ne!(token(&identity, "serve [::]:1"), token(&identity, "serve [::]:2"));
        assert_ne!(token(&identity, "serve [::]:1"), token(&Identity::generate(), "serve [::]:1"));
    }

    #[test]
    fn a_network_gets_a_few_resets_at_once_and_a_few_a_second() {
        let mut limit = ResetLimit::new(&Secret::new([3; 32]));
        let from = |host: u8| SocketAddr::from(([192, 0, 2, host], 9));
        let start = Time::ZERO + Duration::from_secs(1000);
        assert_eq!((0..100).filter(|&host| limit.allow(start, from(host))).count(), 8);
        let mut later = 0;
        for ms in 0..10_000 {
            later += u32::from(limit.allow(start + Duration::from_millis(ms), from(1)));
        }
        assert!((38..=42).contains(&later), "{later} in 10 s");
        let others = (0..=255).filter(|&net| limit.allow(start, SocketAddr::from(([198, 51, net, 1], 9)))).count();
        assert!(others > 240, "other networks have their own: {others}");
    }
}
