//! The last lines of a copy.

use std::time::Duration;

use haul_files::{Report, Verified};
use haul_units::{BitRate, Bytes, Ratio, milliseconds};
use serde_json::{Value, json};

use crate::copier::Carried;
use crate::parts::Parts;
use crate::paths::OnePath;
use crate::telemetry::PathReport;

/// A copy that takes longer than this would be worth tuning a system for.
const LONG: Duration = Duration::from_secs(5);
/// A login that takes less is not worth a word.
const NOTABLE: Duration = Duration::from_millis(100);

/// What all the copies of one command did together.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The sum of what the engine reported.
    pub report: Report,
    /// The last path, as its sender saw it.
    pub path: Option<PathReport>,
    /// Each of several paths of the last connection.
    pub paths: Vec<OnePath>,
    /// What limited the speed of the last copy.
    pub verdict: String,
    /// What carried the last copy.
    pub carried: Option<Carried>,
    /// Where the time went, if that was looked at.
    pub parts: Option<Parts>,
    /// Time until the connections were there: ssh's login, mostly. It is no part of `report.elapsed`.
    pub login: Duration,
    /// Nothing was done, only looked at.
    pub is_dry: bool,
    /// A dry run has found something that only has other attributes.
    pub would_update: bool,
}

impl Outcome {
    /// What arrived, by the time that it took.
    pub fn rate(&self) -> BitRate {
        if self.report.elapsed.is_zero() { BitRate::ZERO } else { BitRate::of(self.report.bytes, self.report.elapsed) }
    }

    /// Whether a dry run has found anything to do.
    pub const fn would_change(&self) -> bool {
        self.has_copied() || self.report.removed > 0 || self.would_update
    }

    const fn has_copied(&self) -> bool {
        self.report.files > 0 || self.report.directories > 0 || self.links() > 0
    }

    /// A peer has counted them, and may have said any number.
    const fn links(&self) -> u64 {
        self.report.symlinks.saturating_add(self.report.hard_links)
    }

    /// Whether the copy took long enough for advice on the systems to matter.
    pub fn wants_advice(&self) -> bool {
        self.report.elapsed > LONG
    }

    /// As the last event of `--json`; `error` says why nothing could be done, if so.
    pub fn to_json(&self, status: u8, error: Option<&str>) -> Value {
        let relayed = self.carried.as_ref().and_then(|carried| carried.relayed.as_ref());
        json!({
            "event": "summary",
            "exit_status": status,
            "dry_run": self.is_dry,
            "files": self.report.files,
            "directories": self.report.directories,
            "links": self.links(),
            "bytes": self.report.bytes.as_u64(),
            "bytes_resumed": self.report.resumed.as_u64(),
            "files_skipped": self.report.skipped_files,
            "files_newer_there": self.report.newer_files,
            "excluded": self.report.left_out,
            "deleted": self.report.removed,
            "files_changed": self.report.changed_files,
            "bytes_discarded": self.report.discarded.as_u64(),
            "problems": self.report.problem_count,
            "verified": self.report.verified.map(|verified| verified > Verified::No),
            "verified_by": self.report.verified.and_then(verified_by),
            "files_read_back_direct": self.report.read_back.direct_files,
            "files_read_back_uncached": self.report.read_back.uncached_files,
            "elapsed_s": self.report.elapsed.as_secs_f64(),
            "login_s": self.login.as_secs_f64(),
            "parts_s": self.parts.as_ref().map(Parts::to_json),
            "rate_bps": self.rate().as_bps(),
            "verdict": self.verdict,
            "carried_by": self.carried.as_ref().map(|carried| carried.by.to_string()),
            "relay": relayed.map(|relayed| relayed.by.to_string()),
            "relayed_bytes": relayed.map(|relayed| relayed.bytes.as_u64()),
            "error": error,
            "path": self.path,
            "paths": self.paths,
        })
    }
}

