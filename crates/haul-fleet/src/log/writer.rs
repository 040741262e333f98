//! The thread that writes a log.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use haul_copy::MachineWatch;

use super::record::{CLIENT, Record, VERSION, client_sample, sample};
use super::title::JobTitle;
use crate::clock;
use crate::observe::Snapshot;

/// How often the client and each member are written of.
const SAMPLE: Duration = Duration::from_secs(1);
/// A file gets no longer than this: ten million files and their ends are in it.
const MAX_BYTES: u64 = 4 << 30;

pub(super) enum Message {
    Line(Line),
    End,
}

/// A line for one of the files.
pub(super) struct Line {
    pub file: usize,
    pub text: String,
}

/// Writes until the end; a file that cannot be written is left as it is.
pub(super) fn write(
    files: Vec<File>,
    lines: &Receiver<Message>,
    title: &JobTitle,
    started: Instant,
    latest: &Mutex<Option<Snapshot>>,
    left_out: &AtomicU64,
) {
    let mut log = Log { files: files.into_iter().map(|file| (BufWriter::new(file), 0)).collect() };
    let unix_s = clock::unix_s();
    let (kind, about, members) = (title.kind.as_str(), &*title.about, &*title.members);
    log.put(CLIENT, &Record::Job { version: VERSION, kind, about, members, unix_s }, 0.0);
    for (member, name) in title.members.iter().enumerate() {
        log.put(member + 1, &Record::Member { name }, 0.0);
    }
    let (mut machine, mut last) = (MachineWatch::start(), (started, 0));
    let mut due = started + SAMPLE;
    loop {
        match lines.recv_timeout(due.saturating_duration_since(clock::now())) {
            Ok(Message::Line(line)) => log.append(line.file, &line.text),
            Err(RecvTimeoutError::Timeout) => {}
            Ok(Message::End) | Err(RecvTimeoutError::Disconnected) => break,
        }
        if clock::now() >= due {
            due += SAMPLE;
            log.sample(started, latest, &mut machine, &mut last);
            log.flush();
        }
    }
    log.sample(started, latest, &mut machine, &mut last);
    let seconds = (clock::now() - started).as_secs_f64();
    let lines = left_out.load(Ordering::Relaxed);
    if lines > 0 {
        log.put(CLIENT, &Record::LeftOut { lines }, seconds);
    }
    log.put(CLIENT, &Record::End, seconds);
    log.flush();
}

/// The files, and how long they are.
struct Log {
    files: Vec<(BufWriter<File>, u64)>,
}

impl Log {
    fn put(&mut self, file: usize, record: &Record<'_>, seconds: f64) {
        self.append(file, &record.line(seconds));
    }

    fn append(&mut self, file: usize, text: &str) {
        let Some((file, length)) = self.files.get_mut(file) else { return };
        *length = length.saturating_add(text.len() as u64);
        if *length <= MAX_BYTES && file.write_all(text.as_bytes()).is_err() {
            // A disk that is full ends the log and not the job.
            *length = MAX_BYTES;
        }
    }

    fn sample(
        &mut self,
        started: Instant,
        latest: &Mutex<Option<Snapshot>>,
        machine: &mut MachineWatch,
        last: &mut (Instant, u64),
    ) {
        let Some(snapshot) = latest.lock().unwrap_or_else(PoisonError::into_inner).clone() else { return };
        let now = clock::now();
        let moved: u64 = snapshot.members.iter().map(|member| member.delivered.as_u64()).fold(0, u64::saturating_add);
        let rate = moved.saturating_sub(last.1) as f64 * 8.0 / (now - last.0).as_secs_f64().max(0.001);
        *last = (now, moved);
        let seconds = (now - started).as_secs_f64();
        self.put(CLIENT, &Record::Client(client_sample(&snapshot, rate as u64, machine.report(None))), seconds);
        for (member, view) in snapshot.members.iter().enumerate() {
            self.put(member + 1, &Record::Sample(sample(view)), seconds);
        }
    }

    fn flush(&mut self) {
        for (file, _) in &mut self.files {
            let _ = file.flush();
        }
    }
}
