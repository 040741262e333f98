//! What came of the runs on real sockets: verdicts, tables, charts.

use std::collections::BTreeMap;
use std::time::Duration;

use haul_units::{BitRate, Bytes};
use serde::Serialize;

use super::fetchers::Fetcher;
use super::paper::{FAST, KILLED_MOST, PAPERS_SHARE, RTT, SERVERS, START, WANTED_SHARE};
use super::processors::{self, Counted, Spent};
use crate::bench::Series;
use crate::experiment::report::Judged;
use crate::experiment::{Report, Scale, Table};
use crate::plot::{Axis, Chart, Figure, Line};

/// Files that only their server has.
pub const OWN: &str = "own";
/// Each file on two servers.
pub const TWICE: &str = "twice";
/// What happens to a run whose first server goes in the middle.
pub const KILLED: &str = "the first is killed";

/// How large everything is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// A tenth of the paper's rates: fourteen hosts and the WAN between them on one machine, at a gigabit per second.
    Tenth,
    /// A hundredth: what two processors carry without being busy.
    Hundredth,
}

impl Size {
    pub const ALL: [Self; 2] = [Self::Tenth, Self::Hundredth];

    /// The client's link.
    pub const fn client(self) -> BitRate {
        match self {
            Self::Tenth => BitRate::gbps(1),
            Self::Hundredth => BitRate::mbps(100),
        }
    }

    /// Files of a server, all of the same size.
    pub fn files(self, scale: Scale) -> usize {
        match self {
            Self::Tenth => scale.pick(2, 12),
            Self::Hundredth => scale.pick(1, 4),
        }
    }
}

/// A run, as it was.
#[derive(Debug, Clone, Serialize)]
pub struct Ran {
    pub who: &'static str,
    pub servers: usize,
    pub size: Size,
    pub set: &'static str,
    pub fate: String,
    pub seconds: f64,
    pub payload_bytes: u64,
    /// IP bytes that the client's link delivered, since the command was typed.
    pub series: Series,
    /// What each server had brought, by the second that the command told.
    pub members: BTreeMap<String, Vec<(f64, u64)>>,
    /// Points of time that the command told: the first server up, the last one, files found, in seconds.
    pub parts: BTreeMap<String, f64>,
    /// The part of all processors' time that was not idle meanwhile.
    pub machine_busy: Option<f64>,
    /// What the client's programs and those that they waited for have used.
    pub client_cpu_s: Option<f64>,
    /// What everything at each host has used, where the system counts it.
    pub processors: Option<Spent>,
    pub client_memory_bytes: Option<u64>,
}

impl Ran {
    fn mean(&self) -> BitRate {
        BitRate::of(Bytes(self.payload_bytes), Duration::from_secs_f64(self.seconds))
    }

    /// IP bytes over the client's link from ten round trips after the first files' bytes to where nine tenths had come. What logging in takes on the link is less than a thousandth.
    fn after_start(&self) -> Option<BitRate> {
        let first = self.series.time_of(Bytes(self.series.total().as_u64() / 1000 + 1))? + START;
        let last = self.series.time_of(Bytes(self.series.total().as_u64() / 10 * 9))?;
        (last > first + RTT).then(|| self.series.mean_between(first, last))
    }

    /// Processor time of the client, by the surer count where there are two.
    fn client_cpu(&self) -> Option<f64> {
        self.processors.as_ref().map(|spent| spent.client_s).or(self.client_cpu_s)
    }

    /// From the command to where four fifths of the link are used over a round trip.
    fn until_four_fifths(&self) -> Option<f64> {
        self.series.time_to(self.size.client().scaled(0.8), RTT).map(|time| time.as_secs_f64())
    }
}

