//! Starting the emulator's process.

use std::ffi::CString;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::ptr;

use rustix::fs::{Mode, OFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, waitpid};
use serde_json::Value;

use super::control::Answer;
use super::cradle::{TOKEN_FD, Token, give};
use crate::exit::Failure;

/// An emulator that this process has started.
#[derive(Debug)]
pub struct Emulator {
    pid: Pid,
    /// Its hosts.
    pub hosts: Value,
    /// Held so that the emulator ends with this process.
    _lifeline: Option<OwnedFd>,
}

/// How long an emulator lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// Until it is told to end.
    OnItsOwn,
    /// As long as this process.
    WithThisProcess,
}

impl Emulator {
    /// Starts one with these options of `haul lab wan up`, and waits until the WAN is up.
    pub fn start(name: &str, options: Vec<String>, life: Life) -> Result<Self, Failure> {
        if !rustix::process::geteuid().is_root() {
            return Err(Failure::new("emulating a WAN needs root: it makes network namespaces and TUN devices")
                .hint("run it with sudo; without root, `haul lab relay` plays the same link for haul alone"));
        }
        let failed = |error: io::Error| Failure::new(format!("cannot start the emulator: {error}"));
        let mut args = vec!["haul".to_owned(), "lab".into(), "wan".into(), "emulate".into(), format!("--name={name}")];
        args.extend(options);
        let (input, lifeline) = match life {
            Life::WithThisProcess => {
                args.push("--with-parent".to_owned());
                let (input, lifeline) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
                (input, Some(lifeline))
            }
            Life::OnItsOwn => {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                (rustix::fs::open("/dev/null", flags, Mode::empty()).map_err(|error| failed(error.into()))?, None)
            }
        };
        let (answers, output) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        let pid = spawn(&args, &input, &output, life).map_err(|error| {
            failed(error)
                .hint("it needs a process namespace and a mount namespace of its own: root in a container may not make them")
        })?;
        drop((input, output));
        let mut line = String::new();
        BufReader::new(File::from(answers)).read_line(&mut line).map_err(failed)?;
        match serde_json::from_str(&line) {
            Ok(Answer::Done(hosts)) => Ok(Self { pid, hosts, _lifeline: lifeline }),
            Ok(Answer::Failed(message)) => {
                let (message, hint) = serde_json::from_str(&message).unwrap_or((message, None));
                Err(Failure { message, hint })
            }
            Err(_) => Err(Failure::new("the emulator ended before the WAN was up")),
        }
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
fn spawn(args: &[String], input: &OwnedFd, output: &OwnedFd, life: Life) -> io::Result<Pid> {
    let token = Token::from_here()?.pipe()?;
    let args: Vec<CString> = args.iter().map(|arg| CString::new(arg.as_str())).collect::<Result<_, _>>()?;
    let mut pointers: Vec<*const libc::c_char> = args.iter().map(|arg| arg.as_ptr()).collect();
    pointers.push(ptr::null());
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
            if life == Life::WithThisProcess {
                ready &= libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong) == 0;
            }
            if ready {
                libc::execv(c"/proc/self/exe".as_ptr(), pointers.as_ptr());
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
