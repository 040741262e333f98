//! What interrupted copies have kept, as whoever asked names it.

use std::fmt::Write as _;
use std::time::Duration;

use haul_files::WirePath;
use serde_json::{Value, json};

use crate::kept::KeptCopy;

/// A directory, as its user names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptIn {
    /// The host, with what stands behind it.
    pub before: String,
    /// The directory.
    pub directory: WirePath,
}

impl KeptIn {
    /// A hidden directory in it, or itself.
    pub fn of(&self, copy: &KeptCopy) -> String {
        let (directory, name) = (&self.directory.0, &copy.name.0);
        let end = directory.iter().rposition(|&b| b != b'/').map_or(0, |last| last + 1);
        let is_itself = directory[..end].rsplit(|&b| b == b'/').next() == Some(name);
        let slash: &[u8] = if directory.is_empty() || directory.ends_with(b"/") { b"" } else { b"/" };
        let path = if is_itself { directory[..end].to_vec() } else { [directory, slash, name].concat() };
        format!("{}{}", self.before, WirePath(path))
    }

    /// That there is nothing.
    pub fn none(&self) -> String {
        format!("{}{}: no interrupted copies", self.before, self.directory)
    }

    /// What is kept of one copy, in a line.
    pub fn describe(&self, copy: &KeptCopy) -> String {
        let mut line = format!("{}  {}", self.of(copy), copy.bytes());
        if copy.running {
            line.push_str("  a copy is working on it");
        } else {
            let _ = write!(line, "  {} ago", age(Duration::from_secs(copy.idle_s)));
        }
        if !copy.names.is_empty() {
            let names: Vec<String> = copy.names.iter().map(ToString::to_string).collect();
            let _ = write!(line, "  {}", names.join(", "));
        }
        line
    }

    /// The same for programs.
    pub fn event(&self, event: &str, copy: &KeptCopy) -> Value {
        json!({
            "event": event,
            "path": self.of(copy),
            "names": copy.names.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "bytes": copy.bytes,
            "idle_s": copy.idle_s,
            "running": copy.running,
        })
    }
}

/// In the largest unit that it fills.
pub fn age(idle: Duration) -> String {
    let seconds = idle.as_secs();
    let units = [(24 * 3600, "day"), (3600, "hour"), (60, "minute"), (1, "second")];
    let (unit, name) = units.into_iter().find(|(unit, _)| seconds >= *unit).unwrap_or((1, "second"));
    let count = seconds / unit;
    format!("{count} {name}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_has_one_unit() {
        for (seconds, text) in [(0, "0 seconds"), (1, "1 second"), (119, "1 minute"), (7200, "2 hours"), (8 * 86_400, "8 days")] {
            assert_eq!(age(Duration::from_secs(seconds)), text);
        }
    }
    #[test]
    fn a_place_is_named_as_its_user_does() {
        let copy = KeptCopy {
            name: WirePath(b".haul-0123abcd".into()),
            names: vec![WirePath(b"a\x1b[2Jb".into()), WirePath(b"c".into())],
            bytes: 2048,
            idle_s: 7200,
            running: false,
            discarded: None,
        };
        for (before, directory, path) in [
            ("", "kept", "kept/.haul-0123abcd"),
            ("", "/kept/", "/kept/.haul-0123abcd"),
            ("far:", "", "far:.haul-0123abcd"),
            ("far:", "d/.haul-0123abcd/", "far:d/.haul-0123abcd"),
            ("haul://far:7700", "/pub", "haul://far:7700/pub/.haul-0123abcd"),
        ] {
            let place = KeptIn { before: before.into(), directory: WirePath(directory.into()) };
            assert_eq!(place.of(&copy), path);
            assert_eq!(place.describe(&copy), format!("{path}  2.00 KiB  2 hours ago  a\\u{{1b}}[2Jb, c"));
        }
    }
}
