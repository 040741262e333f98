//! The keys of a connection's data packets, and their change.
//!
//! A [`Sealer`] for one direction, an [`Opener`] for the other; each has its own chain of secrets, so the two directions change keys on
//! their own. The epoch of a key travels in the clear header as one byte and wraps; the byte is part of what the tag covers.
//!
//! ```text
//! sealer:  epoch n  --2^22 packets, and the peer has acknowledged one of them-->  epoch n + 1
//! opener:  keeps n - 1 (late packets), n, and once asked for n + 1; moves on when a packet of n + 1 opens
//! ```
//! Invariants: a (key, path, packet number) seals once; a packet that does not open changes no key. A forged epoch costs what any forged
//! packet costs: one failed open. Sources: RFC 9001 6 (key update, limits of use), draft-ietf-quic-multipath 2.4 (nonce).

use std::sync::Arc;

use super::key::{PROTECTED_PACKETS_MAX, PacketKey, Secret};
use super::traffic::TrafficSecret;
use super::{CipherSuite, Role};

/// Packets after which a sealer wants a new key: half the limit, which leaves as many again while the peer has not
/// acknowledged the current one.
const ROTATION_PKTS: u64 = PROTECTED_PACKETS_MAX / 2;

/// Both directions of a connection after its handshake.
#[derive(Debug)]
pub struct DataKeys {
    /// Seals what this side sends.
    pub sealer: Sealer,
    /// Opens what the peer sends.
    pub opener: Opener,
}

impl DataKeys {
    /// Keys from the exporter `secret` that both sides of a handshake have; `role` is this side's.
    pub fn new(secret: [u8; 32], role: Role, suite: CipherSuite) -> Self {
        let secret = Secret::new(secret);
        let (client, server) = (secret.child(b"haul client"), secret.child(b"haul server"));
        let (ours, theirs) = match role {
            Role::Client => (client, server),
            Role::Server => (server, client),
        };
        Self { sealer: Sealer::new(suite, ours), opener: Opener::new(suite, theirs) }
    }

    /// The secrets of what this side seals, and of what it opens: for who looks for a fault.
    pub fn secrets(&self) -> [TrafficSecret; 2] {
        let (sealer, opener) = (&self.sealer, &self.opener);
        [
            TrafficSecret::new(sealer.suite, sealer.epoch, &sealer.secret),
            TrafficSecret::new(opener.suite, opener.epoch, &opener.secret),
        ]
    }
}

/// Why a packet was not sealed: the buffers do not fit. A fault of the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a packet to seal needs room for its plain text and a tag of 16 bytes, at most 64 KiB in all")]
pub struct SealError;

/// Seals packets of one direction.
pub struct Sealer {
    suite: CipherSuite,
    /// Shared with trains that are sealed later, which may outlive the epoch.
    key: Arc<PacketKey>,
    secret: Secret,
    epoch: u8,
    /// Packets sealed with the current key.
    sealed_pkts: u64,
    rotation_pkts: u64,
    /// Per path: the first packet number sealed in this epoch; `NONE_YET` if none.
    first_of_epoch: Vec<u64>,
    /// The peer has acknowledged a packet of this epoch, so it has the key.
    confirmed: bool,
}

const NONE_YET: u64 = u64::MAX;

impl Sealer {
    fn new(suite: CipherSuite, secret: Secret) -> Self {
        Self {
            suite,
            key: Arc::new(PacketKey::derive(suite, &secret)),
            secret,
            epoch: 0,
            sealed_pkts: 0,
            rotation_pkts: ROTATION_PKTS,
            first_of_epoch: vec![NONE_YET; 256],
            confirmed: false,
        }
    }

    /// The epoch that the next packet is sealed in: belongs into its header before it is sealed.
    #[inline]
    pub const fn epoch(&self) -> u8 {
        self.epoch
    }

