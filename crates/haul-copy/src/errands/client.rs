//! The client's side: each errand is a future for any executor, on a stream of its own. A future that is dropped gives its errand up.

use std::io;

use haul::{Connection, RecvStream, SendStream, StreamError};
use haul_files::WirePath;
use haul_files::store::is_plain_name;
use haul_peer::{Refusal, Reply, to_line};
use serde::de::DeserializeOwned;
use thiserror::Error;

use super::{Answer, Errand, Found, MAX_FRAME, Problem, VERSION, Welcome, framed, unframed};
use crate::opening::{Opening, Purpose};
use crate::{CLOSE_ABORTED, CLOSE_DONE};

/// Longest line that opens a connection, in bytes.
const MAX_LINE: usize = 4096;
/// Memory that is taken at once for content that comes.
const STEP: usize = 1 << 20;
/// What a listing takes at most: a million long names, and as much as a daemon remembers of one client.
const MAX_LISTING_BYTES: usize = 256 << 20;

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
    /// A directory has more in it than is taken from a server.
    #[error("too many names in one directory")]
    TooMany,
    /// This process has no memory for so much content.
    #[error("no memory is left for that much of a file: read it in parts")]
    NoMemory,
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
        let opening = Opening::new(Purpose::Errands);
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
        let mut all = Listing::bounded(MAX_LISTING_BYTES);
        loop {
            match answer {
                Answer::Listed(some) if some.is_empty() => return Ok(all.found),
                Answer::Listed(some) => all.take(some)?,
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

/// What a server has said of a directory.
struct Listing {
    found: Vec<Found>,
    /// Bytes that more of it may take.
    room: usize,
}

impl Listing {
    const fn bounded(room: usize) -> Self {
        Self { found: Vec::new(), room }
    }

    fn take(&mut self, some: Vec<Found>) -> Result<(), ErrandError> {
        for one in some {
            // Whoever joins it to the directory's path would be led elsewhere.
            if !is_plain_name(&one.name.0) {
                return Err(ErrandError::PeerMisbehaved("a name that is not plain"));
            }
            let bytes = size_of::<Found>() + one.name.0.len() + one.target.as_ref().map_or(0, |target| target.0.len());
            self.room = self.room.checked_sub(bytes).ok_or(ErrandError::TooMany)?;
            self.found.push(one);
        }
        Ok(())
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

    /// Reads all that is still to come. Memory is taken as it comes: what a server says of its length is only its word.
    pub async fn read_to_end(&mut self) -> Result<Vec<u8>, ErrandError> {
        let (mut content, mut filled) = (Vec::new(), 0);
        while self.left > 0 {
            if filled == content.len() {
                let more = usize::try_from(self.left).unwrap_or(usize::MAX).min(STEP);
                content.try_reserve(more).map_err(|_| ErrandError::NoMemory)?;
                content.resize(filled + more, 0);
            }
            filled += self.read(content.get_mut(filled..).unwrap_or_default()).await?;
        }
        Ok(content)
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

#[cfg(test)]
mod tests {
    use std::thread;

    use haul::block_on;

    use super::super::FoundKind;
    use super::super::serve::{read_frame, say};
    use super::*;
    use crate::server::tests::connected;

    fn found(name: &[u8], target: Option<&[u8]>) -> Found {
        let (name, target) = (WirePath(name.to_vec()), target.map(|target| WirePath(target.to_vec())));
        let (kind, modified) = (FoundKind::File, (0, 0));
        Found { name, kind, size: 1, mode: 0o644, uid: 0, gid: 0, modified, inode: 1, target }
    }

    /// What a client has of a server that answers so.
    fn answered<T>(
        answer: impl FnOnce(&mut SendStream) + Send,
        ask: impl AsyncFnOnce(&Errands) -> Result<T, ErrandError>,
    ) -> Result<T, ErrandError> {
        let (_server, there, client) = connected();
        thread::scope(|scope| {
            scope.spawn(move || {
                let (mut send, _receive) = there.accept_bi().unwrap();
                let served = Reply::Served { version: "1".into(), unpacks: false };
                io::Write::write_all(&mut send, &to_line(&served)).unwrap();
                super::super::welcome(&mut send).unwrap();
                let (mut answers, mut receive) = there.accept_bi().unwrap();
                let _errand: Errand = read_frame(&mut receive).unwrap();
                answer(&mut answers);
                let _ = answers.finish();
                there.closed();
            });
            block_on(async {
                let errands = Errands::open(client).await?;
                let has = ask(&errands).await;
                errands.close();
                has
            })
        })
    }

    fn listed(some: Vec<Found>) -> Result<Vec<Found>, ErrandError> {
        let answer = |answers: &mut SendStream| {
            say(answers, &Answer::Listed(some)).unwrap();
            // A client that does not like what it has heard may be gone.
            let _ = say(answers, &Answer::Listed(Vec::new()));
        };
        answered(answer, async |errands: &Errands| errands.list(&WirePath(b"/d".to_vec())).await)
    }

    /// All of a file of which a server says that it has this length.
    fn read(length: u64, content: &[u8]) -> Result<Vec<u8>, ErrandError> {
        let answer = |answers: &mut SendStream| {
            say(answers, &Answer::Content { length, size: length }).unwrap();
            io::Write::write_all(answers, content).unwrap();
        };
        let path = WirePath(b"/f".to_vec());
        answered(answer, async |errands: &Errands| errands.read(&path, 0, u64::MAX).await?.read_to_end().await)
    }

    #[test]
    fn what_a_server_says_of_a_length_takes_no_memory() {
        let content: Vec<u8> = (0..3 * STEP + 5).map(|at| at as u8).collect();
        assert!(read(content.len() as u64, &content).unwrap() == content);
        assert_eq!(read(0, b"").unwrap(), b"");
        for length in [u64::MAX, (1 << 63) - 1, 1 << 46] {
            let error = read(length, b"abc").expect_err("it is not so long");
            assert!(matches!(error, ErrandError::PeerMisbehaved("a file ended before its end")), "{length}: {error}");
        }
    }

    #[test]
    fn a_listing_has_plain_names() {
        let honest = vec![found(b"a", None), found(&[0xff; 255], Some(b"../any/where"))];
        assert_eq!(listed(honest.clone()).unwrap(), honest);
        for name in [&b"../x"[..], b"..", b"", b"/etc/passwd", b"a/b", b"a\0b", &[b'x'; 256]] {
            let error = listed(vec![found(b"a", None), found(name, None)]).expect_err("no name of a file");
            assert!(matches!(error, ErrandError::PeerMisbehaved("a name that is not plain")), "{name:?}: {error}");
        }
    }

    #[test]
    fn a_listing_takes_no_more_memory_than_there_is_for_it() {
        let names = || vec![found(&[b'n'; 200], Some(&[b't'; 1000])); 100];
        let mut listing = Listing::bounded(1 << 20);
        let taken = (0..100).take_while(|_| listing.take(names()).is_ok()).count();
        assert!((5..=8).contains(&taken), "{taken} times 100 of some 1300 bytes");
        assert!(matches!(listing.take(names()), Err(ErrandError::TooMany)));
    }

    #[test]
    fn the_longest_honest_listing_fits() {
        let mut listing = Listing::bounded(MAX_LISTING_BYTES);
        for _ in 0..700 {
            listing.take(vec![found(&[b'n'; 255], None); 1000]).expect("seven hundred thousand of the longest names");
        }
    }
}
