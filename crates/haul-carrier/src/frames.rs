//! What a lane carries: trains one after the other, and a question whether anybody is there.
//!
//! ```text
//!   length (2 bytes, big endian) | segment (2 bytes) | train (length bytes)
//!   0                            | what is said      |
//!   0                            | CALL_BACK         | 0 | port
//!   0                            | SAY               | length | 0 | what the two programs say to each other
//! ```
//! Who does not know a word passes over it, and over a port, which is no word either. SAY is for those alone who are known to know it.
//! A train is at most 64 datagrams of `segment` bytes, the last may be shorter.

use std::fmt;

/// The largest train, in bytes: the transport's own bound, that of a UDP datagram.
pub const MAX_TRAIN_BYTES: usize = 65_507;
/// The most datagrams of one train.
pub const MAX_SEGMENTS: usize = 64;
/// The most that the two programs say to each other at once.
pub const MAX_SAID_BYTES: usize = 1024;
/// Of a frame's head.
pub(crate) const HEAD_BYTES: usize = 4;
/// Two of the largest frames: what one read brings does not have to end with a frame.
const BUFFER_BYTES: usize = 2 * (HEAD_BYTES + MAX_TRAIN_BYTES);

/// One frame.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame<'a> {
    /// Datagrams.
    Train {
        /// One after the other.
        train: &'a mut [u8],
        /// Size of each but the last.
        segment_bytes: usize,
    },
    /// Is anybody there?
    Ping,
    /// Somebody is.
    Pong {
        /// Whether the other way, that by UDP, has brought anything from the one who asked.
        heard_over_udp: bool,
    },
    /// The peer is to send something over UDP to this port of who asks: what a firewall has seen leave, it lets answers to in.
    CallBack {
        /// Not zero.
        port: u16,
    },
    /// What the peer's program says to this one.
    Said(&'a [u8]),
    /// What a later version says.
    Unknown,
}

/// A frame whose head makes no sense: its stream carries something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MalformedFrame;

impl fmt::Display for MalformedFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a frame of a carrier")
    }
}

impl std::error::Error for MalformedFrame {}

const PING: u16 = 0;
const PONG: u16 = 1;
const PONG_UDP_HEARD: u16 = 2;
const CALL_BACK: u16 = 3;
const SAY: u16 = 4;

/// The head of a train's frame.
pub(crate) fn head(train_bytes: usize, segment_bytes: usize) -> [u8; HEAD_BYTES] {
    let [a, b] = (train_bytes as u16).to_be_bytes();
    let [c, d] = (segment_bytes as u16).to_be_bytes();
    [a, b, c, d]
}

pub(crate) fn ping() -> [u8; HEAD_BYTES] {
    head(0, PING.into())
}

pub(crate) fn pong(heard_over_udp: bool) -> [u8; HEAD_BYTES] {
    head(0, if heard_over_udp { PONG_UDP_HEARD } else { PONG }.into())
}

/// Two heads, the second with the port.
pub(crate) fn call_back(port: u16) -> [[u8; HEAD_BYTES]; 2] {
    [head(0, CALL_BACK.into()), head(0, port.into())]
}

/// Two heads, the second with the length, and what is said, which is no longer than may be.
pub(crate) fn say(words: &[u8]) -> Vec<u8> {
    let words = words.get(..MAX_SAID_BYTES).unwrap_or(words);
    [&head(0, SAY.into()), &head(words.len(), 0), words].concat()
}

/// Whether a train has a size that a frame can say.
pub(crate) fn fits(train_bytes: usize, segment_bytes: usize) -> bool {
    (1..=MAX_TRAIN_BYTES).contains(&train_bytes)
        && (1..=train_bytes).contains(&segment_bytes)
        && train_bytes.div_ceil(segment_bytes) <= MAX_SEGMENTS
}

/// Finds the frames in a stream of bytes, in memory that does not grow.
#[derive(Debug)]
pub struct Frames {
    buffer: Vec<u8>,
    /// What has been read and not taken.
    start: usize,
    end: usize,
}

impl Default for Frames {
    fn default() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES], start: 0, end: 0 }
    }
}

impl Frames {
    /// Room for what is read next; never empty once [`Self::next`] has given all that there was.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        self.buffer.get_mut(self.end..).unwrap_or_default()
    }

    /// So many bytes were read into [`Self::room`].
    pub fn on_read(&mut self, bytes: usize) {
        self.end = (self.end + bytes).min(self.buffer.len());
    }

    /// The next frame that is complete.
    #[expect(clippy::should_implement_trait, reason = "what it gives is lent")]
    pub fn next(&mut self) -> Result<Option<Frame<'_>>, MalformedFrame> {
        let Some(&[a, b, c, d]) = self.buffer.get(self.start..self.end).and_then(|rest| rest.first_chunk::<HEAD_BYTES>()) else {
            return Ok(None);
        };
        let (length, segment) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        let (train_bytes, segment_bytes) = (usize::from(length), usize::from(segment));
        if train_bytes == 0 && segment == CALL_BACK {
            return Ok(self.called_back());
        }
        if train_bytes == 0 && segment == SAY {
            return self.said();
        }
        if train_bytes == 0 {
            self.start += HEAD_BYTES;
            return Ok(Some(match segment {
                PING => Frame::Ping,
                PONG => Frame::Pong { heard_over_udp: false },
                PONG_UDP_HEARD => Frame::Pong { heard_over_udp: true },
                _ => Frame::Unknown,
            }));
        }
        if !fits(train_bytes, segment_bytes) {
            return Err(MalformedFrame);
        }
        let (first, after) = (self.start + HEAD_BYTES, self.start + HEAD_BYTES + train_bytes);
        if after > self.end {
            return Ok(None);
        }
        self.start = after;
        Ok(self.buffer.get_mut(first..after).map(|train| Frame::Train { train, segment_bytes }))
    }

    /// What is said, once all of it has come.
    fn said(&mut self) -> Result<Option<Frame<'_>>, MalformedFrame> {
        let second = self.start + HEAD_BYTES;
        let Some(&[a, b, c, d]) = self.buffer.get(second..self.end).and_then(|rest| rest.first_chunk::<HEAD_BYTES>()) else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([a, b]));
        if length > MAX_SAID_BYTES || [c, d] != [0, 0] {
            return Err(MalformedFrame);
        }
        let (first, after) = (second + HEAD_BYTES, second + HEAD_BYTES + length);
        if after > self.end {
            return Ok(None);
        }
        self.start = after;
        Ok(self.buffer.get(first..after).map(Frame::Said))
    }

    /// The port in the head behind this one, once it has come; anything else in its place means nothing, and stays.
    fn called_back(&mut self) -> Option<Frame<'static>> {
        let behind = self.start + HEAD_BYTES..self.end;
        let &[a, b, c, d] = self.buffer.get(behind).and_then(|rest| rest.first_chunk::<HEAD_BYTES>())?;
        self.start += HEAD_BYTES;
        let port = u16::from_be_bytes([c, d]);
        if [a, b] != [0, 0] || port == 0 {
            return Some(Frame::Unknown);
        }
        self.start += HEAD_BYTES;
        Some(Frame::CallBack { port })
    }
}
