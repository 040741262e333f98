//! How far the path spreads packets that left together.
//!
//! ```text
//! sender    ||||||||                       one train, back to back
//! receiver  |    |    |    |    |          the bottleneck spaces its packets: bytes between two reports over the time between them
//! ```
//!
//! Two reports whose newest packets belong to one train bound a part of it: the receiver counts bytes and tells its clock in each. Packets
//! of others that came in between make the spread longer and the rate lower, so it lies between what the bottleneck can carry and what
//! it has left (asymptotic dispersion rate: Dovrolis, Ramanathan, Moore, "Packet-Dispersion Techniques", 2004). A receiver that takes
//! several packets from its socket at once gives them one time: what is not spread over some such times is a lower bound, and a train
//! that came whole in one report was faster than such a receiver, which says little.

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use crate::SentState;

/// Watches the reports for trains that arrive in more than one of them.
#[derive(Debug, Clone, Default)]
pub struct DispersionMeter {
    train: Option<First>,
    /// What had arrived by the newest report.
    reported: Bytes,
}

/// The first report of a train.
#[derive(Debug, Clone, Copy)]
struct First {
    /// When the train's first and its newest part left.
    sent_at: Time,
    newest_sent_at: Time,
    receiver_bytes: Bytes,
    receiver_time: Time,
    /// Times that later reports told, each another.
    newest_time: Time,
    steps: u32,
}

/// A train as it arrived, as far as has been reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispersionSample {
    /// When the train began to leave: the same for all samples of one train.
    pub sent_at: Time,
    /// Bytes that arrived after the train's first report; in its first report, up to then.
    pub bytes: Bytes,
    /// Time they took by the receiver's clock; `None` for the first report.
    pub time: Option<Duration>,
    /// How many times the receiver's clock told one later than the last, in as many reports.
    pub steps: u32,
}

impl DispersionSample {
    /// The rate at which the train arrived, as far as the receiver's clock tells.
    pub fn rate(&self) -> BitRate {
        self.uncapped().min(MOST)
    }

    /// Whether the train was spread far enough to be measured; if not, the rate is a lower bound.
    pub fn is_exact(&self) -> bool {
        self.steps >= EXACT_STEPS && self.time.is_some_and(|time| time >= RESOLUTION) && self.uncapped() < MOST
    }

    fn uncapped(&self) -> BitRate {
        BitRate::of(self.bytes, self.time.map_or(WHOLE, |time| time.max(RESOLUTION)))
    }
}

impl DispersionMeter {
    /// Trains that leave from now on go elsewhere. What had arrived is not theirs.
    pub const fn restart(&mut self) {
        self.train = None;
    }

    /// A report whose largest packet, of the train `newest`, is newly acknowledged.
    pub fn on_report(&mut self, newest: &SentState, receiver_bytes: Bytes, receiver_time: Time) -> Option<DispersionSample> {
        let sent_at = newest.sent_at;
        let before = std::mem::replace(&mut self.reported, receiver_bytes);
        let (from, time, sent_at, steps) = match &mut self.train {
            Some(first) if sent_at < first.sent_at => return None,
            Some(first) if sent_at <= first.newest_sent_at + TOGETHER => {
                first.newest_sent_at = first.newest_sent_at.max(sent_at);
                if receiver_time > first.newest_time {
                    first.newest_time = receiver_time;
                    first.steps += 1;
                }
                let time = first.newest_time.since(first.receiver_time);
                (first.receiver_bytes, Some(time), first.sent_at, first.steps)
            }
            _ => {
                let newest_time = receiver_time;
                self.train =
                    Some(First { sent_at, newest_sent_at: sent_at, receiver_bytes, receiver_time, newest_time, steps: 0 });
                (before, None, sent_at, 0)
            }
        };
        // What cannot have been in flight is a lie.
        let bytes = Bytes(receiver_bytes.0.checked_sub(from.0)?).min(newest.in_flight);
        (bytes > Bytes::ZERO).then_some(DispersionSample { sent_at, bytes, time, steps })
    }
}

