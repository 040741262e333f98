//! The last lines of a copy.

use std::time::Duration;

use haul_files::Report;
use haul_units::{BitRate, Bytes};
use serde_json::{Value, json};

use super::lines::milliseconds;
use crate::session::PathReport;

/// A copy that takes longer than this would be worth tuning a system for.
const LONG: Duration = Duration::from_secs(5);

/// What all the copies of one command did together.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Regular files copied.
    pub files: u64,
    /// Directories made.
    pub directories: u64,
    /// Symbolic and hard links made.
    pub links: u64,
    /// Bytes that crossed the network.
    pub bytes: Bytes,
    /// Bytes that an interrupted copy had left.
    pub resumed: Bytes,
    /// Files that needed nothing.
    pub skipped_files: u64,
    /// Those of them that are newer at the target.
    pub newer_files: u64,
    /// Files that were written to while they were copied.
    pub changed_files: u64,
    /// Bytes that were written and dropped again.
    pub discarded: Bytes,
    /// Files that were not copied.
    pub problems: u64,
    /// Whether everything was verified.
    pub verified: bool,
    /// From the first request to the last answer.
    pub elapsed: Duration,
    /// The last path, as its sender saw it.
    pub path: Option<PathReport>,
    /// What limited the speed of the last copy.
    pub verdict: String,
}

impl Outcome {
    /// Nothing done.
    pub fn new() -> Self {
        Self { verified: true, ..Self::default() }
    }

    /// Adds one copy.
    pub fn add(&mut self, report: &Report) {
        self.files += report.files;
        self.directories += report.directories;
        self.links += report.symlinks + report.hard_links;
        self.bytes += report.bytes;
        self.resumed += report.resumed;
        self.skipped_files += report.skipped_files;
        self.newer_files += report.newer_files;
        self.changed_files += report.changed_files;
        self.discarded += report.discarded;
        self.problems += report.problem_count;
        self.verified &= report.verified;
        self.elapsed += report.elapsed;
    }

    /// What arrived, by the time that it took.
    pub fn rate(&self) -> BitRate {
        if self.elapsed.is_zero() { BitRate::ZERO } else { BitRate::of(self.bytes, self.elapsed) }
    }

    /// Whether the copy took long enough for advice on the systems to matter.
    pub fn wants_advice(&self) -> bool {
        self.elapsed > LONG
    }

    /// As the last event of `--json`; `error` says why nothing could be done, if so.
    pub fn to_json(&self, status: u8, error: Option<&str>) -> Value {
        json!({
            "event": "summary",
            "exit_status": status,
            "files": self.files,
            "directories": self.directories,
            "links": self.links,
            "bytes": self.bytes.as_u64(),
            "bytes_resumed": self.resumed.as_u64(),
            "files_skipped": self.skipped_files,
            "files_newer_there": self.newer_files,
            "files_changed": self.changed_files,
            "bytes_discarded": self.discarded.as_u64(),
            "problems": self.problems,
            "verified": self.verified,
            "elapsed_s": self.elapsed.as_secs_f64(),
            "rate_bps": self.rate().as_bps(),
            "verdict": self.verdict,
            "error": error,
            "path": self.path,
        })
    }
}

