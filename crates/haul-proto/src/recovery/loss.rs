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
    /// When a packet was last acknowledged.
    acked_at: Time,
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
            acked_at: Time::ZERO,
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
            self.acked_at = now;
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
    /// 0: others answer, and the first doubling is left out, for it is they who are waited for; so is what has left since the oldest packet, or an acknowledgement.
    pub fn probe_timer(&self, ring: &SentRing, timeout: Duration, silent: u32) -> Time {
        // DEVIATION: RFC 9002 6.2.1 doubles without bound. A peer that comes back after an outage is to be noticed within two seconds.
        let longest = timeout.max(PROBE_INTERVAL_MAX * silent.max(1));
        let doublings = self.probes.saturating_sub((silent == 0).into()).min(PROBE_DOUBLINGS_MAX);
        let backed_off = (timeout * (1 << doublings)).min(longest);
        let waits_since = |newest: Time| match ring.oldest().filter(|_| silent == 0) {
            Some(oldest) => newest.min(oldest.sent_at().max(self.acked_at)),
            None => newest,
        };
        ring.newest_sent_at().map_or(Time::NEVER, |newest| waits_since(newest).max(self.probed_at) + backed_off)
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

#[cfg(test)]
mod tests {
    use haul_cc::RateSampler;

    use super::super::sent::{Content, Run};
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn at(count: u64) -> Time {
        Time::ZERO + ms(count)
    }

    fn data() -> Content {
        Content::Data { stream: StreamId(4), offset: 0, payload: 100, last_payload: 100, fin: false }
    }

    /// Two packets.
    fn run(first: u64, content: Content, packet: u16, sent_at: u64) -> Run {
        let state = RateSampler::new(at(sent_at)).on_sent(at(sent_at), Bytes(1), Bytes(7));
        Run::new(first, 2, content, packet, packet, state)
    }

    /// Runs of two small packets, which left then.
    fn ring(sent_at: &[u64]) -> SentRing {
        let mut ring = SentRing::default();
        for (&sent_at, first) in sent_at.iter().zip((0..).step_by(2)) {
            ring.push(run(first, data(), 144, sent_at));
        }
        ring
    }

    /// What tells of a packet that left then.
    fn acked(sent_at: u64) -> AckOutcome {
        AckOutcome { newest: Some((0, run(0, data(), 144, sent_at).state)), ..AckOutcome::default() }
    }

    fn detect(loss: &mut LossDetector, now: Time, ring: &mut SentRing) -> Lost {
        loss.detect(now, ring, ms(20), |_, _, _, _| ())
    }

    fn spurious() -> AckOutcome {
        AckOutcome { spurious_pkts: 1, ..AckOutcome::default() }
    }

    #[test]
    fn lost_is_what_left_no_later_than_a_packet_that_arrived_and_is_overdue_by_the_window() {
        let (mut loss, mut ring) = (LossDetector::default(), ring(&[0, 10, 30]));
        assert_eq!(detect(&mut loss, at(100_000), &mut ring), Lost::default(), "nothing has arrived");
        assert_eq!(loss.loss_timer(&ring, ms(20)), Time::NEVER);
        loss.on_ack(at(110), &acked(10), false);
        // An older packet that arrives later says nothing new: not even how long a round trip is.
        loss.on_ack(at(500), &acked(0), false);
        assert_eq!(loss.loss_timer(&ring, ms(20)), at(120));
        assert_eq!(detect(&mut loss, at(119), &mut ring).packets, 0);
        let lost = detect(&mut loss, at(120), &mut ring);
        assert_eq!((lost.bytes, lost.packets, lost.runs, lost.newest_sent_at), (Bytes(288), 2, 1, at(0)));
        assert_eq!((lost.in_flight_at_send, lost.large_pkts, lost.places), (Bytes(7), 0, vec![(0, 0, 0b11)]));
        // One that left in the same moment, and did not arrive, is as late.
        assert_eq!(loss.loss_timer(&ring, ms(20)), at(130));
        assert_eq!(detect(&mut loss, at(130), &mut ring).newest_sent_at, at(10));
        assert_eq!(loss.loss_timer(&ring, ms(20)), Time::NEVER, "nothing that left later has arrived");
        assert_eq!(detect(&mut loss, at(100_000), &mut ring).packets, 0);
    }

    #[test]
    fn the_window_doubles_with_each_packet_that_turns_up_and_returns_in_calm() {
        let mut loss = LossDetector::default();
        let window = |loss: &LossDetector| loss.window(ms(80), ms(10_000));
        assert_eq!(window(&loss), ms(10));
        let _ = [(), ()].map(|()| loss.on_ack(at(0), &spurious(), true));
        assert_eq!(window(&loss), ms(40));
        let calm =
            |loss: &mut LossDetector, rounds: u32| (0..rounds).for_each(|_| loss.on_ack(at(0), &AckOutcome::default(), true));
        calm(&mut loss, 15);
        (0..20).for_each(|_| loss.on_ack(at(0), &AckOutcome::default(), false));
        assert_eq!(window(&loss), ms(40), "fifteen rounds");
        calm(&mut loss, 1);
        assert_eq!(window(&loss), ms(20));
        calm(&mut loss, 10);
        loss.on_ack(at(0), &spurious(), true);
        calm(&mut loss, 15);
        assert_eq!(window(&loss), ms(40), "calm begins anew");
        calm(&mut loss, 1 + 5 * 16);
        assert_eq!(window(&loss), ms(10), "and goes no further than the beginning");
        (0..10).for_each(|_| loss.on_ack(at(0), &spurious(), false));
        assert_eq!(window(&loss), ms(640));
        assert_eq!((loss.window(ms(80), ms(100)), loss.window(Duration::ZERO, ms(100))), (ms(100), WINDOW_MIN));
    }

    #[test]
    fn probes_come_ever_later_up_to_a_bound_until_something_is_heard() {
        let (mut loss, ring) = (LossDetector::default(), ring(&[0, 10]));
        assert_eq!(loss.probe_timer(&SentRing::default(), ms(30), 1), Time::NEVER);
        assert_eq!(loss.probe_timer(&ring, ms(30), 1), at(40));
        loss.on_probe_timeout(at(40));
        assert_eq!([0, 1].map(|silent| loss.probe_timer(&ring, ms(30), silent)), [at(70), at(100)]);
        loss.on_probe_timeout(at(100));
        assert_eq!([0, 1].map(|silent| loss.probe_timer(&ring, ms(30), silent)), [at(160), at(220)]);
        assert!(!loss.is_persistent() && loss.probes() == 2);
        loss.on_probe_timeout(at(220));
        assert!(loss.is_persistent());
        loss.fall_silent(at(300), 20);
        assert_eq!(loss.probes(), 20);
        assert_eq!([0, 1, 2].map(|silent| loss.probe_timer(&ring, ms(30), silent)), [at(2300), at(2300), at(4300)]);
        assert_eq!(loss.probe_timer(&ring, ms(3000), 1), at(3300), "a timeout that is longer itself");
        assert_eq!(loss.probe_timer(&ring, ms(1), 8), at(300 + 4096), "twelve doublings");
        loss.on_ack(at(310), &AckOutcome::default(), false);
        assert_eq!(loss.probes(), 20, "a report without news");
        loss.on_ack(at(310), &acked(10), false);
        assert_eq!(loss.probes(), 0);
        loss.fall_silent(at(400), 3);
        loss.on_new_address();
        assert_eq!((loss.probes(), loss.is_persistent()), (0, false));
    }

    #[test]
    fn what_was_lost_is_told_by_its_kind() {
        let mut ring = ring(&[0]);
        ring.push(run(2, data(), BASE_BYTES, 1));
        ring.push(run(4, data(), BASE_BYTES + 1, 2).at_position(5));
        ring.push(run(6, Content::Control(vec![Frame::Ping].into()), 60, 3));
        ring.push(run(8, Content::MtuProbe(1400), 1400, 4));
        let mut ranges = Vec::new();
        let lost = LossDetector::lose_all(&mut ring, |stream, offset, len, fin| ranges.push((stream, offset, len, fin)));
        assert_eq!(ranges, [(StreamId(4), 0, 200, false); 3]);
        assert_eq!((lost.mtu_probes, lost.frames, lost.large_pkts), (vec![1400], vec![Frame::Ping], 2));
        let bytes = 2 * (144 + 2 * u64::from(BASE_BYTES) + 1 + 60);
        assert_eq!((lost.bytes, lost.packets, lost.runs, lost.newest_sent_at), (Bytes(bytes), 8, 4, at(3)));
        assert_eq!(lost.places, [(0, 0, 0b11), (2, 0, 0b11), (4, 5, 0b11)]);
        assert_eq!(ring.in_flight(), 0);
    }
}
