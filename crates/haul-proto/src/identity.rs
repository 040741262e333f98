//! Who a peer is: key pairs, public keys, fingerprints, and whom to trust.
//!
//! An identity is an Ed25519 key pair, shown to the peer as a raw public key (RFC 7250): no certificate, no authority, no expiry; a peer is
//! recognised by the SHA-256 of its key, written as ssh writes it. Where a site has a certificate authority, an identity can be an
//! X.509 chain instead, and trust its roots. The two do not mix in one direction: whoever trusts fingerprints is shown raw keys, whoever
//! trusts an authority is shown certificates.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use aws_lc_rs::digest;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::Ed25519KeyPair;
use data_encoding::BASE64_NOPAD;
use rustls::crypto::aws_lc_rs::sign::{any_eddsa_type, any_supported_type};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};
use rustls::sign::CertifiedKey;
use zeroize::Zeroizing;

use crate::crypto::Secret;

/// What this side proves to be: an Ed25519 key pair, or an X.509 chain with its key. Cheap to clone.
#[derive(Clone)]
pub struct Identity {
    kind: Kind,
    certified: Arc<CertifiedKey>,
    public_key: PublicKey,
}

#[derive(Clone)]
enum Kind {
    RawKey { pkcs8: Arc<Zeroizing<Vec<u8>>> },
    Certificate,
}

/// Why bytes are no identity or no key.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum IdentityError {
    /// Not a PKCS#8 document with an Ed25519 key.
    #[error("not an Ed25519 private key in PKCS#8")]
    NotEd25519,
    /// Not a SubjectPublicKeyInfo structure.
    #[error("not a public key in SubjectPublicKeyInfo form")]
    NotAPublicKey,
    /// The chain is empty, cannot be read, or is not of that key; or the key is of an unknown kind.
    #[error("certificate chain or its key cannot be used")]
    Certificate(#[source] rustls::Error),
}

impl Identity {
    /// A fresh key pair from the system's random source.
    pub fn generate() -> Self {
        let document = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).expect("the system's random source works");
        Self::from_pkcs8(document.as_ref()).expect("a generated key is a valid key")
    }

    /// The key pair in a PKCS#8 document (DER), with or without the public key beside the private one.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, IdentityError> {
        let signer = any_eddsa_type(&PrivatePkcs8KeyDer::from(der)).map_err(|_| IdentityError::NotEd25519)?;
        let spki = signer.public_key().ok_or(IdentityError::NotEd25519)?.to_vec();
        let certified = CertifiedKey::new(vec![CertificateDer::from(spki.clone())], signer);
        Ok(Self {
            kind: Kind::RawKey { pkcs8: Arc::new(Zeroizing::new(der.to_vec())) },
            certified: Arc::new(certified),
            public_key: PublicKey(spki.into()),
        })
    }

    /// An X.509 chain, own certificate first (DER), and its private key (PKCS#8, SEC1 or PKCS#1).
    pub fn from_certificate(chain: Vec<CertificateDer<'static>>, key: &PrivateKeyDer<'static>) -> Result<Self, IdentityError> {
        let signer = any_supported_type(key).map_err(IdentityError::Certificate)?;
        let own = chain.first().ok_or(IdentityError::Certificate(rustls::Error::NoCertificatesPresented))?;
        let public_key =
            PublicKey::of_certificate(own).ok_or(IdentityError::Certificate(rustls::CertificateError::BadEncoding.into()))?;
        let certified = CertifiedKey::new(chain, signer);
        certified.keys_match().map_err(IdentityError::Certificate)?;
        Ok(Self { kind: Kind::Certificate, certified: Arc::new(certified), public_key })
    }

    /// The PKCS#8 document to store (secret, wiped when dropped); `None` for an X.509 identity.
    pub fn to_pkcs8(&self) -> Option<Zeroizing<Vec<u8>>> {
        match &self.kind {
            Kind::RawKey { pkcs8 } => Some(Zeroizing::clone(pkcs8)),
            Kind::Certificate => None,
        }
    }

    /// The public half.
    pub fn public_key(&self) -> &PublicKey {
        &self.public_key
    }

    /// A secret that only the owner of the private key can make, for one use (`label`) and place (`context`); `None` for an X.509 identity, whose key is not kept.
    pub(crate) fn derive(&self, label: &[u8], context: &[u8]) -> Option<Secret> {
        self.to_pkcs8().map(|pkcs8| Secret::of_material(&pkcs8, label, context))
    }

    pub(crate) fn is_raw_key(&self) -> bool {
        matches!(self.kind, Kind::RawKey { .. })
    }

    pub(crate) fn certified(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.certified)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("public_key", &self.public_key).finish_non_exhaustive()
    }
}

/// A public key: a SubjectPublicKeyInfo structure in DER.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct PublicKey(Arc<[u8]>);

impl PublicKey {
    /// The key in `der`, if that is a SubjectPublicKeyInfo structure and nothing more.
    pub fn from_spki(der: Vec<u8>) -> Result<Self, IdentityError> {
        let spki = SubjectPublicKeyInfoDer::from(der.as_slice());
        webpki::RawPublicKeyEntity::try_from(&spki).map_err(|_| IdentityError::NotAPublicKey)?;
        Ok(Self(der.into()))
    }

    /// The key of an X.509 certificate (DER).
    pub(crate) fn of_certificate(certificate: &CertificateDer<'_>) -> Option<Self> {
        let certificate = webpki::EndEntityCert::try_from(certificate).ok()?;
        Some(Self(certificate.subject_public_key_info().as_ref().into()))
    }

    /// The DER bytes.
    pub fn as_spki(&self) -> &[u8] {
        &self.0
    }

