//! The server's side: a few threads that take errands, each one after the other, and one for each file that is being written.
//!
//! How long a file is open for writing is its client's affair: a thread that waited for its end would be lost to all others, and a program that has as many open as there are threads would wait
//! for itself.

use std::io::{self, Read as _, Write as _};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use haul::{Connection, RecvStream, SendStream};
use haul_faults::Errno;
use haul_files::{Access, Asked, Event, Observer, Report, WirePath};
use haul_units::{Bytes, Cancel};
use serde::{Deserialize, Serialize};

use super::doing::{CHUNK, Made, Reach};
use super::{Answer, Errand, MAX_FRAME, MAX_LISTED, MAX_LISTED_BYTES, Problem, framed, unframed};
use crate::{CLOSE_ABORTED, CLOSE_DONE, clock};

/// Errands that are done at once for one client.
const AT_ONCE: usize = 8;
/// Files that one client may have open for writing: more than programs have. Each takes a thread and three descriptors.
const MOST_WRITES: usize = 256;
/// Bytes of a file that are taken at once, and so its memory: with all of them 32 MiB a client.
const WRITTEN_AT_ONCE: usize = 128 << 10;
/// A client that has had none for so long is parted from.
const IDLE: Duration = Duration::from_secs(600);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Does what the client wants, until it ends the connection. What was read and written is in the report.
pub fn serve(connection: &Connection, access: &Access, observer: &dyn Observer, cancel: &Cancel) -> Report {
    serve_by(&Server::new(connection, access, observer, MOST_WRITES), cancel)
}

fn serve_by(server: &Server<'_>, cancel: &Cancel) -> Report {
    let connection = server.connection;
    let began = clock::now();
    let closes = connection.clone();
    let _hook = cancel.on_cancel(move || closes.close(CLOSE_ABORTED, "this server was told to end"));
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(move || {
                while let Ok((send, receive)) = connection.accept_bi() {
                    given_up(server.one(scope, send, receive));
                }
            });
        }
        while connection.end().is_none() {
            thread::park_timeout(LOOK);
            if server.is_idle() {
                connection.close(CLOSE_DONE, "nothing was wanted for ten minutes");
            }
        }
    });
    let mut report = Report::default();
    report.files = server.files.load(Ordering::Relaxed);
    report.bytes = Bytes(server.bytes.load(Ordering::Relaxed));
    report.elapsed = clock::now() - began;
    report
}

fn given_up(done: io::Result<()>) {
    if let Err(error) = done {
        tracing::debug!(%error, "an errand was given up");
    }
}

struct Server<'a> {
    connection: &'a Connection,
    reach: Reach,
    observer: &'a dyn Observer,
    files: AtomicU64,
    bytes: AtomicU64,
    writes: AtomicU64,
    /// Files that are being written, and how many there may be.
    open: AtomicUsize,
    most: usize,
    /// Errands under way, and when there was one last.
    busy: Mutex<(usize, Instant)>,
}

/// An errand under way.
struct Busy<'a>(&'a Mutex<(usize, Instant)>);

impl<'a> Busy<'a> {
    fn begin(server: &'a Server<'_>) -> Self {
        server.busy.lock().unwrap_or_else(PoisonError::into_inner).0 += 1;
        Self(&server.busy)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        let mut busy = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *busy = (busy.0 - 1, clock::now());
    }
}

