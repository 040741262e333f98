//! Who gets how much of a path that is shared: the goals of each mode, with their values and verdicts.
//!
//! The cases are data and know nothing of how they are run: in simulation and on real sockets the same cases give a [`Seen`] each, and the
//! same rules judge it.

mod cases;
mod judge;

use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_lab::{LinkOptions, QueueSize, WanSpec};
use haul_proto::Pacing;
use haul_scenarios::Kind;
use haul_sim::{Flow, Path, Plan, Queue, TcpConfig};
use haul_tcp::Law;
use haul_units::{Bytes, Ratio};

use self::cases::{CASES, Case, KERNEL_CASES, Party, Who};
use self::judge::Seen;
use super::comparison::{mbps, smoothed};
use super::ground::{self, Attempt, Ground, Program, Sender};
use super::kernel::with_laws;
use super::simulated::{Run, plan, run_all};
use super::{Experiment, Report, Scale, Table};
use crate::bench::MeasureError;
use crate::plot::{Axis, Chart, Figure, Line};

pub const SHARING: Experiment = Experiment {
    name: "sharing",
    about: "Every mode among its own kind, beside CUBIC and BBR, and alone: each goal with its value and verdict",
    reproduces: "HpFP and xTCP: the modes aggressive, fair, fair with quick start, and modest",
    simulate: Some(simulated),
    measure: measured,
};

pub const KERNEL_SHARING: Experiment = Experiment {
    name: "kernel-sharing",
    about: "The kernel's TCP with haul's laws (haul tcp): each mode among its own kind, beside CUBIC and BBR, and alone",
    reproduces: "xTCP: the modes aggressive, fair and modest beside TCP, for programs that know nothing of them",
    simulate: Some(|scale| simulate(KERNEL_CASES, Duration::from_secs(scale.pick(6, 30)), scale)),
    measure: |scale, ground| {
        let length = Duration::from_secs(scale.pick(8, 30));
        with_laws(|| measure(KERNEL_CASES, length, scale, ground))
    },
};

fn simulated(scale: Scale) -> Report {
    simulate(CASES, Duration::from_secs(scale.pick(6, 60)), scale)
}

fn simulate(cases: &'static [Case], length: Duration, scale: Scale) -> Report {
    let runs: Vec<_> = cases.iter().flat_map(|case| (1..=runs(case, scale)).map(move |run| (case, run))).collect();
    let plan = |&(case, run)| Plan { seed: u64::from(run), ..plan(path(case), flows(case, run, length), length) };
    let plans: Vec<_> = runs.iter().map(plan).collect();
    let seen: Vec<Seen> = runs.iter().zip(run_all(&plans)).map(|(&(case, run), came)| seen(case, run, came, length)).collect();
    report("simulated", length, &seen)
}

fn measured(scale: Scale, ground: &Ground<'_>) -> Report {
    measure(CASES, Duration::from_secs(scale.pick(8, 60)), scale, ground)
}

