//! Window-based flows with and without pacing, alone, in pairs, and beside a constant flow.
//!
//! The path is that of the thesis: 1 Gbit/s, round-trip times of 50 to 200 ms, a switch with little memory; each flow lasts 300 s. Without pacing
//! whatever the window lets go leaves at once. Pacing is by the controller's estimate, window over round-trip time, as IPG-aware
//! scheduling has it.

mod cases;
mod seen;
mod show;

use std::time::Duration;

use haul_lab::{LinkOptions, QueueSize, WanSpec};
use haul_proto::Pacing;
use haul_scenarios::Kind;
use haul_sim::{CbrConfig, Flow, Path, Queue};

use self::cases::{Case, cases};
use self::seen::{Constant, Seen};
use super::ground::{Ground, Program, Sender};
use super::simulated::{plan, run_all};
use super::{Experiment, Report, Scale};
use crate::bench::MeasureError;

pub const PACING: Experiment = Experiment {
    name: "pacing",
    about: "Reno and FAST at 50 to 200 ms, alone, in pairs and beside constant UDP traffic, with and without pacing",
    reproduces: "PSPacer and IPG-aware packet scheduling on JGN2: throughput over time, loss and jitter of the cross traffic",
    simulate: simulated,
    measure: Some(measured),
};

fn simulated(scale: Scale) -> Report {
    let length = Duration::from_secs(scale.pick(5, 300));
    let cases = cases(scale);
    let plans: Vec<_> = cases.iter().map(|case| plan(path(case), flows(case), length)).collect();
    let seen = cases.into_iter().zip(run_all(&plans)).map(|(case, run)| Seen {
        series: run.series.into_iter().take(case.flows).collect(),
        constant: run.constant.iter().flatten().next().map(|meter| Constant { loss: meter.loss(), jitter: meter.mean_jitter() }),
        case,
    });
    show::report("simulated", length, &seen.collect::<Vec<_>>())
}

fn measured(scale: Scale, ground: &Ground<'_>) -> Report {
    let length = Duration::from_secs(scale.pick(5, 30));
    let cases = cases(scale);
    let (mut seen, mut notes) = (Vec::new(), Vec::new());
    for (case, number) in cases.iter().zip(1..) {
        ground.tell(&format!("{number}/{}: {}, {}", cases.len(), case.title(), show::pacing(case.pacing)));
        match ground.together(&wan(case), &senders(case, length)) {
            Ok(heard) => seen.push(Seen {
                case: *case,
                constant: heard.iter().find_map(|heard| {
                    let met = heard.constant.as_ref()?;
                    let jitter = Duration::try_from_secs_f64(met.jitter_s).unwrap_or_default();
                    Some(Constant { loss: met.loss, jitter })
                }),
                series: heard.into_iter().take(case.flows).map(|heard| heard.series).collect(),
            }),
            Err(MeasureError::Interrupted) => break,
            Err(error) => notes.push(format!("{}: failed, {error}", case.title())),
        }
    }
    Report { notes, ..show::report("real sockets over the emulated WAN", length, &seen) }
}

fn wan(case: &Case) -> WanSpec {
    let queue = QueueSize::Bytes(case.queue());
    WanSpec { link: LinkOptions { rate: case.rate, rtt: case.rtt, queue, ..LinkOptions::default() }, ..WanSpec::default() }
}

fn senders(case: &Case, length: Duration) -> Vec<Sender> {
    let sender =
        |program, from: Duration| Sender { program, from, lasts: length.saturating_sub(from), extra_rtt: Duration::ZERO };
    let haul = |number: usize| sender(Program::Haul(case.algorithm, case.pacing), cases::APART * number as u32);
    let cross = case.cross.map(|rate| sender(Program::Constant(rate), Duration::ZERO));
    (0..case.flows).map(haul).chain(cross).collect()
}

fn path(case: &Case) -> Path {
    Path::new(case.rate, case.rtt).queue(Queue::Bytes(case.queue()))
}

fn flows(case: &Case) -> Vec<Flow<Kind>> {
    let haul = match case.pacing {
        Pacing::On => Kind::Haul(case.algorithm),
        Pacing::Off => Kind::Unpaced(case.algorithm),
    };
    let flow = |number: usize| Flow { start: cases::APART * number as u32, ..Flow::endless(haul, 0, 1) };
    let cross = case.cross.map(|rate| Flow::endless(Kind::Cbr(CbrConfig::new(rate)), 0, 1));
    (0..case.flows).map(flow).chain(cross).collect()
}
