//! Control frames: the payload of control packets.

use std::net::SocketAddr;
use std::time::Duration;

use super::ack::Ack;
use super::error::DecodeError;
use super::stream::{StreamId, StreamKind};
use super::varint::{Reader, put_varint};
use haul_paths::{ADDRESS_BYTES, Standing, Told, address_from_bytes, address_to_bytes};

/// One control frame.
#[derive(Debug, Clone, PartialEq)]
pub enum Frame {
    /// Asks for an acknowledgement at once.
    Ping,
    /// Makes a packet of padding count like one of data: it is acknowledged when those would be.
    Filler,
    /// What has been received on a path.
    Ack(Ack),
    /// The sender of data tells which reports it has (nothing below `floor` need be reported again) and its smoothed round-trip time,
    /// from which the receiver sets its acknowledgement interval.
    AckFloor {
        /// Path that the floor belongs to.
        path: u8,
        /// Packet number below which every fate is known.
        floor: u64,
        /// The data sender's smoothed round-trip time.
        rtt: Duration,
    },
    /// Credit of the connection: total stream bytes that may have been sent for the first time.
    MaxData(u64),
    /// Credit of one stream: bytes that may have been sent for the first time.
    MaxStreamData {
        /// Which stream.
        stream: StreamId,
        /// Total.
        max: u64,
    },
    /// How many streams of a kind the peer may have opened in all.
    MaxStreams {
        /// Kind.
        kind: StreamKind,
        /// Total.
        max: u32,
    },
    /// The sender gives a stream up.
    ResetStream {
        /// Which stream.
        stream: StreamId,
        /// The application's reason.
        code: u64,
        /// Bytes sent for the first time on it, for the connection's credit.
        total: u64,
    },
    /// The reader wants no more of a stream.
    StopSending {
        /// Which stream.
        stream: StreamId,
        /// The application's reason.
        code: u64,
    },
    /// A placed stream ends: `total` bytes were written to it.
    PlacedFin {
        /// Which stream.
        stream: StreamId,
        /// Bytes in all.
        total: u64,
    },
    /// Asks the peer at a new address to prove that it is there.
    PathChallenge(u64),
    /// The proof.
    PathResponse(u64),
    /// What a path is for, in its client's words.
    PathStatus(u8, Told),
    /// A server can be reached there too.
    ServerAddress(SocketAddr),
    /// The connection ends.
    Close {
        /// The application's or protocol's code.
        code: u64,
        /// For people, UTF-8, at most [`Frame::MAX_REASON_BYTES`].
        reason: Vec<u8>,
    },
}

/// A byte of nothing; there may be many.
const PADDING: u8 = 0;
const PING: u8 = 1;
const ACK: u8 = 2;
const ACK_FLOOR: u8 = 3;
const MAX_DATA: u8 = 4;
const MAX_STREAM_DATA: u8 = 5;
const MAX_STREAMS: u8 = 6;
const RESET_STREAM: u8 = 7;
const STOP_SENDING: u8 = 8;
const PLACED_FIN: u8 = 9;
const PATH_CHALLENGE: u8 = 10;
const PATH_RESPONSE: u8 = 11;
const CLOSE: u8 = 12;
const FILLER: u8 = 13;
const PATH_STATUS: u8 = 14;
const SERVER_ADDRESS: u8 = 15;

impl Frame {
    /// The longest reason of a [`Frame::Close`].
    pub const MAX_REASON_BYTES: usize = 512;

    /// Whether the receiver must acknowledge a packet that carries this frame.
    pub(crate) const fn elicits_ack(&self) -> bool {
        !matches!(self, Self::Ack(_) | Self::AckFloor { .. } | Self::Close { .. })
    }

    /// Whether a lost frame is sent again.
    pub(crate) const fn is_reliable(&self) -> bool {
        matches!(
            self,
            Self::MaxData(_)
                | Self::MaxStreamData { .. }
                | Self::MaxStreams { .. }
                | Self::ResetStream { .. }
                | Self::StopSending { .. }
                | Self::PlacedFin { .. }
                | Self::PathStatus(..)
                | Self::ServerAddress(_)
        )
    }