/// Everything that was run, at all sizes.
pub fn report(scale: Scale, ran: &[Ran], notes: Vec<String>) -> Report {
    let mut report = Report {
        heading: format!(
            "Fleet: {FAST} fast servers and {} of a tenth of their rate, {} ms, a client as fast as one of the fast, files of 12.5 MB; real sockets over the emulated WAN",
            SERVERS - FAST,
            RTT.as_millis()
        ),
        notes,
        data: serde_json::json!(ran),
        ..Report::default()
    };
    for size in Size::ALL {
        let of_size: Vec<&Ran> = ran.iter().filter(|run| run.size == size).collect();
        let whole: Vec<&Ran> = of_size.iter().copied().filter(|run| run.servers == SERVERS).collect();
        if whole.is_empty() {
            continue;
        }
        report.verdicts.extend(verdicts(size, &whole));
        report.tables.push(jobs(size, size.files(scale), &whole));
        let numbers = numbers(&of_size);
        if numbers.rows.len() > 1 {
            report.tables.push(numbers);
        }
        report.tables.push(parts(size, &whole));
        let title = format!("A client of {}, processor time [s] from the command to its end", size.client());
        report.tables.extend(processors::table(&named(size, "processors"), &title, SERVERS, &counted(&whole)));
        report.charts.extend(charts(size, &whole, &of_size));
    }
    report
}

fn verdicts(size: Size, whole: &[&Ran]) -> Vec<Judged> {
    let who = format!("haul fleet get, {}", size.client());
    let ours = whole.iter().find(|run| run.who == Fetcher::Fleet.name() && run.set == OWN);
    let share = |rate: BitRate| rate.as_bps() as f64 / size.client().as_bps() as f64;
    let steady = ours.and_then(|run| run.after_start()).map(share);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let others = || whole.iter().filter(|run| run.set == OWN && !run.who.contains("fleet"));
    let beside = |of: &dyn Fn(&Ran) -> Option<BitRate>| {
        let best = others().filter_map(|run| of(run)).max()?;
        Some(of(ours?)?.as_bps() as f64 / best.as_bps().max(1) as f64)
    };
    let ratio = |ratio: f64| format!("{ratio:.2}");
    let twice = |fate: &str| whole.iter().find(|run| run.who == Fetcher::Fleet.name() && run.set == TWICE && run.fate == fate);
    // The others have room enough for the whole link, so a server that is gone costs no capacity.
    let killed = twice(KILLED).zip(twice("")).map(|(killed, well)| killed.seconds / well.seconds);
    let mut judged = vec![
        Judged::at_least(&who, "of the client's link after 10 RTT", steady, WANTED_SHARE, percent),
        Judged::at_least(&who, "of the client's link after 10 RTT, the paper:", steady, PAPERS_SHARE, percent),
        Judged::at_least(&who, "after 10 RTT beside the best of the others", beside(&|run| run.after_start()), 1.0, ratio),
        Judged::at_least(
            &who,
            "payload over the whole job beside the best of the others",
            beside(&|run| Some(run.mean())),
            1.0,
            ratio,
        ),
    ];
    if killed.is_some() {
        judged.push(Judged::at_most(
            &who,
            "time of the job where a server is killed beside none killed",
            killed,
            KILLED_MOST,
            ratio,
        ));
    }
    judged
}

fn mbps(rate: BitRate) -> String {
    format!("{:.0}", rate.as_bps() as f64 / 1e6)
}

/// The name of what belongs to a size.
fn named(size: Size, name: &str) -> String {
    match size {
        Size::Tenth => name.to_owned(),
        Size::Hundredth => format!("{name}-100m"),
    }
}

fn jobs(size: Size, files: usize, whole: &[&Ran]) -> Table {
    let columns = [
        "who",
        "files",
        "what happens",
        "time [s]",
        "payload [Mbit/s]",
        "link after 10 RTT [Mbit/s]",
        "until 80 % [s]",
        "machine busy [%]",
        "client cpu [s]",
        "client memory [MB]",
    ];
    let title = format!("A client of {}, thirteen servers with {files} files each, from the command to its end", size.client());
    let mut table = Table::new(&named(size, "jobs"), &title, &columns);
    let print = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.1}"));
    for run in whole {
        table.rows.push(vec![
            run.who.to_owned(),
            run.set.to_owned(),
            run.fate.clone(),
            format!("{:.1}", run.seconds),
            mbps(run.mean()),
            run.after_start().map_or_else(|| "-".to_owned(), mbps),
            print(run.until_four_fifths()),
            run.machine_busy.map_or_else(|| "-".to_owned(), |busy| format!("{:.0}", busy * 100.0)),
            print(run.client_cpu()),
            print(run.client_memory_bytes.map(|bytes| bytes as f64 / 1e6)),
        ]);
    }
    table
}

