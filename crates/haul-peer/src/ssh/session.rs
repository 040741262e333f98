//! ssh, while it runs.

use std::io::{BufReader, ErrorKind, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use haul_units::{Cancel, PeerText};

use super::hello::AnswerError;
use super::nodelay::NoDelay;
use super::{ClientHello, RemoteAnswer, RemoteHello, SshCommand, find_answer, spawn};
use crate::clock;
use crate::failure::Failure;
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
    ) -> Result<(Self, RemoteHello), Failure> {
        tracing::debug!("ssh starts");
        let mut start = command.start_with(hello);
        start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = spawn(start).map_err(|error| not_started(command, &error))?;
        let prompt = NoDelay::of(&child);
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
            unreachable!("all were asked for as pipes")
        };
        let said = pass_on(stderr, tell.ssh_says());
        // If ssh has ended, the missing answer says so with a better reason than a broken pipe.
        let _ = stdin.write_all(hello.to_line().as_bytes()).and_then(|()| stdin.flush());
        let mut session =
            Self { child, stdin: Some(stdin), left: false, ended: None, rtt: None, said, stdout: None, hurry: cancel.clone() };
        let answer = session.await_answer(BufReader::new(stdout))?;
        session.rtt = prompt.rtt();
        drop(prompt);
        match answer {
            Ok(RemoteAnswer::Ready(remote)) => {
                tracing::debug!(port = remote.port, rtt = ?session.rtt, "the far side listens");
                Ok((session, remote))
            }
            Ok(RemoteAnswer::Failed { error, hint }) => {
                Err(Failure { message: format!("{host}: {error}"), hint: hint.map(|hint| format!("on {host}: {hint}")) })
            }
            Err(AnswerError::Malformed(_)) => Err(Failure::new(format!("{host}: the haul there speaks another version"))
                .hint("install the same version of haul on both hosts")),
            Err(AnswerError::Io(error)) => Err(Failure::new(format!("{host}: reading from ssh: {error}"))),
            Err(AnswerError::Missing { printed }) => Err(no_answer(command, host, session.end(), &printed)),
        }
    }

    /// Waits for the far side's line: as long as a login may take, but no longer than the user wants.
    fn await_answer(&mut self, mut stdout: BufReader<ChildStdout>) -> Result<Result<RemoteAnswer, AnswerError>, Failure> {
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
                    return Err(Failure::new("interrupted"));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Failure::new("reading from ssh failed")),
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

    /// Lets the far side end by itself, and ssh with it, which takes a round trip or two that nobody needs to wait for. One that is cut off would
    /// wait for its far side for a quarter of an hour: it is ended.
    pub fn leave(&mut self, is_cut_off: bool) {
        drop(self.stdin.take());
        if is_cut_off {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
        self.left = true;
    }

    /// Ends the far side and waits for it, in the end by force.
    pub fn end(&mut self) -> Option<ExitStatus> {
        drop(self.stdin.take());
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

fn not_started(command: &SshCommand, error: &std::io::Error) -> Failure {
    let program = command.program().display();
    let failure = Failure::new(format!("{program}: {error}"));
    if error.kind() == ErrorKind::NotFound {
        failure.hint("install the ssh client, or name one with -S PROGRAM")
    } else {
        failure
    }
}

/// ssh ended before `haul remote` said anything: its exit status tells whose fault it was.
fn no_answer(command: &SshCommand, host: &str, status: Option<ExitStatus>, printed: &[PeerText]) -> Failure {
    let remote = command.remote().display();
    let failure = match status.and_then(|status| status.code()) {
        Some(127) => Failure::new(format!("{host}: haul not found there"))
            .hint("install haul on the far side, or say where it is with --remote-haul PATH"),
        Some(126) => {
            Failure::new(format!("{host}: `{remote}` cannot be executed there")).hint("name another with --remote-haul PATH")
        }
        Some(255) => Failure::new(format!("{host}: ssh could not log in")).hint(format!("`ssh {host} true` must work first")),
        Some(0) | None => Failure::new(format!("{host}: `{remote}` ended without an answer"))
            .hint(format!("`ssh {host} haul --version` must print haul's version")),
        Some(code) => Failure::new(format!("{host}: `{remote}` ended with status {code} there"))
            .hint(format!("`ssh {host} haul --version` must print haul's version")),
    };
    match printed {
        [] => failure,
        lines => Failure {
            message: format!(
                "{} (it printed: {})",
                failure.message,
                lines.iter().map(PeerText::as_str).collect::<Vec<_>>().join(" / ")
            ),
            ..failure
        },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;
    use crate::operand::SshHost;
    use crate::ssh::SshOptions;

    fn explained(code: i32, printed: &[&str]) -> Failure {
        let host = SshHost { user: None, host: "far".into(), port: None };
        let command = SshCommand::new(&SshOptions::default(), &host);
        let printed: Vec<PeerText> = printed.iter().map(|&line| line.into()).collect();
        no_answer(&command, "far", Some(ExitStatus::from_raw(code << 8)), &printed)
    }

    #[test]
    fn every_way_to_fail_has_its_advice() {
        for (code, message, hint) in [
            (127, "haul not found there", "--remote-haul"),
            (255, "could not log in", "ssh far true"),
            (1, "status 1", "haul --version"),
        ] {
            let failure = explained(code, &[]);
            assert!(failure.message.starts_with("far: ") && failure.message.contains(message), "{failure}");
            assert!(failure.hint.as_deref().is_some_and(|text| text.contains(hint)), "{failure}");
        }
    }

    #[test]
    fn what_the_far_side_printed_is_shown() {
        assert!(explained(1, &["This account is closed."]).message.ends_with("(it printed: This account is closed.)"));
    }
}
