//! The plan alone at the paper's full size, with servers that send at once what their lines carry; and over the transport itself, at a tenth of it.

use std::time::Duration;

use haul_plan::simulated::{BIN, Fate, Played, Site, play};
use haul_plan::{Catalogue, Policy, Settings};
use haul_units::{BitRate, Bytes, Time};

use super::over_transport::{self, Ended, Job};
use super::paper::{FAST, KILLED_MOST, PAPERS_SHARE, RTT, SERVERS, START, WANTED_SHARE, line};
use crate::experiment::report::Judged;
use crate::experiment::{Report, Scale, Table};
use crate::plot::{Axis, Chart, Figure, Line};

const CLIENT: BitRate = BitRate::gbps(10);
const FILE: Bytes = Bytes(125_000_000);

/// A fleet and what happens to it.
struct Case {
    name: &'static str,
    servers: usize,
    replicas: usize,
    fate: Option<(usize, f64, Fate)>,
}

const fn plain(name: &'static str, servers: usize, replicas: usize) -> Case {
    Case { name, servers, replicas, fate: None }
}

pub fn simulated(scale: Scale) -> Report {
    let files = scale.pick(16, 512);
    // In the middle of a run.
    let middle_s = f64::from(files) * 0.3;
    let cases = [
        plain("13 servers, each with files of its own", SERVERS, 1),
        plain("13 servers, two replicas", SERVERS, 2),
        Case { fate: Some((1, middle_s, Fate::Slows(0.02))), ..plain("  a fast one slows to 2 %", SERVERS, 2) },
        Case { fate: Some((0, middle_s, Fate::Dies)), ..plain("  a fast one dies", SERVERS, 2) },
    ];
    let mut table = Table::new(
        "policies",
        "A job as a whole",
        &["fleet", "policy", "time [s]", "mean [Gbit/s]", "after 10 RTT [Gbit/s]", "taken", "twice", "in vain [MB]"],
    );
    let mut steady = None;
    let mut timeline = None;
    for case in &cases {
        for (policy, name) in [(Policy::Dynamic, "dynamic"), (Policy::RoundRobin, "round robin")] {
            let played = run(case, files, policy);
            let rate = after_start(&played);
            if case.fate.is_none() && case.replicas == 1 && policy == Policy::Dynamic {
                (steady, timeline) = (rate, Some(over_time(&played)));
            }
            let time = if played.is_done { format!("{:.1}", played.seconds) } else { "never".to_owned() };
            table.rows.push(vec![
                case.name.to_owned(),
                name.to_owned(),
                time,
                format!("{:.2}", gbps(played.counted as f64 / played.seconds)),
                rate.map_or_else(|| "-".to_owned(), |rate| format!("{rate:.2}")),
                played.taken.to_string(),
                played.twice.to_string(),
                format!("{:.0}", played.wasted as f64 / 1e6),
            ]);
        }
    }
    let (number, by_number) = by_number(files);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let share = steady.map(|rate| rate / 10.0);
    let (verdicts, over_transport) = over_the_transport(scale);
    let plans = [
        Judged::at_least("dynamic, 13 servers", "after 10 RTT", share, WANTED_SHARE, percent),
        Judged::at_least("dynamic, 13 servers", "ahead of the paper:", share, PAPERS_SHARE, percent),
    ];
    Report {
        heading: format!(
            "Fleet: {FAST} servers of 10 Gbit/s and {} of 1 Gbit/s, {} ms, a client of 10 Gbit/s, {files} files of 125 MB a server; the plan in virtual time",
            SERVERS - FAST,
            RTT.as_millis()
        ),
        verdicts: plans.into_iter().chain(verdicts).collect(),
        tables: vec![table, number, over_transport],
        charts: timeline.into_iter().map(|figure| ("over-time".to_owned(), figure)).chain([("by-number".to_owned(), by_number)]).collect(),
        notes: vec!["But for the last table a server sends at the rate of its line from the first byte on, and lines share the client's link max-min: what is measured is the plan.".to_owned()],
        ..Report::default()
    }
}

fn run(case: &Case, files: u32, policy: Policy) -> Played {
    let mut catalogue = Catalogue::new();
    let ids: Vec<_> = (0..case.servers).map(|_| catalogue.add_server()).collect();
    let bytes_per_s = |server: usize| line(server, CLIENT).as_bps() as f64 / 8.0;
    for number in 0..files as usize * case.servers {
        let holders: Vec<_> = (0..case.replicas).map(|nth| ids[(number + nth * FAST) % case.servers]).collect();
        // Every holder is a server that was added.
        let _ = catalogue.add_file(FILE, &holders);
    }
    let mut sites: Vec<Site> = (0..case.servers).map(|server| Site::new(bytes_per_s(server), RTT)).collect();
    if let Some((server, at_s, fate)) = case.fate {
        sites[server].fates.push((Time::ZERO + Duration::from_secs_f64(at_s), fate));
    }
    let client = CLIENT.as_bps() as f64 / 8.0;
    let lines: f64 = (0..case.servers).map(bytes_per_s).sum();
    let bound_s = catalogue.total().as_u64() as f64 / client.min(lines);
    play(catalogue, Settings { policy, ..Settings::default() }, &sites, client, &ids, bound_s)
}

