//! One more login: its standard streams are a TCP connection on the far host, by ssh's own forwarding (`ssh -W`).
//!
//! A channel of ssh's carries what its window lets through in a round trip, 2 MiB with OpenSSH, and all channels of one login share one TCP connection. Another login has both anew, and a processor of its own
//! to encrypt with.

use std::io;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use haul::carrier::{Lane, tcp};
use haul_units::Cancel;

use super::SshCommand;
use super::keeper::spawn_mute;
use super::session::await_end;
use crate::clock;

/// How often to look whether it is still wanted while ssh logs in.
const GLANCE: Duration = Duration::from_millis(50);

/// Leads to a port that the far side listens on, past what its firewall lets in.
#[derive(Debug, Clone)]
pub struct Forward {
    command: SshCommand,
    port: u16,
}

impl Forward {
    /// To this port, by logins as those of `command`.
    pub const fn new(command: SshCommand, port: u16) -> Self {
        Self { command, port }
    }

    /// Logs in, and asks the listener for a lane of the carrier of this name. An error says that this host lets nobody in unasked, or forwards nothing, or that the carrier is no more.
    pub fn lane(&self, name: &tcp::Name, patience: Duration, over: &Cancel) -> io::Result<Lane> {
        let mut start = self.command.forward(self.port);
        start.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = spawn_mute(start)?;
        match asked(&mut child, *name, patience, over) {
            Ok((stdout, stdin)) => {
                let over = over.clone();
                // Its input has ended: it ends by itself.
                let finish = Box::new(move || drop(thread::spawn(move || await_end(&mut child, &over))));
                Ok(Lane { read: Box::new(stdout), write: Box::new(stdin), finish })
            }
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }
}

/// Both streams, once the listener has answered there.
fn asked(child: &mut Child, name: tcp::Name, patience: Duration, over: &Cancel) -> io::Result<(ChildStdout, ChildStdin)> {
    let gone = || io::Error::from(io::ErrorKind::BrokenPipe);
    let (mut stdin, mut stdout) = child.stdin.take().zip(child.stdout.take()).ok_or_else(gone)?;
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let asked = tcp::ask(&mut stdout, &mut stdin, &name);
        let _ = tell.send(asked.map(|()| (stdout, stdin)));
    });
    let began = clock::now();
    loop {
        match told.recv_timeout(GLANCE) {
            Ok(asked) => return asked,
            Err(RecvTimeoutError::Timeout) if over.is_cancelled() => return Err(io::ErrorKind::Interrupted.into()),
            Err(RecvTimeoutError::Timeout) if began.elapsed() > patience => return Err(io::ErrorKind::TimedOut.into()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(gone()),
        }
    }
}
