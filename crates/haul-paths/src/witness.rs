//! What a path has shown of itself: whether a queue stood where packets were lost, and when.
//!
//! Loss by itself says nothing. A start that doubles its rate overfills the path's queue once, by its own doing; a queue that overflows later is congestion; loss
//! without a queue is the path's own, or a policer's. So losses are counted in three kinds, and round trips with a queue are counted too: they are what
//! tells a full path from a sender that sends less than the path bears.

use std::time::Duration;

use haul_units::{BitRate, Time};

/// A queueing delay below this is the noise of clocks and of batches of packets.
const LEAST_QUEUE: Duration = Duration::from_millis(1);
/// So is less than this part of the round-trip time: a queue of a tenth of the bandwidth-delay product, as routers have at the least, is above it.
const QUEUE_PART: u32 = 16;

/// What a sender has seen of a path; of several paths, added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Evidence {
    /// How long the controller took to find its rate: until it left its start, or until now.
    pub start: Duration,
    /// Whether it has left it.
    pub is_started: bool,
    /// Round trips since.
    pub rounds: u64,
    /// Of these, those in which a queue stood.
    pub queued_rounds: u64,
    /// Lost of what left in the start, with a queue: the start's own overshoot.
    pub lost_starting_pkts: u64,
    /// Lost later while a queue stood: congestion.
    pub lost_queued_pkts: u64,
    /// What the path carries: the mean delivery rate of the round trips with a queue, where there was none the largest of any. The start does not count once it is over: what a token
    /// bucket had saved up passes faster than the path.
    pub best_rate: BitRate,
}

/// Collects [`Evidence`].
#[derive(Debug)]
pub struct Witness {
    begun: Time,
    start_ended: Option<Time>,
    is_queued: bool,
    /// The newest of this round trip.
    rate: Option<BitRate>,
    /// Of round trips with a queue and a rate: their number, and the sum of the last rate of each.
    queued_rates: (u64, u128),
    evidence: Evidence,
}

impl Witness {
    /// Of a path that begins now.
    pub fn new(now: Time) -> Self {
        Self { begun: now, start_ended: None, is_queued: false, rate: None, queued_rates: (0, 0), evidence: Evidence::default() }
    }

    /// A queueing delay was measured.
    pub fn on_queue_delay(&mut self, delay: Duration, min_rtt: Duration) {
        self.is_queued |= delay >= LEAST_QUEUE.max(min_rtt / QUEUE_PART);
    }

    /// A rate was measured at which what was sent has arrived.
    pub fn on_rate(&mut self, rate: BitRate) {
        self.rate = Some(rate);
        self.evidence.best_rate = self.evidence.best_rate.max(rate);
    }

    /// A round trip has passed.
    pub fn on_round(&mut self) {
        if self.start_ended.is_some() {
            self.evidence.rounds += 1;
            self.evidence.queued_rounds += u64::from(self.is_queued);
            if let Some(rate) = self.rate.filter(|_| self.is_queued) {
                self.queued_rates.0 += 1;
                self.queued_rates.1 += u128::from(rate.as_bps());
            }
        }
        self.is_queued = false;
        self.rate = None;
    }

    /// Whether the controller may still be in its start.
    pub const fn is_starting(&self) -> bool {
        self.start_ended.is_none()
    }

    /// The controller has found its rate.
    pub fn on_started(&mut self, now: Time) {
        if self.start_ended.is_none() {
            self.start_ended = Some(now);
            self.evidence.best_rate = BitRate::from_bps(0);
        }
    }

    /// Packets are taken for lost, the newest of which left at `sent_at`.
    pub fn on_lost(&mut self, packets: u64, sent_at: Time, queue_delay: Duration, min_rtt: Duration) {
        self.on_queue_delay(queue_delay, min_rtt);
        if !self.is_queued {
            return;
        }
        let in_start = self.start_ended.is_none_or(|ended| sent_at <= ended);
        *(if in_start { &mut self.evidence.lost_starting_pkts } else { &mut self.evidence.lost_queued_pkts }) += packets;
    }

    /// What there is to say of the path by now.
    pub fn read(&self, now: Time) -> Evidence {
        let start = self.start_ended.unwrap_or(now).since(self.begun);
        let (rounds, sum) = self.queued_rates;
        let queued = (rounds > 0).then(|| BitRate::from_bps(u64::try_from(sum / u128::from(rounds)).unwrap_or(u64::MAX)));
        let best_rate = queued.unwrap_or(self.evidence.best_rate);
        Evidence { start, is_started: self.start_ended.is_some(), best_rate, ..self.evidence }
    }
}

impl Evidence {
    /// That of two paths together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            start: self.start.max(other.start),
            is_started: self.is_started && other.is_started,
            rounds: self.rounds + other.rounds,
            queued_rounds: self.queued_rounds + other.queued_rounds,
            lost_starting_pkts: self.lost_starting_pkts + other.lost_starting_pkts,
            lost_queued_pkts: self.lost_queued_pkts + other.lost_queued_pkts,
            best_rate: BitRate::from_bps(self.best_rate.as_bps().saturating_add(other.best_rate.as_bps())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(60);

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn losses_are_of_three_kinds() {
        let mut witness = Witness::new(at(0));
        // In the start with a queue, in the start without one.
        witness.on_lost(10, at(100), RTT, RTT);
        witness.on_round();
        witness.on_lost(1, at(150), Duration::ZERO, RTT);
        witness.on_started(at(200));
        // What left before the end of the start is noticed after it.
        witness.on_lost(5, at(190), RTT, RTT);
        witness.on_round();
        witness.on_lost(3, at(300), RTT / 10, RTT);
        witness.on_round();
        witness.on_lost(2, at(400), Duration::from_micros(900), RTT);
        witness.on_round();
        let evidence = witness.read(at(500));
        assert_eq!((evidence.lost_starting_pkts, evidence.lost_queued_pkts), (15, 3));
        assert_eq!((evidence.start, evidence.rounds, evidence.queued_rounds), (Duration::from_millis(200), 3, 2));
    }

    #[test]
    fn a_path_carries_what_it_carries_with_a_queue_and_not_what_its_bucket_had_saved() {
        let mut witness = Witness::new(at(0));
        witness.on_rate(BitRate::mbps(600));
        assert_eq!(witness.read(at(1)).best_rate, BitRate::mbps(600), "nothing else is known");
        witness.on_started(at(100));
        for (mbps, queue) in [(90, RTT), (300, Duration::ZERO), (110, RTT), (20, Duration::ZERO)] {
            witness.on_rate(BitRate::mbps(700));
            witness.on_rate(BitRate::mbps(mbps));
            witness.on_queue_delay(queue, RTT);
            witness.on_round();
        }
        assert_eq!(witness.read(at(500)).best_rate, BitRate::mbps(100));
        let mut witness = Witness::new(at(0));
        witness.on_started(at(100));
        for mbps in [90, 110, 100] {
            witness.on_rate(BitRate::mbps(mbps));
            witness.on_round();
        }
        assert_eq!(witness.read(at(500)).best_rate, BitRate::mbps(110), "no queue: the largest");
    }
}
