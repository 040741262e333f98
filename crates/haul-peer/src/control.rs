//! The sending half of a control stream, and the end of what it controls.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use haul::{Connection, SendStream};
use haul_units::Cancel;

use crate::parting;

/// The sending half of the control stream: lent to whoever speaks on it, and kept to see it off.
#[derive(Clone)]
pub struct ControlOut(Arc<Mutex<SendStream>>);

impl ControlOut {
    /// Shares a stream.
    pub fn new(stream: SendStream) -> Self {
        Self(Arc::new(Mutex::new(stream)))
    }

    /// Ends the stream.
    pub fn finish(&self) -> io::Result<()> {
        Ok(self.0.lock().unwrap_or_else(PoisonError::into_inner).finish()?)
    }

    /// Ends the stream, if it has not been, and waits until the peer has all of it.
    pub fn see_off(&self) -> io::Result<()> {
        let mut stream = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        stream.finish()?;
        Ok(stream.wait_acknowledged()?)
    }
}

impl Write for ControlOut {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

/// The end of a session at its serving side: the last words are to arrive, then the client closes.
pub struct Farewell {
    /// The connection to the client.
    pub connection: Connection,
    /// Where the last words were written.
    pub control_out: ControlOut,
    /// What the connection is closed with.
    pub code: u64,
    /// The same, in words.
    pub reason: String,
}

impl Farewell {
    /// Waits until the client has heard the last words, as long as it is there, and then for it to close; one that does not is cut off, and so are all when there is no time left.
    pub fn part(self, hurry: &Cancel) {
        let (connection, control_out) = (self.connection.clone(), self.control_out);
        let hears = move || drop(control_out.see_off());
        let goes = move || drop(connection.closed());
        parting::wait_until_heard(hears, goes, hurry);
        self.connection.close(self.code, &self.reason);
    }
}
