//! What a peer hears when the thread that serves it panics: the end of its connection, at once, and not a silence that it waits out.

use std::thread;

use haul::Connection;

/// Held by a thread that serves a connection: if the thread unwinds, the connection is closed.
#[must_use = "what is not held closes nothing"]
pub struct ClosesOnPanic {
    connection: Connection,
    code: u64,
}

impl ClosesOnPanic {
    /// The connection, and the code that it is closed with.
    pub fn of(connection: &Connection, code: u64) -> Self {
        Self { connection: connection.clone(), code }
    }
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
    use haul::{ClientConfig, Endpoint, Identity, PeerTrust, ServerConfig};

    use super::*;

    #[test]
    fn a_panic_ends_the_connection_and_nothing_else_does() {
        let server = ServerConfig::new(Identity::generate(), PeerTrust::Anyone);
        let server = Endpoint::listen("127.0.0.1:0".parse().unwrap(), server).unwrap();
        let here = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let client = here.connect(server.local_addr(), ClientConfig::new(PeerTrust::Anyone)).unwrap();
        let there = server.accept().unwrap();
        // As a daemon's list of clients has one: what it holds is not dropped with the thread.
        let listed = there.clone();

        drop(ClosesOnPanic::of(&there, 7));
        assert!(listed.end().is_none(), "it was closed without a panic");
        let serving = thread::spawn(move || {
            let _closes = ClosesOnPanic::of(&there, 7);
            panic!("for this test");
        });
        assert!(serving.join().is_err());
        let told = client.closed().to_string();
        assert!(told.contains("a fault in the program"), "{told}");
    }
}
