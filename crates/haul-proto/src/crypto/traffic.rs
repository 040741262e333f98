//! A secret of a connection as data, and a captured packet opened with it: for who looks for a fault, and for nothing else.

use zeroize::Zeroizing;

use super::CipherSuite;
use super::key::{PacketKey, Secret, TAG_LEN};

/// The secret of one direction in an epoch, from which all later ones follow. Who has it reads and forges packets.
#[derive(Clone, PartialEq, Eq)]
pub struct TrafficSecret {
    /// The cipher.
    pub suite: CipherSuite,
    /// The epoch, modulo 256.
    pub epoch: u8,
    /// The secret.
    pub secret: Zeroizing<[u8; 32]>,
}

impl TrafficSecret {
    pub(super) fn new(suite: CipherSuite, epoch: u8, secret: &Secret) -> Self {
        Self { suite, epoch, secret: Zeroizing::new(*secret.bytes()) }
    }

    /// Opens a packet of this epoch or one of the 255 after it, whenever and however often it was seen. The arguments are those of
    /// [`Opener::open_into`](super::Opener::open_into).
    pub fn open(&self, epoch: u8, path: u8, packet_number: u64, aad: &[u8], cipher_and_tag: &[u8]) -> Option<Vec<u8>> {
        let mut secret = Secret::new(*self.secret);
        for _ in 0..epoch.wrapping_sub(self.epoch) {
            secret = secret.child(b"haul next");
        }
        let mut plain = vec![0; cipher_and_tag.len().checked_sub(TAG_LEN)?];
        let key = PacketKey::derive(self.suite, &secret);
        key.open_into(path, packet_number, aad, cipher_and_tag, &mut plain).ok().map(|()| plain)
    }
}
