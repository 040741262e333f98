//! What people read of a measurement: a line an interval, and the totals.
//!
//! The layout is iperf3's, with what haul knows more at the end of the line. Rates and bytes are those that arrived.

use std::time::Duration;

use haul_units::{Bytes, Ratio, milliseconds};

use crate::plan::{Direction, Plan, Role, Ways};
use crate::results::{Both, Outcome, Total, rate};
use crate::roles::Told;
use crate::sample::{PartSample, PathSample, micros};
use crate::spread::Spread;
use crate::wire::Ask;

/// The line above the intervals.
pub fn header(plan: &Plan) -> String {
    format!("{} {:>7}  {:>8}  Limit", heads(plan), "RTT", "Window")
}

fn heads(plan: &Plan) -> String {
    let tag = if plan.ways == Ways::Both { "[Dir]" } else { "" };
    format!("[ ID]{tag} {:15} {:>8} {:>11} {:>5}", "Interval", "Transfer", "Bitrate", "Lost")
}

/// The lines of one interval.
pub fn interval(plan: &Plan, both: &Both) -> Vec<String> {
    let (start, end) = (both.receiver.start_us, both.receiver.end_us);
    let time_us = both.receiver.time_us();
    let path = |stream: usize| both.sender.paths.get(stream);
    let single = plan.streams == 1;
    let mut lines: Vec<String> = both
        .receiver
        .bytes
        .iter()
        .enumerate()
        .map(|(stream, &bytes)| {
            let own = if single { path(0) } else { path(stream).filter(|_| plan.tcp.is_some()) };
            line(&format!("{:3}", stream + 1), tag(plan, both.direction), (start, end), bytes, &path_columns(own, time_us))
        })
        .collect();
    if !single {
        let whole = if plan.tcp.is_some() { None } else { path(0) };
        lines.push(line(
            "SUM",
            tag(plan, both.direction),
            (start, end),
            both.receiver.bytes.iter().sum(),
            &path_columns(whole, time_us),
        ));
    }
    if both.receiver.omitted {
        for line in &mut lines {
            line.push_str("  (omitted)");
        }
    }
    lines
}

/// The totals, both ends of each direction.
pub fn totals(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let mut lines = vec!["- ".repeat(30).trim_end().to_owned(), heads(plan)];
    for &direction in plan.ways.directions() {
        for role in [Role::Sender, Role::Receiver] {
            let Some(total) = outcome.total(direction, role) else { continue };
            lines.extend(total_lines(plan, total));
        }
        if plan.omit_us > 0 && outcome.total(direction, Role::Receiver).is_some_and(|total| total.time_us == 0) {
            lines.push("It ended within what is left out (-O): nothing counts.".to_owned());
        }
    }
    lines
}

/// What the path did under load, in a few lines.
pub fn report(plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let mut lines = vec![String::new()];
    let pings = |pings: &[Duration]| {
        let spread: Spread = pings.iter().copied().map(micros).collect();
        spread.percentiles(milliseconds).unwrap_or_else(|| "none came back".to_owned())
    };
    lines.push(format!("Ping idle     {}", pings(&outcome.pings.idle)));
    lines.push(format!("Ping loaded   {}", pings(&outcome.pings.loaded)));
    for &direction in plan.ways.directions() {
        let label = tag(plan, direction);
        let Some(sender) = outcome.total(direction, Role::Sender) else { continue };
        let mut say = |name: &str, text: String| lines.push(format!("{:<14}{text}", format!("{name}{label}")));
        if let Some(spreads) = &sender.spreads {
            say("RTT", spreads.rtt_us.percentiles(milliseconds).unwrap_or_default());
            say("Queueing", spreads.queue_delay_us.percentiles(milliseconds).unwrap_or_default());
        }
        say("Lost", lost(&sender.paths));
        for part in sender.paths.iter().flat_map(|path| &path.each) {
            say(&format!("Path {}", part.id), one_of_several(part, sender.time_us));
        }
        if let Some(spreads) = outcome.total(direction, Role::Receiver).and_then(|total| total.spreads.as_ref()) {
            let gaps = spreads.gaps_pkts.classes();
            say("Gaps", if gaps.is_empty() { "none".to_owned() } else { format!("{gaps} (packets missing: how often)") });
            let late = spreads.late_pkts.classes();
            say("Reordered", if late.is_empty() { "none".to_owned() } else { format!("{late} (packets behind: how often)") });
        }
        if let Some(packets) = sender.paths.iter().map(|path| path.burst_p99_pkts).max().filter(|&packets| packets > 0) {
            say("Bursts", format!("p99 {packets} packets"));
        }
        say("Waited for", waits(&sender.paths, plan.rate_bps.is_some()));
    }
    if let Some(done) = &outcome.done {
        let (here, there) = (outcome.cpu, done.cpu);
        lines.push(format!("Processor     {:.0} % here, {:.0} % there", here.total, there.total));
    }
    lines
}

