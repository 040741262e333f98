//! Transport parameters: what each side tells the other in its first TLS message.
//!
//! A list of (tag: u16, length: u16, value), numbers in network order; TLS authenticates it. An unknown tag is skipped and a missing one
//! has a default, so an old and a new haul understand each other; a tag that comes twice, a value of the wrong length or out of
//! its range is refused. What a side can do or wishes beyond that is a feature bit ([`feature`]).

use std::time::Duration;

use haul_strangers::ReturnToken;
use haul_units::Bytes;

/// Smallest datagram that every path must carry, and so the smallest `max_packet`.
pub const MIN_PACKET_BYTES: u16 = 1200;

/// Longest encoding that is read.
const MAX_ENCODED_BYTES: usize = 4096;

/// What one side offers and allows. All values are the sender's own; the other side keeps to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransportParams {
    /// Protocol version of the connection, as the sender sees it: protects the choice against tampering.
    pub version: u8,
    /// All versions that the sender supports, preferred first; at most 32.
    pub versions: Vec<u8>,
    /// Bytes that the peer may send on all streams together before it gets more credit.
    pub initial_max_data: Bytes,
    /// Bytes that the peer may send on each stream before it gets more credit.
    pub initial_max_stream_data: Bytes,
    /// Streams that the peer may have open at once.
    pub max_streams: u32,
    /// Silence after which the sender gives the connection up; in effect is the smaller of both sides. In milliseconds, up to 49 days.
    pub idle_timeout: Duration,
    /// Largest UDP payload that the sender takes, 1200..=65527 bytes.
    pub max_packet_bytes: u16,
    /// Shortest and longest time between two acknowledgements that the sender wants from itself, in microseconds.
    pub ack_interval_min: Duration,
    /// See `ack_interval_min`.
    pub ack_interval_max: Duration,
    /// With which the sender, having lost the connection, tells the peer so. Client and server may each have one.
    pub reset_token: Option<[u8; 16]>,
    /// Abilities and wishes, a bit each; who does not know a bit ignores it.
    pub features: u64,
    /// Paths that the peer may have open at once, the one of the handshake counted; 0 says the same as 1.
    pub max_paths: u8,
    /// Of a server: with which its client may return without the round trip of a cookie. // RFC 9000 8.1.3
    pub return_token: Option<ReturnToken>,
}

impl Default for TransportParams {
    fn default() -> Self {
        Self {
            version: 0,
            versions: Vec::new(),
            initial_max_data: Bytes::ZERO,
            initial_max_stream_data: Bytes::ZERO,
            max_streams: 0,
            idle_timeout: Duration::from_secs(30),
            max_packet_bytes: MIN_PACKET_BYTES,
            ack_interval_min: Duration::from_micros(250),
            ack_interval_max: Duration::from_millis(5),
            reset_token: None,
            features: 0,
            max_paths: 1,
            return_token: None,
        }
    }
}

/// Why bytes are no transport parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ParamsError {
    /// The list ends in the middle of an entry, or is longer than 4 KiB.
    #[error("list is cut off or too long")]
    Malformed,
    /// A tag comes twice.
    #[error("tag {0} comes twice")]
    Duplicate(u16),
    /// A value has the wrong length or is out of its range.
    #[error("value of tag {0} is not valid")]
    BadValue(u16),
}

/// Bits of [`TransportParams::features`].
pub mod feature {
    /// The sender of this bit measures the path by its first packets and wants them reported in small groups.
    pub const REPORT_THE_START: u64 = 1;
    /// The sender of this bit, a server, does not know the client yet: it takes one bidirectional stream and no other one until it says more.
    pub const CONFINED: u64 = 2;
    /// The sender of this bit understands what a client says of its paths.
    pub const PATH_STATUS: u64 = 4;
    /// The sender of this bit, a client, wants to be told where else the server can be reached.
    pub const SERVER_ADDRESSES: u64 = 8;
}

