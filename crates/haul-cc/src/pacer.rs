//! Departure times of whole trains.
//!
//! Sending is cheap per train, not per packet, and a thread that wakes up costs as much as a dozen packets: the pacer waits for a full
//! quantum, and where a quantum passes in less than [`GROUP_TIME`], for several that then leave one after the other. Credit grows with the
//! rate and is spent by what is sent; it may run up to two quanta ahead, or what passes in a fifth of a millisecond, so that no large burst
//! follows a pause. Who waited for the pacer alone and came late makes up for more, a 64th of the round trip, from 0.2 to 2 ms: a thread that
//! shares its processor with another waits for as long as that one's slice.
//!
//! ```text
//!   credit   0 |\    /\    /\     a group starts at zero or above,
//!              | \  /  \  /  \    and ends when less than a quantum is left above its floor
//!      - group |  \/    \/    \
//! ```

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

/// Spaces trains at a rate.
#[derive(Debug, Clone)]
pub struct Pacer {
    /// Bytes that may leave beyond one group; below zero while the last one is still being paid for.
    credit_bytes: f64,
    updated: Time,
    /// A group has begun and is not over.
    in_group: bool,
    /// The time that a group of trains stands for.
    grouping: Duration,
    /// A wake-up that is late by no more than this is made up for.
    lateness: Duration,
    /// When the caller was told to ask again.
    due: Option<Time>,
    /// It came late, and is making up for that.
    is_late: bool,
}

impl Pacer {
    /// A pacer that lets a first quantum go at once.
    pub fn new(now: Time) -> Self {
        Self {
            credit_bytes: 0.0,
            updated: now,
            in_group: false,
            grouping: GROUP_TIME,
            lateness: MIN_LATENESS,
            due: None,
            is_late: false,
        }
    }

    /// Trains that pass within `grouping` leave as a group; at most, and to start with, `GROUP_TIME` (200 us). Wake-ups are made up for that are late by
    /// a 64th of this round trip, within bounds; where trains do not leave in groups, because the path has no room for them, by the least only.
    pub fn set_bursts(&mut self, grouping: Duration, round_trip: Duration) {
        self.grouping = grouping.min(GROUP_TIME);
        let most = if self.grouping == GROUP_TIME { MAX_LATENESS } else { MIN_LATENESS };
        self.lateness = (round_trip / LATENESS_PART).clamp(MIN_LATENESS, most);
    }

    /// The caller waits for something else than the pacer: that is no lateness to make up for.
    pub fn on_pause(&mut self) {
        (self.due, self.is_late) = (None, false);
    }

    /// How much may leave now, in trains of a quantum: at least one, after a late wake-up more; or when to ask again.
    ///
    /// [`BitRate::MAX`] means no pacing: [`Bytes`] without bound. At a rate of zero the answer is to ask again later, the rate may have
    /// changed by then.
    pub fn budget(&mut self, now: Time, rate: BitRate, quantum: Bytes) -> Result<Bytes, Time> {
        if rate == BitRate::MAX {
            self.credit_bytes = 0.0;
            self.updated = now;
            return Ok(Bytes(u64::MAX));
        }
        let bytes_per_second = rate.as_bps() as f64 / 8.0;
        let earned = bytes_per_second * now.since(self.updated).as_secs_f64();
        self.is_late |= self.due.take().is_some_and(|due| due <= now);
        let lateness = if self.is_late { self.lateness } else { MIN_LATENESS };
        let most = (MAX_LATENESS_QUANTA * quantum.as_u64() as f64).max(bytes_per_second * lateness.as_secs_f64());
        self.credit_bytes = (self.credit_bytes + earned).min(most);
        self.updated = self.updated.max(now);
        let quantum = quantum.as_u64() as f64;
        let group = quantum.max((bytes_per_second * self.grouping.as_secs_f64()).min(MAX_GROUP_BYTES));
        // What was let go at a rate that has collapsed since would be paid for by seconds of silence.
        self.credit_bytes = self.credit_bytes.max(-group.max(bytes_per_second * RETRY.as_secs_f64()));
        let floor = if self.in_group { quantum - group } else { 0.0 };
        self.in_group = self.credit_bytes >= floor;
        if self.in_group {
            return Ok(Bytes((group + self.credit_bytes) as u64));
        }
        // Half a byte of slack, so that rounding of the instant does not cost a second wake-up.
        let wait = Duration::try_from_secs_f64(-self.credit_bytes / bytes_per_second).unwrap_or(RETRY);
        let due = now + wait.clamp(Duration::from_nanos(1), RETRY) + Duration::from_nanos(1);
        (self.due, self.is_late) = (Some(due), false);
        Err(due)
    }