/// What to do about a receiver that let too little under way.
pub fn advice(plan: &Plan, outcome: &Outcome) -> Option<String> {
    let sender = outcome.total(Direction::Up, Role::Sender).filter(|_| plan.tcp.is_none())?;
    sender.paths.iter().any(|path| path.limit(sender.time_us) == "receiver").then(|| {
        "the far side gave too little credit: its processor, or the memory it may use (with `haul perf -s` there, --max-memory)"
            .to_owned()
    })
}

fn lost(paths: &[PathSample]) -> String {
    let sum = |get: fn(&PathSample) -> u64| paths.iter().map(get).sum::<u64>();
    let (lost, spurious, sent) = (sum(|path| path.lost_pkts), sum(|path| path.spurious_pkts), sum(|path| path.sent_pkts));
    let loss = Ratio::new(lost.saturating_sub(spurious) as f64 / sent.max(1) as f64);
    let back = if spurious > 0 { format!(", {spurious} of them turned up") } else { String::new() };
    format!("{loss}: {lost} of {sent} packets{back}")
}

/// What one of the paths of a connection carried: UDP payload that was acknowledged.
fn one_of_several(part: &PartSample, time_us: u64) -> String {
    let rate = rate(part.acknowledged_bytes, time_us);
    let silent = if part.usable { "" } else { ", silent at the end" };
    let by = part.interface.as_ref().map(|interface| format!("{interface}, ")).unwrap_or_default();
    format!("{by}{rate}, RTT {}, {} packets lost{silent}", milliseconds(part.rtt_us), part.lost_pkts)
}

/// What sending waited for, as parts of all waiting.
fn waits(paths: &[PathSample], is_limited: bool) -> String {
    let sum = |get: fn(&PathSample) -> u64| paths.iter().map(get).sum::<u64>();
    let waits = [
        (
            if is_limited { "its turn at the rate of -b (pacing)" } else { "its turn at the path's rate (pacing)" },
            sum(|path| path.wait_pacing_us),
        ),
        ("acknowledgements (window)", sum(|path| path.wait_window_us)),
        ("the receiver's credit (receiver)", sum(|path| path.wait_credit_us)),
        ("data to send (application)", sum(|path| path.wait_application_us)),
    ];
    let all = waits.iter().map(|(_, us)| us).sum::<u64>().max(1);
    let parts = waits.iter().map(|(name, us)| (name, *us as f64 / all as f64)).filter(|(_, part)| *part >= 0.005);
    let text: Vec<String> = parts.map(|(name, part)| format!("{name} {}", Ratio::new(part))).collect();
    if text.is_empty() { "nothing".to_owned() } else { text.join(", ") }
}

fn total_lines(plan: &Plan, total: &Total) -> Vec<String> {
    let role = if total.role == Role::Sender { "sender" } else { "receiver" };
    let lost = |paths: &[PathSample]| {
        if paths.is_empty() { " ".repeat(5) } else { format!("{:5}", paths.iter().map(|path| path.lost_pkts).sum::<u64>()) }
    };
    let span = (0, total.time_us);
    let tag = tag(plan, total.direction);
    let mut lines = Vec::new();
    let single = total.bytes.len() == 1;
    for (stream, &bytes) in total.bytes.iter().enumerate() {
        let paths = if single {
            &total.paths[..]
        } else {
            total.paths.get(stream..=stream).filter(|_| plan.tcp.is_some()).unwrap_or_default()
        };
        lines.push(line(&format!("{:3}", stream + 1), tag, span, bytes, &format!("{}  {role}", lost(paths))));
    }
    if !single {
        lines.push(line("SUM", tag, span, total.bytes.iter().sum(), &format!("{}  {role}", lost(&total.paths))));
    }
    lines
}

/// One line of a server's own output.
pub fn server_line(told: &Told) -> String {
    match told {
        Told::Interval(interval) => {
            let columns = path_columns(interval.paths.first(), interval.time_us());
            let bytes = interval.bytes.iter().sum();
            format!("{}\n", line("SUM", arrow(interval.direction), (interval.start_us, interval.end_us), bytes, &columns))
        }
        Told::Total(total) => {
            let role = if total.role == Role::Sender { "sender" } else { "receiver" };
            format!("{}\n", line("SUM", arrow(total.direction), (0, total.time_us), total.bytes.iter().sum(), role))
        }
    }
}