mod tag {
    pub const VERSION: u16 = 1;
    pub const VERSIONS: u16 = 2;
    pub const INITIAL_MAX_DATA: u16 = 3;
    pub const INITIAL_MAX_STREAM_DATA: u16 = 4;
    pub const MAX_STREAMS: u16 = 5;
    pub const IDLE_TIMEOUT: u16 = 6;
    pub const MAX_PACKET: u16 = 7;
    pub const ACK_INTERVAL: u16 = 8;
    pub const RESET_TOKEN: u16 = 9;
    pub const FEATURES: u16 = 10;
    pub const MAX_PATHS: u16 = 11;
    pub const RETURN_TOKEN: u16 = 12;
}

impl TransportParams {
    /// The list as TLS carries it.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(128);
        let mut put = |tag: u16, value: &[u8]| {
            out.extend_from_slice(&tag.to_be_bytes());
            out.extend_from_slice(&(value.len() as u16).to_be_bytes());
            out.extend_from_slice(value);
        };
        put(tag::VERSION, &[self.version]);
        put(tag::VERSIONS, &self.versions[..self.versions.len().min(MAX_VERSIONS)]);
        put(tag::INITIAL_MAX_DATA, &self.initial_max_data.as_u64().to_be_bytes());
        put(tag::INITIAL_MAX_STREAM_DATA, &self.initial_max_stream_data.as_u64().to_be_bytes());
        put(tag::MAX_STREAMS, &self.max_streams.to_be_bytes());
        put(tag::IDLE_TIMEOUT, &saturating_u32(self.idle_timeout.as_millis()).to_be_bytes());
        put(tag::MAX_PACKET, &self.max_packet_bytes.to_be_bytes());
        let mut interval = [0; 8];
        interval[..4].copy_from_slice(&saturating_u32(self.ack_interval_min.as_micros()).to_be_bytes());
        interval[4..].copy_from_slice(&saturating_u32(self.ack_interval_max.as_micros()).to_be_bytes());
        put(tag::ACK_INTERVAL, &interval);
        if let Some(token) = &self.reset_token {
            put(tag::RESET_TOKEN, token);
        }
        put(tag::FEATURES, &self.features.to_be_bytes());
        put(tag::MAX_PATHS, &[self.max_paths]);
        if let Some(token) = &self.return_token {
            put(tag::RETURN_TOKEN, token);
        }
        out
    }

    /// Reads a list that a peer sent.
    pub fn decode(bytes: &[u8]) -> Result<Self, ParamsError> {
        if bytes.len() > MAX_ENCODED_BYTES {
            return Err(ParamsError::Malformed);
        }
        let mut params = Self::default();
        let mut seen = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let (tag, value, after) = entry(rest).ok_or(ParamsError::Malformed)?;
            if seen.contains(&tag) {
                return Err(ParamsError::Duplicate(tag));
            }
            seen.push(tag);
            params.set(tag, value).ok_or(ParamsError::BadValue(tag))?;
            rest = after;
        }
        if params.ack_interval_min > params.ack_interval_max {
            return Err(ParamsError::BadValue(tag::ACK_INTERVAL));
        }
        Ok(params)
    }

    /// `None`: not a valid value of that tag.
    fn set(&mut self, tag: u16, value: &[u8]) -> Option<()> {
        match tag {
            tag::VERSION => self.version = u8::from_be_bytes(value.try_into().ok()?),
            tag::VERSIONS if value.len() <= MAX_VERSIONS => self.versions = value.to_vec(),
            tag::VERSIONS => return None,
            tag::INITIAL_MAX_DATA => self.initial_max_data = Bytes(u64::from_be_bytes(value.try_into().ok()?)),
            tag::INITIAL_MAX_STREAM_DATA => {
                self.initial_max_stream_data = Bytes(u64::from_be_bytes(value.try_into().ok()?));
            }
            tag::MAX_STREAMS => self.max_streams = u32::from_be_bytes(value.try_into().ok()?),
            tag::IDLE_TIMEOUT => {
                self.idle_timeout = Duration::from_millis(u32::from_be_bytes(value.try_into().ok()?).into());
            }
            tag::MAX_PACKET => {
                self.max_packet_bytes = u16::from_be_bytes(value.try_into().ok()?);
                if !(MIN_PACKET_BYTES..=MAX_UDP_PAYLOAD_BYTES).contains(&self.max_packet_bytes) {
                    return None;
                }
            }
            tag::ACK_INTERVAL => {
                let (min, max) = value.split_at_checked(4)?;
                self.ack_interval_min = Duration::from_micros(u32::from_be_bytes(min.try_into().ok()?).into());
                self.ack_interval_max = Duration::from_micros(u32::from_be_bytes(max.try_into().ok()?).into());
            }
            tag::RESET_TOKEN => self.reset_token = Some(value.try_into().ok()?),
            tag::FEATURES => self.features = u64::from_be_bytes(value.try_into().ok()?),
            tag::MAX_PATHS => self.max_paths = u8::from_be_bytes(value.try_into().ok()?),
            tag::RETURN_TOKEN => self.return_token = Some(value.try_into().ok()?),
            _ => {}
        }
        Some(())
    }
}

