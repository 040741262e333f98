//! Which links, what is sent over them, and what came of it.

use std::time::Duration;

use haul_sim::{Path, Queue};
use haul_units::BitRate;

use crate::bench::Series;
use crate::experiment::Scale;

/// Two links, and what they are to carry together.
#[derive(Debug, Clone, Copy)]
pub struct Pair {
    pub name: &'static str,
    pub links: &'static [Path],
    pub goal: Goal,
}

/// What both links together are to carry.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Goal {
    /// So much of their sum: blocks, and an ordered stream.
    Sum(f64, f64),
    /// No less than the first link alone.
    First,
}

/// Which links a connection has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    /// One alone.
    One(usize),
    /// A path on each.
    Both,
}

/// What was sent over which links, and what arrived.
#[derive(Debug, Clone)]
pub struct Seen {
    pub pair: Pair,
    pub over: Over,
    pub is_ordered: bool,
    pub series: Series,
    /// UDP payload of each path that was acknowledged, where it was counted.
    pub by_path: Vec<u64>,
}

impl Seen {
    /// In the second half.
    pub fn rate(&self, length: Duration) -> BitRate {
        self.series.second_half(length)
    }
}

const fn link(mbps: u64, rtt_ms: u64) -> Path {
    Path::new(BitRate::mbps(mbps), Duration::from_millis(rtt_ms))
}

const FAR: Pair =
    Pair { name: "500 Mbit/s at 20 and 200 ms", links: &[link(500, 20), link(500, 200)], goal: Goal::Sum(0.95, 0.90) };
const SLOW: Pair = Pair {
    name: "12 Mbit/s 20 ms, 1 Mbit/s 40 ms with a second of queue",
    links: &[link(12, 20), link(1, 40).queue(Queue::Bdp(25.0))],
    goal: Goal::First,
};
const SMALL: Pair = Pair { name: "20 Mbit/s at 10 and 40 ms", links: &[link(20, 10), link(20, 40)], goal: Goal::Sum(0.95, 0.90) };

pub fn pairs(scale: Scale) -> &'static [Pair] {
    scale.pick(&[SMALL, SLOW], &[FAR, SLOW])
}

/// A path that joins finds its rate by attempts of some ten round trips.
pub fn length(scale: Scale) -> Duration {
    Duration::from_secs(scale.pick(8, 40))
}

/// All runs of a pair.
pub fn runs() -> impl Iterator<Item = (Over, bool)> {
    [Over::One(0), Over::One(1), Over::Both].into_iter().flat_map(|over| [(over, false), (over, true)])
}

/// Of a packet of 1500 bytes, what the application gave.
pub const PAYLOAD: f64 = 1428.0 / 1500.0;