    /// What people compare.
    pub fn fingerprint(&self) -> Fingerprint {
        let hash = digest::digest(&digest::SHA256, &self.0);
        Fingerprint(hash.as_ref().try_into().expect("SHA-256 gives 32 bytes"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.fingerprint())
    }
}

/// SHA-256 of a public key's SubjectPublicKeyInfo. Prints and parses as `SHA256:` and 43 letters of base64, without padding.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The 32 bytes of the hash.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl From<[u8; 32]> for Fingerprint {
    fn from(hash: [u8; 32]) -> Self {
        Self(hash)
    }
}

const FINGERPRINT_PREFIX: &str = "SHA256:";

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FINGERPRINT_PREFIX}{}", BASE64_NOPAD.encode_display(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is no fingerprint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}' is not a fingerprint: SHA256: and 43 letters of base64")]
pub struct ParseFingerprintError {
    /// What was given.
    pub text: String,
}

impl FromStr for Fingerprint {
    type Err = ParseFingerprintError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let hash = BASE64_NOPAD.decode(text.strip_prefix(FINGERPRINT_PREFIX)?.as_bytes()).ok()?;
            hash.try_into().ok().map(Self)
        };
        parse().ok_or_else(|| ParseFingerprintError { text: text.to_owned() })
    }
}

/// Decides on a public key.
pub type TrustCallback = Arc<dyn Fn(&PublicKey) -> bool + Send + Sync>;

/// Which peers a side talks to. On a server, [`PeerTrust::Anyone`] lets clients stay anonymous (it asks for a key and takes none
/// for an answer); with the others a client must prove who it is.
#[derive(Clone)]
pub enum PeerTrust {
    /// Any raw key. The channel is encrypted, but a client that trusts anyone may be talking to somebody in the middle.
    Anyone,
    /// Raw keys with one of these fingerprints.
    Pinned(Vec<Fingerprint>),
    /// Raw keys for which the function says yes. It runs inside the handshake and must not block for long.
    Callback(TrustCallback),
    /// X.509 certificates that chain to one of `roots`, valid at the system's date; a client also checks that the certificate is of
    /// `server_name` (a DNS name or an IP address), a server does not use it.
    CertificateAuthority {
        /// Trust anchors, DER.
        roots: Vec<CertificateDer<'static>>,
        /// Whom a client wants to reach.
        server_name: String,
    },
}

impl PeerTrust {
    pub(crate) fn trusts(&self, key: &PublicKey) -> bool {
        match self {
            Self::Anyone => true,
            Self::Pinned(fingerprints) => fingerprints.contains(&key.fingerprint()),
            Self::Callback(decide) => decide(key),
            Self::CertificateAuthority { .. } => false,
        }
    }
}

impl fmt::Debug for PeerTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anyone => f.write_str("Anyone"),
            Self::Pinned(fingerprints) => f.debug_tuple("Pinned").field(fingerprints).finish(),
            Self::Callback(_) => f.write_str("Callback(..)"),
            Self::CertificateAuthority { roots, server_name } => {
                f.debug_struct("CertificateAuthority").field("roots", &roots.len()).field("server_name", server_name).finish()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_survives_its_pkcs8() {
        let identity = Identity::generate();
        let pkcs8 = identity.to_pkcs8().unwrap();
        let again = Identity::from_pkcs8(&pkcs8).unwrap();
        assert_eq!(again.public_key(), identity.public_key());
        assert_ne!(Identity::generate().public_key(), identity.public_key());
        assert!(Identity::from_pkcs8(&pkcs8[1..]).is_err());
    }

    #[test]
    fn public_key_is_an_ed25519_spki() {
        let identity = Identity::generate();
        // RFC 8410 4: SEQUENCE { SEQUENCE { OID 1.3.101.112 }, BIT STRING of 32 bytes }
        let spki = identity.public_key().as_spki();
        assert_eq!(spki[..12], [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00]);
        assert_eq!(spki.len(), 44);
        assert_eq!(PublicKey::from_spki(spki.to_vec()).unwrap(), *identity.public_key());
        assert_eq!(PublicKey::from_spki(spki[..43].to_vec()), Err(IdentityError::NotAPublicKey));
    }

    #[test]
    fn fingerprints_print_and_parse() {
        let fingerprint = Fingerprint([7; 32]);
        let text = fingerprint.to_string();
        assert_eq!(text, "SHA256:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc");
        assert_eq!(text.parse(), Ok(fingerprint));
        for wrong in ["", "SHA256:", "MD5:BwcH", &text[..text.len() - 1], &format!("{text}A")] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(ParseFingerprintError { text: wrong.to_owned() }));
        }
    }

    #[test]
    fn fingerprint_of_a_known_key() {
        // The public key of RFC 8032 7.1 TEST 1 as an SPKI; the hash computed apart from this code.
        let mut spki = vec![0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
        spki.extend(data_encoding::HEXLOWER.decode(b"d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a").unwrap());
        let fingerprint = PublicKey::from_spki(spki).unwrap().fingerprint();
        assert_eq!(fingerprint.to_string(), "SHA256:BuP9j9opu2CrWVV95h7bCuzbIxE0vjDnW0Vfjht5L6k");
    }

    #[test]
    fn trust_decides() {
        let (ours, other) = (Identity::generate(), Identity::generate());
        let pinned = PeerTrust::Pinned(vec![ours.public_key().fingerprint()]);
        assert!(pinned.trusts(ours.public_key()) && !pinned.trusts(other.public_key()));
        let wanted = ours.public_key().clone();
        let callback = PeerTrust::Callback(Arc::new(move |key| *key == wanted));
        assert!(callback.trusts(ours.public_key()) && !callback.trusts(other.public_key()));
        assert!(PeerTrust::Anyone.trusts(other.public_key()));
    }
}