    /// Changes the key after `packets` of them, at most 2^22 (the default). Tests set it small.
    pub fn rotate_every(&mut self, packets: u64) {
        self.rotation_pkts = packets.clamp(1, ROTATION_PKTS);
    }

    /// Seals `plain` into `out`, which is `plain.len() + 16` bytes long: cipher text, then tag. `aad` is the clear header; it
    /// names [`Sealer::epoch`]. A `packet_number` is used once on a path. May change the key for the packets after this one.
    #[inline]
    pub fn seal_into(&mut self, path: u8, packet_number: u64, aad: &[u8], plain: &[u8], out: &mut [u8]) -> Result<(), SealError> {
        self.key.seal_into(path, packet_number, aad, plain, out).map_err(|_| SealError)?;
        self.count(path, packet_number, 1);
        Ok(())
    }

    /// The key and the epoch of the next packets of a path, from number `first` on, and how many of the `wanted` (at least 1) they are for, which count as sealed from now on. Each is to be sealed
    /// once with that key, at any time: what changes meanwhile changes nothing for them.
    pub(crate) fn take(&mut self, path: u8, first: u64, wanted: u64) -> (Arc<PacketKey>, u8, u64) {
        let until = if self.confirmed { self.rotation_pkts } else { PROTECTED_PACKETS_MAX };
        let taken = until.saturating_sub(self.sealed_pkts).clamp(1, wanted.max(1));
        let (key, epoch) = (Arc::clone(&self.key), self.epoch);
        self.count(path, first, taken);
        (key, epoch, taken)
    }

    /// The peer has acknowledged `packet_number` on `path`. If it was sealed in the current epoch, the peer has that key and the next
    /// change may come. Without such news a change waits until the limit of use.
    #[inline]
    pub fn on_acknowledged(&mut self, path: u8, packet_number: u64) {
        if !self.confirmed && self.first_of_epoch[usize::from(path)] <= packet_number {
            self.confirmed = true;
            self.rotate_if_due();
        }
    }

    #[inline]
    fn count(&mut self, path: u8, first_number: u64, pkts: u64) {
        let first = &mut self.first_of_epoch[usize::from(path)];
        *first = first_number.min(*first);
        self.sealed_pkts += pkts;
        if self.sealed_pkts >= self.rotation_pkts {
            self.rotate_if_due();
        }
    }

    #[cold]
    fn rotate_if_due(&mut self) {
        let due = self.sealed_pkts >= self.rotation_pkts && self.confirmed;
        if due || self.sealed_pkts >= PROTECTED_PACKETS_MAX {
            self.secret = self.secret.child(b"haul next");
            self.key = Arc::new(PacketKey::derive(self.suite, &self.secret));
            self.epoch = self.epoch.wrapping_add(1);
            self.sealed_pkts = 0;
            self.confirmed = false;
            self.first_of_epoch.fill(NONE_YET);
        }
    }
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").field("suite", &self.suite).field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

/// Why a packet did not open. Drop the packet, except on [`OpenError::IntegrityLimit`]: close the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Forged, corrupted, or sealed with other keys.
    #[error("packet is not authentic")]
    NotAuthentic,
    /// Of an epoch that is neither current nor next to it.
    #[error("packet is of key epoch {epoch}, the current one is {current}")]
    UnknownEpoch {
        /// What the header says.
        epoch: u8,
        /// What the opener has.
        current: u8,
    },
    /// So many packets failed that a forgery among further ones is no longer improbable: the connection must close.
    #[error("more packets failed to authenticate than the cipher allows")]
    IntegrityLimit,
}

/// Opens packets of one direction.
pub struct Opener {
    suite: CipherSuite,
    current: PacketKey,
    epoch: u8,
    /// The secret of the current epoch.
    secret: Secret,
    previous: Option<PacketKey>,
    /// Derived when a packet first claims it; current when one has opened.
    next: Option<(PacketKey, Secret)>,
    failed_pkts: u64,
    integrity_limit_pkts: u64,
}