    /// Appends the frame.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Ping => out.push(PING),
            Self::Filler => out.push(FILLER),
            Self::Ack(ack) => {
                out.push(ACK);
                ack.encode(out);
            }
            Self::AckFloor { path, floor, rtt } => {
                out.extend([ACK_FLOOR, *path]);
                put_varint(out, *floor);
                put_varint(out, u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX));
            }
            Self::MaxData(max) => put_fields(out, MAX_DATA, &[*max]),
            Self::MaxStreamData { stream, max } => put_fields(out, MAX_STREAM_DATA, &[stream.0.into(), *max]),
            Self::MaxStreams { kind, max } => put_fields(out, MAX_STREAMS, &[kind.to_bits().into(), (*max).into()]),
            Self::ResetStream { stream, code, total } => put_fields(out, RESET_STREAM, &[stream.0.into(), *code, *total]),
            Self::StopSending { stream, code } => put_fields(out, STOP_SENDING, &[stream.0.into(), *code]),
            Self::PlacedFin { stream, total } => put_fields(out, PLACED_FIN, &[stream.0.into(), *total]),
            Self::PathChallenge(nonce) => put_nonce(out, PATH_CHALLENGE, *nonce),
            Self::PathResponse(nonce) => put_nonce(out, PATH_RESPONSE, *nonce),
            Self::PathStatus(path, told) => {
                put_fields(out, PATH_STATUS, &[(*path).into(), told.standing as u64, told.sequence, told.cap]);
            }
            Self::ServerAddress(address) => {
                out.push(SERVER_ADDRESS);
                out.extend_from_slice(&address_to_bytes(*address));
            }
            Self::Close { code, reason } => {
                let reason = &reason[..reason.len().min(Self::MAX_REASON_BYTES)];
                put_fields(out, CLOSE, &[*code, reason.len() as u64]);
                out.extend_from_slice(reason);
            }
        }
    }

    /// The frames of a control packet's payload, padding left out; the first error ends the sequence.
    pub fn decode_all(payload: &[u8]) -> impl Iterator<Item = Result<Self, DecodeError>> {
        let mut reader = Reader::new(payload);
        let mut failed = false;
        std::iter::from_fn(move || {
            while !failed && !reader.is_empty() {
                match Self::decode(&mut reader) {
                    Ok(None) => {}
                    Ok(Some(frame)) => return Some(Ok(frame)),
                    Err(error) => {
                        failed = true;
                        return Some(Err(error));
                    }
                }
            }
            None
        })
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        let frame = match reader.u8()? {
            PADDING => {
                reader.skip_zeros();
                return Ok(None);
            }
            PING => Self::Ping,
            FILLER => Self::Filler,
            ACK => Self::Ack(Ack::decode(reader)?),
            ACK_FLOOR => {
                Self::AckFloor { path: reader.u8()?, floor: reader.varint()?, rtt: Duration::from_micros(reader.varint()?) }
            }
            MAX_DATA => Self::MaxData(reader.varint()?),
            MAX_STREAM_DATA => Self::MaxStreamData { stream: stream_id(reader)?, max: reader.varint()? },
            MAX_STREAMS => {
                let kind = u8::try_from(reader.varint()?).ok().and_then(StreamKind::from_bits).ok_or(DecodeError::Overflow)?;
                Self::MaxStreams { kind, max: reader.varint_u32()? }
            }
            RESET_STREAM => Self::ResetStream { stream: stream_id(reader)?, code: reader.varint()?, total: reader.varint()? },
            STOP_SENDING => Self::StopSending { stream: stream_id(reader)?, code: reader.varint()? },
            PLACED_FIN => Self::PlacedFin { stream: stream_id(reader)?, total: reader.varint()? },
            PATH_CHALLENGE => Self::PathChallenge(reader.u64()?),
            PATH_RESPONSE => Self::PathResponse(reader.u64()?),
            PATH_STATUS => {
                let path = u8::try_from(reader.varint()?).map_err(|_| DecodeError::Overflow)?;
                let standing = match reader.varint()? {
                    0 => Standing::Available,
                    1 => Standing::Backup,
                    2 => Standing::Away,
                    _ => return Err(DecodeError::Overflow),
                };
                Self::PathStatus(path, Told { standing, sequence: reader.varint()?, cap: reader.varint()? })
            }
            CLOSE => {
                let code = reader.varint()?;
                let len = usize::try_from(reader.varint()?).map_err(|_| DecodeError::Overflow)?;
                if len > Self::MAX_REASON_BYTES {
                    return Err(DecodeError::Overflow);
                }
                Self::Close { code, reason: reader.take(len)?.to_vec() }
            }
            SERVER_ADDRESS => Self::ServerAddress(address_from_bytes(reader.take(ADDRESS_BYTES)?).ok_or(DecodeError::Truncated)?),
            unknown => return Err(DecodeError::UnknownFrame(unknown)),
        };
        Ok(Some(frame))
    }
}

