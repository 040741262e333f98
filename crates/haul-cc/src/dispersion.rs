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
//! several packets from its socket at once gives them one time, so what is shorter than [`RESOLUTION`] cannot be told from it.

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use crate::SentState;

/// Watches the reports for trains that arrive in more than one of them.
#[derive(Debug, Clone, Default)]
pub struct DispersionMeter {
    train: Option<First>,
}

/// The first report of a train.
#[derive(Debug, Clone, Copy)]
struct First {
    sent_at: Time,
    receiver_bytes: Bytes,
    receiver_time: Time,
}

/// A train as it arrived, as far as has been reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DispersionSample {
    /// When the train left: the same for all samples of one train.
    pub sent_at: Time,
    /// Bytes that arrived after the train's first report.
    pub bytes: Bytes,
    /// Time they took by the receiver's clock.
    pub time: Duration,
}

impl DispersionSample {
    /// The rate at which the train arrived, as far as the receiver's clock tells.
    pub fn rate(&self) -> BitRate {
        BitRate::of(self.bytes, self.time.max(RESOLUTION))
    }

    /// Whether the train was spread far enough to be measured; if not, the rate is a lower bound.
    pub fn is_exact(&self) -> bool {
        self.time >= RESOLUTION
    }
}

impl DispersionMeter {
    /// A report whose largest packet, of the train `newest`, is newly acknowledged. A sample if the train has been in a report before.
    pub fn on_report(&mut self, newest: &SentState, receiver_bytes: Bytes, receiver_time: Time) -> Option<DispersionSample> {
        let sent_at = newest.sent_at;
        let Some(first) = self.train.filter(|first| first.sent_at == sent_at) else {
            if self.train.is_none_or(|first| first.sent_at < sent_at) {
                self.train = Some(First { sent_at, receiver_bytes, receiver_time });
            }
            return None;
        };
        // What cannot have been in flight is a lie, and a clock that goes back measures nothing.
        let bytes = Bytes(receiver_bytes.0.checked_sub(first.receiver_bytes.0)?).min(newest.in_flight);
        let forward = receiver_time >= first.receiver_time && bytes > Bytes::ZERO;
        forward.then(|| DispersionSample { sent_at, bytes, time: receiver_time.since(first.receiver_time) })
    }
}

/// What a receiver's clock tells apart: a wake-up of a thread, and the packets it finds.
const RESOLUTION: Duration = Duration::from_micros(40);

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
        assert_eq!(meter.on_report(&state, Bytes(4 * 1472), us(1_000)), None);
        let sample = meter.on_report(&state, TRAIN, us(2_413)).expect("the train's second report");
        assert!(sample.is_exact());
        assert!((sample.rate().as_bps() as f64 / 1e8 - 1.0).abs() < 0.001, "{}", sample.rate());
    }

    #[test]
    fn the_gap_between_trains_is_not_measured() {
        let mut meter = DispersionMeter::default();
        meter.on_report(&train(us(0)), TRAIN, us(1_000));
        assert_eq!(meter.on_report(&train(us(900)), TRAIN * 2, us(2_000)), None);
        assert_eq!(meter.on_report(&train(us(0)), TRAIN * 2, us(2_100)), None, "an older train that comes late");
    }

    #[test]
    fn what_came_at_once_is_a_lower_bound() {
        let (mut meter, state) = (DispersionMeter::default(), train(us(0)));
        meter.on_report(&state, Bytes(4 * 1472), us(1_000));
        let sample = meter.on_report(&state, TRAIN, us(1_000)).expect("sample");
        assert!(!sample.is_exact() && sample.rate() == BitRate::of(Bytes(12 * 1472), RESOLUTION));
    }

    #[test]
    fn lies_give_nothing_or_little() {
        let (mut meter, state) = (DispersionMeter::default(), train(us(0)));
        meter.on_report(&state, Bytes(5_000), us(1_000));
        assert_eq!(meter.on_report(&state, Bytes(4_000), us(2_000)), None);
        assert_eq!(meter.on_report(&state, Bytes(6_000), us(900)), None);
        let sample = meter.on_report(&state, Bytes(u64::MAX), us(1_000)).expect("sample");
        assert!(sample.rate() <= BitRate::of(TRAIN, RESOLUTION));
    }
}
