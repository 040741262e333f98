//! Figures of a path from its sender, and of a process.
//!
//! The same for haul and for the kernel's TCP: counters count from one sample to the next, gauges are as they were at the end.

use std::time::Duration;

use haul::{Connection, PathStats, Stats};
use haul_units::PeerText;
use serde::{Deserialize, Serialize};

use crate::kernel::processor_time;

/// A path as its sender sees it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathSample {
    /// Round-trip time, smoothed.
    pub rtt_us: u64,
    /// Mean deviation of the round-trip time, where it is known.
    pub rtt_var_us: u64,
    /// Shortest round-trip time of late.
    pub min_rtt_us: u64,
    /// Queueing delay towards the receiver, where it is known.
    pub queue_delay_us: u64,
    /// Congestion window.
    pub window_bytes: u64,
    /// In flight.
    pub in_flight_bytes: u64,
    /// The receiver's window, where there is one.
    pub receive_window_bytes: u64,
    /// Packet size: UDP payload for haul, segment for TCP.
    pub packet_bytes: u64,
    /// Pacing rate; 0 without pacing.
    pub pacing_bps: u64,
    /// Rate at which what is sent arrives.
    pub delivery_bps: u64,
    /// 99 of 100 bursts had at most so many packets; 0 where it is not known.
    pub burst_p99_pkts: u64,
    /// Phase of the congestion control.
    pub phase: PeerText,
    /// Counter: packets sent.
    pub sent_pkts: u64,
    /// Counter: packets lost or sent again.
    pub lost_pkts: u64,
    /// Counter: packets taken for lost that turned up.
    pub spurious_pkts: u64,
    /// Counter: packets that the network marked.
    pub marked_pkts: u64,
    /// Counter: payload sent again.
    pub retransmitted_bytes: u64,
    /// Counter: time without anything to send.
    pub wait_application_us: u64,
    /// Counter: time with a full congestion window.
    pub wait_window_us: u64,
    /// Counter: time in which the receiver took no more.
    pub wait_credit_us: u64,
    /// Counter: time in which the pacer held packets back.
    pub wait_pacing_us: u64,
    /// Where these are sums over the several paths of a connection: each of them.
    pub each: Vec<PartSample>,
}

/// One of the several paths of a connection.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PartSample {
    /// Its number.
    pub id: u8,
    /// The peer answers there.
    pub usable: bool,
    /// By which interface it leaves, where the client was told by which.
    pub interface: Option<PeerText>,
    /// Round-trip time, smoothed.
    pub rtt_us: u64,
    /// Congestion window.
    pub window_bytes: u64,
    /// In flight.
    pub in_flight_bytes: u64,
    /// Pacing rate.
    pub pacing_bps: u64,
    /// Counter: UDP payload sent.
    pub sent_bytes: u64,
    /// Counter: UDP payload acknowledged.
    pub acknowledged_bytes: u64,
    /// Counter: packets taken for lost.
    pub lost_pkts: u64,
}

impl From<&PathStats> for PartSample {
    fn from(path: &PathStats) -> Self {
        Self {
            id: path.id,
            usable: path.usable,
            interface: None,
            rtt_us: micros(path.rtt),
            window_bytes: path.window.as_u64(),
            in_flight_bytes: path.in_flight.as_u64(),
            pacing_bps: path.pacing_rate.as_bps(),
            sent_bytes: path.sent.as_u64(),
            acknowledged_bytes: path.acknowledged.as_u64(),
            lost_pkts: path.lost_pkts,
        }
    }
}

impl PartSample {
    /// This sample with its counters from those of the same path in `earlier` on, if it was there.
    fn since(&self, earlier: &[Self]) -> Self {
        let Some(earlier) = earlier.iter().find(|part| part.id == self.id) else { return self.clone() };
        Self {
            sent_bytes: self.sent_bytes.saturating_sub(earlier.sent_bytes),
            acknowledged_bytes: self.acknowledged_bytes.saturating_sub(earlier.acknowledged_bytes),
            lost_pkts: self.lost_pkts.saturating_sub(earlier.lost_pkts),
            ..self.clone()
        }
    }
}

/// Whole microseconds.
pub fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

impl From<&Stats> for PathSample {
    fn from(stats: &Stats) -> Self {
        Self {
            rtt_us: micros(stats.rtt),
            rtt_var_us: 0,
            min_rtt_us: micros(stats.min_rtt),
            queue_delay_us: micros(stats.queue_delay),
            window_bytes: stats.window.as_u64(),
            in_flight_bytes: stats.in_flight.as_u64(),
            receive_window_bytes: 0,
            packet_bytes: stats.packet_size.as_u64(),
            pacing_bps: stats.pacing_rate.as_bps(),
            delivery_bps: stats.delivery_rate.as_bps(),
            burst_p99_pkts: stats.burst_p99_pkts,
            phase: stats.controller.phase.into(),
            sent_pkts: stats.sent_pkts,
            lost_pkts: stats.lost_pkts,
            spurious_pkts: stats.spurious_pkts,
            marked_pkts: stats.ecn_marked_pkts,
            retransmitted_bytes: stats.retransmitted.as_u64(),
            wait_application_us: micros(stats.waits.application),
            wait_window_us: micros(stats.waits.window),
            wait_credit_us: micros(stats.waits.credit),
            wait_pacing_us: micros(stats.waits.pacing + stats.waits.limit),
            each: Vec::new(),
        }
    }
}

