//! ssh, while it runs.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use haul::carrier::Carrier;
use haul_units::Cancel;

use super::error::{SshEnded, SshError};
use super::hello::{AnswerError, find_text};
use super::nodelay::NoDelay;
use super::script::ShellSays;
use super::{ClientHello, RemoteAnswer, RemoteHello, SshCommand, spawn};
use crate::bootstrap::{Bootstrap, Sending};
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
/// How long the last part of a program may be under way from here to ssh once the far side has answered it.
const LAST_PART: Duration = Duration::from_secs(2);
/// How long ssh's last words may take once it has ended; a process that it left behind may hold its standard error for ever.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// A running ssh with `haul remote` at its far end. Dropping it ends both.
#[derive(Debug)]
pub struct SshSession {
    /// None once it was left to end by itself.
    child: Option<Child>,
    /// Open while the copy runs: its end tells the far side to stop.
    stdin: Option<ChildStdin>,
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
        if command.bootstrap().is_none() {
            // If ssh has ended, the missing answer says so with a better reason than a broken pipe.
            let _ = stdin.write_all(hello.to_line().as_bytes()).and_then(|()| stdin.flush());
        }
        let mut session = Self {
            child: Some(child),
            stdin: Some(stdin),
            ended: None,
            rtt: None,
            said,
            stdout: Some(BufReader::new(stdout)),
            carrier: None,
            hurry: cancel.clone(),
        };
        let mut text = session.await_text(&prompt, host)?;
        if let (Some(bootstrap), Ok(said)) = (command.bootstrap(), &text)
            && let Some(says) = ShellSays::parse(said)
        {
            text = session.bring(bootstrap, says, tell, &prompt, host)?;
        }
        session.rtt = prompt.rtt();
        drop(prompt);
        match text.and_then(|text| RemoteAnswer::from_text(&text)) {
            Ok(RemoteAnswer::Ready(remote)) => {
                tracing::debug!(port = remote.port, rtt = ?session.rtt, "the far side listens");
                if let (Some(_), Some(stdin)) = (command.bootstrap(), &mut session.stdin) {
                    // It was told by a word of its command, and passes over this line; the shell before it would have taken it for the program.
                    let _ = stdin.write_all(hello.to_line().as_bytes()).and_then(|()| stdin.flush());
                }
                Ok((session, remote))
            }
            Ok(RemoteAnswer::Failed { error, hint }) => Err(SshError::Failed { host: host.to_owned(), error, hint }),
            Err(AnswerError::Malformed(_)) => Err(SshError::OtherVersion { host: host.to_owned() }),
            Err(AnswerError::Io(source)) => Err(SshError::Io { host: host.to_owned(), source }),
            Err(AnswerError::Missing { printed }) => {
                let status = session.end().and_then(|status| status.code());
                let ended = SshEnded { status, remote: command.remote().to_owned(), printed };
                Err(SshError::NoAnswer { host: host.to_owned(), ended, login: command.login() })
            }
        }
    }

    /// Gives the far side the program that its shell asks for, and waits for what it says next.
    fn bring(
        &mut self,
        bootstrap: &Bootstrap,
        says: ShellSays,
        tell: &dyn Tell,
        connection: &NoDelay,
        host: &str,
    ) -> Result<Result<String, AnswerError>, SshError> {
        let lacks = |obstacle| SshError::NotBrought { host: host.to_owned(), obstacle };
        let (system, machine) = match says {
            ShellSays::Wants { system, machine } => (system, machine),
            ShellSays::Lacks(obstacle) => return Err(lacks(obstacle)),
        };
        let Some(program) = bootstrap.program(&system, &machine) else {
            let (host, at_hand) = (host.to_owned(), bootstrap.machines());
            return Err(SshError::NoProgram { host, system: system.into(), machine: machine.into(), at_hand });
        };
        tell.sends(&Sending { host, machine: program.machine, bytes: program.bytes, stay: bootstrap.stay });
        let unreadable = |source| SshError::ProgramUnreadable { path: program.path.clone(), source };
        let file = File::open(&program.path).map_err(unreadable)?.take(program.bytes);
        let Some(stdin) = self.stdin.take() else { return Err(SshError::Lost) };
        let (tell_fed, fed) = mpsc::channel();
        thread::spawn(move || {
            let _ = tell_fed.send(feed(file, stdin));
        });
        let text = match self.await_text(connection, host)? {
            Ok(text) => text,
            none => return Ok(none),
        };
        if let Some(ShellSays::Lacks(obstacle)) = ShellSays::parse(&text) {
            return Err(lacks(obstacle));
        }
        // What has answered has read all of it.
        let Ok((fed, stdin)) = fed.recv_timeout(LAST_PART) else { return Err(SshError::Unclear { host: host.to_owned() }) };
        fed.map_err(unreadable)?;
        self.stdin = Some(stdin);
        Ok(Ok(text))
    }

    /// Waits for the far side's line: as long as a login may take, but no longer than the user wants.
    fn await_text(&mut self, connection: &NoDelay, host: &str) -> Result<Result<String, AnswerError>, SshError> {
        let Some(mut stdout) = self.stdout.take() else { return Err(SshError::Lost) };
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let text = find_text(&mut stdout);
            let _ = tell.send((text, stdout));
        });
        loop {
            match told.recv_timeout(GLANCE) {
                Ok((text, stdout)) => {
                    self.stdout = Some(stdout);
                    return Ok(text);
                }
                Err(RecvTimeoutError::Timeout) if self.hurry.is_cancelled() => {
                    // It does not look at its input while it logs in.
                    self.kill();
                    return Err(SshError::Interrupted);
                }
                Err(RecvTimeoutError::Timeout) if connection.is_cut_off() => {
                    self.kill();
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
        if self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None))) {
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

    fn kill(&mut self) {
        if let Some(child) = &mut self.child {
            let _ = child.kill();
        }
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
        let Some(mut child) = self.child.take() else { return };
        if is_cut_off {
            let _ = child.kill();
            let _ = child.wait();
        } else {
            // This process may live on: nothing that has ended is to be left behind in it.
            let hurry = self.hurry.clone();
            thread::spawn(move || await_end(&mut child, &hurry));
        }
    }

    /// Ends the far side and waits for it, in the end by force.
    pub fn end(&mut self) -> Option<ExitStatus> {
        self.close_input();
        let status = self.child.as_mut().and_then(|child| await_end(child, &self.hurry));
        let _ = self.said.recv_timeout(LAST_WORDS);
        status
    }
}

