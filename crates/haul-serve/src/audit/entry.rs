//! What is said of an event.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use haul_peer::Moment;
use haul_units::PeerText;
use serde::Serialize;

use crate::clock;

/// Paths of one request that are named; of more, how many they are. What a client asks for at once may be 100,000 names.
const MOST_PATHS: usize = 8;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// The listener is up.
    Started,
    /// A client has a place.
    Admitted,
    /// A client, or somebody who would be one, was turned away.
    Refused,
    /// A copy is over, well or not.
    Copied,
    /// Interrupted copies were listed (`sent`), or discarded (`received`), as far as that was allowed.
    Kept,
    /// A measurement is over, well or not.
    Measured,
    /// A TCP connection was carried to where a client wanted it to go, or not.
    Carried,
    /// A connection is over of which `refused` has not told already.
    Ended,
    /// The files were read again.
    Reloaded,
    /// The listener ends.
    Stopped,
}

/// Where data went, as the listener sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// To the listener.
    Received,
    /// From it.
    Sent,
}

/// One event. Fields that say nothing are left out.
#[derive(Debug, Clone, Serialize)]
pub struct Entry {
    /// When it was written, in UTC, by RFC 3339.
    pub time: String,
    /// What happened.
    pub event: Event,
    /// Tells the connections of one process apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    /// The name of its key in the file of authorised keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<PeerText>,
    /// The fingerprint of its key; of the listener's own where the event is about no client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Where it is at this moment, or where the listener listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The port of that address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// What it came for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,
    /// The version of the program that is spoken of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<PeerText>,
    /// Where the data went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Way>,
    /// The roots that are spoken of.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub roots: Vec<PeerText>,
    /// What was asked for, as it was spelled but for slashes before it: the root's name is first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PeerText>,
    /// Paths besides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub more_paths: Option<u64>,
    /// Files under their final name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Where a TCP connection was to go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<PeerText>,
    /// Bytes that went to the client, where both ways are told of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
    /// Bytes that came from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received_bytes: Option<u64>,
    /// Bytes of content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// How long it took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// `done`, `partial`, `stopped` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<&'static str>,
    /// Files that were not copied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problems: Option<u64>,
    /// The reason, where it is not `done`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<PeerText>,
    /// Strangers that were turned away since the last line about one, without a line of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<u64>,
    /// Events before this one that could not be written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_before: Option<u64>,
}

impl Entry {
    /// An event; its time is that of [`stamped`](Self::stamped).
    pub fn of(event: Event) -> Self {
        Self {
            time: String::new(),
            event,
            connection: None,
            client: None,
            key: None,
            address: None,
            port: None,
            service: None,
            version: None,
            direction: None,
            roots: Vec::new(),
            paths: Vec::new(),
            more_paths: None,
            files: None,
            to: None,
            sent_bytes: None,
            received_bytes: None,
            bytes: None,
            seconds: None,
            result: None,
            problems: None,
            why: None,
            others: None,
            lost_before: None,
        }
    }

    /// The same, of this moment.
    pub(super) fn stamped(self) -> Self {
        Self { time: now(), ..self }
    }

    /// At this address.
    pub fn at(mut self, address: SocketAddr) -> Self {
        (self.address, self.port) = (Some(address.ip().to_canonical()), Some(address.port()));
        self
    }