impl PathSample {
    /// A connection as its sender sees it.
    pub fn of(connection: &Connection) -> Self {
        let paths = connection.paths();
        let is_several = paths.len() > 1 || !connection.path_ways().is_empty();
        let each = if is_several { paths.iter().map(PartSample::from).collect() } else { Vec::new() };
        Self { each, ..Self::from(&connection.stats()) }
    }

    /// Names the interfaces by which the paths of a client's connection leave, whoever has sampled them.
    pub fn name_interfaces(&mut self, connection: &Connection) {
        for (number, way) in connection.path_ways().into_iter().enumerate() {
            if let Some(part) = self.each.iter_mut().find(|part| usize::from(part.id) == number) {
                part.interface = Some(way.interface.into());
            }
        }
    }

    /// This sample with its counters from `earlier` on.
    pub fn since(&self, earlier: &Self) -> Self {
        let counted = |get: fn(&Self) -> u64| get(self).saturating_sub(get(earlier));
        Self {
            sent_pkts: counted(|s| s.sent_pkts),
            lost_pkts: counted(|s| s.lost_pkts),
            spurious_pkts: counted(|s| s.spurious_pkts),
            marked_pkts: counted(|s| s.marked_pkts),
            retransmitted_bytes: counted(|s| s.retransmitted_bytes),
            wait_application_us: counted(|s| s.wait_application_us),
            wait_window_us: counted(|s| s.wait_window_us),
            wait_credit_us: counted(|s| s.wait_credit_us),
            wait_pacing_us: counted(|s| s.wait_pacing_us),
            each: self.each.iter().map(|part| part.since(&earlier.each)).collect(),
            ..self.clone()
        }
    }

    /// What sending waited for most in `time_us`; the processor, where it hardly waited.
    pub fn limit(&self, time_us: u64) -> &'static str {
        let waits = [
            (self.wait_application_us, "application"),
            (self.wait_window_us, "window"),
            (self.wait_credit_us, "receiver"),
            (self.wait_pacing_us, "pacing"),
        ];
        let waited: u64 = waits.iter().map(|(us, _)| us).sum();
        if (waited as f64) < time_us as f64 * NOTABLE_WAIT {
            return "processor";
        }
        waits.into_iter().filter(|(us, _)| *us > 0).max_by_key(|(us, _)| *us).map_or("none", |(_, name)| name)
    }
}

/// Who waits for less of the time than this does not wait, but work.
const NOTABLE_WAIT: f64 = 0.3;

/// Processor time as a part of the time that passed, in percent; two busy processors are 200.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CpuUse {
    /// All of it.
    pub total: f64,
    /// In the program.
    pub user: f64,
    /// In the kernel on its behalf.
    pub system: f64,
}

/// Watches the processor time of this process.
#[derive(Debug)]
pub struct CpuWatch {
    started: std::time::Instant,
    before: (Duration, Duration),
}

impl CpuWatch {
    /// From now on.
    pub fn start() -> Self {
        Self { started: crate::clock::now(), before: processor_time() }
    }

    /// Since the start.
    pub fn read(&self) -> CpuUse {
        let elapsed = (crate::clock::now() - self.started).as_secs_f64().max(1e-6);
        let (user, system) = processor_time();
        let percent = |now: Duration, before: Duration| now.saturating_sub(before).as_secs_f64() / elapsed * 100.0;
        let (user, system) = (percent(user, self.before.0), percent(system, self.before.1));
        CpuUse { total: user + system, user, system }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_count_from_sample_to_sample_and_gauges_do_not() {
        let early = PathSample { rtt_us: 9, lost_pkts: 5, wait_window_us: 100, ..PathSample::default() };
        let late =
            PathSample { rtt_us: 7, lost_pkts: 8, sent_pkts: 300, wait_window_us: 150, wait_pacing_us: 20, ..early.clone() };
        let between = late.since(&early);
        assert_eq!((between.rtt_us, between.lost_pkts, between.wait_window_us), (7, 3, 50));
        assert_eq!(between.limit(100), "window");
        assert_eq!(between.limit(1000), "processor", "70 us of 1000 were waits");
        assert_eq!(PathSample::default().limit(0), "none");
    }

    #[test]
    fn paths_of_a_connection_are_counted_each_for_itself() {
        let part = |id, acknowledged_bytes| PartSample { id, acknowledged_bytes, ..PartSample::default() };
        let early = PathSample { each: vec![part(0, 10)], ..PathSample::default() };
        let late = PathSample { each: vec![part(0, 25), part(1, 7)], ..PathSample::default() };
        assert_eq!(late.since(&early).each, [part(0, 15), part(1, 7)], "the second was opened in between");
    }
}