/// The first entry of a list and what follows it.
fn entry(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let (tag, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (value, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes(*length)))?;
    Some((u16::from_be_bytes(*tag), value, rest))
}

fn saturating_u32(n: u128) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

const MAX_VERSIONS: usize = 32;
/// 65535 less the UDP header.
const MAX_UDP_PAYLOAD_BYTES: u16 = 65_527;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_params() -> impl Strategy<Value = TransportParams> {
        let numbers = (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>(), 1200_u16..=65_527, any::<u32>(), any::<u32>());
        let rest =
            (any::<u8>(), prop::collection::vec(any::<u8>(), 0..=32), any::<Option<[u8; 16]>>(), any::<u64>(), any::<u8>());
        let token = prop::option::of(any::<[u8; 32]>().prop_map(|bytes| [&bytes[..], &bytes[..5]].concat().try_into().unwrap()));
        (numbers, rest, token).prop_map(
            |(
                (data, stream, streams, idle, packet, a, b),
                (version, versions, reset_token, features, max_paths),
                return_token,
            )| {
                TransportParams {
                    version,
                    versions,
                    initial_max_data: Bytes(data),
                    initial_max_stream_data: Bytes(stream),
                    max_streams: streams,
                    idle_timeout: Duration::from_millis(idle.into()),
                    max_packet_bytes: packet,
                    ack_interval_min: Duration::from_micros(a.min(b).into()),
                    ack_interval_max: Duration::from_micros(a.max(b).into()),
                    reset_token,
                    features,
                    max_paths,
                    return_token,
                }
            },
        )
    }

    proptest! {
        #[test]
        fn round_trip(params in any_params()) {
            prop_assert_eq!(TransportParams::decode(&params.encode()), Ok(params));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = TransportParams::decode(&bytes);
        }

        #[test]
        fn every_cut_is_refused_or_valid(params in any_params(), cut in 0_usize..100) {
            let bytes = params.encode();
            let _ = TransportParams::decode(&bytes[..bytes.len().saturating_sub(cut)]);
        }

        #[test]
        fn unknown_tags_are_skipped(params in any_params(), tag in 1000_u16.., value in prop::collection::vec(any::<u8>(), 0..50)) {
            let mut bytes = tag.to_be_bytes().to_vec();
            bytes.extend((value.len() as u16).to_be_bytes());
            bytes.extend(value);
            bytes.extend(params.encode());
            prop_assert_eq!(TransportParams::decode(&bytes), Ok(params));
        }
    }

    #[test]
    fn what_is_wrong_is_refused() {
        let version = [0, 1, 0, 1, 9];
        assert_eq!(TransportParams::decode(&version).map(|params| params.version), Ok(9));
        assert_eq!(TransportParams::decode(&[version, version].concat()), Err(ParamsError::Duplicate(1)));
        assert_eq!(TransportParams::decode(&[0, 1, 0, 2, 9, 9]), Err(ParamsError::BadValue(1)));
        assert_eq!(TransportParams::decode(&[0, 7, 0, 2, 0x04, 0xaf]), Err(ParamsError::BadValue(7)), "1199 bytes");
        assert_eq!(TransportParams::decode(&[0, 1, 0, 2, 9]), Err(ParamsError::Malformed));
        assert_eq!(TransportParams::decode(&[0; 5000]), Err(ParamsError::Malformed));
        let swapped = [0, 8, 0, 8, 0, 0, 0, 2, 0, 0, 0, 1];
        assert_eq!(TransportParams::decode(&swapped), Err(ParamsError::BadValue(8)));
    }
}
