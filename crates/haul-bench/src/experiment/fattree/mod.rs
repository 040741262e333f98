//! Short flows among long ones in a data centre: who harms whom, in a FatTree.
//!
//! Sixteen hosts; a third or half of them send without end, the others send what is short. Every kind of sender of either is tried against
//! the ones of the other that tell something: all kinds of short flows among five kinds of long ones, and TCP's short flows among all. On real sockets, in a tree of network
//! namespaces, the kernel's TCP and MPTCP and haul's transport take part.

mod cells;
mod real;
mod show;

use super::report::Report;
use super::{Experiment, Scale};

pub const FATTREE: Experiment = Experiment {
    name: "fattree",
    about: "Short flows among long ones in a FatTree: TCP, multipath TCP, scattered packets and haul, in front and behind",
    reproduces: "Multipath TCP in a data centre and short flows (IEICE): completion times and their four patterns; MMPTCP (INFOCOM 2016)",
    simulate: Some(simulated),
    measure: real::measured,
};

fn simulated(scale: Scale) -> Report {
    let cells = cells::run(&cells::grid(scale), scale);
    show::report(&cells, &cells::typical(scale), scale)
}
