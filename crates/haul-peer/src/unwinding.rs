//! What a peer hears when the thread that serves it panics, or cannot be made: the end of its connection, at once, and not a silence that it waits out.

use std::thread;

use haul::Connection;

/// Serves a connection in a thread of its own. If the thread unwinds, or the system makes none, the connection is closed with this code, and nothing else ends: what `serve` holds is dropped.
pub fn serve_apart(connection: &Connection, code: u64, serve: impl FnOnce() + Send + 'static) {
    serve_in(thread::Builder::new(), connection, code, serve);
}

fn serve_in(thread: thread::Builder, connection: &Connection, code: u64, serve: impl FnOnce() + Send + 'static) {
    let closes = ClosesOnPanic { connection: connection.clone(), code };
    let started = thread.spawn(move || {
        let _closes = closes;
        serve();
    });
    if let Err(error) = started {
        tracing::warn!(%error, peer = %connection.remote_addr(), "no thread can be made to serve it");
        connection.close(code, "there are too many threads at the other end");
    }
}

/// Held by a thread that serves a connection: if the thread unwinds, the connection is closed.
struct ClosesOnPanic {
    connection: Connection,
    code: u64,
}

impl Drop for ClosesOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            self.connection.close(self.code, "a fault in the program at the other end");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use haul::{ClientConfig, Endpoint, Identity, PeerTrust, ServerConfig};

    use super::*;

    #[test]
    fn a_panic_ends_the_connection_and_nothing_else_does() {
        let (_endpoints, client, there) = connected();
        // As a daemon's list of clients has one: what it holds is not dropped with the thread.
        let listed = there.clone();
        let (done, over) = mpsc::channel();
        serve_apart(&there, 7, move || done.send(()).unwrap());
        assert_eq!((over.recv(), over.recv().is_err()), (Ok(()), true));
        assert!(listed.end().is_none(), "it was closed without a panic");
        serve_apart(&there, 7, || panic!("for this test"));
        let told = client.closed().to_string();
        assert!(told.contains("a fault in the program"), "{told}");
    }

    #[test]
    fn where_no_thread_can_be_made_one_connection_ends_and_not_who_accepts() {
        let (_endpoints, client, there) = connected();
        let held = Arc::new(());
        let in_thread = held.clone();
        // No machine has so much address space for its stack.
        serve_in(thread::Builder::new().stack_size(1 << 60), &there, 7, move || drop(in_thread));
        let told = client.closed().to_string();
        assert!(told.contains("too many threads"), "{told}");
        assert_eq!(Arc::strong_count(&held), 1, "what was to be held by the thread is dropped");
    }

    /// Endpoints to be kept, a client's connection, and the server's.
    fn connected() -> ([Endpoint; 2], Connection, Connection) {
        let server = ServerConfig::new(Identity::generate(), PeerTrust::Anyone);
        let server = Endpoint::listen("127.0.0.1:0".parse().unwrap(), server).unwrap();
        let here = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let client = here.connect(server.local_addr(), ClientConfig::new(PeerTrust::Anyone)).unwrap();
        let there = server.accept().unwrap();
        ([server, here], client, there)
    }
}
