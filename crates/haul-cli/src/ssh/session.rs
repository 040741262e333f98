//! ssh, while it runs.

use std::io::{BufReader, ErrorKind, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::Duration;

use super::hello::AnswerError;
use super::nodelay::NoDelay;
use super::{ClientHello, RemoteAnswer, RemoteHello, SshCommand, find_answer};
use crate::clock;
use crate::exit::Failure;

/// How long the far side has to end by itself once the copy is over.
const FAREWELL: Duration = Duration::from_secs(5);
/// How often that is looked at.
const LOOK: Duration = Duration::from_millis(10);

/// A running ssh with `haul remote` at its far end. Dropping it ends both.
#[derive(Debug)]
pub struct SshSession {
    child: Child,
    /// Open while the copy runs: its end tells the far side to stop.
    stdin: Option<ChildStdin>,
    /// It ends by itself: nobody waits for it.
    left: bool,
    /// Round-trip time of its connection, if it could be looked at.
    rtt: Option<Duration>,
    /// Kept open, so that the far side never writes to a closed pipe.
    _stdout: BufReader<ChildStdout>,
}

impl SshSession {
    /// Logs in and exchanges greetings; ssh asks for passwords itself, on the terminal.
    pub fn start(command: &SshCommand, host: &str, hello: &ClientHello) -> Result<(Self, RemoteHello), Failure> {
        tracing::debug!("ssh starts");
        let child = command.start_with(hello).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = child.map_err(|error| not_started(command, &error))?;
        let prompt = NoDelay::of(&child);
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (Some(mut stdin), Some(stdout)) = (stdin, stdout) else { unreachable!("both were asked for as pipes") };
        // If ssh has ended, the missing answer says so with a better reason than a broken pipe.
        let _ = stdin.write_all(hello.to_line().as_bytes()).and_then(|()| stdin.flush());
        let mut stdout = BufReader::new(stdout);
        let answer = find_answer(&mut stdout);
        let rtt = prompt.rtt();
        drop(prompt);
        let mut session = Self { child, stdin: Some(stdin), left: false, rtt, _stdout: stdout };
        match answer {
            Ok(RemoteAnswer::Ready(remote)) => {
                tracing::debug!(port = remote.port, ?rtt, "the far side listens");
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

    /// Round-trip time of ssh's own connection, where it could be looked at.
    pub const fn rtt(&self) -> Option<Duration> {
        self.rtt
    }

    /// Whether ssh still runs.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Lets the far side end by itself, and ssh with it, which takes a round trip or two that nobody needs to wait for.
    pub fn leave(&mut self) {
        drop(self.stdin.take());
        self.left = true;
    }

    /// Ends the far side and waits for it, in the end by force.
    pub fn end(&mut self) -> Option<ExitStatus> {
        drop(self.stdin.take());
        let deadline = clock::now() + FAREWELL;
        while clock::now() < deadline {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) => std::thread::park_timeout(LOOK),
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
fn no_answer(command: &SshCommand, host: &str, status: Option<ExitStatus>, printed: &[String]) -> Failure {
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
        lines => Failure { message: format!("{} (it printed: {})", failure.message, lines.join(" / ")), ..failure },
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;
    use crate::args::SshArgs;
    use crate::cp::operand::SshHost;

    fn explained(code: i32, printed: &[&str]) -> Failure {
        let host = SshHost { user: None, host: "far".into(), port: None };
        let command = SshCommand::new(&SshArgs::default(), &host, false, false);
        let printed: Vec<String> = printed.iter().map(|&line| line.to_owned()).collect();
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
