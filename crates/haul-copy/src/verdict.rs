//! What limited the speed: decided from evidence, and "not known" where there is none.
//!
//! The sender's transport knows why it waited: nothing to send, no credit, window full, the pacer at the rate of the congestion controller or at the user's. If it had
//! nothing to send, the engine's threads at the source say why; if it had no credit, those at the target do. That the controller held packets back says only what the sender
//! believed of the path. That the path was full is said where there was always something to send, and a queue stood or the path lost what was sent at a steady rate.
//!
//! ```text
//!   source disk -> hashing -> [sender's transport] === path ===> [receiver's transport] -> hashing -> target disk
//!        read        hash      application, limit     window, pacing        credit            hash        write
//! ```
//!
//! [`Evidence`] is plain data and [`judge`] a function of it: every verdict can be had in a test.

mod words;

use std::time::Duration;

use haul_files::{Report, Waits};
use haul_units::{BitRate, Bytes};

use crate::processor::Demand;
use crate::telemetry::PathReport;

/// Too little was sent to say anything.
const SHORT: Duration = Duration::from_millis(500);
/// The same, in bytes.
const SMALL: Bytes = Bytes::mib(4);
/// A wait for less of the time than this is nobody's fault.
const NOTABLE: f64 = 0.3;
/// A thread that is busy for more of the time than this is the limit.
const SATURATED: f64 = 0.85;
/// What a thread does for more of the time than this it does for most of it. Then it is the limit where nothing else is known to be one.
const MOST: f64 = 0.5;
/// A machine of whose processors' time more than this is taken has none to spare at the moments that matter, ..
const CROWDED: f64 = 0.7;
/// .. and where a thread waited for one for more of the time than this, what it does comes late. (Both ends of 10 Gbit/s on two processors: 0.75 to 0.85 taken, 0.28 to 0.36 waited.)
const LATE: f64 = 0.2;
/// A rate this near to the limit is limited by it.
const NEAR: f64 = 0.85;
/// Part of the round trips with a queue from which on the path was full: controllers that keep the queue short make one only when they ask for more, in one of
/// some ten round trips.
const QUEUED: f64 = 0.03;
/// Round trips that must be seen before none of them with a queue means anything.
const ROUNDS: u64 = 20;
/// Loss below this is not worth a word.
const LOSS: f64 = 1e-4;
/// With less than this part of what was lost without a queue, what was lost with one met it by chance: queues come and go, and what fails at random fails then, too.
const CHANCE: f64 = 0.15;
/// Loss without a queue from which on, at a rate that stays, something on the way enforces a rate: lines that only fail lose less.
const POLICED: f64 = 0.05;
/// A path at less than this part of the best rate that was measured on it is not full.
const FULL: f64 = 0.6;

/// What the verdict rests on.
#[derive(Debug)]
pub struct Conditions<'a> {
    /// The engine's account, both sides together.
    pub report: &'a Report,
    /// The transport's, from the sender; none on a download that was too short for one.
    pub path: Option<&'a PathReport>,
    /// The limit that the user set.
    pub limit: Option<BitRate>,
    /// What the sender's busiest thread wanted of a processor.
    pub sender_demand: Demand,
    /// The same of the receiver.
    pub receiver_demand: Demand,
    /// How long it took to connect: ssh's login, mostly.
    pub login: Duration,
}

/// All that the verdict depends on: parts of the time, 0 to 1, rates and counts.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Evidence {
    elapsed: Duration,
    login: Duration,
    bytes: Bytes,
    limit: Option<BitRate>,
    sender_demand: Demand,
    receiver_demand: Demand,
    path: Option<Path>,
    /// Reading, hashing, finding out what to send.
    source: [f64; 3],
    /// Writing, hashing, making durable.
    target: [f64; 3],
    /// The receiver's wait for the network, where the sender's transport has told nothing.
    starved: f64,
}

/// What the sender's transport has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Path {
    application: f64,
    credit: f64,
    limit: f64,
    /// Window, and pacing at the controller's rate.
    network: f64,
    start: f64,
    rounds: u64,
    queued_rounds: u64,
    best: BitRate,
    rtt_us: u64,
    queue_us: u64,
    loss: Losses,
}

/// Parts of all packets.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Losses {
    /// By the start's overshoot.
    starting: f64,
    /// Later, with a queue.
    queued: f64,
    /// Without one.
    other: f64,
}

