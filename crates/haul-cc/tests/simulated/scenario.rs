//! Flows over one bottleneck in virtual time, and what is measured of them.

use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_sim::{Link, LinkConfig, LossModel, LossState, Rng, TokenBucket, Verdict};
use haul_units::{BitRate, Bytes, Time};

use crate::flow::{Flow, FlowPlan, GROUP_PKTS, PACKET, Parcel};

/// A path, the flows on it, and what changes while they run.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub rate: BitRate,
    pub rtt: Duration,
    /// The queue, in products of bandwidth and delay.
    pub queue_bdp: f64,
    /// Filling at which the queue marks, in products of bandwidth and delay.
    pub mark_bdp: Option<f64>,
    /// Loss on the wire, packet by packet.
    pub loss: LossModel,
    pub jitter: Duration,
    /// Holds what exceeds a rate back, or drops it.
    pub shaper: Option<TokenBucket>,
    pub policer: Option<TokenBucket>,
    /// The way back lets acknowledgements through only at multiples of this time.
    pub ack_hold: Duration,
    /// The receiver takes packets from its socket only at multiples of this time.
    pub receive_batch: Duration,
    pub flows: Vec<FlowPlan>,
    pub changes: Vec<(Time, Change)>,
    pub length: Duration,
    pub seed: u64,
}

#[derive(Debug, Clone, Copy)]
pub enum Change {
    Rate(BitRate),
    /// One way, towards the receiver.
    Delay(Duration),
    Loss(LossModel),
}

impl Scenario {
    pub fn new(rate: BitRate, rtt: Duration) -> Self {
        Self {
            rate,
            rtt,
            queue_bdp: 1.0,
            mark_bdp: None,
            loss: LossModel::None,
            jitter: Duration::ZERO,
            shaper: None,
            policer: None,
            ack_hold: Duration::ZERO,
            receive_batch: Duration::ZERO,
            flows: vec![FlowPlan::bulk(ControllerChoice::Fair)],
            changes: Vec::new(),
            length: Duration::from_secs(10) + rtt * 50,
            seed: 1,
        }
    }

    pub fn run(&self) -> Outcome {
        Run::new(self).run()
    }
}

/// What was measured.
#[derive(Debug)]
pub struct Outcome {
    bin: Duration,
    /// Bytes received in each bin, for each flow.
    received: Vec<Vec<u64>>,
    /// The queue, once a bin.
    queue: Vec<Duration>,
    sent_pkts: u64,
    pub dropped_pkts: u64,
    /// Dropped until the end of each bin.
    dropped_until: Vec<u64>,
}

impl Outcome {
    /// Rate at which a flow's packets arrived between two instants.
    pub fn rate(&self, flow: usize, from: Duration, to: Duration) -> BitRate {
        let bins = self.bins(from, to);
        BitRate::of(Bytes(self.received[flow][bins.clone()].iter().sum()), self.bin * bins.len() as u32)
    }

    /// Queueing delay that 95 % of the time from then on was not exceeded.
    pub fn queue_p95(&self, from: Duration) -> Duration {
        let mut delays = self.queue[self.bins(from, Duration::MAX)].to_vec();
        delays.sort_unstable();
        delays[delays.len() * 95 / 100]
    }

    /// When so many bytes of a flow had arrived.
    pub fn time_of(&self, flow: usize, bytes: Bytes) -> Option<Duration> {
        let mut sum = 0;
        let full = self.received[flow].iter().position(|&bin| {
            sum += bin;
            sum >= bytes.0
        })?;
        Some(self.bin * (full as u32 + 1))
    }

    /// The longest queueing delay seen.
    pub fn longest_queue(&self) -> Duration {
        self.queue.iter().max().copied().unwrap_or_default()
    }

    /// When a flow first arrived at this rate for a whole `window`.
    pub fn time_to(&self, flow: usize, rate: BitRate, window: Duration) -> Option<Duration> {
        let bins = (window.as_nanos() / self.bin.as_nanos()).max(1) as usize;
        let needed = rate.bytes_in(self.bin * bins as u32).0;
        let first = self.received[flow].windows(bins).position(|w| w.iter().sum::<u64>() >= needed)?;
        Some(self.bin * (first + bins) as u32)
    }

    /// Part of the packets that the queue had no room for.
    pub fn dropped(&self) -> f64 {
        self.dropped_pkts as f64 / self.sent_pkts as f64
    }

    /// Packets dropped between two instants, of all flows.
    pub fn dropped_between(&self, from: Duration, to: Duration) -> u64 {
        let bins = self.bins(from, to);
        self.dropped_until[bins.end - 1] - self.dropped_until[bins.start]
    }

    fn bins(&self, from: Duration, to: Duration) -> std::ops::Range<usize> {
        let last = self.queue.len();
        let bin = |t: Duration| ((t.as_nanos() / self.bin.as_nanos()) as usize).min(last);
        bin(from)..bin(to)
    }
}

struct Run<'a> {
    scenario: &'a Scenario,
    link: Link<Parcel>,
    queue_bytes: Bytes,
    loss: LossState,
    rng: Rng,
    flows: Vec<Flow>,
    outcome: Outcome,
    trace: bool,
}

