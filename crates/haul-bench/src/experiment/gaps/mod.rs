//! How exactly packets are spaced: by frames that fill the gaps, by timers, by a queueing discipline, by nobody.
//!
//! A host sends at 100 to 930 Mbit/s over a line of 1 Gbit/s, and at 5 Gbit/s over one of 10. The switch at the other end sees each frame's end by the line's own clock. A packet
//! counts as in its place if the gap before it is within a twentieth of what the rate means.

mod cases;
mod real;
mod show;
mod simulated;

use super::Experiment;

pub const GAPS: Experiment = Experiment {
    name: "gaps",
    about: "How exactly packets are spaced: PAUSE frames in the gaps beside timers, a token bucket, haul's trains and no spacing",
    reproduces: "PSPacer (PFLDnet 2005): gaps at the receiver, 100 Mbit/s to 5 Gbit/s",
    simulate: Some(simulated::simulated),
    measure: real::measured,
};