/// What limited the speed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Too little was copied to tell.
    Short,
    /// Logging in took longer than the copy.
    Login,
    /// The user's rate.
    Limit,
    /// A thread at the source that never rests.
    SourceProcessor,
    /// The same at the target.
    TargetProcessor,
    /// Reading.
    SourceDisk,
    /// Hashing at the source.
    SourceHash,
    /// Finding out what to send.
    ManyFiles,
    /// Writing.
    TargetDisk,
    /// Hashing at the target.
    TargetHash,
    /// Making files durable.
    TargetSync,
    /// Credit, though the target was not busy.
    Memory,
    /// Neither disks nor processors were busy, and nothing was there to send.
    Idle,
    /// A queue stood.
    Path,
    /// Something on the way drops what is above a rate.
    Policer,
    /// It was over before the path's rate was found.
    Start,
    /// None of these can be shown.
    Unknown,
}

/// One line: what limited the speed, with the numbers that say so; empty where too little was sent to tell.
pub fn verdict(conditions: &Conditions<'_>) -> String {
    let evidence = Evidence::of(conditions);
    let verdict = judge(&evidence);
    tracing::debug!(?verdict, ?evidence, "judged");
    evidence.words(verdict)
}

/// The decision.
pub(crate) fn judge(evidence: &Evidence) -> Verdict {
    if evidence.login >= SHORT && evidence.login >= evidence.elapsed * 2 {
        return Verdict::Login;
    }
    if evidence.elapsed < SHORT || evidence.bytes < SMALL {
        return Verdict::Short;
    }
    if evidence.is_at_limit() {
        return Verdict::Limit;
    }
    let (sender, receiver) = (evidence.sender_demand, evidence.receiver_demand);
    let is_source = sender.wanted >= receiver.wanted;
    let (busiest, processor) = if is_source { (sender, Verdict::SourceProcessor) } else { (receiver, Verdict::TargetProcessor) };
    // Where others run instead, what is late at the processor looks like a queue on the way, and reading and writing take long too.
    if busiest.wanted > SATURATED || busiest.waited > MOST {
        return processor;
    }
    // Of two alike the last counts, the source.
    let ends = [(receiver, Verdict::TargetProcessor), (sender, Verdict::SourceProcessor)];
    let crowded = ends.into_iter().filter(|(demand, _)| demand.is_crowded());
    let crowded = crowded.max_by(|one, other| one.0.waited.total_cmp(&other.0.waited)).map(|(_, verdict)| verdict);
    match (judge_waits(evidence), crowded) {
        (Verdict::Start | Verdict::Idle | Verdict::Unknown, _) if busiest.wanted > MOST => processor,
        // What is late at a processor looks like a queue on the way, what a socket has no room for meanwhile like a loss, and nobody is seen to be busy.
        (Verdict::Path | Verdict::Policer | Verdict::Start | Verdict::Idle | Verdict::Unknown, Some(late)) => late,
        (verdict, _) => verdict,
    }
}

impl Demand {
    /// There is no processor to spare, and that is felt.
    fn is_crowded(self) -> bool {
        self.taken > CROWDED && self.waited > LATE
    }
}

/// The same for a copy of which no thread was busy all the time: who waited, and for what?
fn judge_waits(evidence: &Evidence) -> Verdict {
    let Some(path) = evidence.path else {
        let work = if evidence.starved < NOTABLE { evidence.target() } else { evidence.source() };
        return work.unwrap_or(Verdict::Unknown);
    };
    let most = path.application.max(path.credit).max(path.network).max(path.limit);
    if most < NOTABLE {
        // Nobody waited, and no thread was busy either.
        return Verdict::Unknown;
    }
    if path.limit >= most {
        return Verdict::Limit;
    }
    // Where nothing is there to send for long, that comes in portions, which the pacer spreads and which may queue: the path is not full between them.
    if path.network >= most && (path.is_starting() || path.application < NOTABLE) {
        return path.judge(evidence.rate());
    }
    if path.credit >= most {
        return evidence.target().unwrap_or(Verdict::Memory);
    }
    evidence.source().or_else(|| evidence.target()).unwrap_or(Verdict::Idle)
}

impl Path {
    /// The controller held packets back: rightly?
    fn judge(&self, rate: BitRate) -> Verdict {
        if self.is_starting() {
            return Verdict::Start;
        }
        let is_steady = rate.ratio_to(self.best).as_f64() >= FULL;
        let queued = self.queued_rounds as f64 / self.rounds.max(1) as f64;
        let stands = self.queued_rounds >= 2 && queued >= QUEUED;
        let overflows = self.loss.queued >= LOSS.max(self.loss.other * CHANCE);
        if is_steady && (stands || overflows) {
            Verdict::Path
        } else if is_steady && self.rounds >= ROUNDS && self.loss.other >= POLICED {
            Verdict::Policer
        } else {
            Verdict::Unknown
        }
    }

