//! One short flow, looked at all the time: for a picture.

use std::time::Duration;

use haul_sim::{FlowEnd, Mixed, Plan};
use haul_units::{Bytes, Time};

use super::found::{Short, losses, receiver, sender};
use super::study::{DRAINING, Study};
use super::traffic::Traffic;
use crate::{AnyEnd, Hosts, Kind, ends_on};

/// A flow's life.
#[derive(Debug, Clone)]
pub struct Trace {
    /// How it ended.
    pub short: Short,
    /// From its start on.
    pub samples: Vec<Sample>,
}

/// A moment of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample {
    /// Since the flow's start.
    pub at: Duration,
    /// What may be in flight, in packets of the full size.
    pub window_pkts: f64,
    /// Payload that has arrived.
    pub received: Bytes,
    /// Packets sent again so far.
    pub resent_pkts: u64,
    /// Timers run out so far.
    pub timeouts: u64,
}

/// `None` where there is no such flow.
pub(super) fn run(study: &Study, traffic: &Traffic, plan: &Plan<Kind>, short: usize) -> Option<Trace> {
    let arrival = traffic.arrivals.get(short)?;
    let flow = arrival.flows.start;
    let mut scene = plan.build(ends_on(&Hosts::default()));
    let start = Time::ZERO + arrival.start;
    scene.network.run(start);
    let mut samples = Vec::new();
    let end = start + study.length + DRAINING;
    while scene.network.now() < end {
        let now = scene.network.now();
        let (resent_pkts, timeouts) = losses(sender(&scene, flow), now);
        samples.push(Sample {
            at: now - start,
            window_pkts: window_pkts(sender(&scene, flow), now),
            received: receiver(&scene, flow).received(),
            resent_pkts,
            timeouts,
        });
        if receiver(&scene, flow).completed_at().is_some() {
            break;
        }
        scene.network.run(now + EACH);
    }
    let last = samples.last()?;
    let took = receiver(&scene, flow).completed_at().map(|at| at - start);
    let size = plan.flows[flow].size.unwrap_or_default();
    Some(Trace { short: Short { size, took, resent_pkts: last.resent_pkts, timeouts: last.timeouts }, samples })
}

fn window_pkts(end: &AnyEnd, now: Time) -> f64 {
    match end {
        Mixed::First(haul) => haul.window_pkts(now),
        Mixed::Second(Mixed::First(tcp)) => tcp.stats().window_pkts,
        Mixed::Second(Mixed::Second(_)) => 0.0,
    }
}

const EACH: Duration = Duration::from_micros(500);
