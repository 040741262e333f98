//! Short flows among long ones in a FatTree: who harms whom, and how each short flow went.
//!
//! A [`Study`] is data: the tree's size, which part of the hosts send without end and by what, what the others send and by what. Its
//! network is that of the study that it reproduces: 400, 200 and 100 Mbit/s at the core, the aggregation and the hosts, a round trip of
//! 0.5 ms between pods, queues of 100 KB. What came of it is [`Found`].
//! Sources: "Multipath TCP in a data centre and short flows" (IEICE) for the network, the loads and the four patterns; Al-Fares et al.
//! (2008) for the tree; Alizadeh et al., "Data center TCP" (2010) for partition and aggregate.

mod found;
mod study;
mod summary;
mod trace;
mod traffic;

use std::borrow::Cow;

use haul_sim::Plan;

use crate::Kind;

pub use self::found::{Found, Long, Pattern, Short};
pub use self::study::{Contender, DRAINING, Load, SETTLING, Study, Tree};
pub use self::summary::Summary;
pub use self::trace::{Sample, Trace};
pub use self::traffic::{Arrival, Traffic};

/// Runs it.
pub fn run(study: &Study) -> Found {
    let (traffic, plan) = laid_out(study);
    found::run(study, &traffic, &plan)
}

/// Runs it up to the end of one short flow, and looks at that flow all the time; `None` where there is no such flow.
pub fn trace(study: &Study, short: usize) -> Option<Trace> {
    let (traffic, plan) = laid_out(study);
    trace::run(study, &traffic, &plan, short)
}

/// Who sends what to whom and when, for somebody who plays it on other links than these.
pub fn traffic(study: &Study) -> Traffic {
    Traffic::new(study, study.topology().hosts())
}

fn laid_out(study: &Study) -> (Traffic, Plan<Kind>) {
    let traffic = traffic(study);
    let plan = Plan {
        name: "fat tree",
        seed: study.seed,
        topology: study.topology(),
        flows: Cow::Owned(traffic.flows.clone()),
        length: SETTLING + study.length + DRAINING,
        checks: &[],
    };
    (traffic, plan)
}
