//! Receiving into a stream: the content of all files, one after the other.
//!
//! Blocks may arrive in any order, but the sender fills them in the order of the content, so those that wait here are what the transport had in flight.

use std::collections::{BTreeMap, VecDeque};
use std::io::Write;
use std::sync::Mutex;

use super::conclude::conclude;
use crate::block::{self, Piece};
use crate::clock::{self, timed};
use crate::job::{Options, Stream};
use crate::locks::lock;
use crate::protocol::{Entry, FileEnd, Finished, Kind, Message, Progress};
use crate::report::{Report, Waits};
use crate::session::{Incoming, Session};
use crate::transport::{BlockRx, Transport};
use haul_faults::{CopyError, Stop, Why, WirePath};
use haul_names::Filter;

/// Files that may be announced and not written yet: an honest sender's plan holds far fewer.
const MAX_FILES: usize = 1 << 21;

struct Line<'a, B> {
    stream: &'a Stream<dyn Write + Send>,
    /// Files not written to their end, in order.
    files: VecDeque<u64>,
    last_id: u64,
    ends: BTreeMap<u64, FileEnd>,
    /// Pieces that cannot be written yet, by file and offset: the block and where in it.
    waiting: BTreeMap<(u64, u64), (std::sync::Arc<B>, std::ops::Range<usize>)>,
    /// The last file that is over.
    over: u64,
    /// Written of the first file.
    offset: u64,
    progress: Progress,
    waits: Waits,
}

/// Receives all files into `stream`, from a sender that has heard `Start`.
pub(super) fn receive<T: Transport>(
    session: &Session<'_, T>,
    incoming: &mut Incoming,
    stream: &Stream<dyn Write + Send>,
    options: Options,
    filter: &Filter,
) -> Result<Report, CopyError> {
    let line = Mutex::new(Line::new(stream));
    let sender = std::thread::scope(|scope| {
        scope.spawn(|| session.guard(|| blocks(session, &line, options.verify.hashes())));
        listen(session, incoming, &line, filter).map_err(|error| session.fail(error))
    });
    session.check()?;
    let sender = sender.map_err(|()| CopyError::Cancelled)?;
    let mut line = lock(&line);
    line.advance()?;
    if !line.files.is_empty() || !line.waiting.is_empty() {
        return Err(CopyError::PeerMisbehaved("files without an end"));
    }
    stream.lock().flush().map_err(|error| broken(&error))?;
    let finished = Finished { progress: line.progress, waits: line.waits, ..Finished::default() };
    conclude(session, &finished, sender, options)
}

fn listen<T: Transport, B: AsRef<[u8]>>(
    session: &Session<'_, T>,
    incoming: &mut Incoming,
    line: &Mutex<Line<'_, B>>,
    filter: &Filter,
) -> Result<Waits, CopyError> {
    let mut found = super::entries::Found::default();
    loop {
        match incoming.next()? {
            Message::Entries(entries) => {
                let mut line = lock(line);
                for entry in &entries {
                    found.count(entry);
                    line.admit(entry)?;
                }
                found.tell(session.observer, false);
            }
            Message::ScanDone => found.tell(session.observer, true),
            Message::LeftOut(count) if !filter.is_empty() => session.left_out(count),
            Message::FileEnd(end) => lock(line).end(end)?,
            Message::Problem(problem) => session.note(problem),
            Message::Note(note) => drop(session.take_note(note)),
            Message::AllSent(waits) => return Ok(waits),
            _ => return Err(CopyError::PeerMisbehaved("a message that no sender sends")),
        }
    }
}

fn blocks<T: Transport>(
    session: &Session<'_, T>,
    line: &Mutex<Line<'_, <T::Rx as BlockRx>::Block>>,
    verify: bool,
) -> Result<(), CopyError> {
    let rx = session.transport.accept_blocks().map_err(CopyError::Connection)?;
    let mut told_at = clock::now();
    let mut waits = Waits::default();
    while let Some(block) = timed(&mut waits.transport, || rx.recv()).map_err(CopyError::Connection)? {
        session.check()?;
        let pieces = block::open(block.as_ref()).map_err(|_| CopyError::PeerMisbehaved("a malformed block"))?;
        let good =
            timed(&mut waits.hash, || pieces.iter().all(|(piece, content)| !verify || block::hash(content, true) == piece.hash));
        if !good {
            // What was written to a stream cannot be taken back.
            return Err(CopyError::Stopped(Stop::Destination { path: WirePath(b"-".to_vec()), why: Why::HashMismatch }));
        }
        let pieces: Vec<Piece> = pieces.into_iter().map(|(piece, _)| piece).collect();
        let mut line = lock(line);
        line.take(block, &pieces)?;
        timed(&mut waits.write, || line.advance())?;
        let progress = line.progress;
        drop(line);
        if clock::now() - told_at >= std::time::Duration::from_millis(200) {
            told_at = clock::now();
            session.progress(&progress);
            session.send(&Message::Progress(progress))?;
        }
    }
    let mut line = lock(line);
    let threads = line.waits.threads;
    line.waits = Waits { threads, ..waits };
    Ok(())
}

impl<'a, B: AsRef<[u8]>> Line<'a, B> {
    fn new(stream: &'a Stream<dyn Write + Send>) -> Self {
        Self {
            stream,
            files: VecDeque::new(),
            last_id: 0,
            ends: BTreeMap::new(),
            waiting: BTreeMap::new(),
            over: 0,
            offset: 0,
            progress: Progress::default(),
            waits: Waits { threads: 1, ..Waits::default() },
        }
    }

