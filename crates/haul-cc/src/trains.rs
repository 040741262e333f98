//! How long trains may be: long as a rule, shorter where loss follows the position in them.
//!
//! What leaves between two waits of the pacer is a burst: one train, at high rates a group of them. A queue or policer with less room than a burst
//! takes its head and drops its tail, while random loss and a queue that is full anyway hit both alike. So the losses of the first and the
//! second half of bursts are counted: where the tail loses clearly more, groups are given up and then trains halved step by step, as far as
//! the rate leaves [`WAKE_TIME`] between two. After [`CALM_ROUNDS`] without such loss a step is taken back.

use std::time::Duration;

use haul_units::{BitRate, Bytes};

use crate::pacer::GROUP_TIME;

/// Trains are not made shorter than what passes in this time: a processor cannot wake up for less.
const WAKE_TIME: Duration = Duration::from_micros(50);
/// The fewest packets of a train.
const TRAIN_MIN: u64 = 2;
/// Round trips without tail loss after which trains grow by a step.
const CALM_ROUNDS: u32 = 32;
/// Losses in the tail from which on they say something.
const TAIL_LOSSES_MIN: u64 = 12;
/// How many standard deviations the tail's losses must be beyond the head's.
const DEVIATIONS: f64 = 4.0;
/// Beyond this no train of 64 packets can be halved.
const STEPS_MAX: u32 = 6;

/// The bursts of one path.
#[derive(Debug)]
pub struct Trains {
    /// Packets of the burst that is leaving.
    leaving: u64,
    /// Bursts by their packets; the last entry counts those beyond.
    bursts: Box<[u64; BURST_MAX + 1]>,
    steps: u32,
    /// Packets that a burst may have; the second half of it is the tail.
    length: u64,
    /// Packets from this number on belong to bursts of this length.
    since: u64,
    /// Lost: head and tail.
    lost: [u64; 2],
    /// Sent: head and tail.
    sent: [u64; 2],
    calm_rounds: u32,
}

/// The longest burst told apart in the statistics, in packets.
const BURST_MAX: usize = 1023;

impl Default for Trains {
    fn default() -> Self {
        Self {
            leaving: 0,
            bursts: Box::new([0; BURST_MAX + 1]),
            steps: 0,
            length: 0,
            since: 0,
            lost: [0; 2],
            sent: [0; 2],
            calm_rounds: 0,
        }
    }
}

impl Trains {
    /// The train to ask the pacer for, where the controller would have `burst`, and the time that a group of them may stand for.
    pub fn limit(&mut self, next_number: u64, burst: Bytes, rate: BitRate, packet: Bytes) -> (Bytes, Duration) {
        let grouping = if self.steps == 0 { GROUP_TIME } else { Duration::ZERO };
        let packet_bytes = packet.as_u64().max(1);
        let least = (rate.bytes_in(WAKE_TIME).as_u64() / packet_bytes).max(TRAIN_MIN);
        let whole = burst.as_u64() / packet_bytes;
        let train = (whole >> self.steps.saturating_sub(1)).max(least).min(whole.max(1));
        let group = (rate.bytes_in(grouping).as_u64() / packet_bytes).clamp(train, train.max(BURST_MAX as u64));
        // Lengths follow the rate; what was counted holds while they do not differ by much.
        if group * 4 < self.length * 3 || group * 3 > self.length * 4 {
            self.restart(next_number, group);
        }
        (if train == whole { burst } else { packet * train }, grouping)
    }

    /// `packets` more of a burst leave. Returns how many of it were before them.
    pub fn on_sent(&mut self, packets: u64) -> u16 {
        let position = self.leaving;
        self.leaving += packets;
        let head = (self.length / 2).saturating_sub(position).min(packets);
        self.sent[0] += head;
        self.sent[1] += packets - head;
        u16::try_from(position).unwrap_or(u16::MAX)
    }

    /// The burst is over: nothing more may leave for a while.
    pub fn on_pause(&mut self) {
        if self.leaving > 0 {
            self.bursts[usize::try_from(self.leaving).unwrap_or(BURST_MAX).min(BURST_MAX)] += 1;
            self.leaving = 0;
        }
    }

    /// Packets of the run that begins with number `first`, `position` packets into its burst, are lost: those in `mask`.
    pub fn on_lost(&mut self, first: u64, position: u16, mask: u64) {
        if first < self.since {
            return;
        }
        let head = (self.length / 2).saturating_sub(u64::from(position));
        let head_mask = if head >= u64::BITS.into() { u64::MAX } else { (1 << head) - 1 };
        self.lost[0] += u64::from((mask & head_mask).count_ones());
        self.lost[1] += u64::from((mask & !head_mask).count_ones());
    }