    /// For most of the time it was not known yet what the path bears.
    fn is_starting(&self) -> bool {
        self.start >= 0.5
    }
}

impl Evidence {
    /// From what was counted.
    pub(crate) fn of(conditions: &Conditions<'_>) -> Self {
        let report = conditions.report;
        let of = |time, waits: &Waits| part(time, waits, report.elapsed);
        // Syncing and renaming are one thread's.
        let alone = |time: Duration| time.as_secs_f64() / report.elapsed.as_secs_f64().max(1e-9);
        let (sender, receiver) = (&report.sender, &report.receiver);
        // With fewer files than threads some thread has none and waits for the next, whatever limits: a stream is one thread's.
        let found = [report.files, report.directories, report.symlinks, report.hard_links, report.skipped_files];
        let found = found.into_iter().fold(0, u64::saturating_add);
        let plan = if found < u64::from(sender.threads) { 0.0 } else { of(sender.plan, sender) };
        Self {
            elapsed: report.elapsed,
            login: conditions.login,
            bytes: report.bytes,
            limit: conditions.limit,
            sender_demand: conditions.sender_demand,
            receiver_demand: conditions.receiver_demand,
            path: conditions.path.map(|path| Path::of(path, report.elapsed)),
            source: [of(sender.read, sender), of(sender.hash, sender), plan],
            target: [
                of(receiver.write, receiver),
                of(receiver.hash, receiver),
                alone(receiver.sync.saturating_add(receiver.rename)),
            ],
            starved: of(receiver.transport, receiver),
        }
    }

    fn rate(&self) -> BitRate {
        BitRate::of(self.bytes, self.elapsed)
    }

    fn is_at_limit(&self) -> bool {
        self.limit.is_some_and(|limit| self.rate().ratio_to(limit).as_f64() >= NEAR)
    }

    /// What kept the source busy.
    fn source(&self) -> Option<Verdict> {
        most(self.source, [Verdict::SourceDisk, Verdict::SourceHash, Verdict::ManyFiles])
    }

    /// What kept the target busy.
    fn target(&self) -> Option<Verdict> {
        most(self.target, [Verdict::TargetDisk, Verdict::TargetHash, Verdict::TargetSync])
    }
}

impl Path {
    fn of(path: &PathReport, elapsed: Duration) -> Self {
        let share = |us: u64| us as f64 / elapsed.as_micros().max(1) as f64;
        let of_sent = |packets: u64| packets as f64 / path.sent_pkts.max(1) as f64;
        let explained = path.lost_starting_pkts.saturating_add(path.lost_queued_pkts);
        Self {
            application: share(path.wait_application_us),
            credit: share(path.wait_credit_us),
            limit: share(path.wait_limit_us),
            network: share(path.wait_window_us) + share(path.wait_pacing_us),
            start: share(path.start_us),
            rounds: path.rounds,
            queued_rounds: path.queued_rounds,
            best: BitRate::from_bps(path.best_bps),
            rtt_us: path.rtt_us,
            queue_us: path.rtt_us.saturating_sub(path.min_rtt_us),
            loss: Losses {
                starting: of_sent(path.lost_starting_pkts),
                queued: of_sent(path.lost_queued_pkts),
                other: of_sent(path.lost_pkts.saturating_sub(explained)),
            },
        }
    }
}

/// The part of one thread's time that a sum over threads stands for.
fn part(time: Duration, waits: &Waits, elapsed: Duration) -> f64 {
    let threads = f64::from(waits.threads.max(1));
    time.as_secs_f64() / threads / elapsed.as_secs_f64().max(1e-9)
}

