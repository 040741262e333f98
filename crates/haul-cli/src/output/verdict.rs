//! What limited the speed.
//!
//! The sender's transport knows why it waited: nothing to send, window full, no credit, or pacing. If it had nothing to send, the engine's
//! threads at the source say why; if it had no credit, those at the target do. If nobody waited, the processor was the limit.
//!
//! ```text
//!   source disk -> hashing -> [sender's transport] === path ===> [receiver's transport] -> hashing -> target disk
//!        read        hash       application        window, pacing         credit             hash        write
//! ```

use std::time::Duration;

use haul_files::{Report, Waits};
use haul_units::{BitRate, Bytes, Ratio};

use super::lines::milliseconds;
use crate::session::PathReport;

/// Too little was sent to say anything.
const SHORT: Duration = Duration::from_millis(500);
/// The same, in bytes.
const SMALL: Bytes = Bytes::mib(4);
/// A wait for less of the time than this is nobody's fault.
const NOTABLE: f64 = 0.3;
/// A thread that is busy for more of the time than this is the limit.
const SATURATED: f64 = 0.85;
/// A rate this near to the limit is limited by it.
const NEAR: f64 = 0.85;

/// What the verdict rests on.
#[derive(Debug)]
pub struct Conditions<'a> {
    /// The engine's account, both sides together.
    pub report: &'a Report,
    /// The transport's, from the sender; none on a download that was too short for one.
    pub path: Option<&'a PathReport>,
    /// The limit that the user set.
    pub limit: Option<BitRate>,
    /// The part of the time that the sender's busiest thread was busy.
    pub sender_busiest: f64,
    /// The same of the receiver.
    pub receiver_busiest: f64,
}

/// One line: what limited the speed, with the numbers that say so; empty where too little was sent to tell.
pub fn verdict(conditions: &Conditions<'_>) -> String {
    let report = conditions.report;
    if report.elapsed < SHORT || report.bytes < SMALL {
        return String::new();
    }
    let rate = BitRate::of(report.bytes, report.elapsed);
    if let Some(limit) = conditions.limit.filter(|&limit| rate.ratio_to(limit).as_f64() >= NEAR) {
        return format!("limited by the rate limit of {limit}");
    }
    if let Some(processor) = processor(conditions) {
        return format!("limited by {processor}");
    }
    let Some(path) = conditions.path else { return format!("limited by {}", ends(report)) };
    let share = |us: u64| us as f64 / report.elapsed.as_micros().max(1) as f64;
    let (idle, credit) = (share(path.wait_application_us), share(path.wait_credit_us));
    let network = share(path.wait_window_us) + share(path.wait_pacing_us);
    if idle.max(credit).max(network) < NOTABLE {
        let busy = Ratio::new(1.0 - idle - credit - network);
        return format!("limited by the source's processor: its transport was busy {busy} of the time");
    }
    if network >= idle && network >= credit {
        let (rtt, share) = (milliseconds(path.rtt_us), Ratio::new(network.min(1.0)));
        format!("limited by the path: kept full {share} of the time at {rate}, RTT {rtt}, {}", losses(path))
    } else if credit >= idle {
        format!("limited by {}: the sender waited for credit {} of the time", receiver(report), Ratio::new(credit.min(1.0)))
    } else {
        format!("limited by {}: the transport had nothing to send {} of the time", sender(report), Ratio::new(idle.min(1.0)))
    }
}

/// A thread that never rests, at either end.
fn processor(conditions: &Conditions<'_>) -> Option<String> {
    let (sender, receiver) = (conditions.sender_busiest, conditions.receiver_busiest);
    let (end, busiest) = if sender >= receiver { ("source", sender) } else { ("target", receiver) };
    (busiest > SATURATED)
        .then(|| format!("the {end}'s processor: its busiest thread was busy {} of the time", Ratio::new(busiest)))
}

/// Loss, and whether a queue stood: a queue means that the path was really full.
fn losses(path: &PathReport) -> String {
    let queue_us = path.rtt_us.saturating_sub(path.min_rtt_us);
    let congested = queue_us > path.min_rtt_us / 4 && queue_us > 1000;
    let kind = match (congested, path.lost().as_f64() > 1e-4) {
        (true, _) => format!("congestion: {} of queue", milliseconds(queue_us)),
        (false, false) => "no queue".to_owned(),
        (false, true) => "no queue, so the loss was not congestion".to_owned(),
    };
    format!("loss {} ({kind})", path.lost())
}

/// The part of one thread's time that a sum over threads stands for.
fn part(time: Duration, waits: &Waits, elapsed: Duration) -> f64 {
    let threads = f64::from(waits.threads.max(1));
    time.as_secs_f64() / threads / elapsed.as_secs_f64().max(1e-9)
}

/// What the ends spent their time on: the share, and how it reads.
struct Work {
    share: f64,
    text: String,
}

