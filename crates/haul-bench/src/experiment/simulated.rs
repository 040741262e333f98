//! Plans run side by side, and what they give.

use std::borrow::Cow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_scenarios::{Kind, measure_constant};
use haul_sim::{CbrMeter, Flow, Outcome, Path, Plan, TcpConfig, Topology};
use haul_units::{BitRate, Bytes};

use crate::bench::Series;

/// What came of a plan.
#[derive(Debug, Clone)]
pub struct Run {
    /// As the simulator tells it.
    pub outcome: Outcome,
    /// What arrived when, by flow.
    pub series: Vec<Series>,
    /// What the receivers of constant flows have measured, by flow.
    pub constant: Vec<Option<CbrMeter>>,
}

/// Flows over one path, from one side to the other.
pub fn plan(path: Path, flows: Vec<Flow<Kind>>, length: Duration) -> Plan<Kind> {
    let topology = Topology::Dumbbell { pairs: 1, path };
    Plan { name: "experiment", seed: 1, topology, flows: Cow::Owned(flows), length, checks: &[] }
}

/// Runs plans on all processors; the results come in the order of the plans.
pub fn run_all(plans: &[Plan<Kind>]) -> Vec<Run> {
    in_parallel(plans, run)
}

/// Does something with each, on all processors; the results come in the order of what was given.
pub fn in_parallel<T: Sync, R: Send>(all: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let results: Mutex<Vec<Option<R>>> = Mutex::new(all.iter().map(|_| None).collect());
    let next = AtomicUsize::new(0);
    let workers = thread::available_parallelism().map_or(1, usize::from).min(all.len());
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((number, one)) = {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    all.get(number).map(|one| (number, one))
                } {
                    let result = work(one);
                    results.lock().unwrap_or_else(PoisonError::into_inner)[number] = Some(result);
                }
            });
        }
    });
    // Every number was taken by some worker, and a worker that panics takes the scope with it.
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().flatten().collect()
}

fn run(plan: &Plan<Kind>) -> Run {
    let (outcome, constant) = measure_constant(plan);
    let series = outcome.series.iter().map(|bins| coarse(bins, outcome.bin)).collect();
    Run { outcome, series, constant }
}

/// In stretches of a tenth of a second, or of the simulator's own where they are longer.
fn coarse(bins: &[Bytes], bin: Duration) -> Series {
    let each = (STRETCH.as_secs_f64() / bin.as_secs_f64()).round().max(1.0) as usize;
    let stretch = |(number, bins): (usize, &[Bytes])| {
        let end = bin * (number * each + bins.len()) as u32;
        (end, bins.iter().copied().sum::<Bytes>())
    };
    bins.chunks(each).enumerate().map(stretch).collect()
}

/// Someone whom the simulator knows.
#[derive(Debug, Clone, Copy)]
pub struct Contender {
    /// As in tables and charts.
    pub title: &'static str,
    /// The look in charts: the same as on real sockets.
    pub look: usize,
    /// What it is made of.
    pub kind: Kind,
}

/// haul in the mode that measures at the first moment.
pub const QUICKSTART: Contender =
    Contender { title: "haul, quickstart", look: 8, kind: Kind::Haul(ControllerChoice::Quickstart) };

/// haul in the mode that users get, and the TCP models.
pub const CONTENDERS: &[Contender] = &[
    Contender { title: "haul", look: 0, kind: Kind::Haul(ControllerChoice::Fair) },
    Contender { title: "TCP CUBIC", look: 1, kind: Kind::Tcp(TcpConfig::CUBIC) },
    Contender { title: "TCP BBR", look: 2, kind: Kind::Tcp(TcpConfig::BBR) },
    Contender { title: "TCP Reno", look: 3, kind: Kind::Tcp(TcpConfig::RENO) },
];

/// What a path carries of haul's payload in packets of 1500 bytes, losses taken off.
pub fn limit(path: &Path) -> BitRate {
    path.rate.scaled(1428.0 / 1500.0 * (1.0 - path.loss))
}

const STRETCH: Duration = Duration::from_millis(100);