/// What a receiver's clock tells apart at best.
const RESOLUTION: Duration = Duration::from_micros(10);
/// What such a clock measures at most by trains of some two hundred packets. More is a lower bound: of a receiver that was held up and then
/// took all at once, or of one that lies.
const MOST: BitRate = BitRate::mbps(12_500);
/// One report more or less, for the first and the last may be cut off, makes little difference then.
const EXACT_STEPS: u32 = 3;
/// What came in one report came within this time, unless the receiver was held up for longer.
const WHOLE: Duration = Duration::from_millis(2);
/// Trains that leave so close together are one.
pub(crate) const TOGETHER: Duration = Duration::from_micros(200);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RateSampler;

    const TRAIN: Bytes = Bytes(16 * 1472);

    fn us(n: u64) -> Time {
        Time::ZERO + Duration::from_micros(n)
    }

    fn train(sent_at: Time) -> SentState {
        RateSampler::new(Time::ZERO).on_sent(sent_at, TRAIN, TRAIN)
    }

    #[test]
    fn a_train_gives_the_rate_of_the_bottleneck() {
        let (mut meter, state) = (DispersionMeter::default(), train(us(0)));
        meter.on_report(&state, Bytes(4 * 1472), us(1_000));
        meter.on_report(&state, Bytes(8 * 1472), us(1_471));
        meter.on_report(&state, Bytes(12 * 1472), us(1_942));
        let sample = meter.on_report(&state, TRAIN, us(2_413)).expect("the train's second report");
        assert!(sample.is_exact());
        assert!((sample.rate().as_bps() as f64 / 1e8 - 1.0).abs() < 0.001, "{}", sample.rate());
    }

    #[test]
    fn the_gap_between_trains_is_not_measured() {
        let mut meter = DispersionMeter::default();
        meter.on_report(&train(us(0)), TRAIN, us(1_000));
        let sample = meter.on_report(&train(us(900)), TRAIN * 2, us(2_000)).expect("a train in one report");
        assert_eq!((sample.bytes, sample.is_exact()), (TRAIN, false));
        assert_eq!(meter.on_report(&train(us(0)), TRAIN * 2, us(2_100)), None, "an older train that comes late");
    }

    #[test]
    fn what_had_arrived_before_a_restart_is_no_train() {
        let mut meter = DispersionMeter::default();
        meter.on_report(&train(us(0)), Bytes::gib(1), us(1_000));
        meter.restart();
        // Much is in flight: it would all pass for a train.
        let state = RateSampler::new(Time::ZERO).on_sent(us(100), TRAIN, Bytes::gib(1));
        let sample = meter.on_report(&state, Bytes::gib(1) + TRAIN, us(2_000)).expect("a train in one report");
        assert_eq!((sample.bytes, sample.time), (TRAIN, None));
    }

    #[test]
    fn a_train_that_takes_two_calls_is_one() {
        let mut meter = DispersionMeter::default();
        meter.on_report(&train(us(0)), TRAIN, us(1_000));
        let sample = meter.on_report(&train(us(30)), TRAIN * 2, us(2_884)).expect("sample");
        assert_eq!((sample.sent_at, sample.bytes, sample.time), (us(0), TRAIN, Some(Duration::from_micros(1_884))));
    }

    #[test]
    fn what_came_at_once_is_a_lower_bound() {
        let (mut meter, state) = (DispersionMeter::default(), train(us(0)));
        meter.on_report(&state, Bytes(4 * 1472), us(1_000));
        let sample = meter.on_report(&state, TRAIN, us(1_000)).expect("sample");
        assert!(!sample.is_exact() && sample.rate() == MOST);
    }

    #[test]
    fn lies_give_nothing_or_little() {
        let (mut meter, state) = (DispersionMeter::default(), train(us(0)));
        meter.on_report(&state, Bytes(5_000), us(1_000));
        assert_eq!(meter.on_report(&state, Bytes(4_000), us(2_000)), None);
        assert!(!meter.on_report(&state, Bytes(6_000), us(900)).expect("sample").is_exact());
        let sample = meter.on_report(&state, Bytes(u64::MAX), us(1_000)).expect("sample");
        assert!(sample.rate() <= MOST && !sample.is_exact());
    }
}
