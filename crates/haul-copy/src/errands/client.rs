//! The client's side: each errand is a future for any executor, on a stream of its own. A future that is dropped gives its errand up.

use std::io;

use haul::{Connection, RecvStream, SendStream, StreamError};
use haul_files::WirePath;
use haul_peer::{Refusal, Reply, to_line};
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::{Answer, Errand, Found, MAX_FRAME, Problem, VERSION, Welcome, framed, unframed};
use crate::opening::Opening;
use crate::{CLOSE_ABORTED, CLOSE_DONE};

/// Longest line that opens a connection, in bytes.
const MAX_LINE: usize = 4096;

/// Why an errand was not done.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ErrandError {
    /// A name is too long to be told.
    #[error("too long a name")]
    TooLong,
    /// The server does not let this client in.
    #[error(transparent)]
    Refused(Refusal),
    /// The server could not do it.
    #[error(transparent)]
    Failed(Problem),
    /// The connection or the errand's stream is over.
    #[error(transparent)]
    Stream(#[from] StreamError),
    /// The server's version has no errands, or others.
    #[error("the peer's version cannot do this: single files of it cannot be read or written")]
    PeerLacks,
    /// The server broke the protocol.
    #[error("the peer misbehaved: {0}")]
    PeerMisbehaved(&'static str),
}

/// A connection to a server that does errands.
#[derive(Debug, Clone)]
pub struct Errands {
    connection: Connection,
}

impl Errands {
    /// Says on a new connection what it is for, and waits until the server is ready.
    pub async fn open(connection: Connection) -> Result<Self, ErrandError> {
        let (mut send, mut receive) = connection.open_bi_async().await.map_err(StreamError::from)?;
        let opening = Opening { version: env!("CARGO_PKG_VERSION").into(), errands: true, ..Opening::default() };
        send.write_all_async(&to_line(&opening)).await?;
        match line(&mut receive).await? {
            Reply::Served { .. } => {}
            Reply::Refused(refusal) => return Err(ErrandError::Refused(refusal)),
        }
        let welcome: Welcome = line(&mut receive).await?;
        if welcome.errands != VERSION {
            connection.close(CLOSE_ABORTED, "another version of errands");
            return Err(ErrandError::PeerLacks);
        }
        let _ = send.finish();
        Ok(Self { connection })
    }

    /// The connection.
    pub const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// What has this name. A link that an account's path leads through is followed, one in an exported root never.
    pub async fn look(&self, path: &WirePath) -> Result<Found, ErrandError> {
        match self.ask(&Errand::Look(path.clone())).await?.0 {
            Answer::Found(found) => Ok(found),
            other => Err(unexpected(other)),
        }
    }

    /// What is in a directory, in no order; in a daemon's `/` its roots.
    pub async fn list(&self, path: &WirePath) -> Result<Vec<Found>, ErrandError> {
        let (mut answer, _, mut receive) = self.ask(&Errand::List(path.clone())).await?;
        let mut all = Vec::new();
        loop {
            match answer {
                Answer::Listed(some) if some.is_empty() => return Ok(all),
                Answer::Listed(some) => all.extend(some),
                other => return Err(unexpected(other)),
            }
            answer = frame(&mut receive).await?;
        }
    }

    /// Begins to read `length` bytes of a file from `from` on, as far as it goes.
    pub async fn read(&self, path: &WirePath, from: u64, length: u64) -> Result<Reading, ErrandError> {
        let (answer, _, receive) = self.ask(&Errand::Read { path: path.clone(), from, length }).await?;
        match answer {
            Answer::Content { length: left, size } if left <= length => Ok(Reading { receive, left, size }),
            other => Err(unexpected(other)),
        }
    }

    /// Begins to write a file, which appears under its name when it is finished.
    pub async fn write(&self, path: &WirePath) -> Result<Writing, ErrandError> {
        let (answer, send, receive) = self.ask_openly(&Errand::Write { path: path.clone() }).await?;
        match answer {
            Answer::Done => Ok(Writing { send, receive }),
            other => Err(unexpected(other)),
        }
    }

    /// Makes a directory that is not there, in one that is.
    pub async fn make(&self, path: &WirePath) -> Result<(), ErrandError> {
        self.done(&Errand::Make { path: path.clone() }).await
    }

    /// Removes a file or a link.
    pub async fn remove(&self, path: &WirePath) -> Result<(), ErrandError> {
        self.done(&Errand::Remove { path: path.clone() }).await
    }

    /// Removes an empty directory.
    pub async fn remove_directory(&self, path: &WirePath) -> Result<(), ErrandError> {
        self.done(&Errand::RemoveDirectory { path: path.clone() }).await
    }

    /// Gives something another name on the same file system, in the place of a file that has it.
    pub async fn rename(&self, from: &WirePath, to: &WirePath) -> Result<(), ErrandError> {
        self.done(&Errand::Rename { from: from.clone(), to: to.clone() }).await
    }

    /// Copies a file there, without its content coming here.
    pub async fn copy(&self, from: &WirePath, to: &WirePath) -> Result<(), ErrandError> {
        self.done(&Errand::Copy { from: from.clone(), to: to.clone() }).await
    }

    /// Ends the connection; what is under way is given up.
    pub fn close(&self) {
        self.connection.close(CLOSE_DONE, "done");
    }

    async fn done(&self, errand: &Errand) -> Result<(), ErrandError> {
        match self.ask(errand).await?.0 {
            Answer::Done => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    async fn ask(&self, errand: &Errand) -> Result<(Answer, SendStream, RecvStream), ErrandError> {
        let (answer, mut send, receive) = self.ask_openly(errand).await?;
        let _ = send.finish();
        Ok((answer, send, receive))
    }

    /// Without ending what this side says.
    async fn ask_openly(&self, errand: &Errand) -> Result<(Answer, SendStream, RecvStream), ErrandError> {
        let frame_of = framed(errand).map_err(|_| ErrandError::TooLong)?;
        let (mut send, mut receive) = self.connection.open_bi_async().await.map_err(StreamError::from)?;
        send.write_all_async(&frame_of).await?;
        Ok((frame(&mut receive).await?, send, receive))
    }
}

/// A part of a file that comes.
#[derive(Debug)]
pub struct Reading {
    receive: RecvStream,
    left: u64,
    size: u64,
}

impl Reading {
    /// Bytes that are still to come.
    pub const fn left(&self) -> u64 {
        self.left
    }

    /// Bytes of the whole file.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Reads what there is; 0 at the end of what was asked for.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ErrandError> {
        let room = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let Some(buffer) = buffer.get_mut(..room).filter(|room| !room.is_empty()) else { return Ok(0) };
        match self.receive.read_async(buffer).await? {
            0 => Err(ErrandError::PeerMisbehaved("a file ended before its end")),
            read => {
                self.left -= read as u64;
                Ok(read)
            }
        }
    }
}

/// A file that is being written. Dropped before it is finished, it is as if it had never been begun.
#[derive(Debug)]
pub struct Writing {
    send: SendStream,
    receive: RecvStream,
}

impl Writing {
    /// More of its content.
    pub async fn write(&mut self, content: &[u8]) -> Result<(), ErrandError> {
        match self.send.write_all_async(content).await {
            Ok(()) => Ok(()),
            // It says why.
            Err(StreamError::Stopped { .. }) => match frame(&mut self.receive).await? {
                Answer::Failed(problem) => Err(ErrandError::Failed(problem)),
                other => Err(unexpected(other)),
            },
            Err(error) => Err(error.into()),
        }
    }

    /// Ends it, and waits until it is durable under its name.
    pub async fn finish(&mut self) -> Result<(), ErrandError> {
        self.send.finish()?;
        match frame(&mut self.receive).await? {
            Answer::Done => Ok(()),
            other => Err(unexpected(other)),
        }
    }

    /// Gives it up.
    pub fn discard(&mut self) {
        self.send.reset(1);
    }
}

fn unexpected(answer: Answer) -> ErrandError {
    match answer {
        Answer::Failed(problem) => ErrandError::Failed(problem),
        _ => ErrandError::PeerMisbehaved("an answer to something else"),
    }
}

async fn frame<T: DeserializeOwned>(receive: &mut RecvStream) -> Result<T, ErrandError> {
    let mut length = [0; 4];
    exactly(receive, &mut length).await?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(ErrandError::PeerMisbehaved("too long an answer"));
    }
    let mut body = vec![0; length];
    exactly(receive, &mut body).await?;
    unframed(&body).map_err(|_: io::Error| ErrandError::PeerMisbehaved("an answer that cannot be read"))
}

async fn exactly(receive: &mut RecvStream, buffer: &mut [u8]) -> Result<(), ErrandError> {
    let mut filled = 0;
    while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
        match receive.read_async(room).await? {
            0 => return Err(ErrandError::PeerMisbehaved("an answer without an end")),
            read => filled += read,
        }
    }
    Ok(())
}

async fn line<T: DeserializeOwned>(receive: &mut RecvStream) -> Result<T, ErrandError> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        match receive.read_async(&mut byte).await? {
            0 => return Err(ErrandError::PeerLacks),
            _ if byte == [b'\n'] => break,
            _ => line.push(byte[0]),
        }
        if line.len() > MAX_LINE {
            return Err(ErrandError::PeerMisbehaved("too long a line"));
        }
    }
    serde_json::from_slice(&line).map_err(|_| ErrandError::PeerMisbehaved("a line that cannot be read"))
}