/// What a client wants, in a line.
pub fn asked(ask: &Ask) -> String {
    let plan = &ask.plan;
    let what = if plan.tcp.is_some() { "TCP".to_owned() } else { format!("haul {}", plan.mode) };
    let amount = match (plan.time(), plan.bytes()) {
        (Some(time), _) => format!("{} s", time.as_secs_f64()),
        (None, bytes) => Bytes(bytes.unwrap_or_default()).to_string(),
    };
    let streams = if plan.streams == 1 { String::new() } else { format!(", {} streams", plan.streams) };
    format!("{what}, {:?}, {amount}{streams}", plan.ways).to_lowercase()
}

const fn arrow(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "[RX]",
        Direction::Down => "[TX]",
    }
}

fn tag(plan: &Plan, direction: Direction) -> &'static str {
    match (plan.ways, direction) {
        (Ways::Both, Direction::Up) => "[TX]",
        (Ways::Both, Direction::Down) => "[RX]",
        _ => "",
    }
}

/// Eighty columns hold it, and leave the last one free.
fn line(id: &str, tag: &str, (start_us, end_us): (u64, u64), bytes: u64, rest: &str) -> String {
    let seconds = |us: u64| us as f64 / 1e6;
    let rate = rate(bytes, end_us.saturating_sub(start_us));
    let text = format!(
        "[{id}]{tag} {:5.2}-{:<5.2} sec {:>8} {:>11} {rest}",
        seconds(start_us),
        seconds(end_us),
        Bytes(bytes).to_string(),
        rate.to_string()
    );
    text.trim_end().to_owned()
}

fn path_columns(path: Option<&PathSample>, time_us: u64) -> String {
    let Some(path) = path else { return String::new() };
    format!(
        "{:5} {:>7}  {:>8}  {}",
        path.lost_pkts,
        milliseconds(path.rtt_us),
        Bytes(path.window_bytes).to_string(),
        path.limit(time_us)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::Pings;
    use crate::sample::CpuUse;

    #[test]
    fn a_line_has_bytes_rate_and_what_the_path_did() {
        let path =
            PathSample { lost_pkts: 3, rtt_us: 20_300, window_bytes: 5 << 20, wait_pacing_us: 900_000, ..PathSample::default() };
        let text = line("  1", "", (1_000_000, 2_000_000), 125_000_000, &path_columns(Some(&path), 1_000_000));
        assert_eq!(text, "[  1]  1.00-2.00  sec  119 MiB 1.00 Gbit/s     3 20.3 ms  5.00 MiB  pacing");
    }

    #[test]
    fn what_ended_within_what_is_left_out_has_no_rate_and_says_so() {
        let total = |role| Total {
            direction: Direction::Up,
            role,
            time_us: 0,
            bytes: vec![0],
            paths: Vec::new(),
            spreads: None,
            congestion: None,
            error: None,
        };
        let totals_of = |omit_us| {
            let outcome = Outcome {
                intervals: Vec::new(),
                totals: vec![total(Role::Sender), total(Role::Receiver)],
                cpu: CpuUse::default(),
                done: None,
                interrupted: true,
                pings: Pings::default(),
            };
            totals(&Plan { omit_us, ..Plan::default() }, &outcome)
        };
        let lines = totals_of(2_000_000);
        assert_eq!(lines.last().map(String::as_str), Some("It ended within what is left out (-O): nothing counts."));
        assert!(lines.iter().filter(|line| line.contains(" 0 bit/s")).count() == 2, "{lines:?}");
        assert_eq!(totals_of(0).len(), lines.len() - 1);
        assert_eq!(total(Role::Receiver).to_string(), "received 0 B in 0.00 s, 0 bit/s");
    }

    #[test]
    fn a_line_fits_eighty_columns_and_stands_below_its_heads() {
        let path = PathSample {
            lost_pkts: 99_999,
            rtt_us: 9_999_000,
            window_bytes: 1023 << 20,
            wait_application_us: 900_000,
            ..PathSample::default()
        };
        let text = line("SUM", "", (9_000_000, 10_000_000), 1023 << 20, &path_columns(Some(&path), 1_000_000));
        assert!(text.ends_with("  application") && text.len() < 80, "{} columns: {text}", text.len());
        let heads = header(&Plan::default());
        let end = |line: &str, what: &str| line.find(what).map(|at| at + what.len());
        let values =
            [("Transfer", "1023 MiB"), ("Bitrate", " Gbit/s"), ("Lost", "99999"), ("RTT", " ms"), ("Window", "MiB  app")];
        for (head, value) in values {
            let more = if head == "Window" { "  app".len() } else { 0 };
            assert_eq!(end(&heads, head), end(&text, value).map(|at| at - more), "{head}:\n{heads}\n{text}");
        }
    }
}
