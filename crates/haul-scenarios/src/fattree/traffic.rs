//! Who sends what to whom, and when.

use std::time::Duration;

use haul_sim::{Flow, Rng};
use haul_units::Bytes;

use super::study::{Contender, Load, SETTLING, Study};
use crate::Kind;

/// The flows of a study, those without end first.
#[derive(Debug, Clone)]
pub struct Traffic {
    /// What they are made of is the study's foreground and background.
    pub flows: Vec<Flow<Kind>>,
    /// How many have no end.
    pub long: usize,
    /// What the others belong to: one flow each, or the answers to a query.
    pub arrivals: Vec<Arrival>,
}

/// What a user waits for.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// Since the beginning, as all starts.
    pub start: Duration,
    /// Places in the flows.
    pub flows: std::ops::Range<usize>,
}

impl Traffic {
    pub(super) fn new(study: &Study, hosts: usize) -> Self {
        let mut random = Rng::new(study.seed);
        let mut order: Vec<usize> = (0..hosts).collect();
        shuffle(&mut order, &mut random);
        let senders = study.background.map_or(0, |_| (hosts as f64 * study.crowd).round() as usize).min(hosts);
        let (crowd, others) = order.split_at(senders);
        let mut traffic = Self { flows: Vec::new(), long: 0, arrivals: Vec::new() };
        if let Some(background) = &study.background {
            traffic.send_without_end(background, crowd, hosts, &mut random);
        }
        for &host in others {
            // A stream of chance for each host: its times do not change with what others do.
            traffic.send_now_and_then(study, host, hosts, &mut Rng::new(random.next_u64()));
        }
        traffic
    }

    /// To random hosts, no two to the same one as long as there are enough.
    fn send_without_end(&mut self, background: &Contender, senders: &[usize], hosts: usize, random: &mut Rng) {
        let mut receivers: Vec<usize> = (0..hosts).collect();
        shuffle(&mut receivers, random);
        for &from in senders {
            let Some(place) = receivers.iter().position(|to| *to != from) else { return };
            let to = receivers.remove(place);
            // Not all in the same instant.
            let start = Duration::from_secs_f64(random.unit() * STAGGER.as_secs_f64());
            self.flows.push(Flow { start, ways: background.ways, ..Flow::endless(background.kind, from, to) });
        }
        self.long = self.flows.len();
    }

    fn send_now_and_then(&mut self, study: &Study, host: usize, hosts: usize, random: &mut Rng) {
        let mean = match study.load {
            Load::Short(_, mean) => mean,
            Load::Messages => Duration::from_millis(500),
            Load::Queries => Duration::from_millis(200),
        };
        let mut at = SETTLING;
        loop {
            // Exponential: a Poisson process.
            at += mean.mul_f64(-(1.0 - random.unit()).ln());
            if at >= SETTLING + study.length {
                return;
            }
            self.arrive(study, at, host, hosts, random);
        }
    }

    fn arrive(&mut self, study: &Study, start: Duration, host: usize, hosts: usize, random: &mut Rng) {
        let first = self.flows.len();
        let Contender { kind, ways, .. } = study.foreground;
        let mut send = |from, to, size| self.flows.push(Flow { start, ways, ..Flow::bulk(kind, from, to, size) });
        let mut within = |least: u64, most: u64| Bytes(least + random.below(most - least + 1));
        match study.load {
            Load::Short(size, _) => send(host, other(host, hosts, random), size),
            Load::Messages => {
                let size = within(50_000, 1_000_000);
                send(host, other(host, hosts, random), size);
            }
            Load::Queries => {
                let sizes: Vec<Bytes> = (0..WORKERS).map(|_| within(2_000, 20_000)).collect();
                let mut workers: Vec<usize> = (0..hosts).filter(|worker| *worker != host).collect();
                shuffle(&mut workers, random);
                workers.into_iter().zip(sizes).for_each(|(worker, size)| send(worker, host, size));
            }
        }
        self.arrivals.push(Arrival { start, flows: first..self.flows.len() });
    }
}

/// A random host that is not this one.
fn other(host: usize, hosts: usize, random: &mut Rng) -> usize {
    (host + 1 + random.below(hosts as u64 - 1) as usize) % hosts
}

/// Fisher and Yates.
fn shuffle(list: &mut [usize], random: &mut Rng) {
    for end in (1..list.len()).rev() {
        list.swap(end, random.below(end as u64 + 1) as usize);
    }
}

const STAGGER: Duration = Duration::from_millis(100);
/// Hosts that a query asks.
const WORKERS: usize = 8;