    /// Bytes have left.
    pub fn on_sent(&mut self, _now: Time, bytes: Bytes) {
        self.credit_bytes -= bytes.as_u64() as f64;
    }
}

/// The largest train worth sending at once: what passes in half a millisecond, in whole packets, at least two and at most what one
/// segmentation-offload call takes (44 packets of 1472 bytes).
pub fn quantum(rate: BitRate, packet: Bytes) -> Bytes {
    let packet = packet.max(Bytes(1));
    let most = (MAX_TRAIN_BYTES / packet.as_u64()).clamp(2, MAX_TRAIN_PACKETS);
    let packets = rate.bytes_in(TRAIN_TIME).as_u64() / packet.as_u64();
    packet * packets.clamp(2, most)
}

/// How late a wake-up may come and still be made up for.
const MAX_LATENESS_QUANTA: f64 = 2.0;
/// At 10 Gbit/s two quanta pass in 0.1 ms, and threads wake up later than that.
const MIN_LATENESS: Duration = Duration::from_micros(200);
/// On a busy machine threads wait for a processor for as long as the scheduler lets others run.
const MAX_LATENESS: Duration = Duration::from_millis(2);
/// What is made up for at once, as a part of the round trip: a queue of a bandwidth-delay product holds it many times.
const LATENESS_PART: u32 = 64;
/// Trains that pass within it leave as a group: at 10 Gbit/s four of 64 KB each.
pub const GROUP_TIME: Duration = Duration::from_micros(200);
/// A group is no longer than this, about eight trains, whatever the rate.
const MAX_GROUP_BYTES: f64 = 512.0 * 1024.0;
/// Longest time without asking for the rate again, and for which a debt is paid.
const RETRY: Duration = Duration::from_millis(100);
/// Two thousand calls of the kernel a second cost little, and the bottleneck's queue is no longer than this for a train.
const TRAIN_TIME: Duration = Duration::from_micros(500);
/// The UDP payload of one super-packet: 65,535 less the headers, and a little.
const MAX_TRAIN_BYTES: u64 = 64_800;
/// The kernel's limit of segments in one super-packet (64 before Linux 6.9).
const MAX_TRAIN_PACKETS: u64 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: BitRate = BitRate::mbps(800);
    const QUANTUM: Bytes = Bytes(50_000);

    /// Sends whatever the pacer allows for a second; wake-ups are late by `late`.
    fn sent_in_a_second(rate: BitRate, late: Duration, round_trip: Duration) -> Bytes {
        let (mut pacer, mut now, mut sent) = (Pacer::new(Time::ZERO), Time::ZERO, Bytes::ZERO);
        pacer.set_bursts(GROUP_TIME, round_trip);
        let end = Time::ZERO + Duration::from_secs(1);
        while now < end {
            match pacer.budget(now, rate, QUANTUM) {
                Ok(bytes) => {
                    let group = QUANTUM.max(rate.bytes_in(GROUP_TIME));
                    assert!(bytes >= QUANTUM && bytes <= group + (QUANTUM * 2).max(rate.bytes_in(pacer.lateness)));
                    sent += bytes.min(QUANTUM);
                    pacer.on_sent(now, bytes.min(QUANTUM));
                }
                Err(when) => {
                    assert!(when > now);
                    now = when + late;
                }
            }
        }
        sent
    }

    #[test]
    fn keeps_the_rate_although_wake_ups_are_late() {
        let fast = RATE.scaled(25.0);
        for (rate, late_us, rtt_ms) in
            [(RATE, 0, 1), (RATE, 100, 1), (RATE, 900, 1), (fast, 0, 1), (fast, 150, 1), (fast, 700, 50), (fast, 1900, 500)]
        {
            let sent = sent_in_a_second(rate, Duration::from_micros(late_us), Duration::from_millis(rtt_ms));
            let part = sent.as_u64() as f64 / rate.bytes_per_second() as f64;
            assert!((part - 1.0).abs() < 0.003, "{part} of {rate} at {late_us} us, {rtt_ms} ms");
        }
    }

    #[test]
    fn where_groups_are_given_up_so_is_the_burst_after_a_late_wake_up() {
        let mut pacer = Pacer::new(Time::ZERO);
        pacer.set_bursts(GROUP_TIME, Duration::from_millis(200));
        assert_eq!(pacer.lateness, MAX_LATENESS);
        pacer.set_bursts(Duration::ZERO, Duration::from_millis(200));
        assert_eq!(pacer.lateness, MIN_LATENESS);
    }

    #[test]
    fn no_burst_after_a_pause() {
        let mut pacer = Pacer::new(Time::ZERO);
        let later = Time::ZERO + Duration::from_secs(3600);
        assert_eq!(pacer.budget(later, RATE, QUANTUM), Ok(QUANTUM * 3), "two quanta late, one due");
        pacer.on_sent(later, QUANTUM * 3);
        assert!(pacer.budget(later, RATE, QUANTUM).is_err());
    }

    #[test]
    fn late_is_who_waited_for_the_pacer_only() {
        let rate = RATE.scaled(25.0);
        let left_after = |pause: bool| {
            let mut pacer = Pacer::new(Time::ZERO);
            pacer.set_bursts(GROUP_TIME, Duration::from_millis(200));
            pacer.on_sent(Time::ZERO, rate.bytes_in(GROUP_TIME));
            let due = pacer.budget(Time::ZERO, rate, QUANTUM).expect_err("must wait");
            if pause {
                pacer.on_pause();
            }
            let now = due + Duration::from_millis(5);
            pacer.budget(now, rate, QUANTUM).expect("is due")
        };
        assert_eq!(left_after(false), rate.bytes_in(GROUP_TIME + MAX_LATENESS));
        assert_eq!(left_after(true), rate.bytes_in(GROUP_TIME + MIN_LATENESS));
    }

    /// Trains that leave at once, and the time to the next ones.
    fn group(pacer: &mut Pacer, now: Time, rate: BitRate) -> (u32, Duration) {
        let mut trains = 0;
        loop {
            match pacer.budget(now, rate, QUANTUM) {
                Ok(_) => {
                    pacer.on_sent(now, QUANTUM);
                    trains += 1;
                }
                Err(when) => return (trains, when.since(now)),
            }
        }
    }

    #[test]
    fn trains_leave_in_groups_only_at_high_rates() {
        for (rate, trains, gap_us) in [(BitRate::gbps(1), 1, 400), (BitRate::gbps(10), 5, 200), (BitRate::gbps(100), 10, 40)] {
            let mut pacer = Pacer::new(Time::ZERO);
            let (first, wait) = group(&mut pacer, Time::ZERO, rate);
            let (second, gap) = group(&mut pacer, Time::ZERO + wait, rate);
            assert_eq!((first, second, gap.as_micros()), (trains, trains, gap_us), "{rate}");
            pacer.set_bursts(Duration::ZERO, Duration::ZERO);
            let now = Time::ZERO + wait + gap;
            assert_eq!(group(&mut pacer, now, rate).0, 1, "{rate} without groups");
        }
    }

    #[test]
    fn a_rate_that_rises_shortens_the_wait() {
        let mut pacer = Pacer::new(Time::ZERO);
        pacer.on_sent(Time::ZERO, QUANTUM);
        let slow = pacer.budget(Time::ZERO, BitRate::mbps(8), QUANTUM).expect_err("must wait");
        let fast = pacer.budget(Time::ZERO, BitRate::mbps(80), QUANTUM).expect_err("must wait");
        assert!(fast.as_nanos() * 9 < slow.as_nanos());
    }

    #[test]
    fn a_rate_that_collapses_is_no_silence_for_long() {
        let mut pacer = Pacer::new(Time::ZERO);
        let budget = pacer.budget(Time::ZERO, BitRate::gbps(10), Bytes(64_000)).expect("the first group");
        pacer.on_sent(Time::ZERO, budget);
        let (slow, quantum) = (BitRate::mbps(1), Bytes(2_944));
        let mut now = Time::ZERO;
        while let Err(due) = pacer.budget(now, slow, quantum) {
            now = due;
        }
        assert!(now <= Time::ZERO + RETRY + Duration::from_millis(1), "{now}");
    }

    #[test]
    fn extremes_do_not_break_it() {
        let mut pacer = Pacer::new(Time::ZERO);
        pacer.on_sent(Time::ZERO, Bytes(1));
        assert_eq!(pacer.budget(Time::ZERO, BitRate::ZERO, QUANTUM), Err(Time::ZERO + RETRY + Duration::from_nanos(1)));
        assert_eq!(pacer.budget(Time::ZERO, BitRate::MAX, QUANTUM), Ok(Bytes(u64::MAX)));
    }

    #[test]
    fn quantum_is_whole_packets() {
        let packet = Bytes(1472);
        assert_eq!(quantum(BitRate::mbps(1), packet), packet * 2);
        assert_eq!(quantum(BitRate::mbps(100), packet), packet * 4);
        assert_eq!(quantum(BitRate::gbps(10), packet), packet * 44);
        assert_eq!(quantum(BitRate::MAX, Bytes(8972)), Bytes(8972 * 7));
        assert_eq!(quantum(BitRate::MAX, Bytes(1200)), Bytes(1200 * 54));
    }
}
