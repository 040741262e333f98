//! Several paths of one connection and one other flow on one bottleneck: to the other they are to be one flow.

use std::borrow::Cow;
use std::time::Duration;

use haul_cc::ControllerChoice::{self, Fair};
use haul_lab::{LinkOptions, QueueSize, WanSpec};
use haul_proto::Pacing;
use haul_scenarios::Kind;
use haul_sim::{Flow, Path, Plan, Queue, TcpConfig, Topology, Ways};
use haul_units::BitRate;

use super::comparison::{mbps, short, smoothed};
use super::ground::{Attempt, Ground, Program, Sender};
use super::simulated::run_all;
use super::{Experiment, Judged, Report, Scale, Table};
use crate::bench::{MeasureError, Series};
use crate::plot::{Axis, Chart, Figure, Line};

pub const COMPANY: Experiment = Experiment {
    name: "company",
    about: "A connection of 1, 2, 4 and 8 paths beside one flow of CUBIC, BBR or haul on one bottleneck: what it takes",
    reproduces: "RFC 6356, goal 2: a multipath flow takes no more of a shared link than a single-path flow would",
    simulate: Some(simulated),
    measure: measured,
};

/// Who is there already when the other has come.
#[derive(Debug, Clone, Copy)]
struct Rival {
    name: &'static str,
    program: Program,
    kind: Kind,
    /// How often each number of paths is tried beside it. Where a queue overflows it is chance whom it hits, for half a minute.
    runs: u32,
}

const RIVALS: [Rival; 3] = [
    Rival { name: "CUBIC", program: Program::Tcp("cubic"), kind: Kind::Tcp(TcpConfig::CUBIC), runs: 3 },
    Rival { name: "BBR", program: Program::Tcp("bbr"), kind: Kind::Tcp(TcpConfig::BBR), runs: 3 },
    Rival { name: "fair", program: Program::Haul(Fair, Pacing::On), kind: Kind::Haul(Fair), runs: 1 },
];

/// One run: so many paths beside a rival.
#[derive(Debug, Clone, Copy)]
struct Case {
    rival: Rival,
    paths: u8,
    run: u32,
}

/// What arrived of the connection, and of its rival.
#[derive(Debug)]
struct Seen {
    case: Case,
    ours: Series,
    theirs: Series,
    /// Part of the processors' time that the machine's host kept for others, where programs ran.
    stolen: Option<f64>,
}

fn cases(scale: Scale) -> Vec<Case> {
    let (rivals, counts): (&[Rival], &[u8]) = scale.pick((&RIVALS[2..], &[1, 4]), (&RIVALS, &[1, 2, 4, 8]));
    let of = |&rival: &Rival| {
        let runs = scale.pick(1, rival.runs);
        counts.iter().flat_map(move |&paths| (1..=runs).map(move |run| Case { rival, paths, run }))
    };
    rivals.iter().flat_map(of).collect()
}

/// That paths share a bottleneck is found in some seconds, and looked at again after 15 s.
fn length(scale: Scale) -> Duration {
    Duration::from_secs(scale.pick(8, 40))
}

/// In simulation the others come at another moment in each run, within a round trip.
fn start(case: Case, length: Duration) -> Duration {
    length.mul_f64(LATER) + RTT.mul_f64(f64::from(case.run - 1) / f64::from(case.rival.runs))
}

fn simulated(scale: Scale) -> Report {
    let (cases, length) = (cases(scale), length(scale));
    let plan = |case: &Case| {
        let connection = Flow { ways: Ways::Hashed(case.paths.into()), ..Flow::endless(Kind::Haul(MODE), 0, 1) };
        let rival = Flow { start: start(*case, length), ..Flow::endless(case.rival.kind, 0, 1) };
        let topology = Topology::Dumbbell { pairs: 1, path: Path::new(RATE, RTT).queue(Queue::Bytes(RATE.bytes_in(RTT))) };
        let flows = Cow::Owned(vec![connection, rival]);
        Plan { name: "company", seed: u64::from(case.run), topology, flows, length, checks: &[] }
    };
    let plans: Vec<Plan<Kind>> = cases.iter().map(plan).collect();
    let seen = run_all(&plans).into_iter().zip(&cases).map(|(run, case)| {
        let mut series = run.series.into_iter();
        let (ours, theirs) = (series.next().unwrap_or_default(), series.next().unwrap_or_default());
        Seen { case: *case, ours, theirs, stolen: None }
    });
    report("simulated", scale, &seen.collect::<Vec<_>>(), &[], Vec::new())
}

