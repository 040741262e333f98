//! Starts programs that must not outlive this one: when it ends, by whatever signal, the kernel ends them. And programs that must.
//!
//! Linux tells a child of the death of the *thread* that started it (prctl(2), `PR_SET_PDEATHSIG`), so all are started by one thread that lives as long as the process. On Windows all are in one
//! job, which ends when nobody has it open any more. Elsewhere they notice that nobody writes to their input any more.

use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix::{leave, spawn_tied};
#[cfg(windows)]
use windows::{leave, spawn_tied};

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

/// As [`spawn`], with no terminal to ask anything on.
pub fn spawn_mute(mut command: Command) -> io::Result<Child> {
    leave(&mut command);
    spawn(command)
}

/// Starts a program that outlives this one, and whoever has started this one: in a session of its own.
pub fn spawn_apart(mut command: Command) -> io::Result<Child> {
    leave(&mut command);
    command.spawn()
}

fn start() -> io::Result<mpsc::Sender<Wish>> {
    let (wish, wishes) = mpsc::channel::<Wish>();
    let keep = move || {
        while let Ok((command, tell)) = wishes.recv() {
            let _ = tell.send(spawn_tied(command));
        }
    };
    thread::Builder::new().name("keeper".into()).spawn(keep)?;
    Ok(wish)
}
