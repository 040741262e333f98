//! systemd's journal: a datagram of fields an entry (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>).

use std::fmt::Write as _;
use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::audit::{AuditError, Entry};

/// Where the journal hears.
#[derive(Debug)]
pub struct Journal {
    socket: UnixDatagram,
    place: PathBuf,
}

impl Journal {
    /// The journal that is there.
    pub fn open(place: &Path) -> Result<Self, AuditError> {
        let socket = || {
            let socket = UnixDatagram::unbound()?;
            // Whether anybody hears; each entry goes by the name all the same, so that it outlives a restart of the journal.
            socket.connect(place)?;
            let socket = UnixDatagram::unbound()?;
            // A journal that stands still must not have everything else do so.
            socket.set_nonblocking(true)?;
            io::Result::Ok(socket)
        };
        let socket = socket().map_err(|source| AuditError::NoJournal { socket: place.to_owned(), source })?;
        Ok(Self { socket, place: place.to_owned() })
    }

    /// Sends an entry.
    pub fn put(&self, entry: &Entry) -> io::Result<()> {
        let datagram = fields(&serde_json::to_value(entry)?);
        self.socket.send_to(datagram.as_bytes(), &self.place).map(drop)
    }
}

/// `NAME=value` lines: the entry's own as `HAUL_NAME`, an array as one field several times, and what everything in a journal has. No value has a line break: they are numbers, words of
/// this program, and texts that were cleaned.
fn fields(entry: &Value) -> String {
    let mut text = String::from("PRIORITY=6\nSYSLOG_IDENTIFIER=haul\nMESSAGE=");
    text.push_str(&message(entry));
    text.push('\n');
    for (name, value) in entry.as_object().into_iter().flatten() {
        let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        for value in values {
            let _ = writeln!(text, "HAUL_{}={}", name.to_uppercase(), shown(value));
        }
    }
    text
}

/// For people who read the journal.
fn message(entry: &Value) -> String {
    let words = ["event", "client", "address", "service", "direction", "result", "why"];
    let said = words.iter().filter_map(|name| entry.get(name)).map(shown);
    said.collect::<Vec<_>>().join(" ")
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::Event;

    #[test]
    fn an_entry_arrives_as_fields() {
        let dir = tempfile::tempdir().unwrap();
        let place = dir.path().join("socket");
        assert!(Journal::open(&place).is_err_and(|error| matches!(error, AuditError::NoJournal { .. })));
        let hears = UnixDatagram::bind(&place).unwrap();
        let journal = Journal::open(&place).unwrap();
        let paths: [&[u8]; 2] = [b"pub/a\nMESSAGE=forged", b"in/b"];
        let entry = Entry { files: Some(3), ..Entry::of(Event::Copied).paths(paths.into_iter()).because("a\nb") };
        journal.put(&entry).unwrap();
        let mut buffer = vec![0; 4096];
        let length = hears.recv(&mut buffer).unwrap();
        let text = String::from_utf8(buffer[..length].to_vec()).unwrap();
        for line in
            ["MESSAGE=copied a\\nb", "HAUL_FILES=3", "HAUL_ROOTS=pub", "HAUL_ROOTS=in", "HAUL_PATHS=pub/a\\nMESSAGE=forged"]
        {
            assert!(text.lines().any(|found| found == line), "no {line} in {text}");
        }
        assert_eq!(text.matches("\nMESSAGE=").count(), 1, "{text}");
    }
}