/// A file among those that are being written.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(server: &'a Server<'_>) -> Option<Self> {
        let one_more = |open| (open < server.most).then_some(open + 1);
        server.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok().map(|_| Self(&server.open))
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<'a> Server<'a> {
    fn new(connection: &'a Connection, access: &Access, observer: &'a dyn Observer, most: usize) -> Self {
        Self {
            connection,
            reach: Reach::new(access),
            observer,
            files: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            most,
            busy: Mutex::new((0, clock::now())),
        }
    }

    fn is_idle(&self) -> bool {
        let (busy, last) = *self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy == 0 && clock::now() - last > IDLE
    }

    fn one<'scope>(
        &'scope self,
        scope: &'scope Scope<'scope, '_>,
        mut send: SendStream,
        mut receive: RecvStream,
    ) -> io::Result<()> {
        let busy = Busy::begin(self);
        let errand: Errand = read_frame(&mut receive)?;
        self.tell(&errand);
        let answer = match errand {
            Errand::Look(path) => self.reach.look(&path).map(Answer::Found),
            Errand::List(path) => return self.list(&path, send),
            Errand::Read { path, from, length } => match self.reach.open(&path) {
                Ok(opened) => return self.read(&opened, from, length, send),
                Err(problem) => Err(problem),
            },
            Errand::Write { path } => match self.begin(&path) {
                Ok((place, made)) => {
                    let write = move || {
                        let _busy = busy;
                        given_up(self.write(place, made, send, receive));
                    };
                    thread::Builder::new().name("haul-write".into()).spawn_scoped(scope, write)?;
                    return Ok(());
                }
                Err(problem) => Err(problem),
            },
            Errand::Make { path } => self.reach.make(&path).map(|()| Answer::Done),
            Errand::Remove { path } => self.reach.remove(&path, false).map(|()| Answer::Done),
            Errand::RemoveDirectory { path } => self.reach.remove(&path, true).map(|()| Answer::Done),
            Errand::Rename { from, to } => self.reach.rename(&from, &to).map(|()| Answer::Done),
            Errand::Copy { from, to } => self.copy(&from, &to).map(|()| Answer::Done),
        };
        say(&mut send, &answer.unwrap_or_else(Answer::Failed))?;
        Ok(send.finish()?)
    }

    /// For the log.
    fn tell(&self, errand: &Errand) {
        match errand {
            Errand::Look(path) | Errand::List(path) => tracing::debug!(%path, "looked at"),
            Errand::Read { path, .. } => self.observer.event(Event::Asked(Asked::Read(std::slice::from_ref(path)))),
            Errand::Write { path } => self.observer.event(Event::Asked(Asked::Write(path))),
            Errand::Make { path } => {
                tracing::debug!(%path, "a directory is made");
                self.observer.event(Event::Asked(Asked::Write(path)));
            }
            Errand::Remove { path } | Errand::RemoveDirectory { path } => {
                tracing::debug!(%path, "is removed");
                self.observer.event(Event::Asked(Asked::Write(path)));
            }
            Errand::Rename { from, to } => {
                tracing::debug!(%from, %to, "is renamed");
                self.observer.event(Event::Asked(Asked::Write(from)));
                self.observer.event(Event::Asked(Asked::Write(to)));
            }
            Errand::Copy { from, to } => {
                self.observer.event(Event::Asked(Asked::Read(std::slice::from_ref(from))));
                self.observer.event(Event::Asked(Asked::Write(to)));
            }
        }
    }

    fn list(&self, path: &WirePath, mut send: SendStream) -> io::Result<()> {
        let (mut some, mut bytes, mut broken) = (Vec::new(), 0, None);
        let listed = self.reach.list(path, &mut |found| {
            bytes += found.name.0.len() + found.target.as_ref().map_or(0, |target| target.0.len()) + 64;
            some.push(found);
            if some.len() < MAX_LISTED && bytes < MAX_LISTED_BYTES {
                return ControlFlow::Continue(());
            }
            bytes = 0;
            match say(&mut send, &Answer::Listed(std::mem::take(&mut some))) {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    broken = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        if let Some(error) = broken {
            return Err(error);
        }
        match listed {
            Ok(()) => {
                if !some.is_empty() {
                    say(&mut send, &Answer::Listed(some))?;
                }
                say(&mut send, &Answer::Listed(Vec::new()))?;
            }
            Err(problem) => say(&mut send, &Answer::Failed(problem))?,
        }
        Ok(send.finish()?)
    }

    fn read(&self, opened: &super::doing::Opened, from: u64, length: u64, mut send: SendStream) -> io::Result<()> {
        let length = opened.size.saturating_sub(from).min(length);
        say(&mut send, &Answer::Content { length, size: opened.size })?;
        let mut buffer = Vec::with_capacity(CHUNK.min(length as usize));
        let (mut at, end) = (from, from + length);
        while at < end {
            match opened.read(&mut buffer, at, (end - at) as usize) {
                // It has become shorter, or cannot be read: what was promised does not come.
                Ok(0) | Err(_) => {
                    send.reset(1);
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file cannot be read to the end that it had"));
                }
                Ok(read) => at += read as u64,
            }
            send.write_all(&buffer)?;
        }
        self.count(length);
        Ok(send.finish()?)
    }

    fn begin(&self, path: &WirePath) -> Result<(Place<'_>, Made), Problem> {
        let too_many = || Problem::new(path, Errno::MFILE, "too many files are being written over one connection");
        let place = Place::take(self).ok_or_else(too_many)?;
        Ok((place, self.reach.write(path, &self.number())?))
    }

    fn write(&self, place: Place<'_>, mut made: Made, mut send: SendStream, mut receive: RecvStream) -> io::Result<()> {
        say(&mut send, &Answer::Done)?;
        let mut buffer = vec![0; WRITTEN_AT_ONCE];
        let written = loop {
            match fill(&mut receive, &mut buffer)? {
                0 => break made.commit(),
                read => {
                    if let Err(problem) = made.write(buffer.get(..read).unwrap_or_default()) {
                        receive.stop(1);
                        break Err(problem);
                    }
                }
            }
        };
        let answer = match written {
            Ok(bytes) => {
                self.count(bytes);
                Answer::Done
            }
            Err(problem) => Answer::Failed(problem),
        };
        // Whoever has the answer may begin another one.
        drop(place);
        say(&mut send, &answer)?;
        Ok(send.finish()?)
    }

    fn copy(&self, from: &WirePath, to: &WirePath) -> Result<(), Problem> {
        let opened = self.reach.open(from)?;
        let mut made = self.reach.write(to, &self.number())?;
        let (mut buffer, mut at) = (Vec::with_capacity(CHUNK), 0);
        loop {
            // Whoever tells this server to end closes the connection, too.
            if self.connection.end().is_some() {
                return Err(Problem::new(to, Errno::CANCELED, "nobody waits for it any more"));
            }
            let read = opened.read(&mut buffer, at, CHUNK).map_err(|error| Problem::of(from, &error.into()))?;
            if read == 0 {
                break;
            }
            at += read as u64;
            made.write(&buffer)?;
        }
        self.count(made.commit()?);
        Ok(())
    }

    fn count(&self, bytes: u64) {
        let files = self.files.fetch_add(1, Ordering::Relaxed) + 1;
        let bytes = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.observer.event(Event::Arrived { files, bytes: Bytes(bytes) });
    }

    /// Tells a file that is being written from all others.
    fn number(&self) -> [u8; 32] {
        let here = format!("{}:{self:p}:{}", std::process::id(), self.writes.fetch_add(1, Ordering::Relaxed));
        haul_files::block::hash(here.as_bytes(), true)
    }
}

/// As much as there is room for, less only at the end.
fn fill(receive: &mut RecvStream, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
        match receive.read(room)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}

pub(super) fn say(send: &mut SendStream, answer: &impl Serialize) -> io::Result<()> {
    send.write_all(&framed(answer)?)
}

pub(super) fn read_frame<T: for<'a> Deserialize<'a>>(receive: &mut RecvStream) -> io::Result<T> {
    let mut length = [0; 4];
    receive.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "too long an errand"));
    }
    let mut body = vec![0; length];
    receive.read_exact(&mut body)?;
    unframed(&body)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::sync::mpsc;

    use haul::block_on;
    use haul_files::{Export, Ownership, Silent};
    use haul_peer::{Reply, to_line};

    use super::super::{ErrandError, Errands};
    use super::*;
    use crate::server::tests::connected;

    fn writable(root: &Path) -> Access {
        Access::Exports(vec![Export { name: "r".into(), path: root.into(), writable: true, ownership: Ownership::Mask }])
    }

    /// What a client does with a server of `root` at which so many files may be written at once. It has a minute.
    fn at_server(root: &Path, most: usize, work: impl AsyncFnOnce(&Errands)) {
        let (_server, there, client) = connected();
        let (done, is_done) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(|| {
                let (mut send, _receive) = there.accept_bi().expect("a client");
                let served = Reply::Served { version: "1".into(), unpacks: false };
                send.write_all(&to_line(&served)).expect("said");
                super::super::welcome(&mut send).expect("said");
                serve_by(&Server::new(&there, &writable(root), &Silent, most), &Cancel::new());
            });
            let ends = client.clone();
            scope.spawn(move || {
                if is_done.recv_timeout(Duration::from_secs(60)) == Err(mpsc::RecvTimeoutError::Timeout) {
                    ends.close(CLOSE_ABORTED, "it has had its minute");
                }
            });
            let _done = done;
            let _ends = Ends(client.clone());
            block_on(async { work(&Errands::open(client).await.expect("a server")).await });
        });
    }

    /// A test that fails ends its server, too.
    struct Ends(Connection);

    impl Drop for Ends {
        fn drop(&mut self) {
            self.0.close(CLOSE_DONE, "done");
        }
    }

    fn path(name: impl std::fmt::Display) -> WirePath {
        WirePath(format!("/r/{name}").into_bytes())
    }

    #[test]
    fn files_that_are_being_written_leave_room_for_other_errands() {
        let dir = tempfile::tempdir().expect("a directory");
        at_server(dir.path(), MOST_WRITES, async |errands| {
            let mut open = Vec::new();
            for number in 0..3 * AT_ONCE {
                open.push(errands.write(&path(number)).await.expect("one more is begun"));
            }
            assert_eq!(errands.list(&WirePath(b"/r".to_vec())).await.expect("listed").len(), 0);
            for writing in &mut open {
                writing.write(b"content").await.expect("written");
                writing.finish().await.expect("finished");
            }
        });
        for number in 0..3 * AT_ONCE {
            assert_eq!(fs::read(dir.path().join(number.to_string())).expect("it is there"), b"content");
        }
    }

    #[test]
    fn more_files_than_a_client_may_write_at_once_are_refused_until_one_ends() {
        let dir = tempfile::tempdir().expect("a directory");
        at_server(dir.path(), 3, async |errands| {
            let mut open = Vec::new();
            for number in 0..3 {
                open.push(errands.write(&path(number)).await.expect("begun"));
            }
            match errands.write(&path("more")).await {
                Err(ErrandError::Failed(problem)) => assert_eq!(problem.errno, Errno::MFILE.raw_os_error(), "{problem}"),
                other => panic!("{other:?}"),
            }
            errands.write(&path("no/such")).await.expect_err("no such directory, and none of the three");
            open.pop().expect("the third").finish().await.expect("finished");
            let refused = errands.write(&path("no/such")).await.expect_err("no such directory");
            assert!(
                matches!(&refused, ErrandError::Failed(problem) if problem.errno == Errno::NOENT.raw_os_error()),
                "{refused}"
            );
            errands.write(&path("more")).await.expect("there is a place").finish().await.expect("finished");
        });
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 2, "what was not finished is gone");
    }

    /// Notes which paths are read and which are written.
    #[derive(Default)]
    struct Paths(Mutex<Vec<String>>);

    impl Observer for Paths {
        fn event(&self, event: Event<'_>) {
            let Event::Asked(asked) = event else { return };
            let told = match asked {
                Asked::Read(paths) => paths.iter().map(|path| format!("read {path}")).collect(),
                Asked::Write(path) => vec![format!("write {path}")],
            };
            self.0.lock().expect("a list").extend(told);
        }
    }

    #[test]
    fn the_log_hears_of_what_a_copy_there_reads_and_of_what_it_writes() {
        let dir = tempfile::tempdir().expect("a directory");
        let (_server, there, _client) = connected();
        let paths = Paths::default();
        let server = Server::new(&there, &writable(dir.path()), &paths, MOST_WRITES);
        server.tell(&Errand::Copy { from: path("a"), to: path("b") });
        assert_eq!(*paths.0.lock().expect("a list"), ["read /r/a", "write /r/b"]);
    }

    #[test]
    fn a_copy_there_ends_with_its_connection() {
        let dir = tempfile::tempdir().expect("a directory");
        fs::write(dir.path().join("a"), vec![7; 3 * CHUNK]).expect("written");
        let (_server, there, client) = connected();
        let server = Server::new(&there, &writable(dir.path()), &Silent, MOST_WRITES);
        let (from, to) = (WirePath(b"/r/a".to_vec()), WirePath(b"/r/b".to_vec()));
        server.copy(&from, &to).expect("its client is there");
        fs::remove_file(dir.path().join("b")).expect("it was made");
        client.close(CLOSE_DONE, "done");
        there.closed();
        server.copy(&from, &to).expect_err("nobody waits for it");
        assert_eq!(fs::read_dir(dir.path()).expect("a directory").count(), 1, "nothing of it stays");
    }
}