fn measure(cases: &'static [Case], length: Duration, scale: Scale, ground: &Ground<'_>) -> Report {
    let cases = cases.iter().filter(|case| scale == Scale::Full || QUICK.contains(&case.name));
    let wanted: Vec<_> = cases.flat_map(|case| (1..=runs(case, scale)).map(move |run| (case, run))).collect();
    let (mut seen, mut disturbed, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let again = scale.pick(0, AGAIN);
    let mut spare = again;
    for (&(case, run), number) in wanted.iter().zip(1..) {
        ground.tell(&format!("{number}/{}: {}", wanted.len(), case.name));
        match ground.undisturbed(&wan(case), &senders(case, length), &mut spare) {
            Ok(attempts) => {
                let mut attempts = attempts.into_iter().map(|Attempt { heard, stolen }| Seen {
                    case,
                    run,
                    length,
                    ended: case.parties.iter().map(|party| party.until.map(|part| length.mul_f64(part))).collect(),
                    queue_p95: ground::queue_p95(&heard, length / 2),
                    stolen,
                    series: heard.into_iter().map(|heard| heard.series).collect(),
                });
                seen.extend(attempts.next());
                disturbed.extend(attempts);
            }
            Err(MeasureError::Interrupted) => break,
            Err(error) => notes.push(format!("{}: failed, {error}", case.name)),
        }
    }
    notes.push("the queue is that which the first flow's sender sees: its round-trip times above the path's".to_owned());
    if spare < again {
        let runs = again - spare;
        notes.push(format!("{runs} runs were disturbed by the machine's host, which took processor time away, and made again (of {again} at most); report.json has them too"));
    }
    let mut report = report("real sockets over the emulated WAN", length, &seen);
    if let Some(data) = report.data.as_array_mut() {
        data.extend(disturbed.iter().map(|seen| saved(seen, false)));
    }
    Report { notes, ..report }
}

/// A run as programs read it; one that was disturbed more than another of the same counts for nothing.
fn saved(seen: &Seen, counts: bool) -> serde_json::Value {
    let Seen { case, run, stolen, series, .. } = seen;
    serde_json::json!({ "case": case.name, "run": run, "counts": counts, "stolen": stolen, "series": series })
}

fn runs(case: &Case, scale: Scale) -> u32 {
    scale.pick(1, case.runs)
}

/// The path on real sockets; who is farther away than others has a relay on its way.
fn wan(case: &Case) -> WanSpec {
    let Path { rate, rtt, loss, .. } = path(case);
    let queue = QueueSize::Bytes(cases::RATE.bytes_in(cases::RTT));
    WanSpec { link: LinkOptions { rate, rtt, loss: Ratio::new(loss), queue, ..LinkOptions::default() }, ..WanSpec::default() }
}

fn senders(case: &Case, length: Duration) -> Vec<Sender> {
    let near = path(case).rtt;
    let sender = |party: &Party| {
        let (from, until) = (length.mul_f64(party.from), party.until.map_or(length, |part| length.mul_f64(part)));
        let program = match party.who {
            Who::Haul(mode) => Program::Haul(mode, Pacing::On),
            Who::Kernel(law) => Program::Tcp(law.kernel_name()),
            Who::Cubic => Program::Tcp("cubic"),
            Who::Bbr => Program::Tcp("bbr"),
        };
        Sender { program, from, lasts: until.saturating_sub(from), extra_rtt: party.rtt.saturating_sub(near) }
    };
    case.parties.iter().map(sender).collect()
}

/// The path in simulation; that with the long way is the short one, and the far flow has a way of its own besides.
fn path(case: &Case) -> Path {
    let near = case.parties.iter().map(|party| party.rtt).min().unwrap_or(cases::RTT);
    let queue = Queue::Bytes(cases::RATE.bytes_in(cases::RTT));
    Path::new(cases::RATE, near).loss(case.loss).queue(queue)
}

/// The flows of a run. Where nothing is lost by chance a seed changes next to nothing: the later ones of each run meet the first one at another moment, within a round
/// trip of each other, as programs that are started by hand would.
fn flows(case: &Case, run: u32, length: Duration) -> Vec<Flow<Kind>> {
    let near = path(case).rtt;
    let later = near.mul_f64(f64::from(run - 1) / f64::from(case.runs));
    let flow = |party: &Party| {
        let size = party.until.map(|part| {
            // One that comes soon is taken to have been there all the time.
            let time = length.mul_f64(if party.from < SOON { part } else { part - party.from });
            Bytes((cases::RATE.bytes_in(time).as_u64() as f64 * GUEST_SHARE) as u64)
        });
        let start = length.mul_f64(party.from) + if party.from > 0.0 { later } else { Duration::ZERO };
        Flow { start, size, extra_rtt: party.rtt.saturating_sub(near), ..Flow::endless(kind(party.who), 0, 1) }
    };
    case.parties.iter().map(flow).collect()
}

fn kind(who: Who) -> Kind {
    match who {
        Who::Haul(mode) => Kind::Haul(mode),
        Who::Kernel(Law::Quickstart) => Kind::Haul(ControllerChoice::Quickstart),
        Who::Kernel(Law::Modest) => Kind::Haul(ControllerChoice::Modest),
        Who::Kernel(Law::Aggressive) => Kind::Haul(ControllerChoice::Aggressive),
        Who::Kernel(_) => Kind::Haul(ControllerChoice::Fair),
        Who::Cubic => Kind::Tcp(TcpConfig::CUBIC),
        Who::Bbr => Kind::Tcp(TcpConfig::BBR),
    }
}

fn seen(case: &'static Case, run: u32, came: Run, length: Duration) -> Seen {
    let ended =
        came.outcome.completed.iter().zip(case.parties).map(|(time, party)| time.map(|time| time + length.mul_f64(party.from)));
    Seen { case, run, length, ended: ended.collect(), queue_p95: Some(came.outcome.queue_p95), stolen: None, series: came.series }
}

fn report(how: &str, length: Duration, seen: &[Seen]) -> Report {
    let conditions = format!(
        "{}, {} ms, queue of one bandwidth-delay product, {} s, the second half counts, {how}",
        cases::RATE,
        cases::RTT.as_millis(),
        length.as_secs_f64()
    );
    Report {
        heading: format!("Sharing a path: {conditions}"),
        verdicts: judge::judge(seen),
        tables: vec![table(seen)],
        charts: vec![("rates".to_owned(), figure(seen, &conditions))],
        data: seen.iter().map(|seen| saved(seen, true)).collect(),
        ..Report::default()
    }
}

fn table(seen: &[Seen]) -> Table {
    let columns = ["case", "Jain", "used %", "queue p95 ms", "stolen %", "rates Mbit/s, in order of start"];
    let mut table = Table::new("shares", "Shares in the second half", &columns);
    for seen in seen {
        let rates: Vec<String> = (0..seen.series.len()).map(|flow| format!("{:.1}", mbps(seen.rate(flow)))).collect();
        let queue = seen.queue_p95.map_or_else(|| "-".to_owned(), |queue| format!("{:.1}", queue.as_secs_f64() * 1e3));
        table.rows.push(vec![
            seen.name(),
            format!("{:.3}", seen.jain()),
            format!("{:.1}", seen.used() * 100.0),
            queue,
            seen.stolen.map_or_else(|| "-".to_owned(), |stolen| format!("{:.1}", stolen * 100.0)),
            rates.join(" "),
        ]);
    }
    table
}

fn figure(seen: &[Seen], conditions: &str) -> Figure {
    let charts = seen.iter().map(chart).collect();
    Figure { title: "Sharing a path".to_owned(), subtitle: conditions.to_owned(), charts, columns: 3 }
}

fn chart(seen: &Seen) -> Chart {
    let mut looks = [0usize; 3];
    let line = |(flow, series): (usize, &crate::bench::Series)| {
        let who = seen.case.parties[flow].who;
        let (class, title) = match who {
            Who::Haul(_) => (0, "haul"),
            Who::Kernel(law) => (0, law.name()),
            Who::Cubic => (1, "TCP CUBIC"),
            Who::Bbr => (2, "TCP BBR"),
        };
        looks[class] += 1;
        let name = if looks[class] == 1 { title.to_owned() } else { format!("{title}, flow {}", looks[class]) };
        // One look each for those who are alone of their kind; further flows of haul get what is left.
        let look = if looks[class] == 1 { class } else { looks[class] + 1 };
        Line::through(name, smoothed(series)).plain().look(look)
    };
    let lines = seen.series.iter().enumerate().map(line).filter(|line| !line.points.is_empty()).collect();
    let axes = (
        Axis::linear("time", "s").range(0.0, seen.length.as_secs_f64()),
        Axis::linear("arriving", "Mbit/s").range(0.0, mbps(cases::RATE)),
    );
    Chart::lines(axes.0, axes.1, lines).titled(seen.name())
}

/// How many runs may be made again because they were disturbed.
const AGAIN: u32 = 12;
/// Enough to see that all kinds of programs work.
const QUICK: &[&str] = &["2 fair", "fair, CUBIC"];
/// What a guest that leaves is taken to get of the link, so that it leaves about when it should.
const GUEST_SHARE: f64 = 0.85;
/// Before this part of the time.
const SOON: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runs_of_a_case_are_not_one() {
        let case = CASES.iter().find(|case| case.name == "fair, CUBIC").expect("it is there");
        assert!(case.runs > 1 && case.loss == 0.0);
        let length = Duration::from_secs(4);
        let plans: Vec<_> =
            (1..=2).map(|run| Plan { seed: run.into(), ..plan(path(case), flows(case, run, length), length) }).collect();
        let came = run_all(&plans);
        for flow in 0..2 {
            assert_ne!(came[0].outcome.received[flow], came[1].outcome.received[flow], "flow {flow}");
        }
    }
}
