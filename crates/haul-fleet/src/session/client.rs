//! A fleet that another process keeps, seen from here.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use haul_peer::to_line;
use haul_units::Cancel;

use super::error::JoinError;
use super::messages::{Ask, MAX_REPLY, Reply, Request, read};

/// How often to look for an interrupt while the keeper is silent: it may be starting members again.
const LOOK: Duration = Duration::from_millis(50);

/// A conversation with a keeper.
pub struct Client {
    reader: BufReader<UnixStream>,
    writer: UnixStream,
}

impl Client {
    pub fn new(stream: UnixStream) -> Result<Self, JoinError> {
        let prepare = || {
            stream.set_read_timeout(Some(LOOK))?;
            stream.try_clone()
        };
        let writer = prepare().map_err(JoinError::Keeper)?;
        Ok(Self { reader: BufReader::new(stream), writer })
    }

    /// Asks, and waits for the answer.
    pub fn ask(&mut self, ask: Ask, cancel: &Cancel) -> Result<Reply, JoinError> {
        self.writer.write_all(&to_line(&Request::new(ask))).map_err(JoinError::Keeper)?;
        // Until something comes.
        loop {
            match self.reader.fill_buf() {
                Ok(_) => break,
                Err(error) if is_silence(&error) && cancel.is_cancelled() => return Err(JoinError::Interrupted),
                Err(error) if is_silence(&error) => {}
                Err(error) => return Err(JoinError::Keeper(error)),
            }
        }
        match read::<Reply>(&mut Patient(&mut self.reader), MAX_REPLY) {
            Ok(Some(Reply::Error { error })) => Err(JoinError::Refused(error)),
            Ok(Some(reply)) => Ok(reply),
            Ok(None) => Err(JoinError::Keeper(io::ErrorKind::UnexpectedEof.into())),
            Err(error) => Err(JoinError::Keeper(error)),
        }
    }
}

fn is_silence(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// The rest of a line that has begun comes at once, or a little later.
struct Patient<'a>(&'a mut BufReader<UnixStream>);

/// So many silences in the middle of a line are a keeper that hangs: ten seconds.
const SILENCES: u32 = 200;

impl io::Read for Patient<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl io::BufRead for Patient<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        for _ in 0..SILENCES {
            match self.0.fill_buf() {
                Ok(_) => return self.0.fill_buf(),
                Err(error) if is_silence(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    fn consume(&mut self, amount: usize) {
        self.0.consume(amount);
    }
}
