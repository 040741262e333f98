//! A command's socket, at which it takes orders while it runs.

use std::fs;
use std::io;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::dir::{ControlDir, ControlError};
use crate::line::{hear, say};
use crate::message::Controlled;

/// How long somebody who has connected may take to say what he wants; meanwhile nobody else is heard.
const PATIENCE: Duration = Duration::from_secs(1);

/// A socket in the directory of its user; dropped, it is gone.
pub struct ControlSocket {
    path: PathBuf,
    over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl ControlSocket {
    /// Takes orders for this process from now on; it has one socket at a time.
    pub fn open(dir: &ControlDir, controlled: Arc<dyn Controlled>) -> Result<Self, ControlError> {
        let path = dir.socket(std::process::id());
        let failed = |source| ControlError::Dir { path: path.clone(), source };
        // An earlier process of this number has left it.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let listener = UnixListener::bind(&path).map_err(failed)?;
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let listening = thread::Builder::new().name("control".into()).spawn(move || {
            for stream in listener.incoming() {
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
                // Who goes away in the middle has taken nothing along.
                let _ = stream.and_then(|stream| answer(&stream, &*controlled));
            }
        });
        Ok(Self { over, listening: Some(listening.map_err(failed)?), path: path.clone() })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        // Wakes the thread up.
        let woken = UnixStream::connect(&self.path);
        let _ = fs::remove_file(&self.path);
        if let (Ok(_), Some(listening)) = (woken, self.listening.take()) {
            let _ = listening.join();
        }
    }
}

fn answer(stream: &UnixStream, controlled: &dyn Controlled) -> io::Result<()> {
    let peer = rustix::net::sockopt::socket_peercred(stream)?;
    if peer.uid != rustix::process::geteuid() && !peer.uid.is_root() {
        return Ok(());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let order = hear(stream)?;
    say(stream, &controlled.handle(order))
}

#[cfg(test)]
mod tests {
    use crate::message::{Order, Status};
    use std::io::{Read as _, Write as _};
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Recorder(Mutex<Vec<Order>>);

    impl Controlled for Recorder {
        fn handle(&self, order: Order) -> Status {
            let mut heard = self.0.lock().expect("not poisoned");
            heard.push(order);
            let paused = heard.contains(&Order::Pause);
            Status {
                pid: 0,
                command: "cp".into(),
                what: "a b".into(),
                began: 1,
                files: 2,
                bytes: 3,
                total: 4,
                limit_bps: None,
                mode: None,
                paused,
                refused: None,
            }
        }
    }

    /// Who lists removes what refuses, but not the socket of a process that is there and does not listen yet.
    #[test]
    fn one_that_begins_while_others_look_is_found() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = ControlDir::at(place.path().join("haul")).expect("a directory");
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !over.load(Ordering::SeqCst) {
                        dir.list().expect("listed");
                    }
                });
            }
            let found = (0..2000).all(|_| {
                let _socket = ControlSocket::open(&dir, Arc::<Recorder>::default()).expect("a socket");
                dir.list().expect("listed").len() == 1
            });
            over.store(true, Ordering::SeqCst);
            assert!(found);
        });
    }

    #[test]
    fn orders_arrive_and_the_desk_goes_with_its_command() {
        let place = tempfile::tempdir().expect("a directory");
        let dir = ControlDir::at(place.path().join("haul")).expect("a directory");
        let recorder = Arc::new(Recorder::default());
        let (own, heard) = (std::process::id(), Arc::clone(&recorder));
        let socket = ControlSocket::open(&dir, heard).expect("a socket");
        let listed = dir.list().expect("listed");
        assert_eq!((listed.len(), listed[0].pid, listed[0].what.as_str()), (1, own, "a b"));
        assert!(dir.tell(own, &Order::Pause).expect("told").paused);
        // Nonsense is not answered, and keeps nobody else from being heard.
        let mut stranger = UnixStream::connect(dir.socket(own)).expect("connected");
        stranger.write_all(b"nonsense\n").expect("written");
        let mut answer = Vec::new();
        stranger.read_to_end(&mut answer).expect("closed");
        assert!(answer.is_empty());
        dir.tell(own, &Order::Limit { bps: Some(7) }).expect("told");
        assert_eq!(*recorder.0.lock().expect("not poisoned"), [Order::Status, Order::Pause, Order::Limit { bps: Some(7) }]);
        drop(socket);
        assert!(matches!(dir.tell(own, &Order::Status), Err(ControlError::NoSuch(_))));
        assert!(dir.list().expect("listed").is_empty());
        assert_eq!(fs::read_dir(place.path().join("haul")).expect("there").count(), 0, "nothing is left");
        // One that died leaves its socket, which the next look removes; no process has so high a number.
        const DEAD: u32 = 1 << 30;
        drop(UnixListener::bind(dir.socket(DEAD)).expect("bound"));
        assert!(dir.socket(DEAD).exists() && dir.list().expect("listed").is_empty() && !dir.socket(DEAD).exists());
    }
}
