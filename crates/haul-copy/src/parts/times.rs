//! The parts of a copy, and how long each took.

use std::time::Duration;

use serde_json::{Map, Value};

/// A part of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Tries that came to nothing, and connections that were lost.
    Earlier,
    /// Until ssh has brought the far side's answer, the far side's start left out.
    Login,
    /// What the far side took from its start to its answer, as it says.
    FarStart,
    /// From there, or from the beginning where nobody logs in, until the connection is there.
    Handshake,
    /// The request and its way, until the first content can be at the receiver. Where there is none, all of the copy.
    Hello,
    /// Until content came at 80 % of its rate for a round trip.
    Startup,
    /// Until the sender has given its last block to the transport.
    Bulk,
    /// Until the receiver has written it.
    LastBlock,
    /// After that: files and directories are made durable, and read back where that is wanted.
    Sync,
    /// After the last block: files get their names.
    Rename,
    /// The rest: directories get their modes, the far side's last word and report, ssh's end where it is waited for.
    Closing,
}

impl Part {
    /// All of them, in their order.
    pub const ALL: [Self; 11] = [
        Self::Earlier,
        Self::Login,
        Self::FarStart,
        Self::Handshake,
        Self::Hello,
        Self::Startup,
        Self::Bulk,
        Self::LastBlock,
        Self::Sync,
        Self::Rename,
        Self::Closing,
    ];

    /// Its name in JSON.
    pub const fn key(self) -> &'static str {
        match self {
            Self::Earlier => "earlier_tries",
            Self::Login => "login",
            Self::FarStart => "far_start",
            Self::Handshake => "handshake",
            Self::Hello => "hello",
            Self::Startup => "startup",
            Self::Bulk => "bulk",
            Self::LastBlock => "last_block",
            Self::Sync => "sync",
            Self::Rename => "rename",
            Self::Closing => "closing",
        }
    }

    /// Its name for people.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Earlier => "earlier tries",
            Self::Login => "login (ssh)",
            Self::FarStart => "far side's start",
            Self::Handshake => "handshake",
            Self::Hello => "hello",
            Self::Startup => "start-up",
            Self::Bulk => "bulk",
            Self::LastBlock => "last block",
            Self::Sync => "sync",
            Self::Rename => "rename",
            Self::Closing => "closing",
        }
    }
}

/// How long each part took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parts([Duration; Part::ALL.len()]);

impl Parts {
    /// How long this one took.
    pub fn of(&self, part: Part) -> Duration {
        self.0.get(part as usize).copied().unwrap_or_default()
    }

    /// How long all of it took.
    pub fn total(&self) -> Duration {
        self.0.iter().sum()
    }

    /// Adds those of another copy.
    pub fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum += more);
    }

    /// A line for each that took any time, and one for all.
    pub fn lines(&self) -> Vec<String> {
        let total = self.total().as_secs_f64();
        let line = |name: &str, time: Duration| {
            let s = time.as_secs_f64();
            format!("  {name:<18}{s:>9.3} s{:>8.1} %", s * 100.0 / total.max(f64::MIN_POSITIVE))
        };
        let taken = Part::ALL.into_iter().filter(|&part| !self.of(part).is_zero());
        let parts = taken.map(|part| line(part.name(), self.of(part)));
        ["where the time went".to_owned()].into_iter().chain(parts).chain([line("in all", self.total())]).collect()
    }

    /// Seconds by the names of the parts, and `total`.
    pub fn to_json(&self) -> Value {
        let parts = Part::ALL.into_iter().map(|part| (part.key(), self.of(part)));
        let seconds = |(key, time): (&str, Duration)| (key.to_owned(), Value::from(time.as_secs_f64()));
        parts.chain([("total", self.total())]).map(seconds).collect::<Map<_, _>>().into()
    }

    /// Each part that took any time, with its begin and its end from the beginning of the copy.
    pub fn spans(&self) -> Vec<(Part, Duration, Duration)> {
        let mut at = Duration::ZERO;
        let mut span = |part| {
            let from = at;
            at += self.of(part);
            (part, from, at)
        };
        Part::ALL.into_iter().map(&mut span).filter(|(_, from, until)| until > from).collect()
    }

    pub(super) fn set(&mut self, part: Part, time: Duration) {
        if let Some(slot) = self.0.get_mut(part as usize) {
            *slot = time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> Parts {
        let mut parts = Parts::default();
        parts.set(Part::Login, Duration::from_millis(1500));
        parts.set(Part::Bulk, Duration::from_millis(400));
        parts.set(Part::Closing, Duration::from_millis(100));
        parts
    }

    #[test]
    fn a_line_for_each_part_that_took_time_and_one_for_all() {
        let expected = [
            "where the time went",
            "  login (ssh)           1.500 s    75.0 %",
            "  bulk                  0.400 s    20.0 %",
            "  closing               0.100 s     5.0 %",
            "  in all                2.000 s   100.0 %",
        ];
        assert_eq!(parts().lines(), expected);
    }

    #[test]
    fn json_has_each_part_in_seconds_and_two_copies_add_up() {
        let mut sum = parts();
        sum.add(&parts());
        let json = sum.to_json();
        let object = json.as_object().expect("by name");
        assert_eq!(object.len(), Part::ALL.len() + 1);
        assert_eq!((json["login"].as_f64(), json["startup"].as_f64(), json["total"].as_f64()), (Some(3.0), Some(0.0), Some(4.0)));
    }

    #[test]
    fn each_part_stands_in_its_own_place() {
        assert!(Part::ALL.iter().enumerate().all(|(place, part)| *part as usize == place));
        let keys: std::collections::BTreeSet<_> = Part::ALL.iter().map(|part| part.key()).collect();
        assert_eq!(keys.len(), Part::ALL.len());
    }
}