fn sender_work(report: &Report) -> [Work; 3] {
    let waits = &report.sender;
    let of = |time| part(time, waits, report.elapsed);
    let (read, hash, plan) = (of(waits.read), of(waits.hash), of(waits.plan));
    [
        Work { share: read, text: format!("the source's disk (reading took {} of its threads' time)", Ratio::new(read)) },
        Work { share: hash, text: format!("the source's processor (hashing took {} of its threads' time)", Ratio::new(hash)) },
        Work {
            share: plan,
            text: format!("the number of files (finding out what to send took {} of the time)", Ratio::new(plan)),
        },
    ]
}

fn receiver_work(report: &Report) -> [Work; 3] {
    let waits = &report.receiver;
    let of = |time| part(time, waits, report.elapsed);
    // Syncing and renaming are one thread's.
    let alone = |time: Duration| time.as_secs_f64() / report.elapsed.as_secs_f64().max(1e-9);
    let (write, hash, sync) = (of(waits.write), of(waits.hash), alone(waits.sync + waits.rename));
    [
        Work { share: write, text: format!("the target's disk (writing took {} of its threads' time)", Ratio::new(write)) },
        Work { share: hash, text: format!("the target's processor (hashing took {} of its threads' time)", Ratio::new(hash)) },
        Work { share: sync, text: format!("the target's disk (making files durable took {} of the time)", Ratio::new(sync)) },
    ]
}

/// The work that took most, if it took a notable part of the time.
fn most(work: impl IntoIterator<Item = Work>) -> Option<String> {
    let most = work.into_iter().max_by(|one, other| one.share.total_cmp(&other.share))?;
    (most.share >= NOTABLE).then_some(most.text)
}

/// Nothing to send: the source's fault, or the end of a copy that is over but for the target's disk.
fn sender(report: &Report) -> String {
    let both = || most(sender_work(report).into_iter().chain(receiver_work(report)));
    most(sender_work(report))
        .or_else(both)
        .unwrap_or_else(|| "no single thing (neither disks nor processors were busy)".to_owned())
}

fn receiver(report: &Report) -> String {
    most(receiver_work(report)).unwrap_or_else(|| "memory for data under way (credit)".to_owned())
}

/// Without a word from the sender's transport, the busier end is named.
fn ends(report: &Report) -> String {
    let idle = part(report.receiver.transport, &report.receiver, report.elapsed);
    if idle < NOTABLE { receiver(report) } else { sender(report) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn report() -> Report {
        let mut report = Report::default();
        report.bytes = Bytes::mib(100);
        report.elapsed = SECOND;
        report.sender.threads = 2;
        report.receiver.threads = 2;
        report
    }

    fn told(report: &Report, path: PathReport, limit: Option<BitRate>) -> String {
        verdict(&Conditions { report, path: Some(&path), limit, sender_busiest: 0.5, receiver_busiest: 0.5 })
    }

    #[test]
    fn a_short_copy_has_no_verdict() {
        let mut short = report();
        short.bytes = Bytes(10);
        assert_eq!(told(&short, PathReport::default(), None), "");
    }

    #[test]
    fn the_path_with_and_without_congestion() {
        let path = PathReport {
            wait_window_us: 900_000,
            rtt_us: 100_000,
            min_rtt_us: 99_000,
            sent_pkts: 1000,
            lost_pkts: 1,
            ..PathReport::default()
        };
        let text = told(&report(), path, None);
        assert_eq!(
            text,
            "limited by the path: kept full 90.0 % of the time at 839 Mbit/s, RTT 100 ms, loss 0.10 % (no queue, so the loss was not congestion)"
        );
        assert!(told(&report(), PathReport { rtt_us: 200_000, ..path }, None).contains("congestion: 101 ms of queue"));
    }

    #[test]
    fn the_ends() {
        let idle = PathReport { wait_application_us: 800_000, ..PathReport::default() };
        let mut busy = report();
        busy.sender.read = SECOND;
        assert!(
            told(&busy, idle, None).starts_with("limited by the source's disk (reading took 50.0 %"),
            "{}",
            told(&busy, idle, None)
        );
        busy.sender.hash = 2 * SECOND;
        assert!(told(&busy, idle, None).contains("the source's processor"));
        busy.sender.plan = 3 * SECOND;
        assert!(told(&busy, idle, None).contains("the number of files"));
        assert!(told(&report(), idle, None).contains("no single thing"));
        let starved = PathReport { wait_credit_us: 800_000, ..PathReport::default() };
        assert!(told(&busy, starved, None).contains("memory for data"));
        busy.receiver.write = SECOND;
        assert!(told(&busy, starved, None).contains("the target's disk (writing"));
    }

    #[test]
    fn a_thread_that_never_rests() {
        let path = PathReport { wait_pacing_us: 900_000, ..PathReport::default() };
        let report = report();
        let conditions =
            Conditions { report: &report, path: Some(&path), limit: None, sender_busiest: 0.5, receiver_busiest: 0.97 };
        assert_eq!(verdict(&conditions), "limited by the target's processor: its busiest thread was busy 97.0 % of the time");
    }

    #[test]
    fn the_limit_and_the_processor() {
        assert_eq!(told(&report(), PathReport::default(), Some(BitRate::mbps(900))), "limited by the rate limit of 900 Mbit/s");
        assert!(told(&report(), PathReport::default(), Some(BitRate::gbps(9))).contains("the source's processor"));
    }
}
