//! A server that is kept for many copies.
//!
//! ```text
//!   client                                    server
//!   control stream   --- opening line ------>              (keeps: true)
//!                    <-- reply line ---------
//!                    <-- answer line --------              (it is kept from now on)
//!                    --- guest line -------->              (a key, and perhaps a port), any number of times
//!                    <-- answer line --------              (whoever has that key may come)
//! ```
//!
//! The connection carries nothing else. Each copy has one of its own, made by a *guest*: a program that has made a key for this one copy, and whose fingerprint the client has
//! passed on. So copies share neither credit nor limits, and one that is given up takes no other with it. The server ends with the connection that keeps it.

use std::io::{self, Read, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use haul::{Connection, Fingerprint, RecvStream, SendStream};
use haul_peer::{RepliedStream, Reply, from_line, to_line};
use haul_units::{Cancel, PeerText};
use serde::{Deserialize, Serialize};

use super::{CLOSE_ABORTED, CLOSE_DONE};
use crate::deadline::Deadline;
use crate::opening::{Opening, Purpose};

/// How long a server may take to answer a line: it does nothing else on this connection, and an outage of some seconds is survived.
const PATIENCE: Duration = Duration::from_secs(20);

/// Whoever may connect for one copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guest {
    /// Fingerprint of its key.
    pub key: PeerText,
    /// The UDP port at which it waits for a call, on the client's host; none if it calls.
    #[serde(default)]
    pub port: Option<u16>,
}

/// Why a guest cannot come.
#[derive(Debug, thiserror::Error)]
pub enum Unwelcome {
    /// What should be a fingerprint is none.
    #[error("no such key")]
    NoKey,
    /// The server calls its guests, and has not heard where.
    #[error("it is called by nobody: a port is needed")]
    NoPort,
    /// The server cannot call.
    #[error(transparent)]
    Call(#[from] io::Error),
}

/// What the server says to each line.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Answer {
    /// Why not, if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<PeerText>,
}

/// A server that this client keeps.
pub struct Keeping {
    connection: Connection,
    stream: Mutex<(SendStream, RepliedStream<RecvStream>)>,
}

impl Keeping {
    /// Has the server at the other end stay. Returns when it has said that it does.
    pub fn begin(connection: Connection, cancel: &Cancel) -> io::Result<Self> {
        let closes = connection.clone();
        let _hook = cancel.on_cancel(move || closes.close(CLOSE_ABORTED, "interrupted"));
        let deadline = Deadline::start(&connection, PATIENCE, "no answer");
        let (mut send, receive) = connection.open_bi()?;
        let opening = Opening::new(Purpose::Keep);
        send.write_all(&to_line(&opening))?;
        send.flush()?;
        let mut receive = RepliedStream::new(receive);
        heard(&mut receive, deadline)?;
        Ok(Self { connection, stream: Mutex::new((send, receive)) })
    }

    /// Lets somebody come. Returns when the server expects it. A server that does not answer is taken for gone.
    pub fn invite(&self, key: Fingerprint, port: Option<u16>) -> io::Result<()> {
        let mut stream = self.stream.lock().unwrap_or_else(PoisonError::into_inner);
        let (send, receive) = &mut *stream;
        let deadline = Deadline::start(&self.connection, PATIENCE, "no answer");
        send.write_all(&to_line(&Guest { key: key.to_string().into(), port }))?;
        send.flush()?;
        heard(receive, deadline)
    }

    /// The connection.
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }
}

impl Drop for Keeping {
    fn drop(&mut self) {
        self.connection.close(CLOSE_DONE, "done");
    }
}

fn heard(receive: &mut impl Read, deadline: Deadline) -> io::Result<()> {
    let answer = from_line::<Answer>(receive);
    if deadline.has_passed() {
        return Err(io::Error::new(io::ErrorKind::TimedOut, "it does not answer"));
    }
    match answer?.error {
        Some(error) => Err(io::Error::other(error.to_string())),
        None => Ok(()),
    }
}

/// The server's part: tells of each guest, until the stream ends.
pub fn welcome_guests(
    mut control_in: impl Read,
    mut control_out: impl Write,
    welcome: &mut dyn FnMut(Guest) -> Result<(), Unwelcome>,
) -> io::Result<()> {
    control_out.write_all(&to_line(&Reply::Served { version: env!("CARGO_PKG_VERSION").into(), unpacks: false }))?;
    let mut answer = Answer::default();
    loop {
        control_out.write_all(&to_line(&answer))?;
        control_out.flush()?;
        let guest = from_line::<Guest>(&mut control_in)?;
        answer = Answer { error: welcome(guest).err().map(|why| why.to_string().into()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_an_answer_and_nonsense_ends_it() {
        let mut said = to_line(&Guest { key: "one".into(), port: Some(7) });
        said.extend(to_line(&Guest { key: "two".into(), port: None }));
        said.extend(b"{\"key\":7}\n");
        let (mut out, mut guests) = (Vec::new(), Vec::new());
        let mut welcome = |guest: Guest| {
            guests.push((guest.key.to_string(), guest.port));
            if guests.len() == 2 { Err(Unwelcome::NoPort) } else { Ok(()) }
        };
        let error = welcome_guests(&said[..], &mut out, &mut welcome).expect_err("nonsense");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(guests, [("one".to_owned(), Some(7)), ("two".to_owned(), None)]);
        let mut heard = RepliedStream::new(&out[..]);
        let answers: Vec<Answer> = (0..3).map(|_| from_line(&mut heard).expect("an answer")).collect();
        assert_eq!(answers[..2], [Answer::default(), Answer::default()]);
        assert_eq!(answers[2].error.as_deref(), Some("it is called by nobody: a port is needed"));
    }
}
