//! When a handshake sends again, when it gives up, and what the round-trip time is.

use std::time::Duration;

use haul_units::Time;

const FIRST_PROBE: Duration = Duration::from_millis(250);
const SHORTEST_PROBE: Duration = Duration::from_millis(20);
const MAX_DOUBLINGS: u32 = 6;
const REMEMBERED_PKTS: usize = 16;

#[derive(Debug)]
pub(super) struct Timing {
    deadline: Time,
    probe_at: Time,
    doublings: u32,
    rtt: Option<Duration>,
    /// Numbers and send times of the latest packets, by number modulo their count.
    sent: [(u32, Time); REMEMBERED_PKTS],
}

impl Timing {
    pub(super) fn new(now: Time, timeout: Duration) -> Self {
        Self {
            deadline: now + timeout,
            probe_at: now + FIRST_PROBE,
            doublings: 0,
            rtt: None,
            sent: [(0, Time::ZERO); REMEMBERED_PKTS],
        }
    }

    pub(super) fn next(&self) -> Time {
        self.probe_at.min(self.deadline)
    }

    pub(super) fn is_over(&self, now: Time) -> bool {
        now >= self.deadline
    }

    /// Sets the timer again, to twice the time, if it has expired.
    pub(super) fn has_probe_timer_expired(&mut self, now: Time) -> bool {
        let expired = now >= self.probe_at;
        if expired {
            self.doublings = (self.doublings + 1).min(MAX_DOUBLINGS);
            self.probe_at = now + self.probe_interval();
        }
        expired
    }

    /// The peer has answered: the timer starts afresh.
    pub(super) fn on_progress(&mut self, now: Time) {
        self.doublings = 0;
        self.probe_at = now + self.probe_interval();
    }

    fn probe_interval(&self) -> Duration {
        let base = self.rtt.map_or(FIRST_PROBE, |rtt| (rtt * 2).max(SHORTEST_PROBE));
        base * (1 << self.doublings)
    }

    pub(super) fn on_sent(&mut self, packet_number: u32, now: Time) {
        self.sent[packet_number as usize % REMEMBERED_PKTS] = (packet_number, now);
    }

    /// The peer says that `packet_number` was the newest it had. It may have said so late, so the smallest sample counts; each packet gives
    /// one at most.
    pub(super) fn on_echo(&mut self, packet_number: u32, now: Time) {
        let slot = &mut self.sent[packet_number as usize % REMEMBERED_PKTS];
        if packet_number != 0 && slot.0 == packet_number {
            let sample = now.since(slot.1);
            slot.0 = 0;
            self.on_rtt(sample);
        }
    }

    pub(super) fn on_rtt(&mut self, sample: Duration) {
        self.rtt = Some(self.rtt.map_or(sample, |rtt| rtt.min(sample)));
    }

    pub(super) fn rtt(&self) -> Option<Duration> {
        self.rtt
    }
}
