//! The same connections in virtual time.

use std::borrow::Cow;

use haul_cc::ControllerChoice::Fair;
use haul_scenarios::Kind;
use haul_sim::{Flow, Plan, Topology, Ways};

use super::cases::{Over, Pair, Seen, length, pairs, runs};
use super::show;
use crate::experiment::simulated::run_all;
use crate::experiment::{Report, Scale};

pub fn simulated(scale: Scale) -> Report {
    let all: Vec<(Pair, Over, bool)> =
        pairs(scale).iter().flat_map(|pair| runs().map(|(over, is_ordered)| (*pair, over, is_ordered))).collect();
    let plans: Vec<Plan<Kind>> = all.iter().map(|&(pair, over, is_ordered)| plan(scale, pair, over, is_ordered)).collect();
    let seen = run_all(&plans).into_iter().zip(all).map(|(run, (pair, over, is_ordered))| Seen {
        pair,
        over,
        is_ordered,
        series: run.series.into_iter().next().unwrap_or_default(),
        by_path: Vec::new(),
    });
    show::report("simulated", scale, &seen.collect::<Vec<_>>())
}

fn plan(scale: Scale, pair: Pair, over: Over, is_ordered: bool) -> Plan<Kind> {
    let paths = match over {
        Over::One(link) => pair.links.get(link..=link).unwrap_or(pair.links),
        Over::Both => pair.links,
    };
    let kind = if is_ordered { Kind::Ordered(Fair) } else { Kind::Haul(Fair) };
    let flow = Flow { ways: Ways::Apart(paths.len() as u16), ..Flow::endless(kind, 0, 1) };
    let topology = Topology::Parallel { pairs: 1, paths };
    Plan { name: "paths", seed: 1, topology, flows: Cow::Owned(vec![flow]), length: length(scale), checks: &[] }
}
