//! A cell of the study, played: the tree is laid, hosts listen, flows begin when it is their time, and what came of them is told as in simulation.

use std::io;
use std::net::SocketAddrV4;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

use haul_lab::{NamespaceError, Tree, TreeError, TreeSpec, now};
use haul_scenarios::fattree::{self, Arrival, DRAINING, Found, Long, SETTLING, Short, Study, Traffic};
use haul_units::{BitRate, Bytes, ProcessorTicks, Time};

use super::ledger::Ledger;
use super::listeners::{ListenError, Listeners, MPTCP_PORT, PORT};
use super::subflows::SubflowsError;
use super::way::{Sent, Way};
use super::{subflows, tcp, transport};
use crate::bench::processor_ticks;
use crate::experiment::Ground;

/// How many times slower everything is than in the study: the rates by themselves, all times with them.
pub const SLOWER: u32 = 5;

/// What came of a run.
#[derive(Debug)]
pub struct Came {
    pub found: Found,
    /// The flows without end, as they were.
    pub longs: Vec<Carried>,
    /// What each of the other flows sent by its subflows or paths.
    pub shorts: Vec<Vec<Bytes>>,
    /// The part of all processors' time that was not idle while short flows began.
    pub machine_busy: Option<f64>,
    /// Flows that failed otherwise than by being slow, and how the first of them did.
    pub failed: Option<(usize, String)>,
}

/// A flow without end.
#[derive(Debug)]
pub struct Carried {
    pub from: usize,
    pub to: usize,
    pub rate: BitRate,
    pub by_subflow: Vec<Bytes>,
}

#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error(transparent)]
    Mptcp(#[from] SubflowsError),
    #[error("interrupted")]
    Interrupted,
}

/// The tree of a seed: the study's rates, divided, its buffers, and TCP's least timeout as many times longer.
pub fn spec(seed: u64) -> TreeSpec {
    let [host, aggregation, core] = RATES_MBPS.map(|mbps| BitRate::from_bps(mbps * 1_000_000 / u64::from(SLOWER)));
    let least_timeout = LEAST_TIMEOUT * SLOWER;
    TreeSpec { ports: 4, host, aggregation, core, buffer: Bytes(100_000), least_timeout, seed }
}

/// Plays a study to its end; nothing of its tree is left then.
pub fn play(study: &Study, ground: &Ground<'_>) -> Result<Came, PlayError> {
    let [short, long] = [Some(study.foreground), study.background].map(|it| it.map(|it| Way::of(&it)));
    let tree = Tree::lay(&spec(study.seed))?;
    let traffic = fattree::traffic(study);
    subflows::prepare(&tree, &traffic, [long, short])?;
    let ledger = Ledger::new(traffic.flows.iter().map(|flow| flow.size));
    let mut listeners = Vec::new();
    for host in tree.hosts() {
        listeners.push(host.namespace.within(|| Listeners::open(host.address))??);
    }
    let stage = Stage { length: study.length, traffic: &traffic, tree: &tree, ledger: &ledger, short, long };
    let (outcomes, between) = std::thread::scope(|scope| {
        for listeners in &listeners {
            listeners.attend(scope, &ledger);
        }
        let played = stage.direct(scope, ground);
        // Whatever came of it: those who wait and send go, then those who receive, and the scope can end.
        ledger.end();
        let outcomes = played.map(Played::outcomes);
        ledger.close();
        outcomes
    })?;
    Ok(stage.came(&outcomes, &between))
}

/// What a run consists of.
struct Stage<'a> {
    /// How long short flows begin in the study.
    length: Duration,
    traffic: &'a Traffic,
    tree: &'a Tree,
    ledger: &'a Ledger,
    short: Option<Way>,
    long: Option<Way>,
}

/// A sender that has begun: the number of its flow, and when.
type Sender<'scope> = (usize, Time, ScopedJoinHandle<'scope, io::Result<Sent>>);

/// Senders that have begun, and what was done meanwhile.
struct Played<'scope> {
    senders: Vec<Sender<'scope>>,
    between: [Standing; 2],
}

/// A sender that has ended.
struct Outcome {
    flow: usize,
    began: Time,
    sent: io::Result<Sent>,
}

/// What had been done at some time.
struct Standing {
    at: Time,
    /// Of each flow without end.
    received: Vec<Bytes>,
    core: Bytes,
    ticks: Option<ProcessorTicks>,
}

impl Played<'_> {
    /// In the order of the flows.
    fn outcomes(self) -> (Vec<Outcome>, [Standing; 2]) {
        let outcome = |(flow, began, sender): Sender<'_>| {
            let sent = sender.join().unwrap_or_else(|_| Err(io::Error::other("the sender failed")));
            Outcome { flow, began, sent }
        };
        let mut outcomes: Vec<Outcome> = self.senders.into_iter().map(outcome).collect();
        outcomes.sort_by_key(|outcome| outcome.flow);
        (outcomes, self.between)
    }
}