/// Those of which processor time is known.
fn counted<'a>(ran: &[&'a Ran]) -> Vec<Counted<'a>> {
    let one = |run: &&'a Ran| {
        let spent = run.processors.as_ref()?;
        Some(Counted { who: run.who, words: [run.set, &run.fate], payload: Bytes(run.payload_bytes), spent })
    };
    ran.iter().filter_map(one).collect()
}

/// `haul fleet get` by the number of servers.
fn by_number<'a>(ran: &[&'a Ran]) -> Vec<&'a Ran> {
    let mut runs: Vec<&Ran> = ran.iter().copied().filter(|run| run.who == Fetcher::Fleet.name() && run.set == OWN).collect();
    runs.sort_by_key(|run| run.servers);
    runs
}

fn numbers(ran: &[&Ran]) -> Table {
    let mut table = Table::new(
        "by-number",
        "haul fleet get against the number of servers, the fast ones first",
        &["servers", "time [s]", "payload [Mbit/s]", "link after 10 RTT [Mbit/s]"],
    );
    for run in by_number(ran) {
        let steady = run.after_start().map_or_else(|| "-".to_owned(), mbps);
        table.rows.push(vec![run.servers.to_string(), format!("{:.1}", run.seconds), mbps(run.mean()), steady]);
    }
    table
}

/// The parts of the time until the link is used.
fn parts(size: Size, whole: &[&Ran]) -> Table {
    let names = ["first server up", "last server up", "last server listed", "first order"];
    let title = format!("A client of {}, from the command to 80 % of the link [s]", size.client());
    let mut table = Table::new(&named(size, "parts"), &title, &[&["who", "files"], &names[..], &["80 %"]].concat());
    for run in whole.iter().filter(|run| !run.parts.is_empty() && run.fate.is_empty()) {
        let mut row = vec![run.who.to_owned(), run.set.to_owned()];
        row.extend(names.map(|name| run.parts.get(name).map_or_else(|| "-".to_owned(), |at| format!("{at:.2}"))));
        row.push(run.until_four_fifths().map_or_else(|| "-".to_owned(), |at| format!("{at:.2}")));
        table.rows.push(row);
    }
    table
}

