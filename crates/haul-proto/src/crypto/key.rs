//! One AEAD key with its nonce base, and the chain of secrets that keys come from.
//!
//! ```text
//! exporter secret --"haul client"--> secret 0 --"haul next"--> secret 1 --> ..      (one chain a direction)
//!                                       |                         |
//!                                 "haul key", "haul iv"     "haul key", "haul iv"
//! ```
//! The chain only goes forward: from a secret the ones before it cannot be found.

use aws_lc_rs::aead::{Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hkdf::{self, HKDF_SHA256, Prk};
use zeroize::Zeroizing;

use super::CipherSuite;

/// Bytes that sealing adds: every suite has a 16-byte tag.
pub const TAG_LEN: usize = 16;

/// Packets that one key may protect, whatever the suite.
// RFC 9001 6.6: 2^23 packets keep AES-GCM's confidentiality at packets of any size; ChaCha20-Poly1305 has no such limit
pub const PROTECTED_PACKETS_MAX: u64 = 1 << 23;

const IV_LEN: usize = 12;

/// A key and its nonce base. The nonce binds path and packet number, so one key serves all paths.
pub(crate) struct PacketKey {
    key: LessSafeKey,
    iv: [u8; IV_LEN],
}

impl PacketKey {
    pub(crate) fn derive(suite: CipherSuite, secret: &Secret) -> Self {
        let algorithm = suite.algorithm();
        let mut key = Zeroizing::new([0; 32]);
        let key = &mut key[..algorithm.key_len()];
        secret.expand(b"haul key", key);
        let mut iv = [0; IV_LEN];
        secret.expand(b"haul iv", &mut iv);
        let key = UnboundKey::new(algorithm, key).expect("the key has the algorithm's own length");
        Self { key: LessSafeKey::new(key), iv }
    }

    /// iv xor (path as u32 || packet number), as draft-ietf-quic-multipath 2.4 builds it.
    #[inline(always)]
    fn nonce(&self, path: u8, packet_number: u64) -> Nonce {
        let mut nonce = self.iv;
        nonce[3] ^= path;
        let low = u64::from_be_bytes([nonce[4], nonce[5], nonce[6], nonce[7], nonce[8], nonce[9], nonce[10], nonce[11]]);
        nonce[4..].copy_from_slice(&(low ^ packet_number).to_be_bytes());
        Nonce::assume_unique_for_key(nonce)
    }

    /// `out` is `plain.len() + TAG_LEN` long, checked by the caller.
    #[inline]
    pub(crate) fn seal_into(&self, path: u8, pn: u64, aad: &[u8], plain: &[u8], out: &mut [u8]) -> Result<(), Unspecified> {
        let (cipher, tag) = out.split_at_mut_checked(plain.len()).ok_or(Unspecified)?;
        self.key.seal_out_of_place_scatter(self.nonce(path, pn), Aad::from(aad), plain, cipher, &[], tag)
    }

    #[inline]
    pub(crate) fn seal_in_place(&self, path: u8, pn: u64, aad: &[u8], plain_and_room: &mut [u8]) -> Result<(), Unspecified> {
        let plain_len = plain_and_room.len().checked_sub(TAG_LEN).ok_or(Unspecified)?;
        let (plain, tag) = plain_and_room.split_at_mut(plain_len);
        self.key.seal_in_place_scatter(self.nonce(path, pn), Aad::from(aad), plain, &[], tag)
    }

    #[inline]
    pub(crate) fn open_into(
        &self,
        path: u8,
        pn: u64,
        aad: &[u8],
        cipher_and_tag: &[u8],
        out: &mut [u8],
    ) -> Result<(), Unspecified> {
        let (cipher, tag) = cipher_and_tag.split_at_checked(out.len()).ok_or(Unspecified)?;
        if tag.len() != TAG_LEN {
            return Err(Unspecified);
        }
        self.key.open_separate_gather(self.nonce(path, pn), Aad::from(aad), cipher, tag, out)
    }

    #[inline]
    pub(crate) fn open_in_place(&self, path: u8, pn: u64, aad: &[u8], cipher_and_tag: &mut [u8]) -> Result<usize, Unspecified> {
        self.key.open_in_place(self.nonce(path, pn), Aad::from(aad), cipher_and_tag).map(|plain| plain.len())
    }
}

impl std::fmt::Debug for PacketKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacketKey").finish_non_exhaustive()
    }
}

/// 32 secret bytes that keys and further secrets are expanded from; wiped when dropped.
pub(crate) struct Secret(Zeroizing<[u8; 32]>);

impl Secret {
    pub(crate) fn new(bytes: [u8; 32]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// For what is not expanded further.
    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// A secret for one use and place, from the entropy in `material`, whatever its length (RFC 5869).
    pub(crate) fn of_material(material: &[u8], label: &[u8], context: &[u8]) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        hkdf::Salt::new(HKDF_SHA256, label)
            .extract(material)
            .expand(&[context], Length(bytes.len()))
            .and_then(|okm| okm.fill(&mut bytes[..]))
            .expect("HKDF-SHA256 expands up to 8160 bytes");
        Self(bytes)
    }

    pub(crate) fn child(&self, label: &[u8]) -> Self {
        let mut bytes = Zeroizing::new([0; 32]);
        self.expand(label, &mut bytes[..]);
        Self(bytes)
    }

    /// HKDF-Expand (RFC 5869 2.3) of at most 32 bytes.
    fn expand(&self, label: &[u8], out: &mut [u8]) {
        Prk::new_less_safe(HKDF_SHA256, &self.0[..])
            .expand(&[label], Length(out.len()))
            .and_then(|okm| okm.fill(out))
            .expect("HKDF-SHA256 expands up to 8160 bytes");
    }
}

struct Length(usize);

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}
