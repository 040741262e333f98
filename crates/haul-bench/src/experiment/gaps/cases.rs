//! What senders are asked for, and what came of it.

use std::time::Duration;

use haul_netdev::ethernet::MOST;
use haul_units::{BitRate, Distribution};

use crate::experiment::Scale;

/// What a sender is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// Of the line.
    pub line: BitRate,
    /// Wanted, counted on the line.
    pub rate: BitRate,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Seen {
    pub case: Case,
    /// Who spaced.
    pub sender: String,
    /// Between the ends of full frames, in nanoseconds.
    pub gaps: Distribution,
    /// What else is to be known.
    pub remark: String,
}

impl Case {
    /// Between two full frames.
    pub fn place(self) -> Duration {
        self.rate.time_for(MOST)
    }

    pub fn title(self) -> String {
        format!("{} on a line of {}", self.rate, self.line)
    }
}

pub fn cases(scale: Scale) -> Vec<Case> {
    let gigabit = BitRate::gbps(1);
    let case = |mbps| Case { line: gigabit, rate: BitRate::mbps(mbps) };
    let all = [100, 300, 500, 930].map(case).into_iter();
    let fast = Case { line: BitRate::gbps(10), rate: BitRate::gbps(5) };
    scale.pick(vec![case(300)], all.chain([fast]).collect())
}

/// There and back.
pub const RTT: Duration = Duration::from_millis(20);
/// How far from its place a packet may be.
pub const NEAR: f64 = 0.05;