    /// A round trip has passed.
    pub fn on_round(&mut self, next_number: u64) {
        if self.tail_loses_more() {
            self.steps = (self.steps + 1).min(STEPS_MAX);
            self.calm_rounds = 0;
            self.restart(next_number, self.length);
            return;
        }
        self.calm_rounds += 1;
        if self.calm_rounds >= CALM_ROUNDS {
            self.calm_rounds = 0;
            self.steps = self.steps.saturating_sub(1);
            self.restart(next_number, self.length);
        }
    }

    fn tail_loses_more(&self) -> bool {
        let ([lost_head, lost_tail], [sent_head, sent_tail]) = (self.lost, self.sent);
        if lost_tail < TAIL_LOSSES_MIN || sent_tail == 0 {
            return false;
        }
        // What the tail would have lost at the head's ratio, and how far chance may be off (both counts are Poisson's).
        let scale = sent_tail as f64 / sent_head.max(1) as f64;
        let expected = lost_head as f64 * scale;
        let deviation = (expected + expected * scale).sqrt().max(1.0);
        lost_tail as f64 > (expected * 2.0).max(expected + DEVIATIONS * deviation)
    }

    fn restart(&mut self, next_number: u64, length: u64) {
        self.length = length;
        self.since = next_number;
        self.lost = [0; 2];
        self.sent = [0; 2];
    }

    /// 99 % of the bursts had at most this many packets; 0 before the first.
    pub fn burst_p99_pkts(&self) -> u64 {
        let total: u64 = self.bursts.iter().sum();
        let mut rest = total / 100;
        for (packets, &count) in self.bursts.iter().enumerate().rev() {
            if count > rest {
                return packets as u64;
            }
            rest -= count;
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes(1472);
    const RATE: BitRate = BitRate::mbps(500);

    /// Rounds of bursts, of which the packets at `is_lost(number, position)` are lost. Returns the train allowed in the end, in packets.
    fn rounds(trains: &mut Trains, count: u32, is_lost: impl Fn(u64, u64) -> bool) -> u64 {
        let (mut number, burst) = (0, PACKET * 20);
        let mut train = 0;
        for _ in 0..count {
            for _ in 0..50 {
                train = trains.limit(number, burst, RATE, PACKET).0.as_u64() / PACKET.as_u64();
                let position = trains.on_sent(train);
                let mask =
                    (0..train).filter(|&at| is_lost(number + at, u64::from(position) + at)).fold(0, |mask, at| mask | 1 << at);
                trains.on_lost(number, position, mask);
                trains.on_pause();
                number += train;
            }
            trains.on_round(number);
        }
        train
    }

    fn random(number: u64) -> u64 {
        number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40
    }

    #[test]
    fn random_loss_leaves_trains_alone() {
        for percent in [1, 5, 20] {
            let train = rounds(&mut Trains::default(), 300, |number, _| random(number) % 100 < percent);
            assert_eq!(train, 20, "{percent} %");
        }
    }

    #[test]
    fn a_queue_too_short_for_a_train_gets_shorter_ones_and_long_ones_return() {
        let mut trains = Trains::default();
        assert_eq!(rounds(&mut trains, 3, |_, _| false), 20);
        assert_eq!(rounds(&mut trains, 10, |_, position| position >= 12), 10, "an eighth of the path's loss hits the tail");
        assert_eq!(rounds(&mut trains, CALM_ROUNDS * 3, |_, _| false), 20);
    }

    #[test]
    fn trains_stay_long_enough_for_the_processor() {
        let mut trains = Trains::default();
        let fast = BitRate::gbps(10);
        for number in 0..1000 {
            let (train, grouping) = trains.limit(number, PACKET * 44, fast, PACKET);
            let count = if grouping.is_zero() { 1 } else { 4 };
            for at in 0..count {
                trains.on_sent(train.as_u64() / PACKET.as_u64());
                trains.on_lost(number, at * 44, if at + 1 == count { u64::MAX << 30 } else { 0 });
            }
            trains.on_pause();
            trains.on_round(number);
        }
        let (train, grouping) = trains.limit(1000, PACKET * 44, fast, PACKET);
        assert_eq!((train, grouping), (PACKET * 42, Duration::ZERO));
    }

    #[test]
    fn the_longest_percent_of_bursts_is_told() {
        let mut trains = Trains::default();
        assert_eq!(trains.burst_p99_pkts(), 0);
        for packets in (0..990).map(|_| 4).chain((0..10).map(|_| 4000)) {
            trains.on_sent(packets);
            trains.on_pause();
        }
        assert_eq!(trains.burst_p99_pkts(), 4);
        trains.on_sent(3);
        trains.on_sent(2000);
        trains.on_pause();
        assert_eq!(trains.burst_p99_pkts(), BURST_MAX as u64);
    }
}
