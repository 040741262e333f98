//! The last lines of a copy.

use std::time::Duration;

use haul_copy::{PathReport, milliseconds};
use haul_files::{ReadBack, Report, Verified};
use haul_units::{BitRate, Bytes};
use serde_json::{Value, json};

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
    /// Names that were excluded.
    pub excluded: u64,
    /// Files that were written to while they were copied.
    pub changed_files: u64,
    /// Bytes that were written and dropped again.
    pub discarded: Bytes,
    /// Files that were not copied.
    pub problems: u64,
    /// How far everything that came was verified; none where no content came.
    pub verified: Option<Verified>,
    /// What was read back.
    pub read_back: ReadBack,
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
        Self::default()
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
        self.excluded += report.left_out;
        self.changed_files += report.changed_files;
        self.discarded += report.discarded;
        self.problems += report.problem_count;
        // The least of all; none is no word on it.
        self.verified = self.verified.into_iter().chain(report.verified).min();
        self.read_back.direct_files += report.read_back.direct_files;
        self.read_back.uncached_files += report.read_back.uncached_files;
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
            "excluded": self.excluded,
            "files_changed": self.changed_files,
            "bytes_discarded": self.discarded.as_u64(),
            "problems": self.problems,
            "verified": self.verified.map(|verified| verified > Verified::No),
            "verified_by": self.verified.and_then(verified_by),
            "files_read_back_direct": self.read_back.direct_files,
            "files_read_back_uncached": self.read_back.uncached_files,
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
    first.extend(verified(outcome));
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
    let excluded = (outcome.excluded > 0).then(|| format!("{} excluded", counted(outcome.excluded, "name")));
    [line(same, "there already"), line(newer, "newer there"), excluded].into_iter().flatten().collect()
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
    let how = match (outcome.read_back.direct_files, outcome.read_back.uncached_files) {
        (_, 0) => "O_DIRECT".to_owned(),
        (0, _) => "page cache dropped, no O_DIRECT there".to_owned(),
        (_, uncached) => format!("O_DIRECT; {} with the page cache dropped, no O_DIRECT there", counted(uncached, "file")),
    };
    outcome.verified.map(|verified| match verified {
        Verified::No => "not verified".to_owned(),
        Verified::OnArrival => "verified on arrival".to_owned(),
        Verified::ReadBack => format!("verified on arrival and read back ({how})"),
    })
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
        let verified = Some(Verified::OnArrival);
        let mut outcome = Outcome { files: 1, bytes: Bytes::mib(1), elapsed: Duration::from_secs(1), verified, ..Outcome::new() };
        assert_eq!(summary(&outcome), ["copied 1 file: 1.00 MiB in 1.00 s, 8.39 Mbit/s; verified on arrival"]);
        outcome = Outcome {
            files: 2,
            directories: 1,
            links: 3,
            resumed: Bytes::mib(2),
            skipped_files: 4,
            changed_files: 1,
            verified: Some(Verified::No),
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
    fn the_least_verified_part_counts_and_nothing_is_not_verified() {
        let told = |outcome: &Outcome| (outcome.to_json(0, None)["verified"].as_bool(), verified(outcome));
        let mut outcome = Outcome::new();
        assert!(outcome.to_json(0, None)["verified"].is_null());
        let mut report = Report::default();
        outcome.add(&report);
        assert_eq!(told(&outcome), (None, None));
        report.verified = Some(Verified::ReadBack);
        report.read_back.direct_files = 1;
        outcome.add(&report);
        assert_eq!(told(&outcome), (Some(true), Some("verified on arrival and read back (O_DIRECT)".to_owned())));
        report.read_back = ReadBack::default();
        report.read_back.uncached_files = 2;
        outcome.add(&report);
        let how = "verified on arrival and read back (O_DIRECT; 2 files with the page cache dropped, no O_DIRECT there)";
        assert_eq!(told(&outcome), (Some(true), Some(how.to_owned())));
        report.verified = Some(Verified::OnArrival);
        outcome.add(&report);
        assert_eq!(told(&outcome), (Some(true), Some("verified on arrival".to_owned())));
        report.verified = Some(Verified::No);
        outcome.add(&report);
        assert_eq!(told(&outcome), (Some(false), Some("not verified".to_owned())));
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
