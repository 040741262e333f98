//! What came of a study.

use std::time::Duration;

use haul_sim::{EndpointId, FlowEnd, Mixed, Plan, Scene, TcpConfig};
use haul_units::{BitRate, Bytes, Time};

use super::study::{SETTLING, Study};
use super::traffic::{Arrival, Traffic};
use crate::{AnyEnd, Hosts, Kind, ends_on};

/// What came of a study.
#[derive(Debug, Clone)]
pub struct Found {
    /// In the order in which they began on each host.
    pub shorts: Vec<Short>,
    /// Those without end.
    pub longs: Vec<Long>,
    /// Part of the core's rate that was used, both directions together.
    pub core_use: f64,
    /// Arrivals and timers of the simulation.
    pub events: u64,
}

/// What somebody waited for: a flow, or a query's answers.
#[derive(Debug, Clone)]
pub struct Short {
    /// All of it.
    pub size: Bytes,
    /// Until the last byte; `None` if it was not over at the end.
    pub took: Option<Duration>,
    /// Packets sent again.
    pub resent_pkts: u64,
    /// Timers that ran out, those of handshakes among them.
    pub timeouts: u64,
}

/// A flow without end.
#[derive(Debug, Clone)]
pub struct Long {
    /// While short flows began.
    pub rate: BitRate,
    /// What was sent on each of its paths or subflows.
    pub sent: Vec<Bytes>,
}

/// How a flow went. The study's four, by time and loss as it gives them, and what fits none of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Pattern {
    /// At most 30 ms, nothing lost: the window was all it waited for.
    FullWindow,
    /// At most 60 ms, nothing lost: among others.
    Intensive,
    /// 200 to 300 ms, something lost: one timer ran out.
    DelayWithLoss,
    /// Over 300 ms, something lost: loss at the start, or more than one timer.
    Extreme,
    /// Something lost, and recovered within 200 ms: the study has no name for it.
    Recovered,
    /// Nothing lost, and over 60 ms: the same.
    Slow,
}

impl Pattern {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::FullWindow, Self::Intensive, Self::Recovered, Self::Slow, Self::DelayWithLoss, Self::Extreme];

    /// As in tables.
    pub const fn title(self) -> &'static str {
        match self {
            Self::FullWindow => "full window",
            Self::Intensive => "intensive flow",
            Self::DelayWithLoss => "delay with loss",
            Self::Extreme => "extreme delay",
            Self::Recovered => "loss, below 200 ms",
            Self::Slow => "no loss, above 60 ms",
        }
    }
}

impl Short {
    /// The rule: the time first, then whether anything was sent again. What never ended is an extreme delay.
    pub fn pattern(&self) -> Pattern {
        let ms = self.took.map_or(u128::MAX, |took| took.as_millis());
        let lost = self.resent_pkts > 0 || self.timeouts > 0;
        match (lost, ms) {
            (false, ..=30) => Pattern::FullWindow,
            (false, ..=60) => Pattern::Intensive,
            (_, u128::MAX) => Pattern::Extreme,
            (false, _) => Pattern::Slow,
            (true, ..200) => Pattern::Recovered,
            (true, ..=300) => Pattern::DelayWithLoss,
            (true, _) => Pattern::Extreme,
        }
    }
}

/// Runs a plan of a study from its beginning to its end.
pub(super) fn run(study: &Study, traffic: &Traffic, plan: &Plan<Kind>) -> Found {
    let mut scene = plan.build(ends_on(&Hosts::default()));
    let (from, to) = (Time::ZERO + SETTLING, Time::ZERO + SETTLING + study.length);
    scene.network.run(from);
    let before = Standing::of(&scene, traffic);
    scene.network.run(to);
    let after = Standing::of(&scene, traffic);
    let last = Time::ZERO + plan.length;
    while scene.network.now() < last && !all_over(&scene, traffic) {
        let next = (scene.network.now() + LOOK).min(last);
        scene.network.run(next);
    }
    let core_bits: f64 = scene.fabric.core().map(|link| scene.network.link(link).config().rate.as_bps() as f64).sum();
    let core_carried = (after.core - before.core).as_u64() as f64 * 8.0;
    let now = scene.network.now();
    Found {
        shorts: traffic.arrivals.iter().map(|arrival| short(&scene, arrival, plan, now)).collect(),
        longs: (0..traffic.long)
            .map(|flow| Long {
                rate: BitRate::of(after.received[flow] - before.received[flow], study.length),
                sent: sent(sender(&scene, flow)),
            })
            .collect(),
        core_use: core_carried / (core_bits * study.length.as_secs_f64()).max(1.0),
        events: scene.network.events(),
    }
}

