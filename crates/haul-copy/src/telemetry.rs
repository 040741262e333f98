//! The path as the sending side sees it: RTT, loss, and why sending waited.
//!
//! Only the sender knows what was lost. On a download that is the server, so it tells the client once a second.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use haul::{Learned, Ratio, Stats};
use haul_peer::SavedPath;
use haul_units::Bytes;
use serde::{Deserialize, Serialize};

use crate::machine::MachineReport;
use crate::parts::Told;
use crate::processor::Demand;

/// How often the server reports.
pub const INTERVAL: Duration = Duration::from_secs(1);
/// Longest report, in bytes.
const MAX_REPORT: u64 = 4096;

/// Figures of one path, from its sender.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathReport {
    /// Round-trip time, smoothed; 0 before the first answer.
    pub rtt_us: u64,
    /// Shortest round-trip time of late.
    pub min_rtt_us: u64,
    /// Part of the packets that was lost of late.
    pub loss: f64,
    /// Packets sent, retransmissions included.
    pub sent_pkts: u64,
    /// Packets lost, those that turned up after all not counted.
    pub lost_pkts: u64,
    /// Payload bytes sent again.
    pub retransmitted_bytes: u64,
    /// Time in which there was nothing to send.
    pub wait_application_us: u64,
    /// Time in which the congestion window was full.
    pub wait_window_us: u64,
    /// Time in which the receiver gave no credit.
    pub wait_credit_us: u64,
    /// Time in which the pacer held packets back, at the congestion controller's rate.
    pub wait_pacing_us: u64,
    /// The same at the user's.
    pub wait_limit_us: u64,
    /// How long the congestion controller took to find its rate, up to now if it has not.
    pub start_us: u64,
    /// Round trips since then.
    pub rounds: u64,
    /// Of these, with a queue.
    pub queued_rounds: u64,
    /// Packets lost by the overshoot of the start.
    pub lost_starting_pkts: u64,
    /// Packets lost later while a queue stood.
    pub lost_queued_pkts: u64,
    /// The largest rate at which data was seen to arrive.
    pub best_bps: u64,
    /// Paths in use.
    pub paths: usize,
}

/// What the server tells the client now and then.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerReport {
    /// The path as the server sees it.
    pub path: PathReport,
    /// What it wanted of its processors, from the first report on; as much of it as the server tells.
    #[serde(flatten)]
    pub demand: Demand,
    /// What the server has learned about the way to the client.
    pub learned: Option<SavedPath>,
    /// How its machine does; none from a server that does not tell.
    pub machine: Option<MachineReport>,
    /// When its part of the copy was done; in the last report, where all went well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) moments: Option<Told>,
}

/// What the client knows of the path and of the other side.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PathView {
    /// Round-trip time, from whoever measured one; 0 for nobody yet.
    pub rtt_us: u64,
    /// Bytes of streams that have come from the other side.
    pub received: Bytes,
    /// How long nothing has come from the other side.
    pub silence: Duration,
    /// How long that may be at most.
    pub timeout: Duration,
    /// The sender's figures; on a download, none before the first report.
    pub sender: Option<PathReport>,
    /// What the server's busiest thread wanted of a processor; nothing before the first report.
    pub server_demand: Demand,
    /// What the sender has learned about its way to the receiver, so far.
    pub learned: Option<Learned>,
    /// How the server's machine does; none before its first report.
    pub machine: Option<MachineReport>,
}

impl From<&Stats> for PathReport {
    fn from(stats: &Stats) -> Self {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        Self {
            rtt_us: if stats.is_measured { micros(stats.rtt) } else { 0 },
            min_rtt_us: if stats.is_measured { micros(stats.min_rtt) } else { 0 },
            loss: stats.loss.as_f64(),
            sent_pkts: stats.sent_pkts,
            lost_pkts: stats.lost_pkts.saturating_sub(stats.spurious_pkts),
            retransmitted_bytes: stats.retransmitted.as_u64(),
            wait_application_us: micros(stats.waits.application),
            wait_window_us: micros(stats.waits.window),
            wait_credit_us: micros(stats.waits.credit),
            wait_pacing_us: micros(stats.waits.pacing),
            wait_limit_us: micros(stats.waits.limit),
            start_us: micros(stats.evidence.start),
            rounds: stats.evidence.rounds,
            queued_rounds: stats.evidence.queued_rounds,
            lost_starting_pkts: stats.evidence.lost_starting_pkts,
            lost_queued_pkts: stats.evidence.lost_queued_pkts,
            best_bps: stats.evidence.best_rate.as_bps(),
            paths: stats.paths,
        }
    }
}

