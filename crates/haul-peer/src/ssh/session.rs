//! ssh, while it runs.

use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use haul::carrier::Carrier;
use haul_units::Cancel;

use super::error::{SshEnded, SshError};
use super::hello::AnswerError;
use super::nodelay::NoDelay;
use super::{ClientHello, RemoteAnswer, RemoteHello, SshCommand, find_answer, spawn};
use crate::clock;
use crate::tell::Tell;

/// How long the far side has to end by itself once the copy is over.
const FAREWELL: Duration = Duration::from_secs(5);
/// The same once the user has asked for the end: the end of its input tells the far side as much as a wait would.
const HURRY: Duration = Duration::from_millis(300);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// How often to look for an interrupt while ssh logs in.
const GLANCE: Duration = Duration::from_millis(50);
/// How long ssh's last words may take once it has ended; a process that it left behind may hold its standard error for ever.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// A running ssh with `haul remote` at its far end. Dropping it ends both.
#[derive(Debug)]
pub struct SshSession {
    child: Child,
    /// Open while the copy runs: its end tells the far side to stop.
    stdin: Option<ChildStdin>,
    /// It ends by itself: nobody waits for it.
    left: bool,
    /// When it was first seen to have ended.
    ended: Option<Instant>,
    /// Round-trip time of its connection, if it could be looked at.
    rtt: Option<Duration>,
    /// Ends when all that ssh says on its standard error has been passed on.
    said: mpsc::Receiver<()>,
    /// Kept open, so that the far side never writes to a closed pipe.
    stdout: Option<BufReader<ChildStdout>>,
    /// What both carry, if they do.
    carrier: Option<Carrier>,
    /// The user wants an end.
    hurry: Cancel,
}

impl SshSession {
    /// Logs in and exchanges greetings; ssh asks for passwords itself, on the terminal.
    pub fn start(
        command: &SshCommand,
        host: &str,
        hello: &ClientHello,
        tell: &dyn Tell,
        cancel: &Cancel,
    ) -> Result<(Self, RemoteHello), SshError> {
        tracing::debug!("ssh starts");
        let mut start = command.start_with(hello);
        start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(start).map_err(|source| SshError::NotStarted { program: command.program().to_owned(), source })?;
        let prompt = NoDelay::of(&child);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            unreachable!("all were asked for as pipes")
        };
        let said = pass_on(stderr, tell.ssh_says());
        // If ssh has ended, the missing answer says so with a better reason than a broken pipe.
        let _ = stdin.write_all(hello.to_line().as_bytes()).and_then(|()| stdin.flush());
        let mut session = Self {
            child,
            stdin: Some(stdin),
            left: false,
            ended: None,
            rtt: None,
            said,
            stdout: None,
            carrier: None,
            hurry: cancel.clone(),
        };
        let answer = session.await_answer(BufReader::new(stdout), &prompt, host)?;
        session.rtt = prompt.rtt();
        drop(prompt);
        match answer {
            Ok(RemoteAnswer::Ready(remote)) => {
                tracing::debug!(port = remote.port, rtt = ?session.rtt, "the far side listens");
                Ok((session, remote))
            }
            Ok(RemoteAnswer::Failed { error, hint }) => Err(SshError::Failed { host: host.to_owned(), error, hint }),
            Err(AnswerError::Malformed(_)) => Err(SshError::OtherVersion { host: host.to_owned() }),
            Err(AnswerError::Io(source)) => Err(SshError::Io { host: host.to_owned(), source }),
            Err(AnswerError::Missing { printed }) => {
                let status = session.end().and_then(|status| status.code());
                let ended = SshEnded { status, remote: command.remote().to_owned(), printed };
                Err(SshError::NoAnswer { host: host.to_owned(), ended })
            }
        }
    }

    /// Waits for the far side's line: as long as a login may take, but no longer than the user wants.
    fn await_answer(
        &mut self,
        mut stdout: BufReader<ChildStdout>,
        connection: &NoDelay,
        host: &str,
    ) -> Result<Result<RemoteAnswer, AnswerError>, SshError> {
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let answer = find_answer(&mut stdout);
            let _ = tell.send((answer, stdout));
        });
        loop {
            match told.recv_timeout(GLANCE) {
                Ok((answer, stdout)) => {
                    self.stdout = Some(stdout);
                    return Ok(answer);
                }
                Err(RecvTimeoutError::Timeout) if self.hurry.is_cancelled() => {
                    // It does not look at its input while it logs in.
                    let _ = self.child.kill();
                    return Err(SshError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if connection.is_cut_off() => {
                    let _ = self.child.kill();
                    return Err(SshError::CutOff { host: host.to_owned() });
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(SshError::Lost),
            }
        }
    }

    /// Round-trip time of ssh's own connection, where it could be looked at.
    pub const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// How long ago ssh was first seen to have ended; nothing while it runs.
    pub fn ended_for(&mut self) -> Option<Duration> {
        if matches!(self.child.try_wait(), Ok(None)) {
            return None;
        }
        let now = clock::now();
        Some(now - *self.ended.get_or_insert(now))
    }

    /// Both pipes, for what they are to carry from now on; none where they are gone.
    pub fn channel(&mut self, carrier: Carrier) -> Option<(ChildStdin, BufReader<ChildStdout>)> {
        let pipes = self.stdin.take().zip(self.stdout.take())?;
        self.carrier = Some(carrier);
        Some(pipes)
    }

    /// No more input for the far side: it ends.
    fn close_input(&mut self) {
        drop(self.stdin.take());
        if let Some(carrier) = self.carrier.take() {
            carrier.flush(HURRY);
            carrier.close();
        }
    }

    /// Lets the far side end by itself, and ssh with it, which takes a round trip or two that nobody needs to wait for. One that is cut off would
    /// wait for its far side for a quarter of an hour: it is ended.
    pub fn leave(&mut self, is_cut_off: bool) {
        self.close_input();
        if is_cut_off {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        self.left = true;
    }

    /// Ends the far side and waits for it, in the end by force.
    pub fn end(&mut self) -> Option<ExitStatus> {
        self.close_input();
        let status = self.await_end();
        let _ = self.said.recv_timeout(LAST_WORDS);
        status
    }

    fn await_end(&mut self) -> Option<ExitStatus> {
        let begun = clock::now();
        while clock::now() - begun < if self.hurry.is_cancelled() { HURRY } else { FAREWELL } {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => thread::park_timeout(LOOK),
                Err(_) => return None,
            }
        }
        let _ = self.child.kill();
        self.child.wait().ok()
    }
}

impl Drop for SshSession {
    fn drop(&mut self) {
        if !self.left {
            self.end();
        }
    }
}

/// Passes ssh's standard error on: what the far side prints there comes with it.
fn pass_on(mut stderr: impl Read + Send + 'static, mut to: Box<dyn Write + Send>) -> mpsc::Receiver<()> {
    let (ended, when_ended) = mpsc::channel();
    thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(read @ 1..) = stderr.read(&mut part) {
            // Nobody may be reading it any more; ssh goes on.
            let _ = to.write_all(part.get(..read).unwrap_or_default()).and_then(|()| to.flush());
        }
        drop(ended);
    });
    when_ended
}