impl Stage<'_> {
    /// Lets flows begin, until all that have an end are over or the time for it is.
    fn direct<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>, ground: &Ground<'_>) -> Result<Played<'scope>, PlayError> {
        let start = |flow: usize| self.traffic.flows[flow].start * SLOWER;
        let mut order: Vec<usize> = (0..self.traffic.flows.len()).collect();
        order.sort_by_key(|flow| start(*flow));
        let mut order = order.into_iter().peekable();
        let (from, to) = (SETTLING * SLOWER, (SETTLING + self.length) * SLOWER);
        let (mut senders, mut before, mut after) = (Vec::new(), None, None);
        let begin = now();
        loop {
            if !ground.go_on() {
                return Err(PlayError::Interrupted);
            }
            let passed = now().since(begin);
            while let Some(flow) = order.next_if(|flow| start(*flow) <= passed) {
                senders.push((flow, now(), scope.spawn(move || self.send(flow))));
            }
            if passed >= from && before.is_none() {
                before = Some(self.standing());
            }
            if passed >= to && after.is_none() {
                after = Some(self.standing());
            }
            let is_over = self.ledger.is_complete() || passed >= to + DRAINING * SLOWER;
            match (before.take(), after.take()) {
                (Some(before), Some(after)) if is_over => return Ok(Played { senders, between: [before, after] }),
                earlier => (before, after) = earlier,
            }
            let next = order.peek().map_or(GLANCE, |flow| start(*flow).saturating_sub(passed));
            std::thread::park_timeout(next.min(GLANCE));
        }
    }

    /// In a thread that does nothing else.
    fn send(&self, number: usize) -> io::Result<Sent> {
        let (flow, ledger) = (&self.traffic.flows[number], self.ledger);
        let way = if number < self.traffic.long { self.long } else { self.short };
        let [from, to] = [flow.from, flow.to].map(|host| &self.tree.hosts()[host]);
        from.namespace.enter().map_err(io::Error::other)?;
        let at = |port| SocketAddrV4::new(to.address, port);
        match way {
            Some(Way::Tcp) => tcp::flow(at(PORT), false, number, flow.size, ledger),
            Some(Way::Mptcp) => tcp::flow(at(MPTCP_PORT), true, number, flow.size, ledger),
            Some(Way::Haul(mode, paths)) => transport::flow((from.address, at(PORT)), (mode, paths), number, flow.size, ledger),
            None => Ok(Sent::default()),
        }
    }

    fn standing(&self) -> Standing {
        Standing {
            at: now(),
            received: (0..self.traffic.long).map(|flow| self.ledger.received(flow)).collect(),
            core: self.tree.core_carried().into_iter().flatten().sum(),
            ticks: processor_ticks(),
        }
    }

    fn came(&self, outcomes: &[Outcome], [before, after]: &[Standing; 2]) -> Came {
        let lasted = after.at.since(before.at);
        let (long, short) = outcomes.split_at(self.traffic.long.min(outcomes.len()));
        let by_subflow = |outcome: &Outcome| outcome.sent.as_ref().map(|sent| sent.by_subflow.clone()).unwrap_or_default();
        let longs: Vec<Carried> = long
            .iter()
            .zip(before.received.iter().zip(&after.received))
            .map(|(outcome, (before, after))| {
                let flow = &self.traffic.flows[outcome.flow];
                let rate = BitRate::of(after.saturating_sub(*before), lasted);
                Carried { from: flow.from, to: flow.to, rate, by_subflow: by_subflow(outcome) }
            })
            .collect();
        let core_bits = after.core.saturating_sub(before.core).as_u64() as f64 * 8.0;
        let mut failures = outcomes.iter().filter_map(|outcome| outcome.sent.as_ref().err());
        let first = failures.next().map(ToString::to_string);
        Came {
            found: Found {
                shorts: self.traffic.arrivals.iter().map(|arrival| self.arrived(arrival, outcomes)).collect(),
                longs: longs.iter().map(|long| Long { rate: long.rate, sent: long.by_subflow.clone() }).collect(),
                core_use: core_bits / (self.tree.core_rate().as_bps() as f64 * lasted.as_secs_f64()).max(1.0),
                events: 0,
            },
            longs,
            shorts: short.iter().map(by_subflow).collect(),
            machine_busy: before.ticks.zip(after.ticks).and_then(|(before, after)| after.taken_since(before)),
            failed: first.map(|first| (failures.count() + 1, first)),
        }
    }

    /// What somebody waited for: from the moment at which the first of its flows began.
    fn arrived(&self, arrival: &Arrival, outcomes: &[Outcome]) -> Short {
        let of = outcomes.get(arrival.flows.clone()).unwrap_or_default();
        let began = of.iter().map(|outcome| outcome.began).min();
        let ended = arrival.flows.clone().map(|flow| self.ledger.complete_at(flow)).collect::<Option<Vec<Time>>>();
        let sent = || of.iter().filter_map(|outcome| outcome.sent.as_ref().ok());
        Short {
            size: arrival.flows.clone().filter_map(|flow| self.traffic.flows[flow].size).sum(),
            took: ended.and_then(|ended| ended.into_iter().max()).zip(began).map(|(ended, began)| ended.since(began)),
            resent_pkts: sent().map(|sent| sent.resent_pkts).sum(),
            timeouts: sent().map(|sent| sent.timeouts).sum(),
        }
    }
}

/// The study's, from the hosts up.
const RATES_MBPS: [u64; 3] = [100, 200, 400];
/// The kernel's, where nobody has changed it.
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);
/// Between two looks at whether all is over.
const GLANCE: Duration = Duration::from_millis(20);