/// What had arrived at some time.
struct Standing {
    received: Vec<Bytes>,
    core: Bytes,
}

impl Standing {
    fn of(scene: &Scene<AnyEnd>, traffic: &Traffic) -> Self {
        Self {
            received: (0..traffic.long).map(|flow| receiver(scene, flow).received()).collect(),
            core: scene.fabric.core().map(|link| scene.network.link(link).stats().carried).sum(),
        }
    }
}

fn all_over(scene: &Scene<AnyEnd>, traffic: &Traffic) -> bool {
    let mut flows = traffic.arrivals.iter().flat_map(|arrival| arrival.flows.clone());
    flows.all(|flow| receiver(scene, flow).completed_at().is_some())
}

fn short(scene: &Scene<AnyEnd>, arrival: &Arrival, plan: &Plan<Kind>, now: Time) -> Short {
    let start = Time::ZERO + arrival.start;
    let mut short = Short { size: Bytes::ZERO, took: Some(Duration::ZERO), resent_pkts: 0, timeouts: 0 };
    for flow in arrival.flows.clone() {
        let (resent, timeouts) = losses(sender(scene, flow), now);
        short.size += plan.flows[flow].size.unwrap_or_default();
        short.resent_pkts += resent;
        short.timeouts += timeouts;
        let took = receiver(scene, flow).completed_at().map(|at| at - start);
        short.took = short.took.zip(took).map(|(all, this)| all.max(this));
    }
    short
}

pub(super) fn sender(scene: &Scene<AnyEnd>, flow: usize) -> &AnyEnd {
    scene.network.endpoint(EndpointId(flow * 2))
}

pub(super) fn receiver(scene: &Scene<AnyEnd>, flow: usize) -> &AnyEnd {
    scene.network.endpoint(EndpointId(flow * 2 + 1))
}

/// Packets sent again, and timers that ran out.
pub(super) fn losses(end: &AnyEnd, now: Time) -> (u64, u64) {
    match end {
        Mixed::First(haul) => (haul.lost_pkts(now), haul.timeouts(now)),
        Mixed::Second(Mixed::First(tcp)) => {
            let stats = tcp.stats();
            (stats.resent_pkts, stats.timeouts + stats.handshake_timeouts)
        }
        Mixed::Second(Mixed::Second(_)) => (0, 0),
    }
}

fn sent(end: &AnyEnd) -> Vec<Bytes> {
    match end {
        Mixed::First(haul) => haul.sent_by_path(),
        Mixed::Second(Mixed::First(tcp)) => {
            tcp.subflow_stats().iter().map(|stats| TcpConfig::CUBIC.payload * stats.sent_pkts).collect()
        }
        Mixed::Second(Mixed::Second(_)) => Vec::new(),
    }
}

/// How often it is asked whether all is over.
const LOOK: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_follow_the_rule() {
        let short = |ms: Option<u64>, resent_pkts, timeouts| {
            Short { size: Bytes(70_000), took: ms.map(Duration::from_millis), resent_pkts, timeouts }.pattern()
        };
        assert_eq!(short(Some(12), 0, 0), Pattern::FullWindow);
        assert_eq!(short(Some(45), 0, 0), Pattern::Intensive);
        assert_eq!(short(Some(90), 0, 0), Pattern::Slow);
        assert_eq!(short(Some(20), 1, 0), Pattern::Recovered);
        assert_eq!(short(Some(230), 3, 1), Pattern::DelayWithLoss);
        assert_eq!(short(Some(1100), 0, 1), Pattern::Extreme);
        assert_eq!(short(None, 0, 0), Pattern::Extreme);
    }
}