/// A tenth of the paper's rates, over real connections: what is judged, and a row for each fleet.
fn over_the_transport(scale: Scale) -> (Vec<Judged>, Table) {
    let (files, seeds) = scale.pick((2, 1), (12, 4));
    let mut table = Table::new(
        "over-transport",
        "The plan over the transport itself, a client of 1 Gbit/s: mean of the starts, and the worst",
        &["fleet", "policy", "time [s]", "worst [s]", "link after 10 RTT [Mbit/s]", "worst [Mbit/s]", "dropped"],
    );
    let mut row = |name: &str, job: &dyn Fn(u64) -> Job| {
        let runs: Vec<Ended> = (1..=seeds).map(|seed| over_transport::play(&job(seed), |_| {})).collect();
        let mean = |of: fn(&Ended) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let (seconds, steady) = (|ended: &Ended| ended.seconds, |ended: &Ended| ended.steady.as_bps() as f64 / 1e6);
        let policy = if job(1).policy == Policy::Dynamic { "dynamic" } else { "round robin" };
        let worst_s = runs.iter().map(seconds).fold(0.0, f64::max);
        let worst = runs.iter().map(steady).fold(f64::INFINITY, f64::min);
        table.rows.push(vec![
            name.to_owned(),
            policy.to_owned(),
            format!("{:.2}", mean(seconds)),
            format!("{worst_s:.2}"),
            format!("{:.0}", mean(steady)),
            format!("{worst:.0}"),
            format!("{:.0}", mean(|ended| ended.dropped_pkts as f64)),
        ]);
        (mean(seconds), mean(steady))
    };
    for servers in scale.pick(vec![3], (2..SERVERS).collect()) {
        row(&format!("{servers} servers"), &|seed| Job::of(servers, files, seed));
    }
    let all = |seed| Job::of(SERVERS, files, seed);
    let twice = move |seed| Job { twice: true, ..all(seed) };
    // In the middle, and not before all have logged in.
    let killed = move |seed| Job { killed: Some(Duration::from_secs((files as u64 / 2).max(2))), ..twice(seed) };
    let robin = |job: Job| Job { policy: Policy::RoundRobin, ..job };
    let (_, own) = row("13 servers", &all);
    row("13 servers", &|seed| robin(all(seed)));
    let (alive_s, _) = row("13 servers, two replicas", &twice);
    row("13 servers, two replicas", &|seed| robin(twice(seed)));
    let (killed_s, _) = row("  the first is killed", &killed);
    row("  the first is killed", &|seed| robin(killed(seed)));
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let judged = vec![
        Judged::at_least("over the transport, 13 servers", "after 10 RTT", Some(own / 1e3), WANTED_SHARE, percent),
        Judged::at_most(
            "over the transport, the first is killed",
            "time beside none killed",
            Some(killed_s / alive_s),
            KILLED_MOST,
            |ratio| format!("{ratio:.2}"),
        ),
    ];
    (judged, table)
}

/// The rate from the end of the start to where nine tenths had come, in Gbit/s.
fn after_start(played: &Played) -> Option<f64> {
    let bins = played.arrived.iter().map(Vec::len).max()?;
    let at = |bin: usize| played.arrived.iter().filter_map(|server| server.get(bin)).sum::<u64>();
    let first = START.as_secs_f64().div_euclid(BIN.as_secs_f64()) as usize + 1;
    let (mut sum, mut last) = (0, 0);
    while last < bins && sum < played.counted / 10 * 9 {
        sum += at(last);
        last += 1;
    }
    let counted: u64 = (first..last).map(at).sum();
    (last > first).then(|| gbps(counted as f64 / ((last - first) as f64 * BIN.as_secs_f64())))
}

fn over_time(played: &Played) -> Figure {
    let points = |bins: &[u64]| {
        let point = |(at, bytes): (usize, &u64)| ((at as f64 + 0.5) * BIN.as_secs_f64(), gbps(*bytes as f64 / BIN.as_secs_f64()));
        bins.iter().enumerate().map(point).collect::<Vec<_>>()
    };
    let bins = played.arrived.iter().map(Vec::len).max().unwrap_or(0);
    let total: Vec<u64> = (0..bins).map(|bin| played.arrived.iter().filter_map(|server| server.get(bin)).sum()).collect();
    let mut lines = vec![Line::through("all", points(&total)).plain()];
    for (name, server) in [("a server of 10 Gbit/s", 0), ("a server of 1 Gbit/s", FAST)] {
        lines.push(Line::through(name, points(&played.arrived[server])).plain());
    }
    let chart = Chart::lines(Axis::linear("time", "s"), Axis::linear("arriving", "Gbit/s"), lines);
    Figure::single("Thirteen servers, one client", "the plan in virtual time", chart.limit("the client's link", 10.0))
}

fn by_number(files: u32) -> (Table, Figure) {
    let mut table =
        Table::new("by-number", "Rate against the number of servers, the fast ones first", &["servers", "mean [Gbit/s]"]);
    let mut points = Vec::new();
    for servers in 1..=SERVERS {
        let played = run(&plain("", servers, 1), files.min(64), Policy::Dynamic);
        let rate = gbps(played.counted as f64 / played.seconds);
        table.rows.push(vec![servers.to_string(), format!("{rate:.2}")]);
        points.push((servers as f64, rate));
    }
    let line = Line::through("dynamic", points);
    let chart = Chart::lines(Axis::linear("servers", ""), Axis::linear("mean rate", "Gbit/s"), vec![line]);
    (
        table,
        Figure::single("Rate against the number of servers", "the plan in virtual time", chart.limit("the client's link", 10.0)),
    )
}

fn gbps(bytes_per_s: f64) -> f64 {
    bytes_per_s * 8.0 / 1e9
}
