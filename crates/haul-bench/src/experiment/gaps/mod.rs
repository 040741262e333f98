//! How exactly packets are spaced: by frames that fill the gaps, by timers, by a queueing discipline, by nobody.
//!
//! A host sends at 100 to 930 Mbit/s over a line of 1 Gbit/s, and at 5 Gbit/s over one of 10. The switch at the other end sees each frame's end by the line's own clock. A packet
//! counts as in its place if the gap before it is within a twentieth of what the rate means.

mod real;
mod show;
mod simulated;

use std::time::Duration;

use haul_netdev::ethernet::MOST;
use haul_units::{BitRate, Distribution};

use super::{Experiment, Scale};

pub const GAPS: Experiment = Experiment {
    name: "gaps",
    about: "How exactly packets are spaced: PAUSE frames in the gaps beside timers, a token bucket, haul's trains and no spacing",
    reproduces: "PSPacer (PFLDnet 2005): gaps at the receiver, 100 Mbit/s to 5 Gbit/s",
    simulate: simulated::simulated,
    measure: real::measured,
};

/// What a sender is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Case {
    /// Of the line.
    line: BitRate,
    /// Wanted, counted on the line.
    rate: BitRate,
}

/// What came of it.
#[derive(Debug, Clone)]
struct Seen {
    case: Case,
    /// Who spaced.
    sender: String,
    /// Between the ends of full frames, in nanoseconds.
    gaps: Distribution,
    /// What else is to be known.
    remark: String,
}

impl Case {
    /// Between two full frames.
    fn place(self) -> Duration {
        self.rate.time_for(MOST)
    }

    fn title(self) -> String {
        format!("{} on a line of {}", self.rate, self.line)
    }
}

fn cases(scale: Scale) -> Vec<Case> {
    let gigabit = BitRate::gbps(1);
    let case = |mbps| Case { line: gigabit, rate: BitRate::mbps(mbps) };
    let all = [100, 300, 500, 930].map(case).into_iter();
    let fast = Case { line: BitRate::gbps(10), rate: BitRate::gbps(5) };
    scale.pick(vec![case(300)], all.chain([fast]).collect())
}

/// There and back.
const RTT: Duration = Duration::from_millis(20);
/// How far from its place a packet may be.
const NEAR: f64 = 0.05;
