//! Window-based flows with and without pacing, alone, in pairs, and beside a constant flow.
//!
//! The path is that of the thesis: 1 Gbit/s, round-trip times of 50 to 200 ms, a switch with little memory; each flow lasts 300 s. Without pacing
//! whatever the window lets go leaves at once. Pacing is by the controller's estimate, window over round-trip time, as IPG-aware
//! scheduling has it. On real sockets the kernel's own TCP does the same: it lets its window go at once too, and is paced as `haul pace --rate 930M` does it, the thesis's rate.

mod cases;
mod seen;
mod show;

use std::time::Duration;

use haul_lab::{LinkOptions, QueueSize, WanSpec};
use haul_proto::Pacing;
use haul_scenarios::Kind;
use haul_sim::{CbrConfig, Flow, Path, Queue};
use haul_tcp::{Pace, PaceClass, PaceRun, TcpError};
use haul_units::Network;

use self::cases::{Case, Who};
use self::seen::{Constant, Seen};
use super::ground::{Ground, Program, Sender};
use super::kernel::with_laws;
use super::simulated::{plan, run_all};
use super::{Experiment, Report, Scale};
use crate::bench::MeasureError;

pub const PACING: Experiment = Experiment {
    name: "pacing",
    about: "Reno and FAST at 50 to 200 ms, alone, in pairs and beside constant UDP traffic, with and without pacing",
    reproduces: "PSPacer and IPG-aware packet scheduling on JGN2: throughput over time, loss and jitter of the cross traffic",
    simulate: Some(simulated),
    measure: measured,
};

fn simulated(scale: Scale) -> Report {
    let length = Duration::from_secs(scale.pick(5, 300));
    let cases = cases::of_haul(scale);
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
    let (mut seen, mut notes) = (Vec::new(), Vec::new());
    run(&cases::of_haul(scale), length, ground, &mut seen, &mut notes);
    if ground.go_on() {
        let laws = with_laws(|| {
            run(&cases::of_the_kernel(scale), length, ground, &mut seen, &mut notes);
            Report::default()
        });
        notes.extend(laws.notes);
    }
    Report { notes, ..show::report("real sockets over the emulated WAN", length, &seen) }
}

/// Runs cases one after the other, as far as it is let.
fn run(cases: &[Case], length: Duration, ground: &Ground<'_>, seen: &mut Vec<Seen>, notes: &mut Vec<String>) {
    for (case, number) in cases.iter().zip(1..) {
        ground.tell(&format!("{number}/{}: {}, {}", cases.len(), case.title(), show::pacing(case.pacing)));
        let pace = match paced(case) {
            Ok(pace) => pace,
            Err(error) => {
                notes.push(format!("{}: not paced, {error}", case.title()));
                continue;
            }
        };
        let met = ground.together(&wan(case), &senders(case, length));
        drop(pace);
        match met {
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
}

/// What holds the kernel's TCP to 93 % of the path, as the thesis does, where the case is one of it with pacing: what is started meanwhile is held.
fn paced(case: &Case) -> Result<Option<PaceRun>, TcpError> {
    if matches!(case.who, Who::Haul(_)) || case.pacing == Pacing::Off {
        return Ok(None);
    }
    // Those that send. Their peers are the receivers' connections, which would have a part of the rate otherwise.
    let to = Network::exact(RECEIVERS).ok();
    let class = PaceClass { to, bits_per_s: case.rate.scaled(PACED).as_bps(), follows: false };
    Pace::default().run(&[class], None).map(Some)
}

fn wan(case: &Case) -> WanSpec {
    let queue = QueueSize::Bytes(case.queue());
    WanSpec { link: LinkOptions { rate: case.rate, rtt: case.rtt, queue, ..LinkOptions::default() }, ..WanSpec::default() }
}

fn senders(case: &Case, length: Duration) -> Vec<Sender> {
    let sender =
        |program, from: Duration| Sender { program, from, lasts: length.saturating_sub(from), extra_rtt: Duration::ZERO };
    let one = |number: usize| sender(case.who.program(case.pacing), cases::APART * number as u32);
    let cross = case.cross.map(|rate| sender(Program::Constant(rate), Duration::ZERO));
    (0..case.flows).map(one).chain(cross).collect()
}

fn path(case: &Case) -> Path {
    Path::new(case.rate, case.rtt).queue(Queue::Bytes(case.queue()))
}

fn flows(case: &Case) -> Vec<Flow<Kind>> {
    // The kernel's TCP has no virtual time.
    let Who::Haul(algorithm) = case.who else { return Vec::new() };
    let haul = match case.pacing {
        Pacing::On => Kind::Haul(algorithm),
        Pacing::Off => Kind::Unpaced(algorithm),
    };
    let flow = |number: usize| Flow { start: cases::APART * number as u32, ..Flow::endless(haul, 0, 1) };
    let cross = case.cross.map(|rate| Flow::endless(Kind::Cbr(CbrConfig::new(rate)), 0, 1));
    (0..case.flows).map(flow).chain(cross).collect()
}

/// Of side b of the WAN (`haul_lab`).
const RECEIVERS: &str = "10.80.128.0/17";
/// 930 Mbit/s of 1 Gbit/s.
const PACED: f64 = 0.93;