/// The summary for people.
pub fn summary(outcome: &Outcome) -> Vec<String> {
    let mut done = vec![counted(outcome.report.files, "file")];
    if outcome.report.directories > 0 {
        done.push(if outcome.report.directories == 1 {
            "1 directory".to_owned()
        } else {
            format!("{} directories", outcome.report.directories)
        });
    }
    if outcome.links() > 0 {
        done.push(counted(outcome.links(), "link"));
    }
    if !outcome.has_copied() {
        return vec![
            [vec![if outcome.is_dry { "nothing to copy" } else { "nothing copied" }.to_owned()], skipped(outcome)]
                .concat()
                .join("; "),
        ];
    }
    if outcome.is_dry {
        let first = vec![format!("would copy {}: {}", done.join(", "), outcome.report.bytes)];
        return vec![[first, skipped(outcome)].concat().join("; ")];
    }
    let rate = if outcome.report.bytes > Bytes::ZERO { format!(", {}", outcome.rate()) } else { String::new() };
    let mut first = vec![format!("copied {}: {} in {}{rate}", done.join(", "), outcome.report.bytes, time(outcome))];
    first.extend(verified(outcome));
    if outcome.report.resumed > Bytes::ZERO {
        first.push(format!("{} were there from an interrupted copy", outcome.report.resumed));
    }
    if outcome.report.changed_files > 0 {
        first.push(format!("{} changed meanwhile", counted(outcome.report.changed_files, "file")));
    }
    first.extend(skipped(outcome));
    let mut lines = vec![first.join("; ")];
    if !outcome.verdict.is_empty() {
        lines.push(outcome.verdict.clone());
    }
    lines
}

/// How long it took, and, where that is something else, how long the user has waited.
fn time(outcome: &Outcome) -> String {
    let elapsed = outcome.report.elapsed;
    let with =
        if outcome.login < NOTABLE { String::new() } else { format!(" ({} with the login)", seconds(elapsed + outcome.login)) };
    seconds(elapsed) + &with
}

fn skipped(outcome: &Outcome) -> Vec<String> {
    let newer = outcome.report.newer_files;
    let same = outcome.report.skipped_files.saturating_sub(newer);
    let line = |count, why| (count > 0).then(|| format!("{} skipped, {why}", counted(count, "file")));
    let excluded = (outcome.report.left_out > 0).then(|| format!("{} excluded", counted(outcome.report.left_out, "name")));
    let verb = if outcome.is_dry { "would be deleted" } else { "deleted" };
    let deleted = (outcome.report.removed > 0).then(|| format!("{} {verb}", counted(outcome.report.removed, "name")));
    [line(same, "there already"), line(newer, "newer there"), excluded, deleted].into_iter().flatten().collect()
}

/// What `verified` means in `--json`.
fn verified_by(verified: Verified) -> Option<&'static str> {
    match verified {
        Verified::No => None,
        Verified::OnArrival => Some("hash on arrival, before writing"),
        Verified::ReadBack => Some("hash on arrival, and of what was read back after the sync"),
    }
}

/// How far the content was verified, if any came.
fn verified(outcome: &Outcome) -> Option<String> {
    let how = match (outcome.report.read_back.direct_files, outcome.report.read_back.uncached_files) {
        (_, 0) => "O_DIRECT".to_owned(),
        (0, _) => "page cache dropped, no O_DIRECT there".to_owned(),
        (_, uncached) => format!("O_DIRECT; {} with the page cache dropped, no O_DIRECT there", counted(uncached, "file")),
    };
    outcome.report.verified.map(|verified| match verified {
        Verified::No => "not verified".to_owned(),
        Verified::OnArrival => "verified on arrival".to_owned(),
        Verified::ReadBack => format!("verified on arrival and read back ({how})"),
    })
}

