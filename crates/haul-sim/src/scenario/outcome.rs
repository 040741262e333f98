//! What is measured of a scenario.
//!
//! Rates, shares and delays are those of the second half of the plan's length, when flows have found their rate; completion times count
//! from each flow's start. The queue is that of the first flow's bottleneck, looked at a thousand times.

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use super::{FlowEnd, Plan, Scene};
use crate::{EndpointId, LinkId, LinkStats};

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// How long it ran.
    pub length: Duration,
    /// Part of the bottleneck's rate that was carried, packet headers included.
    pub utilisation: f64,
    /// Payload that arrived in the second half, by flow.
    pub rates: Vec<BitRate>,
    /// Payload that arrived at all, by flow.
    pub received: Vec<Bytes>,
    /// Time from start to end of each flow that completed.
    pub completed: Vec<Option<Duration>>,
    /// Waiting time that 95 % of the samples did not exceed.
    pub queue_p95: Duration,
    /// Part of the packets handed to the bottleneck that it dropped.
    pub dropped: f64,
    /// Packets that it marked.
    pub marked_pkts: u64,
    /// What arrived in each stretch of [`Self::bin`], by flow, where there are at most 64 flows.
    pub series: Vec<Vec<Bytes>>,
    /// How long a stretch is.
    pub bin: Duration,
    /// Arrivals and timers.
    pub events: u64,
}

impl Outcome {
    /// Jain's index of fairness of the rates: 1 when all are equal, 1/n when one has all.
    pub fn jain(&self) -> f64 {
        let rates = self.rates.iter().map(|rate| rate.as_bps() as f64);
        let (sum, squares) = rates.fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
        if squares > 0.0 { sum * sum / squares / self.rates.len() as f64 } else { 0.0 }
    }

    /// A flow's part of all that arrived in the second half.
    pub fn share(&self, flow: usize) -> f64 {
        let all: f64 = self.rates.iter().map(|rate| rate.as_bps() as f64).sum();
        if all > 0.0 { self.rates[flow].as_bps() as f64 / all } else { 0.0 }
    }

    /// Completion time that this part of the flows did not exceed; `None` where fewer completed.
    pub fn completion(&self, part: f64) -> Option<Duration> {
        let mut times: Vec<Duration> = self.completed.iter().flatten().copied().collect();
        times.sort_unstable();
        let index = ((self.completed.len() as f64 * part).ceil() as usize).max(1) - 1;
        times.get(index).copied()
    }
}

/// Takes samples while a plan runs.
pub(super) struct Recorder {
    bin: Duration,
    half: Time,
    bottleneck: LinkId,
    received: Vec<Bytes>,
    series: Vec<Vec<Bytes>>,
    queue: Vec<(Time, Duration)>,
    middle: Option<Middle>,
}

/// How things stood at half time.
struct Middle {
    at: Time,
    received: Vec<Bytes>,
    link: LinkStats,
}

impl Recorder {
    pub(super) fn new<K: Clone, E: FlowEnd>(plan: &Plan<K>, scene: &Scene<E>) -> Self {
        let flows = plan.flows.len();
        Self {
            bin: (plan.length / SAMPLES).max(Duration::from_micros(1)),
            half: Time::ZERO + plan.length / 2,
            bottleneck: scene.fabric.bottleneck(plan.flows.first().map_or(0, |flow| flow.to)),
            received: vec![Bytes::ZERO; flows],
            series: vec![Vec::new(); if flows <= SERIES_FLOWS { flows } else { 0 }],
            queue: Vec::new(),
            middle: None,
        }
    }

    pub(super) fn bin(&self) -> Duration {
        self.bin
    }

    /// Looks at everything; true when all flows are complete.
    pub(super) fn sample<E: FlowEnd>(&mut self, scene: &mut Scene<E>) -> bool {
        let now = scene.network.now();
        let mut complete = true;
        for (flow, before) in self.received.iter_mut().enumerate() {
            let end = scene.network.endpoint(EndpointId(flow * 2 + 1));
            let received = end.received();
            if let Some(series) = self.series.get_mut(flow) {
                series.push(received - *before);
            }
            *before = received;
            complete &= end.completed_at().is_some();
        }
        self.queue.push((now, scene.network.link_mut(self.bottleneck).queue_delay(now)));
        if self.middle.is_none() && now >= self.half {
            let link = scene.network.link(self.bottleneck).stats();
            self.middle = Some(Middle { at: now, received: self.received.clone(), link });
        }
        complete
    }

    pub(super) fn finish<K: Clone, E: FlowEnd>(self, plan: &Plan<K>, scene: &Scene<E>) -> Outcome {
        let now = scene.network.now();
        let link = scene.network.link(self.bottleneck);
        let flows = self.received.len();
        // A run that ends in the first half is measured whole.
        let middle = self.middle.filter(|middle| middle.at < now);
        let since = middle.as_ref().map_or(Time::ZERO, |middle| middle.at);
        let at_middle = |flow: usize| middle.as_ref().map_or(Bytes::ZERO, |middle| middle.received[flow]);
        let before = middle.as_ref().map_or(LinkStats::default(), |middle| middle.link);
        let time = now - since;
        let carried = BitRate::of(link.stats().carried - before.carried, time);
        let (sent, dropped) = (link.stats().sent_pkts - before.sent_pkts, link.stats().dropped_pkts - before.dropped_pkts);
        let mut waits: Vec<Duration> = self.queue.iter().filter(|(at, _)| *at > since).map(|(_, wait)| *wait).collect();
        waits.sort_unstable();
        let completed = |flow: usize| {
            let at = scene.network.endpoint(EndpointId(flow * 2 + 1)).completed_at()?;
            Some(at - (Time::ZERO + plan.flows[flow].start))
        };
        Outcome {
            length: now - Time::ZERO,
            utilisation: carried.ratio_to(link.config().rate).as_f64(),
            rates: (0..flows).map(|flow| BitRate::of(self.received[flow] - at_middle(flow), time)).collect(),
            completed: (0..flows).map(completed).collect(),
            received: self.received,
            queue_p95: waits.get(waits.len() * 95 / 100).copied().unwrap_or_default(),
            dropped: dropped as f64 / sent.max(1) as f64,
            marked_pkts: link.stats().marked_pkts - before.marked_pkts,
            series: self.series,
            bin: self.bin,
            events: scene.network.events(),
        }
    }
}

const SAMPLES: u32 = 1000;
const SERIES_FLOWS: usize = 64;