/// The work that took most, if it took a notable part of the time.
fn most(shares: [f64; 3], verdicts: [Verdict; 3]) -> Option<Verdict> {
    let (share, verdict) = shares.into_iter().zip(verdicts).max_by(|one, other| one.0.total_cmp(&other.0))?;
    (share >= NOTABLE).then_some(verdict)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 Mbit/s for ten seconds, of which the sender waited for the network.
    pub(super) fn network() -> Path {
        let loss = Losses::default();
        Path {
            network: 0.9,
            start: 0.05,
            rounds: 150,
            best: BitRate::mbps(110),
            rtt_us: 61_000,
            queue_us: 1000,
            loss,
            ..Path::default()
        }
    }

    pub(super) fn evidence(path: Path) -> Evidence {
        Evidence { elapsed: Duration::from_secs(10), bytes: Bytes(125_000_000), path: Some(path), ..Evidence::default() }
    }

    /// Each case with the truth that it was made from.
    #[test]
    fn the_table() {
        let full = Path { queued_rounds: 15, ..network() };
        let loss = |starting, queued, other| Losses { starting, queued, other };
        let idle = Path { application: 0.8, ..Path::default() };
        let starved = Path { credit: 0.8, ..Path::default() };
        let wants = |wanted, waited| Demand { wanted, waited, taken: 0.5 };
        let crowded = |waited| Demand { taken: 0.85, ..wants(0.6, waited) };
        let busy = |sender, receiver| Evidence {
            sender_demand: wants(sender, 0.1),
            receiver_demand: wants(receiver, 0.1),
            ..evidence(full)
        };
        let source = |source| Evidence { source, ..evidence(idle) };
        let target = |target| Evidence { target, ..evidence(starved) };
        let limit = Some(BitRate::mbps(105));
        for (verdict, evidence) in [
            (Verdict::Path, evidence(full)),
            (Verdict::Path, evidence(Path { loss: loss(0.02, 0.0, 0.0), ..full })),
            (Verdict::Path, evidence(Path { loss: loss(0.0, 0.01, 0.0), ..network() })),
            (Verdict::Path, evidence(Path { loss: loss(0.0, 0.0, 0.02), ..full })),
            // What the start alone overfilled shows nothing of the time after it; nor does loss at random.
            (Verdict::Unknown, evidence(Path { loss: loss(0.03, 0.0, 0.0), ..network() })),
            (Verdict::Unknown, evidence(Path { loss: loss(0.0, 0.0, 0.02), ..network() })),
            // One round trip shows nothing.
            (Verdict::Unknown, evidence(Path { rounds: 20, queued_rounds: 1, ..network() })),
            // At 23 % of what was once measured.
            (Verdict::Unknown, evidence(Path { best: BitRate::mbps(430), ..full })),
            (Verdict::Policer, evidence(Path { loss: loss(0.0, 0.0, 0.08), ..network() })),
            // A queue that came and went while a policer dropped, or random loss, is not what limits; one that overflowed is, whatever is lost besides.
            (Verdict::Policer, evidence(Path { queued_rounds: 1, loss: loss(0.0, 0.007, 0.07), ..network() })),
            (Verdict::Unknown, evidence(Path { queued_rounds: 3, loss: loss(0.0, 0.0003, 0.02), ..network() })),
            (Verdict::Path, evidence(Path { queued_rounds: 3, loss: loss(0.0, 0.03, 0.08), ..network() })),
            (Verdict::Path, evidence(Path { loss: loss(0.0, 0.007, 0.07), ..full })),
            // Portions of a source that gives less than the path bears, and one that has hardly begun.
            (Verdict::Idle, evidence(Path { application: 0.4, network: 0.6, ..full })),
            (
                Verdict::SourceDisk,
                Evidence { source: [0.8, 0.1, 0.0], ..evidence(Path { application: 0.4, network: 0.6, ..full }) },
            ),
            (Verdict::Path, evidence(Path { application: 0.2, network: 0.8, ..full })),
            (Verdict::Start, evidence(Path { application: 0.4, network: 0.6, start: 0.9, ..network() })),
            (Verdict::Start, evidence(Path { start: 0.7, loss: loss(0.03, 0.0, 0.0), ..full })),
            (Verdict::Limit, Evidence { limit, ..evidence(full) }),
            (
                Verdict::Limit,
                Evidence { limit: Some(BitRate::mbps(150)), ..evidence(Path { limit: 0.7, network: 0.1, ..network() }) },
            ),
            (Verdict::Path, Evidence { limit: Some(BitRate::mbps(900)), ..evidence(full) }),
            (Verdict::SourceProcessor, busy(0.97, 0.5)),
            (Verdict::TargetProcessor, busy(0.5, 0.97)),
            // Half of the time is no limit where the path shows that it is full, and is one where nothing shows anything.
            (Verdict::Path, busy(0.1, 0.7)),
            (Verdict::TargetProcessor, Evidence { receiver_demand: wants(0.7, 0.1), ..evidence(network()) }),
            (Verdict::Unknown, Evidence { receiver_demand: wants(0.4, 0.1), ..evidence(network()) }),
            (Verdict::SourceProcessor, Evidence { sender_demand: wants(0.6, 0.1), ..evidence(Path { start: 0.7, ..network() }) }),
            (Verdict::SourceProcessor, Evidence { sender_demand: wants(0.6, 0.1), ..source([0.1, 0.1, 0.1]) }),
            // Others ran for most of the time: then even a queue and slow reading are the processor's.
            (Verdict::TargetProcessor, Evidence { receiver_demand: wants(0.6, 0.55), ..evidence(full) }),
            (Verdict::SourceProcessor, Evidence { sender_demand: wants(0.6, 0.55), ..source([0.8, 0.1, 0.0]) }),
            // Where no processor rests a queue may be theirs, unless haul has hardly waited for one; a disk that is waited for is a disk.
            (Verdict::TargetProcessor, Evidence { receiver_demand: crowded(0.3), ..evidence(full) }),
            (Verdict::SourceProcessor, Evidence { sender_demand: crowded(0.3), ..evidence(Path { start: 0.7, ..network() }) }),
            (
                Verdict::SourceProcessor,
                Evidence { sender_demand: Demand { wanted: 0.4, ..crowded(0.3) }, ..source([0.1, 0.1, 0.1]) },
            ),
            (Verdict::Path, Evidence { receiver_demand: crowded(0.1), ..evidence(full) }),
            (Verdict::SourceDisk, Evidence { sender_demand: crowded(0.3), ..source([0.8, 0.1, 0.0]) }),
            (Verdict::SourceDisk, source([0.8, 0.1, 0.0])),
            (Verdict::SourceHash, source([0.1, 0.8, 0.0])),
            (Verdict::ManyFiles, source([0.1, 0.1, 0.9])),
            (Verdict::Idle, source([0.1, 0.1, 0.1])),
            (Verdict::TargetDisk, target([0.8, 0.1, 0.0])),
            (Verdict::TargetHash, target([0.1, 0.8, 0.0])),
            (Verdict::TargetSync, target([0.1, 0.1, 0.9])),
            (Verdict::Memory, target([0.1, 0.1, 0.1])),
            (Verdict::TargetDisk, Evidence { path: None, target: [0.8, 0.0, 0.0], ..evidence(full) }),
            (Verdict::Unknown, Evidence { path: None, ..evidence(full) }),
            (Verdict::Unknown, evidence(Path::default())),
            (Verdict::Login, Evidence { elapsed: Duration::from_millis(300), login: Duration::from_secs(3), ..evidence(full) }),
            (Verdict::Short, Evidence { bytes: Bytes(10), ..evidence(full) }),
        ] {
            assert_eq!(judge(&evidence), verdict, "{evidence:?}");
            assert_eq!(evidence.words(verdict).is_empty(), verdict == Verdict::Short);
        }
    }

    #[test]
    fn evidence_is_what_was_counted() {
        let mut report = Report::default();
        (report.bytes, report.elapsed) = (Bytes::mib(100), Duration::from_secs(1));
        (report.sender.threads, report.receiver.threads) = (2, 2);
        report.sender.read = Duration::from_secs(1);
        report.receiver.sync = Duration::from_millis(200);
        let path = PathReport {
            wait_pacing_us: 500_000,
            wait_window_us: 100_000,
            wait_limit_us: 200_000,
            sent_pkts: 1000,
            lost_pkts: 30,
            lost_starting_pkts: 20,
            lost_queued_pkts: 4,
            ..PathReport::default()
        };
        let (login, demand) = (Duration::from_secs(1), Demand::default());
        let conditions =
            Conditions { report: &report, path: Some(&path), limit: None, sender_demand: demand, receiver_demand: demand, login };
        let evidence = Evidence::of(&conditions);
        let path = evidence.path.expect("it was told");
        assert_eq!((path.network, path.limit, path.loss), (0.6, 0.2, Losses { starting: 0.02, queued: 0.004, other: 0.006 }));
        assert_eq!((evidence.source, evidence.target), ([0.5, 0.0, 0.0], [0.0, 0.0, 0.2]));
        // One thread reads all the time, the other one has nothing to read; in hundredths.
        let source = |report: &Report| {
            let conditions =
                Conditions { report, path: None, limit: None, sender_demand: demand, receiver_demand: demand, login };
            Evidence::of(&conditions).source.map(|part| (part * 100.0) as u32)
        };
        (report.files, report.sender.plan) = (1, Duration::from_secs(1));
        assert_eq!(source(&report), [50, 0, 0]);
        report.directories = 1;
        assert_eq!(source(&report), [50, 0, 50]);
    }
}