fn charts(size: Size, whole: &[&Ran], ran: &[&Ran]) -> Vec<(String, Figure)> {
    let axes = || (Axis::linear("time since the command", "s"), Axis::linear("arriving", "Mbit/s"));
    let link = size.client().as_bps() as f64 / 1e6;
    let conditions = format!("real sockets over the emulated WAN, {} ms", RTT.as_millis());
    let over_time = |run: &Ran| {
        let coarse = (1..=run.seconds.ceil() as u64).map(|second| {
            let to = Duration::from_secs(second);
            (to.as_secs_f64() - 0.5, run.series.mean_between(Duration::from_secs(second - 1), to).as_bps() as f64 / 1e6)
        });
        coarse.collect::<Vec<_>>()
    };
    let mut charts = Vec::new();
    let rivals: Vec<Line> =
        whole.iter().filter(|run| run.set == OWN).map(|run| Line::through(run.who, over_time(run)).plain()).collect();
    if !rivals.is_empty() {
        let chart = Chart::lines(axes().0, axes().1, rivals).limit("the client's link", link);
        charts.push((named(size, "rivals"), Figure::single("Thirteen servers, one client", conditions.clone(), chart)));
    }
    if let Some(run) = whole.iter().find(|run| run.who == Fetcher::Fleet.name() && run.set == OWN) {
        let line = |(name, points): (&String, &Vec<(f64, u64)>)| {
            let rate = |pair: &[(f64, u64)]| {
                let ((from, before), (to, after)) = (pair[0], pair[1]);
                (f64::midpoint(from, to), after.saturating_sub(before) as f64 * 8.0 / 1e6 / (to - from).max(1e-3))
            };
            Line::through(name.clone(), points.windows(2).map(rate)).plain()
        };
        let lines: Vec<Line> = run.members.iter().map(line).filter(|line| !line.points.is_empty()).collect();
        if !lines.is_empty() {
            let chart = Chart::lines(axes().0, axes().1, lines);
            charts.push((named(size, "servers"), Figure::single("What each server brings", conditions.clone(), chart)));
        }
    }
    let own: Vec<&Ran> = whole.iter().copied().filter(|run| run.set == OWN).collect();
    charts.extend(processors::figure(&conditions, &counted(&own)).map(|figure| (named(size, "processors"), figure)));
    let points: Vec<(f64, f64)> =
        by_number(ran).iter().map(|run| (run.servers as f64, run.mean().as_bps() as f64 / 1e6)).collect();
    if points.len() > 1 {
        let chart = Chart::lines(
            Axis::linear("servers", ""),
            Axis::linear("payload, start included", "Mbit/s"),
            vec![Line::through("haul fleet get", points)],
        );
        charts.push((
            named(size, "by-number"),
            Figure::single("Rate against the number of servers", conditions, chart.limit("the client's link", link)),
        ));
    }
    charts
}

#[cfg(test)]
impl Ran {
    /// A run of which nothing is known.
    pub fn of(who: &'static str) -> Self {
        Self {
            who,
            servers: SERVERS,
            size: Size::Hundredth,
            set: OWN,
            fate: String::new(),
            seconds: 0.0,
            payload_bytes: 0,
            series: Series::default(),
            members: BTreeMap::new(),
            parts: BTreeMap::new(),
            machine_busy: None,
            client_cpu_s: None,
            processors: None,
            client_memory_bytes: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logging_in_is_no_part_of_the_ten_round_trips() {
        let mut series = Series::default();
        let size = Size::Hundredth;
        let link_bytes = size.client().bytes_in(Duration::from_millis(100)).as_u64();
        // 4 s of handshakes, 1 s of start, 19 s of the whole link, 2 s of a tenth of it.
        for tenth in 1..=260_u64 {
            let bytes = match tenth {
                ..=40 => 300,
                41..=50 => link_bytes / 3,
                51..=240 => link_bytes,
                _ => link_bytes / 10,
            };
            series.push(Duration::from_millis(tenth * 100), Bytes(bytes));
        }
        let run = Ran { seconds: 26.0, payload_bytes: series.total().as_u64(), series, ..Ran::of("somebody") };
        let rate = run.after_start().expect("long enough");
        assert!((99e6..=100.1e6).contains(&(rate.as_bps() as f64)), "{rate}");
        // The time from the command is told apart.
        assert!(run.until_four_fifths().is_some_and(|seconds| (5.0..5.5).contains(&seconds)));
    }

    #[test]
    fn runs_whose_processor_time_is_not_known_are_left_out() {
        let spent = Spent { client_s: 2.0, servers_s: vec![1.0], wan_s: 3.0 };
        let (dark, known) =
            (Ran { client_cpu_s: Some(1.0), ..Ran::of("nobody") }, Ran { processors: Some(spent), ..Ran::of("somebody") });
        let names: Vec<_> = counted(&[&dark, &known]).iter().map(|run| run.who).collect();
        assert_eq!((names, dark.client_cpu(), known.client_cpu()), (vec!["somebody"], Some(1.0), Some(2.0)));
        // Without any, the columns are not there.
        let tables = |ran: &[Ran]| report(Scale::Quick, ran, Vec::new()).tables.len();
        assert_eq!(tables(&[known]), tables(&[dark]) + 1);
    }
}