impl PathReport {
    /// Loss of late, once there was an answer: before it everything sent looks lost.
    pub fn told_loss(&self) -> Option<Ratio> {
        (self.rtt_us > 0).then(|| Ratio::new(self.loss))
    }

    /// The part of all packets that was lost.
    pub fn lost(&self) -> Ratio {
        Ratio::new(self.lost_pkts as f64 / self.sent_pkts.max(1) as f64)
    }
}

impl ServerReport {
    /// Sends one report; false once the peer no longer listens.
    pub fn write_to(&self, stream: &mut impl Write) -> bool {
        let line = serde_json::to_vec(self).map(|mut line| {
            line.push(b'\n');
            line
        });
        line.is_ok_and(|line| stream.write_all(&line).and_then(|()| stream.flush()).is_ok())
    }
}

/// Reads reports into `latest` until the stream ends.
pub fn follow(stream: impl Read, latest: &Mutex<Option<ServerReport>>) {
    let mut lines = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        match lines.by_ref().take(MAX_REPORT).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        let Ok(report) = serde_json::from_slice(&line) else { return };
        *latest.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_report_is_kept() {
        let mut bytes = Vec::new();
        for rtt_us in [1, 2] {
            let path = PathReport { rtt_us, ..PathReport::default() };
            let demand = Demand { wanted: 0.5, waited: 0.1, taken: 0.75 };
            assert!(ServerReport { path, demand, ..ServerReport::default() }.write_to(&mut bytes));
        }
        let latest = Mutex::new(None);
        follow(&bytes[..], &latest);
        let report = latest.lock().unwrap().expect("a report");
        assert_eq!((report.path.rtt_us, report.demand), (2, Demand { wanted: 0.5, waited: 0.1, taken: 0.75 }));
        // From a version that tells less.
        follow(&b"{\"busiest\":0.25,\"waited\":0.125}\n"[..], &latest);
        let report = latest.lock().unwrap().expect("a report");
        assert_eq!(report.demand, Demand { wanted: 0.25, waited: 0.125, taken: 0.0 });
    }

    #[test]
    fn the_far_sides_moments_come_with_its_last_report_and_from_an_older_one_never() {
        let latest = Mutex::new(None);
        let moments = Some(Told { first_us: Some(3), written_us: Some(2), sync_us: 1, ..Told::default() });
        let mut bytes = Vec::new();
        for moments in [None, moments] {
            assert!(ServerReport { moments, ..ServerReport::default() }.write_to(&mut bytes));
        }
        follow(&bytes[..], &latest);
        assert_eq!(latest.lock().unwrap().and_then(|report: ServerReport| report.moments), moments);
        let before = String::from_utf8(bytes).expect("text");
        assert!(!before.lines().next().expect("a report").contains("moments"), "older ones are told what they know: {before}");
        follow(&b"{\"moments\":{\"first_us\":7,\"of_a_later_version\":1}}\n"[..], &latest);
        let told = latest.lock().unwrap().and_then(|report: ServerReport| report.moments);
        assert_eq!(told, Some(Told { first_us: Some(7), ..Told::default() }));
        follow(&b"{\"busiest\":0.25}\n"[..], &latest);
        assert_eq!(latest.lock().unwrap().and_then(|report: ServerReport| report.moments), None);
    }

    #[test]
    fn nonsense_ends_it_and_harms_nothing() {
        let latest = Mutex::new(None);
        follow(&b"{\"busiest\":\"very\"}\n{}\n"[..], &latest);
        assert_eq!(latest.into_inner().unwrap(), None);
    }
}