impl Drop for SshSession {
    fn drop(&mut self) {
        if self.child.is_some() {
            self.end();
        }
    }
}

/// Waits for an ssh that ends by itself, in the end by force.
pub(super) fn await_end(child: &mut Child, hurry: &Cancel) -> Option<ExitStatus> {
    let begun = clock::now();
    while clock::now() - begun < if hurry.is_cancelled() { HURRY } else { FAREWELL } {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => thread::park_timeout(LOOK),
            Err(_) => return None,
        }
    }
    let _ = child.kill();
    child.wait().ok()
}

/// Writes a program to ssh. A far side that stops reading says why.
fn feed(mut program: impl Read, mut stdin: ChildStdin) -> (io::Result<()>, ChildStdin) {
    let mut part = vec![0; 1 << 16];
    loop {
        match program.read(&mut part) {
            Ok(read @ 1..) if stdin.write_all(part.get(..read).unwrap_or_default()).is_ok() => {}
            Ok(_) => return (Ok(()), stdin),
            Err(error) => return (Err(error), stdin),
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    #[test]
    fn who_was_left_is_no_zombie_once_it_has_ended() {
        let child = Command::new("true").spawn().expect("started");
        let of_process = PathBuf::from(format!("/proc/{}", child.id()));
        let mut session = SshSession {
            child: Some(child),
            stdin: None,
            ended: None,
            rtt: None,
            said: mpsc::channel().1,
            stdout: None,
            carrier: None,
            hurry: Cancel::new(),
        };
        session.leave(false);
        let begun = clock::now();
        while of_process.exists() {
            assert!(clock::now() - begun < FAREWELL * 2, "it is a zombie");
            thread::park_timeout(LOOK);
        }
    }
}
