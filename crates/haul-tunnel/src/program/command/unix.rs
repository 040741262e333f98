//! A command of the shell, in a group of its own.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use haul::{Connection, RecvStream, SendStream};
use haul_peer::ControlOut;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::program::exchange::{arrived, receive_all, send_to_end};
use crate::program::frame::{Frame, Status};
use crate::program::local::enlarge_pipe;

/// Standard error goes out as it comes, in pieces of at most this size.
const PIECE: usize = 16 << 10;

/// A command of the user's shell, as ssh would run it.
fn run_shell(line: &[u8]) -> Command {
    let shell = std::env::var_os("SHELL").filter(|shell| !shell.is_empty()).unwrap_or_else(|| OsString::from("/bin/sh"));
    let mut command = Command::new(shell);
    command.arg("-c").arg(OsStr::from_bytes(line));
    if let Some(home) = std::env::var_os("HOME").filter(|home| std::path::Path::new(home).is_dir()) {
        command.current_dir(home);
    }
    command
}

/// Runs a command until it has ended and everything that it wrote has arrived.
pub fn serve(line: &[u8], connection: Connection, streams: (SendStream, RecvStream), mut control: ControlOut) -> io::Result<()> {
    let spawned = run_shell(line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // Its own group, so that whatever it starts can be told that the client has gone.
        .process_group(0)
        .spawn();
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            Frame::Error(format!("haul: the shell cannot be started: {error}\n").into_bytes()).write_to(&mut control)?;
            return Frame::Exit(Status::Code(127)).write_to(&mut control);
        }
    };
    let group = Arc::new(Group { leader: child.id(), alive: Mutex::new(true), ended: Condvar::new() });
    let hung_up = Arc::clone(&group);
    thread::spawn(move || {
        connection.closed();
        hung_up.hang_up();
    });
    let (mut send, receive) = streams;
    let result = carry(&mut child, &mut send, receive, &control, &group);
    // It may have closed its output long before it ends, and hears until then that the client has gone.
    group.wait();
    let status = child.wait()?;
    result?;
    // The last words travel beside what the command wrote last, not a round trip after it.
    Frame::Exit(Status::from(status)).write_to(&mut control)?;
    control.finish()?;
    // A client that has everything closes, perhaps before its last acknowledgement has come; one that has gone is not to be told.
    let _ = arrived(&mut send);
    Ok(())
}

impl From<ExitStatus> for Status {
    fn from(status: ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt as _;
        let byte = |number: i32| u8::try_from(number & 0xff).unwrap_or(u8::MAX);
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(byte(code)),
            (None, signal) => Self::Signal(byte(signal.unwrap_or_default())),
        }
    }
}

/// The processes of a command. Their number may be somebody else's once the command has been waited for.
struct Group {
    leader: u32,
    alive: Mutex<bool>,
    ended: Condvar,
}

impl Group {
    fn leader(&self) -> Option<Pid> {
        i32::try_from(self.leader).ok().and_then(Pid::from_raw)
    }

    /// The client has gone: as when a terminal is hung up.
    fn hang_up(&self) {
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(leader) = self.leader().filter(|_| *alive) {
            let _ = kill_process_group(leader, Signal::HUP);
        }
    }

    /// Waits until the command has ended. It is still to be waited for after that, so its number is nobody else's until `alive` says so.
    fn wait(&self) {
        if let Some(leader) = self.leader() {
            let ended = || waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
            while matches!(ended(), Err(rustix::io::Errno::INTR)) {}
        }
        *self.alive.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.ended.notify_all();
    }

    /// What the command was to read has broken off: it is hung up, and does not take a part for all as long as it lives.
    fn break_off(&self, input: ChildStdin) {
        self.hang_up();
        let alive = self.alive.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.ended.wait_while(alive, |alive| *alive));
        drop(input);
    }
}

/// Until the command has closed its output, and that is on its way.
fn carry(
    child: &mut Child,
    send: &mut SendStream,
    receive: RecvStream,
    control: &ControlOut,
    group: &Arc<Group>,
) -> io::Result<()> {
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(mut stdin), Some(stdout), Some(stderr)) = (stdin, stdout, stderr) else {
        unreachable!("all were asked for as pipes")
    };
    enlarge_pipe(&stdin);
    enlarge_pipe(&stdout);
    let errors = control.clone();
    let errors = thread::spawn(move || forward_errors(stderr, errors));
    let group = Arc::clone(group);
    // Not waited for: a command may end without reading its input.
    thread::spawn(move || match receive_all(receive, &mut stdin) {
        Ok(_) => drop(stdin),
        Err(_) => group.break_off(stdin),
    });
    let said = send_to_end(stdout, send, &AtomicU64::new(0));
    let errors = errors.join().map_err(|_| io::Error::other("a thread panicked"))?;
    said.map(drop).and(errors)
}

fn forward_errors(mut stderr: impl Read, mut control: impl Write) -> io::Result<()> {
    let mut buffer = vec![0; PIECE];
    loop {
        match stderr.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(read) => Frame::Error(buffer.get(..read).unwrap_or_default().to_vec()).write_to(&mut control)?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