    fn admit(&mut self, entry: &Entry) -> Result<(), CopyError> {
        if entry.id <= self.last_id {
            return Err(CopyError::PeerMisbehaved("an id that does not rise"));
        }
        if self.files.len() >= MAX_FILES {
            return Err(CopyError::PeerMisbehaved("more files than wait for a stream"));
        }
        self.last_id = entry.id;
        if !matches!(entry.kind, Kind::File { .. } | Kind::Stream { .. }) {
            return Err(CopyError::PeerMisbehaved("something else than a file for a stream"));
        }
        self.files.push_back(entry.id);
        Ok(())
    }

    fn end(&mut self, end: FileEnd) -> Result<(), CopyError> {
        let (FileEnd::Sent { id, .. } | FileEnd::Failed { id }) = end;
        // Ids rise, not by one: between two there may be any number of others.
        if self.files.binary_search(&id).is_err() {
            return Err(CopyError::PeerMisbehaved("an end of no file"));
        }
        if self.ends.insert(id, end).is_some() {
            return Err(CopyError::PeerMisbehaved("a second end of a file"));
        }
        self.advance()
    }

    fn take(&mut self, block: B, pieces: &[Piece]) -> Result<(), CopyError> {
        let block = std::sync::Arc::new(block);
        let mut at = 0;
        for piece in pieces {
            let span = at..at + piece.length as usize;
            at = span.end;
            if piece.file <= self.over {
                continue;
            }
            if self.waiting.insert((piece.file, piece.offset), (block.clone(), span)).is_some() {
                return Err(CopyError::PeerMisbehaved("content that was sent before"));
            }
        }
        Ok(())
    }

    /// Writes all that has its turn.
    fn advance(&mut self) -> Result<(), CopyError> {
        while let Some(&file) = self.files.front() {
            while let Some((block, span)) = self.waiting.remove(&(file, self.offset)) {
                let content = (*block).as_ref().get(span).unwrap_or_default();
                self.stream.lock().write_all(content).map_err(|error| broken(&error))?;
                self.offset += content.len() as u64;
                self.progress.bytes += content.len() as u64;
            }
            match self.ends.get(&file) {
                Some(FileEnd::Sent { size, .. }) if *size == self.offset => self.progress.files += 1,
                Some(FileEnd::Sent { size, .. }) if *size < self.offset => {
                    return Err(CopyError::PeerMisbehaved("an end that does not fit the file"));
                }
                // Reported by the sender; what arrives of it still is dropped.
                Some(FileEnd::Failed { .. }) => self.waiting.retain(|&(id, _), _| id > file),
                _ => return Ok(()),
            }
            self.ends.remove(&file);
            self.files.pop_front();
            self.over = file;
            self.offset = 0;
        }
        Ok(())
    }
}

fn broken(error: &std::io::Error) -> CopyError {
    CopyError::Stopped(Stop::Destination { path: WirePath(b"-".to_vec()), why: Why::from_io(error) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Destination;
    use crate::protocol::{ROOT, Stamp};

    fn nowhere() -> Stream<dyn Write + Send> {
        let Destination::Stdout(stream) = Destination::stream(std::io::sink()) else { unreachable!("a stream was asked for") };
        stream
    }

    fn file(id: u64) -> Entry {
        let kind = Kind::Stream { linked: false, replaces: None };
        let (name, mtime) = (WirePath(b"f".to_vec()), Stamp { secs: 0, nanos: 0 });
        Entry { id, parent: ROOT, name, mode: 0o600, mtime, uid: 0, gid: 0, kind }
    }

    fn sent(id: u64) -> FileEnd {
        FileEnd::Sent { id, size: 10, bytes: 10, sum: [0; 32] }
    }

    fn misbehaved(result: &Result<(), CopyError>) -> Option<&'static str> {
        match result {
            Err(CopyError::PeerMisbehaved(what)) => Some(what),
            _ => None,
        }
    }

    #[test]
    fn only_files_that_were_announced_have_an_end_and_one_each() {
        let stream = nowhere();
        let mut line = Line::<Vec<u8>>::new(&stream);
        for id in [1, 1000, 2000] {
            line.admit(&file(id)).expect("it rises");
        }
        assert_eq!(misbehaved(&line.end(sent(500))), Some("an end of no file"));
        assert_eq!(misbehaved(&line.end(sent(2001))), Some("an end of no file"));
        line.end(sent(1000)).expect("its first end");
        assert_eq!(misbehaved(&line.end(sent(1000))), Some("a second end of a file"));
        line.end(FileEnd::Failed { id: 1 }).expect("a first end, too");
        assert_eq!(misbehaved(&line.end(FileEnd::Failed { id: 1 })), Some("an end of no file"), "it is over");
        assert_eq!((line.ends.len(), line.files.len()), (1, 2));
    }

    #[test]
    fn too_many_files_are_another_fault_than_an_id_that_does_not_rise() {
        let stream = nowhere();
        let mut line = Line::<Vec<u8>>::new(&stream);
        line.admit(&file(5)).expect("it rises");
        assert_eq!(misbehaved(&line.admit(&file(5))), Some("an id that does not rise"));
        line.files.resize(MAX_FILES, 5);
        assert_eq!(misbehaved(&line.admit(&file(6))), Some("more files than wait for a stream"));
    }
}
