//! Starting the emulator's process.

use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::process::Command;
use std::ptr;

use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};

use super::cradle::{Order, TOKEN_FD, Token, give};
use super::named::NamedWan;
use super::status::HostStatus;
use super::talk::{Answer, NotUp};
use super::{Commands, Life};
use crate::options::LinkError;

/// An emulator that this process has started.
///
/// One that lives [with this process](Life::WithThisProcess) ends with it, by whatever signal; [`end`](Self::end) ends any.
#[derive(Debug)]
pub struct Emulator {
    pid: Pid,
    wan: NamedWan,
    hosts: Vec<HostStatus>,
    commands: Commands,
    /// Held so that the emulator ends with this process.
    _lifeline: Option<OwnedFd>,
}

/// Why there is no emulator.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Only root may.
    #[error("emulating a WAN needs root: it makes network namespaces and TUN devices")]
    NotRoot,
    /// Not of this kind.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// No descriptors, or nothing comes back.
    #[error("cannot start the emulator: {0}")]
    System(#[source] io::Error),
    /// The system does not make the process, or not the namespaces that it is to be in.
    #[error("cannot start the emulator: {0}")]
    Spawn(#[source] io::Error),
    /// It says why.
    #[error(transparent)]
    NotUp(#[from] NotUp),
    /// It does not.
    #[error("the emulator ended before the WAN was up")]
    Ended,
}

impl Emulator {
    /// Starts one by calling this program once more, and waits until the WAN is up.
    pub fn start(order: &Order, commands: Commands) -> Result<Self, StartError> {
        order.wan.link.check()?;
        if !rustix::process::geteuid().is_root() {
            return Err(StartError::NotRoot);
        }
        let failed = StartError::System;
        let name = format!("--name={}", order.name);
        let args: Vec<&str> = ["haul"].into_iter().chain(commands.emulate.iter().copied()).chain([name.as_str()]).collect();
        let (input, lifeline) = match order.life {
            Life::WithThisProcess => {
                let (input, lifeline) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
                (input, Some(lifeline))
            }
            Life::OnItsOwn => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                (rustix::fs::open("/dev/null", flags, Mode::empty()).map_err(|error| failed(error.into()))?, None)
            }
        };
        let (answers, output) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        let pid = spawn(&args, &input, &output, order).map_err(StartError::Spawn)?;
        drop((input, output));
        let mut line = String::new();
        BufReader::new(File::from(answers)).read_line(&mut line).map_err(failed)?;
        match serde_json::from_str(&line) {
            Ok(Answer::Hosts(hosts)) => Ok(Self { pid, wan: NamedWan::new(&order.name), hosts, commands, _lifeline: lifeline }),
            Ok(Answer::NotUp(why)) => Err(why.into()),
            _ => Err(StartError::Ended),
        }
    }

    /// Its hosts, side a first.
    pub fn hosts(&self) -> &[HostStatus] {
        &self.hosts
    }

    /// Its WAN.
    pub fn wan(&self) -> &NamedWan {
        &self.wan
    }

    /// A program on a host, not started yet. It is run by this program, called once more, which passes its exit status on.
    pub fn command(&self, host: &str, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(THIS_PROGRAM);
        command.args(self.commands.exec).args(["--name", self.wan.name(), host, "--"]).arg(program);
        command
    }

    /// Ends it and everything on its hosts, and waits until they are gone.
    pub fn end(self) -> Option<WaitStatus> {
        // It may have ended already.
        let _ = kill_process(self.pid, Signal::KILL);
        waitpid(Some(self.pid), WaitOptions::empty()).ok().flatten().map(|(_, status)| status)
    }

    /// Its process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }
}

/// Runs this program with `args` as the first process of a process namespace, in a mount namespace and a session of its own.
///
/// It gets a token by a descriptor, without which it refuses ([`super::cradle`]).
fn spawn(args: &[&str], input: &OwnedFd, output: &OwnedFd, order: &Order) -> io::Result<Pid> {
    let token = Token::from_here()?.pipe(order)?;
    let args: Vec<CString> = args.iter().map(|arg| CString::new(*arg)).collect::<Result<_, _>>()?;
    let mut pointers: Vec<*const libc::c_char> = args.iter().map(|arg| arg.as_ptr()).collect();
    pointers.push(ptr::null());
    let path = CString::new(THIS_PROGRAM)?;
    let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::SIGCHLD;
    // SAFETY: with a null stack this is fork with namespaces. The child only makes system calls that are async-signal-safe, on memory
    // made before, until it becomes another program or ends.
    let pid = unsafe {
        let pid = libc::syscall(libc::SYS_clone, libc::c_long::from(flags), 0usize, 0usize, 0usize, 0usize);
        if pid == 0 {
            libc::setsid();
            // The token last: at its place may be one of the others, which are copied by then.
            let mut ready = libc::dup2(input.as_raw_fd(), 0) == 0 && libc::dup2(output.as_raw_fd(), 1) == 1;
            ready &= give(token.as_raw_fd(), TOKEN_FD);
            if order.life == Life::WithThisProcess {
                ready &= libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) == 0;
            }
            if ready {
                libc::execv(path.as_ptr(), pointers.as_ptr());
            }
            libc::_exit(127);
        }
        pid
    };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    Pid::from_raw(pid as i32).ok_or_else(|| io::ErrorKind::Other.into())
}

const THIS_PROGRAM: &str = "/proc/self/exe";