impl<'a> Run<'a> {
    fn new(scenario: &'a Scenario) -> Self {
        let bdp = scenario.rate.bytes_in(scenario.rtt).0 as f64;
        let queue_bytes = Bytes((bdp * scenario.queue_bdp) as u64).max(PACKET * 8);
        let config = LinkConfig {
            rate: scenario.rate,
            delay: scenario.rtt / 2,
            jitter: scenario.jitter,
            shaper: scenario.shaper,
            policer: scenario.policer,
            queue: queue_bytes,
            ecn_threshold: scenario.mark_bdp.map(|part| Bytes((bdp * part) as u64)),
            seed: scenario.seed,
            ..LinkConfig::default()
        };
        let bin = (scenario.rtt / 4).min(Duration::from_millis(25));
        let bins = (scenario.length.as_nanos() / bin.as_nanos()) as usize;
        let flows: Vec<Flow> = scenario.flows.iter().enumerate().map(|(n, plan)| Flow::new(n, *plan, scenario)).collect();
        Self {
            scenario,
            link: Link::new(config),
            queue_bytes,
            loss: LossState::new(scenario.loss),
            rng: Rng::new(scenario.seed),
            outcome: Outcome {
                bin,
                received: vec![vec![0; bins]; flows.len()],
                queue: Vec::with_capacity(bins),
                sent_pkts: 0,
                dropped_pkts: 0,
                dropped_until: Vec::with_capacity(bins),
            },
            flows,
            trace: std::env::var_os("HAUL_CC_TRACE").is_some(),
        }
    }

    fn run(mut self) -> Outcome {
        let end = Time::ZERO + self.scenario.length;
        let mut changes = self.scenario.changes.iter().peekable();
        let mut out = Vec::new();
        loop {
            let flows = self.flows.iter().map(Flow::next_event).min().unwrap_or(Time::NEVER);
            let change = changes.peek().map_or(Time::NEVER, |(at, _)| *at);
            let now = flows.min(self.link.next_event().unwrap_or(Time::NEVER)).min(change);
            self.sample_queue(now.min(end));
            if now >= end {
                break;
            }
            while let Some((_, change)) = changes.next_if(|(at, _)| *at <= now) {
                self.change(now, *change);
            }
            while let Some(delivered) = self.link.pop(now) {
                self.arrive(now, Parcel { ce: delivered.ce, ..delivered.packet });
            }
            for flow in &mut self.flows {
                if flow.next_event() <= now {
                    flow.advance(now, &mut out);
                }
            }
            for parcel in out.drain(..) {
                Self::enter(&mut self.link, self.queue_bytes, now, parcel, &mut self.outcome.dropped_pkts);
            }
        }
        self.outcome.sent_pkts = self.flows.iter().map(|flow| flow.sent_pkts).sum();
        self.outcome
    }

    fn change(&mut self, now: Time, change: Change) {
        match change {
            Change::Rate(rate) => self.link.set_rate(now, rate),
            Change::Delay(delay) => self.link.set_delay(now, delay),
            Change::Loss(loss) => self.loss = LossState::new(loss),
        }
    }

    /// What of the train fits into the queue goes in.
    fn enter(link: &mut Link<Parcel>, queue_bytes: Bytes, now: Time, parcel: Parcel, dropped: &mut u64) {
        let room = queue_bytes.saturating_sub(link.queued(now)).0 / PACKET.0;
        let pkts = parcel.pkts.min(room as u32);
        *dropped += u64::from(parcel.pkts - pkts);
        let group = if parcel.grouped { GROUP_PKTS } else { pkts.max(1) };
        for first in (0..pkts).step_by(group as usize) {
            let pkts = group.min(pkts - first);
            if link.send(now, Parcel { pkts, ..parcel }, PACKET * u64::from(pkts)) == Verdict::Dropped {
                *dropped += u64::from(pkts);
            }
        }
    }

    /// What of the train the wire has not lost arrives.
    fn arrive(&mut self, now: Time, parcel: Parcel) {
        let pkts = (0..parcel.pkts).filter(|_| !self.loss.next(&mut self.rng)).count() as u32;
        if pkts > 0 {
            self.flows[parcel.flow].receive(now, Parcel { pkts, ..parcel });
            let bin = (now.as_nanos() / self.outcome.bin.as_nanos() as u64) as usize;
            if let Some(bytes) = self.outcome.received[parcel.flow].get_mut(bin) {
                *bytes += (PACKET * u64::from(pkts)).0;
            }
        }
    }

    /// Looks at the queue once a bin.
    fn sample_queue(&mut self, now: Time) {
        loop {
            let at = Time::ZERO + self.outcome.bin * (self.outcome.queue.len() as u32 + 1);
            if at > now || self.outcome.queue.len() == self.outcome.received[0].len() {
                return;
            }
            self.outcome.queue.push(self.link.queue_delay(at));
            self.outcome.dropped_until.push(self.outcome.dropped_pkts);
            if self.trace {
                self.print_trace(at);
            }
        }
    }

    fn print_trace(&self, at: Time) {
        let bin = self.outcome.queue.len() - 1;
        for (index, flow) in self.flows.iter().enumerate() {
            let arrived = BitRate::of(Bytes(self.outcome.received[index][bin]), self.outcome.bin);
            let state = flow.controller.snapshot();
            println!(
                "{at} flow {index} {:9} arrived {arrived} pacing {} window {} bandwidth {} base loss {:.4} queue {:?} dropped {}",
                state.phase,
                flow.controller.rate(),
                flow.controller.window(),
                state.bandwidth.unwrap_or_default(),
                state.base_loss.unwrap_or_default(),
                self.outcome.queue[bin],
                self.outcome.dropped_pkts,
            );
        }
    }
}
