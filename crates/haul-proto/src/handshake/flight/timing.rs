//! When a handshake sends again, when it gives up, and what the round-trip time is.

use std::time::Duration;

use haul_units::Time;

/// With nothing known. Nor later where something is: a path that an earlier connection found longer may have become shorter.
const FIRST_PROBE: Duration = Duration::from_millis(250);
/// A peer's processor may be busy for as long, whatever the path.
const SHORTEST_PROBE: Duration = Duration::from_millis(20);
const MAX_DOUBLINGS: u32 = 6;
const REMEMBERED_PKTS: usize = 16;

#[derive(Debug)]
pub(super) struct Timing {
    deadline: Time,
    probe_at: Time,
    doublings: u32,
    rtt: Option<Duration>,
    /// What to go by until something is measured.
    first: Duration,
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
            first: FIRST_PROBE,
            sent: [(0, Time::ZERO); REMEMBERED_PKTS],
        }
    }

    /// Begins at `now` with what an earlier connection has measured, if one has.
    pub(super) fn expect(&mut self, now: Time, rtt: Option<Duration>) {
        self.first = rtt.map_or(FIRST_PROBE, probe).min(FIRST_PROBE);
        self.probe_at = now + self.first;
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
        self.rtt.map_or(self.first, probe) * (1 << self.doublings)
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

fn probe(rtt: Duration) -> Duration {
    (rtt * 2).max(SHORTEST_PROBE)
}