impl Opener {
    fn new(suite: CipherSuite, secret: Secret) -> Self {
        Self {
            suite,
            current: PacketKey::derive(suite, &secret),
            epoch: 0,
            secret,
            previous: None,
            next: None,
            failed_pkts: 0,
            integrity_limit_pkts: suite.integrity_limit_pkts(),
        }
    }

    /// The newest epoch of which a packet has opened.
    pub const fn epoch(&self) -> u8 {
        self.epoch
    }

    /// Packets that failed to authenticate so far.
    #[cfg(test)]
    const fn failed_pkts(&self) -> u64 {
        self.failed_pkts
    }

    /// Reports [`OpenError::IntegrityLimit`] after `packets` failures, at most the suite's own limit (the default).
    #[cfg(test)]
    fn limit_failures(&mut self, packets: u64) {
        self.integrity_limit_pkts = packets.min(self.suite.integrity_limit_pkts());
    }

    /// Opens `cipher_and_tag` into `out`, which is [`super::TAG_LEN`] bytes shorter. On an error `out` holds nothing of use. `aad` is the
    /// clear header, from which `epoch`, `path` and `packet_number` were read.
    #[inline]
    pub fn open_into(
        &mut self,
        epoch: u8,
        path: u8,
        packet_number: u64,
        aad: &[u8],
        cipher_and_tag: &[u8],
        out: &mut [u8],
    ) -> Result<(), OpenError> {
        self.within_limit()?;
        let key = if epoch == self.epoch { &self.current } else { self.neighbour(epoch)? };
        let opened = key.open_into(path, packet_number, aad, cipher_and_tag, out).is_ok();
        self.settle(epoch, opened)
    }

    /// Opens in place and tells the length of the plain text, which is at the start of `cipher_and_tag`. On an error the bytes there are
    /// of no use.
    #[inline]
    pub fn open_in_place(
        &mut self,
        epoch: u8,
        path: u8,
        packet_number: u64,
        aad: &[u8],
        cipher_and_tag: &mut [u8],
    ) -> Result<usize, OpenError> {
        self.within_limit()?;
        let key = if epoch == self.epoch { &self.current } else { self.neighbour(epoch)? };
        let opened = key.open_in_place(path, packet_number, aad, cipher_and_tag);
        self.settle(epoch, opened.is_ok())?;
        opened.map_err(|_| OpenError::NotAuthentic)
    }

    #[inline]
    fn within_limit(&self) -> Result<(), OpenError> {
        if self.failed_pkts >= self.integrity_limit_pkts { Err(OpenError::IntegrityLimit) } else { Ok(()) }
    }

    /// The key of an epoch other than the current one.
    #[cold]
    fn neighbour(&mut self, epoch: u8) -> Result<&PacketKey, OpenError> {
        let unknown = OpenError::UnknownEpoch { epoch, current: self.epoch };
        if epoch == self.epoch.wrapping_sub(1) {
            return self.previous.as_ref().ok_or(unknown);
        }
        if epoch != self.epoch.wrapping_add(1) {
            return Err(unknown);
        }
        let (key, _) = self.next.get_or_insert_with(|| {
            let secret = self.secret.child(b"haul next");
            (PacketKey::derive(self.suite, &secret), secret)
        });
        Ok(key)
    }

    #[inline]
    fn settle(&mut self, epoch: u8, opened: bool) -> Result<(), OpenError> {
        if !opened {
            self.failed_pkts += 1;
            self.within_limit()?;
            return Err(OpenError::NotAuthentic);
        }
        if epoch != self.epoch && epoch == self.epoch.wrapping_add(1) {
            self.advance();
        }
        Ok(())
    }

    #[cold]
    fn advance(&mut self) {
        if let Some((key, secret)) = self.next.take() {
            self.previous = Some(std::mem::replace(&mut self.current, key));
            self.secret = secret;
            self.epoch = self.epoch.wrapping_add(1);
        }
    }
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opener").field("suite", &self.suite).field("epoch", &self.epoch).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
