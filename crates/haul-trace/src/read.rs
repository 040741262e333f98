//! Lines of a trace, by connection.

use std::io::{self, BufRead, Read as _};

use haul_units::PeerText;
use serde::Deserialize;

/// A trace.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Trace {
    /// In the order in which they first appear.
    pub connections: Vec<Connection>,
}

/// One connection of it, seen from one end.
#[derive(Debug, Clone, PartialEq)]
pub struct Connection {
    /// Its number at that end.
    pub id: PeerText,
    /// In order of time; never empty.
    pub samples: Vec<Sample>,
}

/// Why a sample was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// The handshake is complete.
    Connected,
    /// Every 20 ms.
    #[default]
    Sample,
    /// It is over.
    Closed,
}

/// A line: counters since the start, gauges of that moment. What a line lacks is zero or empty.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "named as in docs/use/debugging.md, with their units")]
pub struct Sample {
    /// Seconds since the process first read its clock.
    pub t: f64,
    pub id: PeerText,
    pub event: Event,
    pub algorithm: PeerText,
    pub phase: PeerText,
    pub window_bytes: u64,
    pub in_flight_bytes: u64,
    pub pacing_bps: u64,
    pub packet_bytes: u64,
    pub sent_pkts: u64,
    pub lost_pkts: u64,
    pub received_pkts: u64,
    pub acknowledged_bytes: u64,
    pub received_bytes: u64,
    pub ssthresh_bytes: Option<u64>,
    pub rtt_s: f64,
    pub min_rtt_s: f64,
    pub queue_delay_s: f64,
    /// Of each path, where there are several.
    pub by_path: Vec<PathSample>,
}

/// What one path has done by then. What it lacks is zero.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(default)]
#[expect(missing_docs, reason = "named as in docs/use/debugging.md, with their units")]
pub struct PathSample {
    pub path: u8,
    pub acknowledged_bytes: u64,
    pub received_bytes: u64,
    pub lost_pkts: u64,
    pub rtt_s: f64,
}

/// Why a trace cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file.
    #[error("it cannot be read: {0}")]
    Read(#[from] io::Error),
    /// A line that is none of a trace.
    #[error("line {line} is none of a trace: {why}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// No connection.
    #[error("no connection is in it: none was made while HAUL_TRACE was set")]
    Empty,
}

impl Trace {
    /// Reads lines. A last one that is not complete is of a program that still runs, or was killed, and is left out.
    pub fn read(mut input: impl BufRead) -> Result<Self, TraceError> {
        let mut trace = Self::default();
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            if input.by_ref().take(LONGEST).read_until(b'\n', &mut text)? == 0 {
                break;
            }
            let is_whole = text.ends_with(b"\n");
            if !is_whole && text.len() as u64 == LONGEST {
                return Err(TraceError::Line { line, why: format!("it has more than {LONGEST} bytes") });
            }
            match serde_json::from_slice::<Sample>(&text) {
                Ok(sample) if !sample.t.is_finite() => {
                    return Err(TraceError::Line { line, why: "its time is no number".to_owned() });
                }
                Ok(sample) => trace.add(sample),
                Err(_) if !is_whole => break,
                Err(error) => return Err(TraceError::Line { line, why: error.to_string() }),
            }
        }
        if trace.connections.is_empty() { Err(TraceError::Empty) } else { Ok(trace) }
    }

    fn add(&mut self, sample: Sample) {
        // Two processes may append to one file, and a number may come again: a connection that is over stays over.
        let is_open =
            |known: &&mut Connection| known.id == sample.id && known.last().event != Event::Closed && known.last().t <= sample.t;
        if let Some(known) = self.connections.iter_mut().rev().find(is_open) {
            known.samples.push(sample);
        } else {
            self.connections.push(Connection { id: sample.id.clone(), samples: vec![sample] });
        }
    }

    /// The connection that carried most, either way.
    pub fn largest(&self) -> Option<&Connection> {
        self.connections
            .iter()
            .max_by_key(|connection| connection.last().acknowledged_bytes.max(connection.last().received_bytes))
    }
}

