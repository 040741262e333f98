//! The process that keeps a fleet for others of the same user: it answers on a Unix socket.
//!
//! A client that says nothing, or nonsense, costs a thread for some seconds. Nobody but this user and root is answered.

use std::io::{self, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use haul_peer::to_line;
use haul_units::Cancel;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::JoinError;
use super::keep::Keep;
use super::messages::{Ask, Gone, Reply, Request, VERSION};
use super::place::{KeeperSocket, stranger};

/// How long a client may take for its next line.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often members are looked at.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 500_000_000 };
/// After a client could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);
/// Clients at once.
const MAX_CLIENTS: usize = 128;

/// Answers until somebody wants the fleet down or `cancel` is cancelled. `gone` is told of members that have gone.
pub fn answer_at(socket: KeeperSocket, keep: &Arc<Keep>, gone: &dyn Fn(&Gone), cancel: &Cancel) -> Result<(), JoinError> {
    let clients = Arc::new(AtomicUsize::new(0));
    let over = Cancel::new();
    while !cancel.is_cancelled() && !over.is_cancelled() {
        keep.look().iter().for_each(gone);
        let mut ready = [PollFd::new(&socket.listener, PollFlags::IN)];
        match poll(&mut ready, Some(&LOOK)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(errno) => return Err(JoinError::Keeper(errno.into())),
        }
        let stream = match socket.listener.accept() {
            Ok((stream, _)) => stream,
            // It has gone meanwhile.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            Err(error) => {
                // Without a descriptor left for him he stays at the door, and each poll would say so at once.
                tracing::warn!(%error, "no client could be accepted");
                thread::park_timeout(PAUSE);
                continue;
            }
        };
        let (keep, clients, over) = (keep.clone(), clients.clone(), over.clone());
        if clients.fetch_add(1, Ordering::SeqCst) >= MAX_CLIENTS {
            clients.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        thread::spawn(move || {
            let result = serve(stream, &keep, &over);
            clients.fetch_sub(1, Ordering::SeqCst);
            if let Err(error) = result {
                tracing::debug!(%error, "a client of the socket");
            }
        });
    }
    // The socket goes last: where it is gone, so are the members.
    keep.stop();
    drop(socket);
    Ok(())
}

fn serve(stream: UnixStream, keep: &Keep, over: &Cancel) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    if let Some(uid) = stranger(&stream)? {
        tracing::warn!(uid, "another user has called, and gets nothing");
        return Ok(());
    }
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    loop {
        let request = match Request::read(&mut reader) {
            Ok(Some(request)) => request,
            Ok(None) => return Ok(()),
            Err(error) => {
                let said = Reply::Error { error: format!("this is no request: {error}") };
                return writer.write_all(&to_line(&said));
            }
        };
        let is_down = request.ask == Ask::Down && request.v == VERSION;
        writer.write_all(&to_line(&answer(request, keep, over)))?;
        writer.flush()?;
        if is_down {
            over.cancel();
            return Ok(());
        }
    }
}

fn answer(request: Request, keep: &Keep, over: &Cancel) -> Reply {
    if request.v != VERSION {
        let own = env!("CARGO_PKG_VERSION");
        return Reply::Error { error: format!("the fleet is kept by haul {own}, and this is haul {}", request.version) };
    }
    match request.ask {
        Ask::Terms { revive } => Reply::Terms(Box::new(keep.terms(revive, over))),
        Ask::Invite { key, port } => match key.parse() {
            Ok(key) => Reply::Invited(keep.invite(key, port)),
            Err(_) => Reply::Error { error: "no such key".to_owned() },
        },
        Ask::Down => Reply::Down,
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead as _, Read as _};

    use super::*;

    /// What the keeper of an empty fleet says to these bytes, until it has had enough.
    fn said(bytes: &[u8]) -> (String, bool) {
        let (client, served) = UnixStream::pair().expect("a pair");
        let over = Cancel::new();
        thread::scope(|scope| {
            scope.spawn(|| {
                let _ = serve(served, &Keep::of_nobody(), &over);
            });
            let (mut writer, mut reader) = (client.try_clone().expect("a handle"), BufReader::new(client));
            // It may have closed already.
            let _ = writer.write_all(bytes).and_then(|()| writer.shutdown(std::net::Shutdown::Write));
            let mut told = String::new();
            let _ = reader.read_to_string(&mut told);
            (told, over.is_cancelled())
        })
    }

    #[test]
    fn nonsense_gets_an_error_and_ends_nothing() {
        let key = "{\"v\":1,\"version\":\"9\",\"ask\":{\"invite\":{\"key\":\"x\"}}}\n";
        for (bytes, error) in [
            (&b"GET / HTTP/1.1\r\n"[..], "this is no request"),
            (b"{\"v\":1,\"version\":\"9\",\"ask\":\"up\"}\n", "this is no request"),
            (b"{\"v\":2,\"version\":\"9\",\"ask\":\"down\"}\n", "and this is haul 9"),
            (&[0xff; 300], "this is no request"),
            (key.as_bytes(), "no such key"),
        ] {
            let (told, is_over) = said(bytes);
            assert!(told.contains("{\"error\":{\"error\":\"") && told.contains(error), "{told}");
            assert!(!is_over, "{told}");
        }
        let (told, _) = said(&b"[".repeat(20_000));
        assert!(told.is_empty() || told.contains("this is no request"), "{told}");
    }

    #[test]
    fn who_asks_is_answered_until_it_is_to_end() {
        let line = |ask| to_line(&Request::new(ask));
        let (told, is_over) = said(&[line(Ask::Terms { revive: true }), line(Ask::Down), line(Ask::Down)].concat());
        let lines: Vec<_> = told.as_bytes().lines().map_while(Result::ok).collect();
        assert!(lines.len() == 2 && lines[0].starts_with("{\"terms\":{") && lines[1] == "\"down\"", "{told}");
        assert!(is_over);
    }
}