/// The path in one line, for `-v`.
pub fn path_line(path: &PathReport) -> String {
    let what = if path.paths > 1 { format!("{} paths", path.paths) } else { "path".to_owned() };
    format!(
        "{what}: RTT {} (least {}), {} packets sent, {} lost ({}), {} sent again, waited {} for data to send, {} for acknowledgements (window), {} for the receiver's credit, {} for its turn at the path's rate (pacing)",
        milliseconds(path.rtt_us),
        milliseconds(path.min_rtt_us),
        path.sent_pkts,
        path.lost_pkts,
        path.lost(),
        Bytes(path.retransmitted_bytes),
        seconds(Duration::from_micros(path.wait_application_us)),
        seconds(Duration::from_micros(path.wait_window_us)),
        seconds(Duration::from_micros(path.wait_credit_us)),
        seconds(Duration::from_micros(path.wait_pacing_us)),
    )
}

/// One of several paths in a line.
pub fn one_path_line(path: &OnePath) -> String {
    let by = match (&path.interface, path.address) {
        (Some(interface), Some(address)) => format!(" by {interface} ({address})"),
        _ => String::new(),
    };
    let class = path.class.as_deref().filter(|class| *class != "normal").map(|class| format!(", {class}"));
    format!(
        "path {}{by}{}: {}, {} sent, {} received, RTT {}, {} of what was sent lost{}",
        path.path,
        class.unwrap_or_default(),
        BitRate::from_bps(path.rate_bps),
        Bytes(path.sent_bytes),
        Bytes(path.received_bytes),
        milliseconds(path.rtt_us),
        Ratio::new(path.loss),
        if path.usable { "" } else { ", silent at the end" }
    )
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn seconds(duration: Duration) -> String {
    let s = duration.as_secs_f64();
    if s < 9.995 { format!("{s:.2} s") } else { format!("{s:.1} s") }
}

#[cfg(test)]
mod tests {
    use haul_files::{ReadBack, Waits};

    use super::*;
    use crate::processor::Demand;
    use crate::verdict::{Conditions, verdict};

    #[test]
    fn says_what_was_done_and_what_was_not_needed() {
        let verified = Some(Verified::OnArrival);
        let mut outcome = Outcome::default();
        let report = &mut outcome.report;
        (report.files, report.bytes, report.elapsed, report.verified) = (1, Bytes::mib(1), Duration::from_secs(1), verified);
        assert_eq!(summary(&outcome), ["copied 1 file: 1.00 MiB in 1.00 s, 8.39 Mbit/s; verified on arrival"]);
        outcome.login = Duration::from_millis(1500);
        assert_eq!(
            summary(&outcome),
            ["copied 1 file: 1.00 MiB in 1.00 s (2.50 s with the login), 8.39 Mbit/s; verified on arrival"]
        );
        outcome.login = Duration::from_millis(20);
        let report = &mut outcome.report;
        (report.files, report.directories, report.symlinks, report.hard_links) = (2, 1, 2, 1);
        (report.resumed, report.skipped_files, report.changed_files) = (Bytes::mib(2), 4, 1);
        (report.verified, report.elapsed) = (Some(Verified::No), Duration::from_secs(20));
        outcome.verdict = "because".into();
        assert_eq!(
            summary(&outcome),
            [
                "copied 2 files, 1 directory, 3 links: 1.00 MiB in 20.0 s, 419 kbit/s; not verified; 2.00 MiB were there from an interrupted copy; 1 file changed meanwhile; \
                 4 files skipped, there already",
                "because"
            ]
        );
    }

    /// A report of a peer that says the most of everything; only the time is one's own.
    fn boasted() -> Report {
        let mut report = Report::default();
        for count in [
            &mut report.files,
            &mut report.directories,
            &mut report.symlinks,
            &mut report.hard_links,
            &mut report.bytes.0,
            &mut report.resumed.0,
            &mut report.skipped_files,
            &mut report.newer_files,
            &mut report.skipped.0,
            &mut report.changed_files,
            &mut report.left_out,
            &mut report.removed,
            &mut report.discarded.0,
            &mut report.problem_count,
            &mut report.read_back.direct_files,
            &mut report.read_back.uncached_files,
        ] {
            *count = u64::MAX;
        }
        (report.sender, report.receiver) = (Waits::MAX, Waits::MAX);
        report.verified = Some(Verified::ReadBack);
        report.elapsed = Duration::from_secs(10);
        report
    }

    #[test]
    fn a_peer_that_says_the_most_of_everything_breaks_nothing() {
        let report = boasted();
        let busy = Demand { wanted: 0.4, waited: 0.1, taken: 0.5 };
        let conditions = Conditions {
            report: &report,
            path: None,
            limit: None,
            sender_demand: busy,
            receiver_demand: busy,
            login: Duration::ZERO,
        };
        let mut outcome = Outcome { verdict: verdict(&conditions), ..Outcome::default() };
        outcome.report.add(&report);
        outcome.report.add(&report);
        // How many threads they are is not added up.
        assert_eq!((outcome.report.files, outcome.report.receiver), (u64::MAX, Waits { threads: 0, ..report.receiver }));
        assert!(outcome.would_change());
        let lines = summary(&outcome);
        assert!(lines.len() == 2 && lines[0].starts_with("copied 18446744073709551615 files"), "{lines:?}");
        outcome.is_dry = true;
        assert!(summary(&outcome)[0].starts_with("would copy"));
        assert_eq!(outcome.to_json(0, None)["links"].as_u64(), Some(u64::MAX));
    }

    #[test]
    fn nothing_is_said_plainly() {
        let said = |skipped_files, newer_files| {
            let mut outcome = Outcome::default();
            (outcome.report.skipped_files, outcome.report.newer_files) = (skipped_files, newer_files);
            summary(&outcome)
        };
        assert_eq!(said(0, 0), ["nothing copied"]);
        assert_eq!(said(1, 0), ["nothing copied; 1 file skipped, there already"]);
        assert_eq!(said(3, 1), ["nothing copied; 2 files skipped, there already; 1 file skipped, newer there"]);
    }

    #[test]
    fn the_least_verified_part_counts_and_nothing_is_not_verified() {
        let told = |outcome: &Outcome| (outcome.to_json(0, None)["verified"].as_bool(), verified(outcome));
        let mut outcome = Outcome::default();
        assert!(outcome.to_json(0, None)["verified"].is_null());
        let mut report = Report::default();
        outcome.report.add(&report);
        assert_eq!(told(&outcome), (None, None));
        report.verified = Some(Verified::ReadBack);
        report.read_back.direct_files = 1;
        outcome.report.add(&report);
        assert_eq!(told(&outcome), (Some(true), Some("verified on arrival and read back (O_DIRECT)".to_owned())));
        report.read_back = ReadBack::default();
        report.read_back.uncached_files = 2;
        outcome.report.add(&report);
        let how = "verified on arrival and read back (O_DIRECT; 2 files with the page cache dropped, no O_DIRECT there)";
        assert_eq!(told(&outcome), (Some(true), Some(how.to_owned())));
        report.verified = Some(Verified::OnArrival);
        outcome.report.add(&report);
        assert_eq!(told(&outcome), (Some(true), Some("verified on arrival".to_owned())));
        report.verified = Some(Verified::No);
        outcome.report.add(&report);
        assert_eq!(told(&outcome), (Some(false), Some("not verified".to_owned())));
    }

    #[test]
    fn json_has_the_numbers_without_units() {
        let mut outcome = Outcome::default();
        (outcome.report.bytes, outcome.report.elapsed) = (Bytes(1000), Duration::from_secs(1));
        let event = outcome.to_json(1, None);
        assert_eq!(
            (event["bytes"].as_u64(), event["rate_bps"].as_u64(), event["exit_status"].as_u64()),
            (Some(1000), Some(8000), Some(1))
        );
    }
}
