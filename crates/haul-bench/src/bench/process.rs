//! Programs under measurement: started, watched, ended, and what they used.

use std::io::{self, BufRead as _, BufReader, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use haul_lab::now;
use haul_units::{Bytes, Time};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open};

use super::measurement::Usage;

/// A program that runs. It is killed when this value goes.
#[derive(Debug)]
pub struct Running {
    child: Child,
    pidfd: OwnedFd,
    output: [Captured; 2],
    ended: Option<Ended>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ended {
    /// Its exit status; 128 and the number of the signal that killed it.
    pub status: i32,
    /// When.
    pub at: Time,
    /// What it used, with the processes it waited for.
    pub usage: Usage,
}

/// What a thread reads of a program.
#[derive(Debug)]
struct Captured(Arc<(Mutex<Text>, Condvar)>);

#[derive(Debug, Default)]
struct Text {
    bytes: Vec<u8>,
    complete: bool,
}

impl Running {
    /// Starts it.
    pub fn start(mut command: Command) -> io::Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())?;
        let output = [Captured::of(child.stdout.take()), Captured::of(child.stderr.take())];
        Ok(Self { child, pidfd, output, ended: None })
    }

    /// Waits until it ends or a point in time, and says how it ended if it did.
    pub fn wait_until(&mut self, limit: Time) -> io::Result<Option<Ended>> {
        if self.ended.is_some() {
            return Ok(self.ended);
        }
        let left = limit.since(now());
        let timeout = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let readable = poll(&mut [PollFd::new(&self.pidfd, PollFlags::IN)], Some(&timeout));
        if readable.is_ok_and(|count| count > 0) {
            self.ended = Some(self.reap()?);
        }
        Ok(self.ended)
    }

    /// Sends it a signal, if it still runs.
    pub fn signal(&self, signal: Signal) {
        if self.ended.is_none() {
            // It may have ended just before: then there is nobody to tell.
            let _ = kill_process(Pid::from_child(&self.child), signal);
        }
    }

    /// Sends it to the process group that it leads, of which some may still run when it has ended. It must have been started as the leader of one.
    pub fn signal_group(&self, signal: Signal) {
        // As above.
        let _ = kill_process_group(Pid::from_child(&self.child), signal);
    }

    /// Asks it to end by `signal`, and kills it if it does not within a few seconds.
    pub fn end(&mut self, signal: Signal) -> io::Result<Ended> {
        self.signal(signal);
        if let Some(ended) = self.wait_until(now() + PATIENCE)? {
            return Ok(ended);
        }
        self.signal(Signal::KILL);
        self.wait_until(now() + PATIENCE)?.ok_or_else(|| io::ErrorKind::TimedOut.into())
    }

    /// What it has printed so far; all of it, once it has ended.
    pub fn stdout(&self) -> String {
        self.output[0].text(self.ended.is_some())
    }

    /// See [`Running::stdout`].
    pub fn stderr(&self) -> String {
        self.output[1].text(self.ended.is_some())
    }

    /// Its last words, for a message: the last line of what it wrote as an error, or else of its output.
    pub fn last_words(&self) -> String {
        let (errors, output) = (self.stderr(), self.stdout());
        let last = |text: &str| text.lines().rfind(|line| !line.trim().is_empty()).map(|line| line.trim().to_owned());
        last(&errors).or_else(|| last(&output)).unwrap_or_else(|| "it says nothing".to_owned())
    }

    fn reap(&mut self) -> io::Result<Ended> {
        let (mut status, pid) = (0, self.child.id() as libc::pid_t);
        // SAFETY: an all-zero rusage is valid; both places outlive the call. `Child` does not wait for this process anywhere else.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            if libc::wait4(pid, &raw mut status, 0, &raw mut usage) < 0 {
                return Err(io::Error::last_os_error());
            }
            usage
        };
        let time = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
        let cpu = Some(time(usage.ru_utime) + time(usage.ru_stime));
        // Linux counts it in KiB.
        let memory = Some(Bytes::kib(usage.ru_maxrss as u64));
        let status = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) };
        Ok(Ended { status, at: now(), usage: Usage { cpu, memory } })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
        let _ = self.wait_until(now() + PATIENCE);
    }
}

impl Captured {
    fn of(stream: Option<impl Read + Send + 'static>) -> Self {
        let shared = Arc::new((Mutex::default(), Condvar::new()));
        if let Some(stream) = stream {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || read_lines(stream, &shared));
        }
        Self(shared)
    }

    fn text(&self, ended: bool) -> String {
        let (text, completed) = &*self.0;
        let mut text = text.lock().unwrap_or_else(PoisonError::into_inner);
        if ended {
            // A daemon that it left behind may hold the other end: what is there by then is all that counts.
            let waited = completed.wait_timeout_while(text, LAST_WORDS, |text| !text.complete);
            (text, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        String::from_utf8_lossy(&text.bytes).into_owned()
    }
}

fn read_lines(stream: impl Read, (text, completed): &(Mutex<Text>, Condvar)) {
    let lock = || text.lock().unwrap_or_else(PoisonError::into_inner);
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    while stream.read_until(b'\n', &mut line).is_ok_and(|length| length > 0) {
        lock().bytes.append(&mut line);
    }
    lock().complete = true;
    completed.notify_all();
}

/// A program that does not end this long after it was asked to is killed.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between the end of a program and the last of what it wrote.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why a program that prepares did not do its part.
#[derive(Debug, thiserror::Error)]
pub enum ScriptError {
    /// It did not start.
    #[error(transparent)]
    Start(#[from] io::Error),
    /// It failed.
    #[error("{said}")]
    Failed {
        /// What it said last.
        said: String,
    },
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt as _;

    use super::*;

    /// What a leader has started is ended with its group when it has ended itself; and this process, which is of another group, is not.
    #[test]
    fn a_group_ends_without_its_leader() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & exit 3"]).process_group(0);
        let mut leader = Running::start(command).expect("sh");
        let ended = leader.wait_until(now() + PATIENCE).expect("waited for").expect("it ends at once");
        assert_eq!(ended.status, 3);
        leader.signal_group(Signal::KILL);
        // `sleep` holds its output: that ends with it.
        let (complete, changed) = &*leader.output[0].0;
        let (text, late) = changed
            .wait_timeout_while(complete.lock().expect("nobody panics"), PATIENCE, |text| !text.complete)
            .expect("nobody panics");
        assert!(text.complete && !late.timed_out());
    }
}