fn stream_id(reader: &mut Reader<'_>) -> Result<StreamId, DecodeError> {
    reader.varint_u32().map(StreamId)
}

fn put_fields(out: &mut Vec<u8>, kind: u8, fields: &[u64]) {
    out.push(kind);
    for &field in fields {
        put_varint(out, field);
    }
}

fn put_nonce(out: &mut Vec<u8>, kind: u8, nonce: u64) {
    out.push(kind);
    out.extend_from_slice(&nonce.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_frame() -> impl Strategy<Value = Frame> {
        let stream = any::<u32>().prop_map(StreamId);
        prop_oneof![
            Just(Frame::Ping),
            Just(Frame::Filler),
            (any::<u8>(), any::<u64>(), any::<u32>()).prop_map(|(path, floor, us)| Frame::AckFloor {
                path,
                floor,
                rtt: Duration::from_micros(us.into())
            }),
            any::<u64>().prop_map(Frame::MaxData),
            (stream.clone(), any::<u64>()).prop_map(|(stream, max)| Frame::MaxStreamData { stream, max }),
            (0..3u8, any::<u32>()).prop_map(|(kind, max)| Frame::MaxStreams { kind: StreamKind::from_bits(kind).unwrap(), max }),
            (stream.clone(), any::<u64>(), any::<u64>()).prop_map(|(stream, code, total)| Frame::ResetStream {
                stream,
                code,
                total
            }),
            (stream.clone(), any::<u64>()).prop_map(|(stream, code)| Frame::StopSending { stream, code }),
            (stream, any::<u64>()).prop_map(|(stream, total)| Frame::PlacedFin { stream, total }),
            any::<u64>().prop_map(Frame::PathChallenge),
            any::<u64>().prop_map(Frame::PathResponse),
            (any::<u8>(), 0..3usize, any::<u64>(), any::<u64>()).prop_map(|(path, standing, sequence, cap)| {
                let standing = [Standing::Available, Standing::Backup, Standing::Away][standing];
                Frame::PathStatus(path, Told { sequence, standing, cap })
            }),
            (any::<u32>(), any::<u16>()).prop_map(|(ip, port)| Frame::ServerAddress((ip.to_be_bytes(), port).into())),
            // What is IPv4 within IPv6 is told as IPv4.
            (1u8.., any::<[u8; 15]>(), any::<u16>()).prop_map(|(first, rest, port)| {
                let mut ip = [first; 16];
                ip[1..].copy_from_slice(&rest);
                Frame::ServerAddress((ip, port).into())
            }),
            (any::<u64>(), prop::collection::vec(any::<u8>(), 0..600)).prop_map(|(code, mut reason)| {
                reason.truncate(Frame::MAX_REASON_BYTES);
                Frame::Close { code, reason }
            }),
        ]
    }

    proptest! {
        #[test]
        fn sequences_round_trip_with_padding_between(frames in prop::collection::vec(any_frame(), 0..8), padding in 0..4usize) {
            let mut out = Vec::new();
            for frame in &frames {
                frame.encode(&mut out);
                out.resize(out.len() + padding, PADDING);
            }
            let decoded: Result<Vec<_>, _> = Frame::decode_all(&out).collect();
            prop_assert_eq!(decoded, Ok(frames));
        }

        #[test]
        fn whatever_arrives_does_not_panic(bytes: Vec<u8>) {
            let _ = Frame::decode_all(&bytes).count();
        }
    }
}