/// The summary for people.
pub fn summary(outcome: &Outcome) -> Vec<String> {
    let mut done = vec![counted(outcome.files, "file")];
    if outcome.directories > 0 {
        done.push(if outcome.directories == 1 {
            "1 directory".to_owned()
        } else {
            format!("{} directories", outcome.directories)
        });
    }
    if outcome.links > 0 {
        done.push(counted(outcome.links, "link"));
    }
    if outcome.files + outcome.directories + outcome.links == 0 {
        return vec![[vec!["nothing copied".to_owned()], skipped(outcome)].concat().join("; ")];
    }
    let rate = if outcome.bytes > Bytes::ZERO { format!(", {}", outcome.rate()) } else { String::new() };
    let mut first = vec![format!("copied {}: {} in {}{rate}", done.join(", "), outcome.bytes, seconds(outcome.elapsed))];
    first.push(if outcome.verified { "verified" } else { "not verified" }.to_owned());
    if outcome.resumed > Bytes::ZERO {
        first.push(format!("{} were there from an interrupted copy", outcome.resumed));
    }
    if outcome.changed_files > 0 {
        first.push(format!("{} changed meanwhile", counted(outcome.changed_files, "file")));
    }
    first.extend(skipped(outcome));
    let mut lines = vec![first.join("; ")];
    if !outcome.verdict.is_empty() {
        lines.push(outcome.verdict.clone());
    }
    lines
}

fn skipped(outcome: &Outcome) -> Vec<String> {
    let newer = outcome.newer_files;
    let same = outcome.skipped_files.saturating_sub(newer);
    let line = |count, why| (count > 0).then(|| format!("{} skipped, {why}", counted(count, "file")));
    [line(same, "there already"), line(newer, "newer there")].into_iter().flatten().collect()
}

/// The path in one line, for `-v`.
pub fn path_line(path: &PathReport) -> String {
    let what = if path.paths > 1 { format!("{} paths", path.paths) } else { "path".to_owned() };
    format!(
        "{what}: RTT {} (least {}), {} packets sent, {} lost ({}), {} sent again, waited {} for data, {} for the window, {} for credit, {} for pacing",
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

fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

fn seconds(duration: Duration) -> String {
    let s = duration.as_secs_f64();
    if s < 9.995 { format!("{s:.2} s") } else { format!("{s:.1} s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_was_done_and_what_was_not_needed() {
        let mut outcome = Outcome { files: 1, bytes: Bytes::mib(1), elapsed: Duration::from_secs(1), ..Outcome::new() };
        assert_eq!(summary(&outcome), ["copied 1 file: 1.00 MiB in 1.00 s, 8.39 Mbit/s; verified"]);
        outcome = Outcome {
            files: 2,
            directories: 1,
            links: 3,
            resumed: Bytes::mib(2),
            skipped_files: 4,
            changed_files: 1,
            verified: false,
            verdict: "because".into(),
            elapsed: Duration::from_secs(20),
            ..outcome
        };
        assert_eq!(
            summary(&outcome),
            [
                "copied 2 files, 1 directory, 3 links: 1.00 MiB in 20.0 s, 419 kbit/s; not verified; 2.00 MiB were there from an interrupted copy; 1 file changed meanwhile; \
                 4 files skipped, there already",
                "because"
            ]
        );
    }

    #[test]
    fn nothing_is_said_plainly() {
        assert_eq!(summary(&Outcome::new()), ["nothing copied"]);
        assert_eq!(summary(&Outcome { skipped_files: 1, ..Outcome::new() }), ["nothing copied; 1 file skipped, there already"]);
        assert_eq!(
            summary(&Outcome { skipped_files: 3, newer_files: 1, ..Outcome::new() }),
            ["nothing copied; 2 files skipped, there already; 1 file skipped, newer there"]
        );
    }

    #[test]
    fn an_unverified_part_makes_the_whole_unverified() {
        let mut outcome = Outcome::new();
        let mut report = Report::default();
        report.verified = true;
        outcome.add(&report);
        assert!(outcome.verified);
        report.verified = false;
        outcome.add(&report);
        assert!(!outcome.verified);
    }

    #[test]
    fn json_has_the_numbers_without_units() {
        let outcome = Outcome { bytes: Bytes(1000), elapsed: Duration::from_secs(1), ..Outcome::new() };
        let event = outcome.to_json(1, None);
        assert_eq!(
            (event["bytes"].as_u64(), event["rate_bps"].as_u64(), event["exit_status"].as_u64()),
            (Some(1000), Some(8000), Some(1))
        );
    }
}
