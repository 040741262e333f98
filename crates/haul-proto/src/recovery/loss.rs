//! Loss detection in time: RACK.
//!
//! A packet is lost when one that left later has been acknowledged and a round trip plus a reordering window has passed since it left; no count of
//! packets, which trains and parallel queues would fool. The window starts at an eighth of the smallest round trip, doubles when packets taken for lost
//! turn up, up to one smoothed round trip, and returns after 16 round trips without. Retransmissions are new packets, so lost
//! retransmissions are found in the same way. When nothing is heard at all, a probe timeout asks again. Sources: RFC 8985 6.2, RFC 9002 6.2.

use std::time::Duration;

use haul_units::{Bytes, Time};

use super::sent::{AckOutcome, SentRing};
use crate::streams::StreamId;
use crate::wire::BASE_BYTES;
use crate::wire::Frame;

/// Round trips without a spurious loss after which the reordering window returns. // RFC 8985 6.2 step 4
const CALM_ROUNDS: u32 = 16;
/// The reordering window is at least this: acknowledgement and timer granularity.
const WINDOW_MIN: Duration = Duration::from_millis(1);
/// Probe timeouts in a row after which everything in flight is lost.
const PERSISTENT_PROBES: u32 = 3;
/// From the shortest probe timeout (6 ms) so many doublings lead beyond the longest wait of eight paths.
const PROBE_DOUBLINGS_MAX: u32 = 12;
/// The longest time between two probes, unless the probe timeout itself is longer: a minute of silence costs thirty of them.
const PROBE_INTERVAL_MAX: Duration = Duration::from_secs(2);

/// Packets taken for lost in one go.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Lost {
    /// Bytes.
    pub bytes: Bytes,
    /// Packets.
    pub packets: u64,
    /// Runs of packets.
    pub runs: u64,
    /// When the newest of them left.
    pub newest_sent_at: Time,
    /// In flight when it left.
    pub in_flight_at_send: Bytes,
    /// Control frames to send again.
    pub frames: Vec<Frame>,
    /// Sizes of MTU probes lost: no sign of congestion, and not counted above.
    pub mtu_probes: Vec<u16>,
    /// Data packets among them that were larger than what every path carries.
    pub large_pkts: u64,
    /// Where in their bursts data packets were: the number of the first packet of a run, its position, and the mask of those lost.
    pub places: Vec<(u64, u16, u64)>,
}

/// Decides which packets of a path are lost, and when to probe.
#[derive(Debug)]
pub struct LossDetector {
    /// When the newest packet acknowledged left.
    newest_acked_sent_at: Option<Time>,
    /// Round-trip time of that packet.
    newest_rtt: Duration,
    /// Reordering window as a multiple of an eighth of the smallest round trip.
    window_steps: u32,
    calm_rounds: u32,
    /// Probe timeouts since the last acknowledgement.
    probes: u32,
    /// When the last of them passed.
    probed_at: Time,
}

impl Default for LossDetector {
    fn default() -> Self {
        Self {
            newest_acked_sent_at: None,
            newest_rtt: Duration::ZERO,
            window_steps: 1,
            calm_rounds: 0,
            probes: 0,
            probed_at: Time::ZERO,
        }
    }
}

impl LossDetector {
    /// An acknowledgement has been applied.
    pub fn on_ack(&mut self, now: Time, outcome: &AckOutcome, round_start: bool) {
        if let Some((_, state)) = outcome.newest {
            self.probes = 0;
            if self.newest_acked_sent_at.is_none_or(|at| state.sent_at >= at) {
                self.newest_acked_sent_at = Some(state.sent_at);
                self.newest_rtt = now.since(state.sent_at);
            }
        }
        if outcome.spurious_pkts > 0 {
            self.window_steps = (self.window_steps * 2).min(64);
            self.calm_rounds = 0;
        } else if round_start {
            self.calm_rounds += 1;
            if self.calm_rounds >= CALM_ROUNDS && self.window_steps > 1 {
                self.window_steps /= 2;
                self.calm_rounds = 0;
            }
        }
    }

