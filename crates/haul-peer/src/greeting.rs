//! The lines that open every service: a client says what it wants, a server whether it serves.

use std::error::Error;
use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use haul_units::PeerText;
use serde::{Deserialize, Serialize};

/// Longest greeting, in bytes.
const MAX_GREETING: usize = 4096;

/// What the server answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reply {
    /// The engine follows.
    Served {
        /// Version of the program, for the log.
        version: PeerText,
        /// Whether it takes blocks that are packed, as the client has offered.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        unpacks: bool,
    },
    /// Nothing follows.
    Refused(Refusal),
}

/// Why a server does not serve.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// What is wrong.
    pub error: PeerText,
    /// What to do about it.
    #[serde(default)]
    pub hint: Option<PeerText>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl Error for Refusal {}

/// Writes a greeting as a line.
pub fn to_line(greeting: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(greeting).expect("only strings and numbers, which JSON can hold");
    line.push(b'\n');
    line
}

/// Reads a greeting.
pub fn from_line<T: for<'a> Deserialize<'a>>(reader: &mut impl Read) -> io::Result<T> {
    from_bounded_line(reader, MAX_GREETING)
}

/// Reads a line of at most `limit` bytes.
pub fn from_bounded_line<T: for<'a> Deserialize<'a>>(reader: &mut impl Read, limit: usize) -> io::Result<T> {
    let line = read_line(reader, limit)?;
    serde_json::from_slice(&line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The client's reading half of the control stream: takes the server's reply off when it comes, with no round trip spent on waiting for it.
pub struct RepliedStream<R> {
    stream: R,
    replied: bool,
    /// Set where the server takes packed blocks.
    unpacks: Arc<AtomicBool>,
}

impl<R: Read> RepliedStream<R> {
    /// A stream whose first line is the reply.
    pub fn new(stream: R) -> Self {
        Self::telling(stream, Arc::default())
    }

    /// The same; the reply sets `unpacks` where the server takes packed blocks.
    pub const fn telling(stream: R, unpacks: Arc<AtomicBool>) -> Self {
        Self { stream, replied: false, unpacks }
    }
}

impl<R: Read> Read for RepliedStream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.replied {
            match from_line(&mut self.stream)? {
                Reply::Served { version, unpacks } => {
                    tracing::debug!(%version, unpacks, "the server answers");
                    self.unpacks.store(unpacks, Ordering::Relaxed);
                }
                Reply::Refused(refusal) => return Err(io::Error::new(io::ErrorKind::PermissionDenied, refusal)),
            }
            self.replied = true;
        }
        self.stream.read(buffer)
    }
}

/// Reads one line of at most `limit` bytes, byte by byte: what follows it belongs to somebody else.
pub fn read_line(reader: &mut impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        reader.read_exact(&mut byte)?;
        match byte {
            [b'\n'] => return Ok(line),
            _ if line.len() == limit => return Err(io::Error::new(io::ErrorKind::InvalidData, "the greeting is too long")),
            [byte] => line.push(byte),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reply_is_taken_off() {
        let mut bytes = to_line(&Reply::Served { version: "1".into(), unpacks: false });
        bytes.extend(b"engine");
        let mut rest = String::new();
        RepliedStream::new(&bytes[..]).read_to_string(&mut rest).expect("readable");
        assert_eq!(rest, "engine");
    }

    #[test]
    fn a_refusal_comes_out_as_the_error() {
        let refusal = Refusal { error: "no".into(), hint: Some("ask".into()) };
        let bytes = to_line(&Reply::Refused(refusal.clone()));
        let error = RepliedStream::new(&bytes[..]).read(&mut [0; 8]).expect_err("refused");
        let inner = error.into_inner().expect("the refusal itself").downcast::<Refusal>().expect("its type");
        assert_eq!(*inner, refusal);
    }

    #[test]
    fn a_line_ends_where_it_ends() {
        let mut stream = &b"{}\nrest"[..];
        assert_eq!(read_line(&mut stream, 10).expect("a line"), b"{}");
        assert_eq!(stream, b"rest");
    }

    #[test]
    fn a_line_without_end_is_refused() {
        assert_eq!(read_line(&mut &b"abcdef\n"[..], 5).expect_err("long").kind(), io::ErrorKind::InvalidData);
        assert_eq!(read_line(&mut &b"abc"[..], 5).expect_err("cut").kind(), io::ErrorKind::UnexpectedEof);
    }
}