    /// About these roots.
    pub fn roots<'a>(mut self, names: impl IntoIterator<Item = &'a str>) -> Self {
        self.roots = names.into_iter().map(PeerText::from).collect();
        self
    }

    /// The same with what was asked for besides, which way: a client may ask for one thing after the other.
    pub fn asked<'a>(mut self, way: Way, paths: impl ExactSizeIterator<Item = &'a [u8]>) -> Self {
        if self.paths.is_empty() {
            return Self { direction: Some(way), ..self.paths(paths) };
        }
        self.direction = self.direction.filter(|&before| before == way);
        let before = self.more_paths.unwrap_or(0);
        let mut more = Self { roots: Vec::new(), paths: Vec::new(), more_paths: None, ..self.clone() }.paths(paths);
        more.roots.retain(|root| !self.roots.contains(root));
        more.paths.retain(|path| !self.paths.contains(path));
        let room = MOST_PATHS - self.paths.len().min(MOST_PATHS);
        let beyond = before + more.more_paths.unwrap_or(0) + more.paths.len().saturating_sub(room) as u64;
        self.roots.extend(more.roots.into_iter().take(MOST_PATHS));
        self.roots.truncate(MOST_PATHS);
        self.paths.extend(more.paths.into_iter().take(room));
        self.more_paths = Some(beyond).filter(|&beyond| beyond > 0);
        self
    }

    /// About these paths, the first component of which is a root.
    pub fn paths<'a>(mut self, paths: impl ExactSizeIterator<Item = &'a [u8]>) -> Self {
        let count = paths.len();
        for path in paths.take(MOST_PATHS) {
            let start = path.iter().position(|&byte| byte != b'/').unwrap_or(path.len());
            let path = path.get(start..).unwrap_or_default();
            let root = PeerText::from_bytes(path.split(|&byte| byte == b'/').next().unwrap_or_default());
            if !self.roots.contains(&root) {
                self.roots.push(root);
            }
            self.paths.push(PeerText::from_bytes(path));
        }
        self.more_paths = count.checked_sub(MOST_PATHS).filter(|&more| more > 0).map(|more| more as u64);
        self
    }

    /// About one flow of a measurement.
    pub fn measured(self, total: &haul_perf::Total) -> Self {
        let sends = total.role == haul_perf::Role::Sender;
        let entry = Self {
            direction: Some(if sends { Way::Sent } else { Way::Received }),
            bytes: Some(total.bytes.iter().fold(0, |sum, bytes| sum.saturating_add(*bytes))),
            result: Some(if total.error.is_some() { "failed" } else { "done" }),
            ..self.took(Duration::from_micros(total.time_us))
        };
        match &total.error {
            Some(error) => entry.because(error.clone()),
            None => entry,
        }
    }

    /// It took so long; to the millisecond.
    pub fn took(mut self, time: Duration) -> Self {
        self.seconds = Some((time.as_secs_f64() * 1e3).round() / 1e3);
        self
    }

    /// For this reason.
    pub fn because(mut self, why: impl Into<PeerText>) -> Self {
        self.why = Some(why.into());
        self
    }
}

/// This millisecond.
fn now() -> String {
    let since = clock::unix_time();
    let second = Moment::of_unix_seconds(since.as_secs()).in_full();
    format!("{}.{:03}Z", second.trim_end_matches('Z'), since.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_what_it_says_and_no_longer() {
        let paths: Vec<Vec<u8>> =
            (0..20).map(|n| [b"pub/\n{\"event\":\"stopped\"}\xff\x1b".repeat(300), vec![n]].concat()).collect();
        let entry = Entry::of(Event::Copied).paths(paths.iter().map(Vec::as_slice)).because("\u{202e}no\n".repeat(10_000));
        let line = serde_json::to_string(&entry).unwrap();
        assert!(line.len() < 64 << 10, "{} bytes", line.len());
        assert!(!line.chars().any(haul_units::is_unprintable), "{line}");
        let read: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!((read["event"].as_str(), read["more_paths"].as_u64()), (Some("copied"), Some(12)));
        assert_eq!((read["paths"].as_array().unwrap().len(), &read["roots"]), (8, &serde_json::json!(["pub"])));
        assert!(read.get("client").is_none());
    }

    #[test]
    fn times_are_those_of_rfc_3339() {
        let time = now();
        assert!(time.len() == 24 && time.starts_with("20") && time.ends_with('Z') && &time[10..11] == "T", "{time}");
    }
}
