//! What the two sides of a measurement tell each other: lines of JSON on one bidirectional stream.
//!
//! ```text
//!   client                           server
//!   Ask       ------------------>             the plan
//!             <------------------ Answer      a welcome, or a refusal and why
//!   Ping      ------------------>             on the idle path, and under TCP's load
//!             <------------------ Pong
//!   Go        ------------------>             the server's clock starts, unless data came before; data flows
//!             <------------------ Started     just before the server sends data of its own
//!             <------------------ Interval    what the server's roles counted
//!             <------------------ Total       a role of the server's is over
//!             <------------------ Done        all are
//!   Results   ------------------>             what the client counted, for the server's own output
//! ```

use std::io::{self, BufRead, Read, Write};

use haul_peer::Refusal;
use haul_units::PeerText;
use serde::{Deserialize, Serialize};

use super::plan::Plan;
use super::results::{Done, Interval, Total};

/// Application protocol name, agreed in the handshake.
pub const PROTOCOL: &[u8] = b"haul-perf/1";

/// Close code: the measurement is over.
pub const CLOSE_DONE: u64 = 0;
/// Close code: it was given up.
pub const CLOSE_ABORTED: u64 = 1;

/// Longest line, in bytes: an interval of the most streams over TCP fits several times.
const MAX_LINE: u64 = 512 << 10;

/// What the client says first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ask {
    /// Version of the program.
    pub version: PeerText,
    /// What to measure.
    pub plan: Plan,
    /// Whether the client wants the server's own output.
    #[serde(default)]
    pub server_output: bool,
    /// Names the measurement on both sides.
    #[serde(default)]
    pub cookie: PeerText,
}

impl Ask {
    /// For this plan, without the server's own output, and with a cookie that nobody looks at.
    pub fn new(plan: Plan) -> Self {
        Self { version: env!("CARGO_PKG_VERSION").into(), plan, server_output: false, cookie: PeerText::default() }
    }
}

/// What the server answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// It goes along.
    Welcome(Welcome),
    /// It does not.
    Refused(Refusal),
}

/// What the client needs to know of the server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    /// Version of the program.
    pub version: PeerText,
    /// Its system, as `uname` has it.
    #[serde(default)]
    pub system: PeerText,
    /// Where TCP connections are taken, if the plan has any.
    #[serde(default)]
    pub tcp_port: Option<u16>,
    /// What each TCP connection says first.
    #[serde(default)]
    pub tcp_cookie: PeerText,
}

/// Everything after the first two lines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Message {
    /// To be answered at once.
    Ping(u32),
    /// The answer.
    Pong(u32),
    /// Starts the measurement.
    Go,
    /// Data of the server's comes next.
    Started,
    /// What one role counted in one interval.
    Interval(Interval),
    /// A role is over.
    Total(Total),
    /// All roles of the server are over.
    Done(Done),
    /// Ends the measurement before its time.
    Stop,
    /// What went wrong.
    Failed(PeerText),
    /// The client's totals.
    Results(Vec<Total>),
}

/// A line, newline included.
pub fn to_line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// Writes one message.
pub fn send(stream: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    stream.write_all(&to_line(message)?)
}

/// Reads one message; `None` at the end of the stream.
pub fn receive<T: for<'a> Deserialize<'a>>(reader: &mut impl BufRead) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    let read = reader.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)?;
    match (read, line.last()) {
        (0, _) => Ok(None),
        (_, Some(b'\n')) => Ok(Some(serde_json::from_slice(&line)?)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidData, "a message is cut or too long")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Direction, Role};

    #[test]
    fn messages_come_back_as_they_were_sent() {
        let interval = Interval {
            direction: Direction::Up,
            role: Role::Receiver,
            index: 3,
            start_us: 0,
            end_us: 1_000_000,
            omitted: false,
            bytes: vec![5, 6],
            paths: Vec::new(),
        };
        let messages = [Message::Ping(1), Message::Go, Message::Interval(interval), Message::Failed("why".into())];
        let mut bytes = Vec::new();
        for message in &messages {
            send(&mut bytes, message).unwrap();
        }
        let mut reader = &bytes[..];
        for message in messages {
            assert_eq!(receive::<Message>(&mut reader).unwrap(), Some(message));
        }
        assert_eq!(receive::<Message>(&mut reader).unwrap(), None);
    }

    #[test]
    fn nonsense_and_endless_lines_are_errors() {
        for bytes in [&b"{\n"[..], b"\"go\"", b"{\"ping\":-1}\n", b"[[[[[\n"] {
            assert!(receive::<Message>(&mut &bytes[..]).is_err());
        }
        let endless = vec![b'x'; MAX_LINE as usize + 10];
        assert!(receive::<Message>(&mut &endless[..]).is_err());
    }
}
