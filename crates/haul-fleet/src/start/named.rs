//! What is told of many hosts at once, each by its name.

use std::io::{self, Write};
use std::sync::Arc;

use haul::Fingerprint;
use haul_peer::{DaemonHost, GoesOver, Outage, Tell};

/// Tells of one host, by its name.
pub struct Named {
    name: String,
    tell: Arc<dyn Tell>,
}

impl Named {
    /// Tells `tell`.
    pub fn new(name: &str, tell: &Arc<dyn Tell>) -> Self {
        Self { name: name.to_owned(), tell: Arc::clone(tell) }
    }
}

impl Tell for Named {
    fn ssh_says(&self) -> Box<dyn Write + Send> {
        Box::new(NamedLines::new(&self.name, self.tell.ssh_says()))
    }

    fn outage(&self, outage: Outage) {
        self.tell.outage(outage);
    }

    fn goes_over(&self, over: &GoesOver) {
        self.tell.goes_over(over);
    }

    fn logs_in_again(&self, host: &str, logins: usize) {
        self.tell.logs_in_again(host, logins);
    }

    fn relay_fails(&self, relay: &DaemonHost, why: &str) {
        self.tell.relay_fails(relay, why);
    }

    fn trusts(&self, host: &DaemonHost, key: Fingerprint) -> Option<bool> {
        self.tell.trusts(host, key)
    }
}

/// Puts the host's name before each line, and passes on whole lines.
pub struct NamedLines {
    name: String,
    line: Vec<u8>,
    to: Box<dyn Write + Send>,
}

/// Bytes of a line that is passed on in parts.
const LONG_LINE: usize = 4096;

impl Write for NamedLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for &byte in bytes {
            self.line.push(byte);
            if byte == b'\n' || self.line.len() >= LONG_LINE {
                self.pass()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl NamedLines {
    /// Passes them on to `to`.
    pub fn new(name: &str, to: Box<dyn Write + Send>) -> Self {
        Self { name: name.to_owned(), line: Vec::new(), to }
    }

    fn pass(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        self.to.write_all(format!("{}: ", self.name).as_bytes())?;
        self.to.write_all(line.trim_ascii_end())?;
        self.to.write_all(b"\n")
    }
}

impl Drop for NamedLines {
    fn drop(&mut self) {
        let _ = self.pass();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panics").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_of_many_hosts_stay_whole_and_are_named() {
        let kept = Kept::default();
        let lines = |name: &str| NamedLines::new(name, Box::new(kept.clone()));
        let (mut a, mut b) = (lines("a"), lines("b"));
        a.write_all(b"Permission ").expect("written");
        b.write_all(b"no route\r\n\r\n").expect("written");
        a.write_all(b"denied\nend").expect("written");
        drop((a, b));
        let text = String::from_utf8(kept.0.lock().expect("nobody panics").clone()).expect("text");
        assert_eq!(text, "b: no route\na: Permission denied\na: end\n");
    }
}
