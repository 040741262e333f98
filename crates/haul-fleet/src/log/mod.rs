//! Logs of jobs: what happened on each member, and each second how it and the client did, as JSON lines. docs/reference/fleet-log.md has the format.
//!
//! A log is a directory of its own, made new below the one that was set: nothing that is there is opened, followed or written over, and nobody else may read it. What is told in the middle of the work is put into a
//! bounded queue; a thread writes it. Where the queue is full lines are left out and counted.

mod record;
mod title;
mod writer;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use thiserror::Error;

use crate::clock;
use crate::observe::{JobEvent, JobObserver, Snapshot};
use record::{CLIENT, Record, records};
use writer::{Line, Message, write};

pub use title::JobTitle;

/// Lines that wait to be written: several seconds of ten thousand files a second would be more than a disk is behind.
const QUEUE: usize = 1 << 14;
/// Jobs with logs in one directory, at most: each has a number.
const MAX_JOBS: u32 = 100_000;

/// Why no log can be written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LogError {
    /// The directory cannot be made or used.
    #[error("{path}", path = path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// There are too many logs in it.
    #[error("{path}: more than {MAX_JOBS} logs", path = path.display())]
    Full {
        /// Which.
        path: PathBuf,
    },
}

/// An observer that writes a log. Dropped, it is complete.
pub struct JobLog {
    queue: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<()>>,
    dir: PathBuf,
    title: JobTitle,
    started: Instant,
    latest: Arc<Mutex<Option<Snapshot>>>,
    left_out: Arc<AtomicU64>,
}

impl JobLog {
    /// Makes `job-00001`, or the first number that is free, in `dir`, which is made if it is not there.
    pub fn create(dir: &Path, title: JobTitle) -> Result<Self, LogError> {
        let fail = |path: &Path| {
            let path = path.to_owned();
            move |source| LogError::Directory { path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(fail(dir))?;
        let own = unused(dir)?;
        let new = |name: String| -> Result<File, LogError> {
            let path = own.join(name);
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).map_err(fail(&path))
        };
        let mut files = vec![new("client.jsonl".into())?];
        for member in 0..title.members.len() {
            files.push(new(member_file(member))?);
        }
        let started = clock::now();
        let (queue, lines) = sync_channel(QUEUE);
        let (latest, left_out) = (Arc::<Mutex<Option<Snapshot>>>::default(), Arc::<AtomicU64>::default());
        let thread = {
            let (title, latest, left_out) = (title.clone(), latest.clone(), left_out.clone());
            std::thread::Builder::new()
                .name("haul-fleet-log".into())
                .spawn(move || write(files, &lines, &title, started, &latest, &left_out))
                .map_err(fail(&own))?
        };
        Ok(Self { queue: Some(queue), thread: Some(thread), dir: own, title, started, latest, left_out })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    fn put(&self, at: usize, record: &Record<'_>) {
        let seconds = (clock::now() - self.started).as_secs_f64();
        let line = Line { file: at, text: record.line(seconds) };
        if self.queue.as_ref().is_none_or(|queue| queue.try_send(Message::Line(line)).is_err()) {
            self.left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl JobObserver for JobLog {
    fn event(&self, event: &JobEvent<'_>) {
        if let JobEvent::Progress(snapshot) = event {
            *self.latest.lock().unwrap_or_else(PoisonError::into_inner) = Some((*snapshot).clone());
            return;
        }
        let Some((member, record)) = records(event) else { return };
        let at = member.and_then(|name| self.title.members.iter().position(|one| one == name)).map_or(CLIENT, |at| at + 1);
        self.put(at, &record);
    }
}

impl Drop for JobLog {
    fn drop(&mut self) {
        // It may wait for the disk: what was told last is written.
        if let Some(queue) = self.queue.take() {
            let _ = queue.send(Message::End);
        }
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The file of a member; its name is in it, not in the file's, for it may be anything.
pub(crate) fn member_file(member: usize) -> String {
    format!("member-{:05}.jsonl", member + 1)
}

/// A new directory: one that is there, or a link, is another log's.
fn unused(dir: &Path) -> Result<PathBuf, LogError> {
    let taken = fs::read_dir(dir).into_iter().flatten().flatten().filter_map(|entry| number(entry.file_name().to_str()?));
    let first = taken.max().unwrap_or(0);
    for job in first.saturating_add(1)..=MAX_JOBS {
        let path = dir.join(format!("job-{job:05}"));
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(LogError::Directory { path, source }),
        }
    }
    Err(LogError::Full { path: dir.to_owned() })
}

/// The number in the name of a log.
pub(crate) fn number(name: &str) -> Option<u32> {
    name.strip_prefix("job-")?.parse().ok()
}