fn measured(scale: Scale, ground: &Ground<'_>) -> Report {
    let (cases, length) = (cases(scale), length(scale));
    let (mut seen, mut disturbed, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let mut spare = scale.pick(0, AGAIN);
    for (case, number) in cases.iter().zip(1..) {
        ground.tell(&format!("{number}/{}: {}", cases.len(), title(*case)));
        match ground.undisturbed(&wan(), &senders(*case, length), &mut spare) {
            Ok(attempts) => {
                let mut attempts = attempts.into_iter().filter_map(|Attempt { heard, stolen }| {
                    let mut series = heard.into_iter().map(|heard| heard.series);
                    Some(Seen { case: *case, ours: series.next()?, theirs: series.next()?, stolen })
                });
                seen.extend(attempts.next());
                disturbed.extend(attempts);
            }
            Err(MeasureError::Interrupted) => break,
            Err(error) => notes.push(format!("{}: failed, {error}", title(*case))),
        }
    }
    let again = scale.pick(0, AGAIN) - spare;
    if again > 0 {
        notes.push(format!("{again} runs were disturbed by the machine's host, and made again; report.json has them too"));
    }
    report("real sockets over the emulated WAN", scale, &seen, &disturbed, notes)
}

fn wan() -> WanSpec {
    let queue = QueueSize::Bytes(RATE.bytes_in(RTT));
    WanSpec { link: LinkOptions { rate: RATE, rtt: RTT, queue, ..LinkOptions::default() }, ..WanSpec::default() }
}

fn senders(case: Case, length: Duration) -> [Sender; 2] {
    let from = length.mul_f64(LATER);
    let ours =
        Sender { program: Program::Paths(MODE, case.paths), from: Duration::ZERO, lasts: length, extra_rtt: Duration::ZERO };
    [ours, Sender { program: case.rival.program, from, lasts: length.saturating_sub(from), ..ours }]
}

fn title(case: Case) -> String {
    let run = if case.rival.runs > 1 { format!(", run {}", case.run) } else { String::new() };
    let paths = if case.paths == 1 { "1 path".to_owned() } else { format!("{} paths", case.paths) };
    format!("{paths} beside {}{run}", case.rival.name)
}

/// Mean over the runs of a rival and a number of paths, of the second half, in Mbit/s.
fn mean(seen: &[Seen], rival: Rival, paths: u8, series: impl Fn(&Seen) -> &Series, length: Duration) -> Option<f64> {
    let of = seen.iter().filter(|seen| seen.case.rival.name == rival.name && seen.case.paths == paths);
    let rates: Vec<f64> = of.map(|seen| mbps(series(seen).second_half(length))).collect();
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}

/// A run as programs read it; one that was disturbed more than another of the same counts for nothing.
fn saved(seen: &Seen, counts: bool) -> serde_json::Value {
    let Seen { case: Case { rival, paths, run }, ours, theirs, stolen } = seen;
    serde_json::json!({
        "beside": rival.name, "paths": paths, "run": run, "counts": counts, "stolen": stolen, "series": ours, "other": theirs,
    })
}

fn report(how: &str, scale: Scale, seen: &[Seen], disturbed: &[Seen], notes: Vec<String>) -> Report {
    let length = length(scale);
    let mut pairs: Vec<(Rival, u8)> = cases(scale).iter().map(|case| (case.rival, case.paths)).collect();
    pairs.dedup_by_key(|(rival, paths)| (rival.name, *paths));
    let columns = ["beside", "paths", "Mbit/s", "of one path's", "the other, Mbit/s", "runs"];
    let mut table = Table::new("company", "What so many paths take beside one flow, in the second half", &columns);
    let mut verdicts = Vec::new();
    for (rival, paths) in pairs {
        let ours = |paths| mean(seen, rival, paths, |seen| &seen.ours, length);
        let (taken, part) = (ours(paths), ours(paths).zip(ours(1)).map(|(many, one)| many / one));
        let print = |value: Option<f64>, print: &dyn Fn(f64) -> String| value.map_or_else(|| "-".to_owned(), print);
        let of = seen.iter().filter(|seen| (seen.case.rival.name, seen.case.paths) == (rival.name, paths));
        let runs: Vec<String> = of.map(|seen| short(mbps(seen.ours.second_half(length)))).collect();
        table.rows.push(vec![
            rival.name.to_owned(),
            paths.to_string(),
            print(taken, &short),
            print(part, &|part| format!("{part:.2}")),
            print(mean(seen, rival, paths, |seen| &seen.theirs, length), &short),
            runs.join(", "),
        ]);
        if paths > 1 {
            let (least, most) = ONE_FLOW;
            verdicts.push(Judged {
                who: format!("{paths} paths beside {}", rival.name),
                goal: format!("{least} to {most} of what one path takes"),
                value: part.map_or_else(|| "not measured".to_owned(), |part| format!("{part:.2}")),
                met: part.map(|part| (least..=most).contains(&part)),
            });
        }
    }
    let conditions = format!(
        "{RATE}, {} ms, queue of one bandwidth-delay product, mode {}, {} s, the other comes after {} s, {how}",
        RTT.as_millis(),
        MODE.name(),
        length.as_secs(),
        length.mul_f64(LATER).as_secs_f64()
    );
    Report {
        heading: format!("Several paths beside one flow: {conditions}"),
        verdicts,
        tables: vec![table],
        charts: vec![(
            "company".to_owned(),
            Figure {
                title: "Several paths beside one flow".to_owned(),
                subtitle: conditions,
                charts: seen.iter().filter(|seen| seen.case.run == 1).map(chart).collect(),
                columns: 4,
            },
        )],
        notes,
        data: seen.iter().map(|seen| saved(seen, true)).chain(disturbed.iter().map(|seen| saved(seen, false))).collect(),
        ..Report::default()
    }
}

fn chart(seen: &Seen) -> Chart {
    let line = |(name, series): (&str, &Series)| Line::through(name.to_owned(), smoothed(series)).plain();
    let lines = [("all paths", &seen.ours), (seen.case.rival.name, &seen.theirs)].map(line);
    let rate = Axis::linear("arriving", "Mbit/s").range(0.0, mbps(RATE));
    Chart::lines(Axis::linear("time", "s"), rate, lines.into()).titled(title(seen.case))
}

const MODE: ControllerChoice = Fair;
/// As in `sharing`.
const RATE: BitRate = BitRate::mbps(100);
const RTT: Duration = Duration::from_millis(50);
/// The other flow comes after this part of the time.
const LATER: f64 = 0.1;
/// What is one flow to others.
const ONE_FLOW: (f64, f64) = (0.8, 1.25);
/// How many runs may be made again because they were disturbed.
const AGAIN: u32 = 6;

#[cfg(test)]
mod tests {
    use haul_units::Bytes;

    use super::*;

    fn seen(paths: u8, run: u32, mbps: u64) -> Seen {
        let series = |mbps: u64| (1..=8u64).map(|n| (Duration::from_secs(n), Bytes(mbps * 125_000))).collect();
        Seen { case: Case { rival: RIVALS[2], paths, run }, ours: series(mbps), theirs: series(90 - mbps), stolen: None }
    }

    #[test]
    fn the_mean_of_the_runs_is_compared_with_that_of_one_path() {
        let all = [seen(1, 1, 40), seen(1, 2, 44), seen(4, 1, 42), seen(4, 2, 63)];
        let report = report("by hand", Scale::Quick, &all, &[], Vec::new());
        assert_eq!(report.tables[0].rows[1][..4], ["fair", "4", "52.5", "1.25"].map(str::to_owned), "{}", report.text());
        assert_eq!(report.verdicts.len(), 1);
        assert_eq!(report.verdicts[0].met, Some(true));
        let more = [seen(1, 1, 40), seen(4, 1, 51)];
        assert_eq!(super::report("by hand", Scale::Quick, &more, &[], Vec::new()).verdicts[0].met, Some(false));
    }

    /// Saved beside what counts, and in no mean.
    #[test]
    fn a_run_that_was_disturbed_is_kept_and_counts_for_nothing() {
        let disturbed = Seen { stolen: Some(0.2), ..seen(4, 1, 10) };
        let report = report("by hand", Scale::Quick, &[seen(1, 1, 40), seen(4, 1, 40)], &[disturbed], Vec::new());
        assert_eq!(report.tables[0].rows[1][2..4], ["40.0", "1.00"].map(str::to_owned), "{}", report.text());
        let of = |what: &str| report.data.as_array().expect("a list").iter().map(|run| run[what].clone()).collect::<Vec<_>>();
        assert_eq!(of("counts"), [true, true, false]);
        assert_eq!((of("paths"), of("stolen")[2].as_f64()), (vec![1.into(), 4.into(), 4.into()], Some(0.2)));
    }

    #[test]
    fn what_was_not_measured_is_not_met() {
        let report = report("by hand", Scale::Full, &[seen(1, 1, 40)], &[], Vec::new());
        assert!(report.verdicts.len() == 9 && report.verdicts.iter().all(|judged| judged.met.is_none()), "{}", report.text());
    }
}