impl Connection {
    /// The first sample.
    pub fn first(&self) -> &Sample {
        &self.samples[0]
    }

    /// The newest sample.
    pub fn last(&self) -> &Sample {
        &self.samples[self.samples.len() - 1]
    }

    /// From the first sample to the last, in seconds.
    pub fn seconds(&self) -> f64 {
        self.last().t - self.first().t
    }

    /// Its phases: since when, until when, in seconds since its first sample, and their names.
    pub fn phases(&self) -> Vec<(f64, f64, PeerText)> {
        let begin = self.first().t;
        let mut phases: Vec<(f64, f64, PeerText)> = Vec::new();
        for sample in self.samples.iter().filter(|sample| !sample.phase.is_empty()) {
            let at = sample.t - begin;
            match phases.last_mut() {
                Some((_, until, name)) if *name == sample.phase => *until = at,
                Some((_, until, _)) => {
                    *until = at;
                    phases.push((at, at, sample.phase.clone()));
                }
                None => phases.push((at, at, sample.phase.clone())),
            }
        }
        // What began with the last sample has no length.
        if phases.len() > 1 && phases.last().is_some_and(|(since, until, _)| since >= until) {
            phases.pop();
        }
        phases
    }
}

/// Twenty times what a line has.
const LONGEST: u64 = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    fn line(t: f64, id: &str, event: &str, phase: &str) -> String {
        format!("{{\"t\":{t},\"id\":\"{id}\",\"event\":\"{event}\",\"phase\":\"{phase}\",\"new_field\":1}}\n")
    }

    #[test]
    fn connections_are_told_apart_and_a_number_may_come_again() {
        let text = [
            line(0.0, "a", "connected", "startup"),
            line(0.1, "b", "connected", "startup"),
            line(0.2, "a", "closed", "cruise"),
            line(0.3, "a", "connected", "startup"),
            line(0.4, "b", "sample", "drain"),
        ];
        let trace = Trace::read(text.concat().as_bytes()).expect("a trace");
        let said: Vec<(&str, usize)> = trace.connections.iter().map(|c| (c.id.as_str(), c.samples.len())).collect();
        assert_eq!(said, [("a", 2), ("b", 2), ("a", 1)]);
    }

    #[test]
    fn a_torn_last_line_is_left_out_and_any_other_is_named() {
        let torn = format!("{}{{\"t\":0.02,\"id\"", line(0.0, "a", "sample", "cruise"));
        assert_eq!(Trace::read(torn.as_bytes()).expect("what is whole").connections[0].samples.len(), 1);
        let foreign = format!("{}not of a trace\n", line(0.0, "a", "sample", "cruise"));
        assert!(matches!(Trace::read(foreign.as_bytes()), Err(TraceError::Line { line: 2, .. })));
        let endless = "x".repeat(1 << 20);
        assert!(matches!(Trace::read(endless.as_bytes()), Err(TraceError::Line { line: 1, .. })));
        assert!(matches!(Trace::read(&b""[..]), Err(TraceError::Empty)));
    }

    #[test]
    fn phases_follow_each_other_without_a_gap() {
        let text: String = [(0.0, "startup"), (0.5, "startup"), (1.0, "drain"), (1.5, "cruise"), (9.0, "cruise")]
            .map(|(t, phase)| line(t + 3.0, "a", "sample", phase))
            .concat();
        let phases = Trace::read(text.as_bytes()).expect("a trace").connections[0].phases();
        let expected = [(0.0, 1.0, "startup"), (1.0, 1.5, "drain"), (1.5, 9.0, "cruise")];
        assert_eq!(phases, expected.map(|(since, until, name)| (since, until, name.into())));
    }
}