    /// The reordering window in force.
    pub fn window(&self, min_rtt: Duration, smoothed_rtt: Duration) -> Duration {
        (min_rtt / 8 * self.window_steps).min(smoothed_rtt).max(WINDOW_MIN)
    }

    /// Takes for lost what is overdue; `on_data` gets each range to send again.
    pub fn detect(
        &mut self,
        now: Time,
        ring: &mut SentRing,
        window: Duration,
        on_data: impl FnMut(StreamId, u64, u64, bool),
    ) -> Lost {
        let Some(newest) = self.newest_acked_sent_at else { return Lost::default() };
        let wait = self.newest_rtt + window;
        collect(ring, |sent_at| sent_at <= newest && now >= sent_at + wait, on_data)
    }

    /// When `detect` would find something, if nothing else happens.
    pub fn loss_timer(&self, ring: &SentRing, window: Duration) -> Time {
        match (self.newest_acked_sent_at, ring.oldest()) {
            (Some(newest), Some(run)) if run.sent_at() <= newest => run.sent_at() + self.newest_rtt + window,
            _ => Time::NEVER,
        }
    }

    /// When to probe: a timeout after the newest packet left, doubled for each probe without an answer, up to two seconds for each of `silent` paths that are asked side by side;
    /// 0: others answer, and the first doubling is left out, for it is they who are waited for.
    pub fn probe_timer(&self, ring: &SentRing, timeout: Duration, silent: u32) -> Time {
        // DEVIATION: RFC 9002 6.2.1 doubles without bound. A peer that comes back after an outage is to be noticed within two seconds.
        let longest = timeout.max(PROBE_INTERVAL_MAX * silent.max(1));
        let doublings = self.probes.saturating_sub((silent == 0).into()).min(PROBE_DOUBLINGS_MAX);
        let backed_off = (timeout * (1 << doublings)).min(longest);
        ring.newest_sent_at().map_or(Time::NEVER, |at| at.max(self.probed_at) + backed_off)
    }

    /// A probe timeout has passed.
    pub fn on_probe_timeout(&mut self, now: Time) {
        self.probes = self.probes.saturating_add(1);
        self.probed_at = now;
    }

    /// The peer has been heard at another address: whatever was not answered says nothing about that one.
    pub const fn on_new_address(&mut self) {
        self.probes = 0;
    }

    /// As if so many probes had not been answered.
    pub const fn fall_silent(&mut self, now: Time, probes: u32) {
        (self.probes, self.probed_at) = (probes, now);
    }

    /// Whether the silence has lasted so long that everything in flight is to be taken for lost, and nothing leaves but probes.
    pub const fn is_persistent(&self) -> bool {
        self.probes >= PERSISTENT_PROBES
    }

    /// Probe timeouts since the last acknowledgement.
    pub const fn probes(&self) -> u32 {
        self.probes
    }

    /// Takes everything in flight for lost.
    pub fn lose_all(ring: &mut SentRing, on_data: impl FnMut(StreamId, u64, u64, bool)) -> Lost {
        collect(ring, |_| true, on_data)
    }
}

fn collect(ring: &mut SentRing, is_late: impl Fn(Time) -> bool, on_data: impl FnMut(StreamId, u64, u64, bool)) -> Lost {
    let mut lost = Lost::default();
    ring.mark_lost(
        |run| is_late(run.sent_at()),
        on_data,
        |run, bytes, mask| {
            let packets = u64::from(mask.count_ones());
            if matches!(run.content, super::Content::Data { .. }) {
                lost.places.push((run.first, run.position, mask));
            }
            match &run.content {
                super::Content::MtuProbe(size) => return lost.mtu_probes.push(*size),
                super::Content::Control(frames) => lost.frames.extend(frames.iter().cloned()),
                super::Content::Data { .. } if run.packet > BASE_BYTES => lost.large_pkts += packets,
                super::Content::Data { .. } => {}
            }
            lost.bytes += Bytes(bytes);
            lost.packets += packets;
            lost.runs += 1;
            lost.newest_sent_at = run.sent_at();
            lost.in_flight_at_send = run.state.in_flight;
        },
    );
    lost
}
