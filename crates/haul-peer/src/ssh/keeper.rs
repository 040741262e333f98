//! Starts programs that must not outlive this one: when it ends, by whatever signal, the kernel ends them. And programs that must.
//!
//! Linux tells a child of the death of the *thread* that started it (prctl(2), `PR_SET_PDEATHSIG`), so all are started by one thread that lives as long as the process.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

#[cfg(target_os = "linux")]
use rustix::process::Signal;

/// A command, and who waits for its child.
type Wish = (Command, mpsc::SyncSender<io::Result<Child>>);

static KEEPER: Mutex<Option<mpsc::Sender<Wish>>> = Mutex::new(None);

/// Starts a program that ends with this one.
pub fn spawn(command: Command) -> io::Result<Child> {
    let (tell, told) = mpsc::sync_channel(1);
    let gone = || io::Error::other("the thread that starts programs has ended");
    {
        let mut keeper = KEEPER.lock().unwrap_or_else(PoisonError::into_inner);
        let wishes = match &*keeper {
            Some(wishes) => wishes,
            None => keeper.insert(start()?),
        };
        wishes.send((command, tell)).map_err(|_| gone())?;
    }
    told.recv().unwrap_or_else(|_| Err(gone()))
}

/// Starts a program that outlives this one, and whoever has started this one: in a session of its own.
pub fn spawn_apart(mut command: Command) -> io::Result<Child> {
    let leave = || rustix::process::setsid().map(drop).map_err(io::Error::from);
    // SAFETY: the closure makes one system call and allocates nothing.
    unsafe { command.pre_exec(leave) };
    command.spawn()
}

fn start() -> io::Result<mpsc::Sender<Wish>> {
    let (wish, wishes) = mpsc::channel::<Wish>();
    let keep = move || {
        while let Ok((mut command, tell)) = wishes.recv() {
            tie(&mut command);
            let _ = tell.send(command.spawn());
        }
    };
    thread::Builder::new().name("keeper".into()).spawn(keep)?;
    Ok(wish)
}

#[cfg(target_os = "linux")]
fn tie(command: &mut Command) {
    let parent = rustix::process::getpid();
    let tie = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?;
        // It may have died before.
        if rustix::process::getppid() == Some(parent) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    };
    // SAFETY: the closure makes two system calls and allocates nothing.
    unsafe { command.pre_exec(tie) };
}

#[cfg(not(target_os = "linux"))]
fn tie(_command: &mut Command) {}
