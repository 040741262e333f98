//! Bytes over time at the receiver, and the figures made of them.

use std::time::Duration;

use haul_units::{BitRate, Bytes};
use serde::{Deserialize, Serialize};

/// What arrived in an interval. In results: `[end in seconds, bytes]`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, u64)", into = "(f64, u64)")]
pub struct Interval {
    /// When it ended, since the connection was up at the receiver.
    pub end: Duration,
    /// Payload that arrived in it.
    pub bytes: Bytes,
}

/// Intervals without gaps, from zero on.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Series(Vec<Interval>);

impl From<(f64, u64)> for Interval {
    fn from((end, bytes): (f64, u64)) -> Self {
        Self { end: Duration::try_from_secs_f64(end).unwrap_or_default(), bytes: Bytes(bytes) }
    }
}

impl From<Interval> for (f64, u64) {
    fn from(interval: Interval) -> Self {
        // A tenth of a millisecond is finer than any tool tells.
        ((interval.end.as_secs_f64() * 1e4).round() / 1e4, interval.bytes.0)
    }
}

impl Series {
    /// Adds what came up to `end`; an end that does not come after the one before adds to that interval.
    pub fn push(&mut self, end: Duration, bytes: Bytes) {
        match self.0.last_mut() {
            Some(last) if end <= last.end => last.bytes += bytes,
            _ => self.0.push(Interval { end, bytes }),
        }
    }

    /// All intervals.
    pub fn intervals(&self) -> &[Interval] {
        &self.0
    }

    /// When the last one ended.
    pub fn end(&self) -> Duration {
        self.0.last().map_or(Duration::ZERO, |interval| interval.end)
    }

    /// Everything that arrived.
    pub fn total(&self) -> Bytes {
        self.0.iter().map(|interval| interval.bytes).sum()
    }

    /// The mean rate of each interval, at its end: what a chart over time shows.
    pub fn rates(&self) -> impl Iterator<Item = (Duration, BitRate)> {
        let starts = std::iter::once(Duration::ZERO).chain(self.0.iter().map(|interval| interval.end));
        self.0
            .iter()
            .zip(starts)
            .map(|(interval, start)| (interval.end, BitRate::of(interval.bytes, interval.end.saturating_sub(start))))
    }

    /// What arrived up to some point; within an interval, bytes are taken as spread evenly.
    pub fn arrived_by(&self, time: Duration) -> Bytes {
        let (mut sum, mut start) = (0.0, Duration::ZERO);
        for interval in &self.0 {
            if interval.end > time {
                let length = interval.end.saturating_sub(start).as_secs_f64().max(1e-9);
                sum += interval.bytes.0 as f64 * time.saturating_sub(start).as_secs_f64() / length;
                break;
            }
            sum += interval.bytes.0 as f64;
            start = interval.end;
        }
        Bytes(sum.round() as u64)
    }

    /// When this much had arrived; never, if it did not.
    pub fn time_of(&self, bytes: Bytes) -> Option<Duration> {
        let (mut sum, mut start) = (0u64, Duration::ZERO);
        for interval in &self.0 {
            if sum + interval.bytes.0 >= bytes.0 {
                let part = (bytes.0 - sum) as f64 / (interval.bytes.0 as f64).max(1.0);
                return Some(start + interval.end.saturating_sub(start).mul_f64(part));
            }
            sum += interval.bytes.0;
            start = interval.end;
        }
        None
    }

    /// The mean rate between two points.
    pub fn mean_between(&self, from: Duration, to: Duration) -> BitRate {
        BitRate::of(self.arrived_by(to).saturating_sub(self.arrived_by(from)), to.saturating_sub(from))
    }

    /// The mean over `length`, the start included; what is missing at its end counts as nothing.
    pub fn mean(&self, length: Duration) -> BitRate {
        self.mean_between(Duration::ZERO, length)
    }

    /// The mean over the second half of `length`.
    pub fn second_half(&self, length: Duration) -> BitRate {
        self.mean_between(length / 2, length)
    }

    /// When the mean over the last `window` (a round trip, mostly) first reached a rate.
    pub fn time_to(&self, rate: BitRate, window: Duration) -> Option<Duration> {
        let reached = |end: Duration| end >= window && self.mean_between(end.saturating_sub(window), end) >= rate;
        self.0.iter().map(|interval| interval.end).find(|&end| reached(end))
    }

    /// The same from the interval on in which the first byte came, if those before it end by then: some receivers begin to count when they are connected, a round trip before
    /// anything can come, and others with the first data.
    pub fn from_first_byte(&self, by: Duration) -> Self {
        let silent = self.0.iter().take_while(|interval| interval.bytes == Bytes::ZERO && interval.end <= by).count();
        let begin = silent.checked_sub(1).and_then(|last| self.0.get(last)).map_or(Duration::ZERO, |last| last.end);
        self.0.iter().skip(silent).map(|interval| (interval.end.saturating_sub(begin), interval.bytes)).collect()
    }

    /// The same without what came after `length`.
    pub fn up_to(&self, length: Duration) -> Self {
        let total = self.arrived_by(length);
        let mut kept: Vec<_> = self.0.iter().copied().take_while(|interval| interval.end <= length).collect();
        let rest = total.saturating_sub(kept.iter().map(|interval| interval.bytes).sum());
        if kept.len() < self.0.len() && kept.last().is_none_or(|last| last.end < length) {
            kept.push(Interval { end: length, bytes: rest });
        }
        Self(kept)
    }
}

impl FromIterator<(Duration, Bytes)> for Series {
    fn from_iter<I: IntoIterator<Item = (Duration, Bytes)>>(intervals: I) -> Self {
        let mut series = Self::default();
        for (end, bytes) in intervals {
            series.push(end, bytes);
        }
        series
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Nothing for a second, 1 MB/s for the next, 3 MB/s for two more.
    fn ramp() -> Series {
        (1..=40u64)
            .map(|n| {
                (
                    ms(n * 100),
                    Bytes(if n <= 10 {
                        0
                    } else if n <= 20 {
                        100_000
                    } else {
                        300_000
                    }),
                )
            })
            .collect()
    }

    #[test]
    fn mean_counts_the_start_and_the_second_half_does_not() {
        let series = ramp();
        assert_eq!(series.total(), Bytes(7_000_000));
        assert_eq!(series.mean(ms(4000)), BitRate::mbps(14));
        assert_eq!(series.second_half(ms(4000)), BitRate::mbps(24));
        assert_eq!(series.mean(ms(8000)), BitRate::mbps(7), "what did not come counts");
    }

    #[test]
    fn the_start_is_over_when_a_round_trip_was_fast() {
        let series = ramp();
        assert_eq!(series.time_to(BitRate::mbps(8), ms(100)), Some(ms(1100)));
        assert_eq!(series.time_to(BitRate::mbps(8), ms(400)), Some(ms(1400)));
        assert_eq!(series.time_to(BitRate::mbps(16), ms(400)), Some(ms(2200)));
        assert_eq!(series.time_to(BitRate::mbps(25), ms(100)), None);
    }

    #[test]
    fn points_within_an_interval_are_interpolated() {
        let series = ramp();
        assert_eq!(series.arrived_by(ms(1050)), Bytes(50_000));
        assert_eq!(series.time_of(Bytes(1_150_000)), Some(ms(2050)));
        assert_eq!(series.time_of(Bytes(7_000_001)), None);
        let cut = series.up_to(ms(2050));
        assert_eq!((cut.end(), cut.total()), (ms(2050), Bytes(1_150_000)));
        assert_eq!(series.up_to(ms(9000)), series);
    }

    #[test]
    fn who_counts_while_nothing_can_come_has_the_same_series() {
        let prompt: Series = (1..=9).map(|tenth| (ms(100 * tenth), Bytes(tenth))).collect();
        let silence = (1..=3).map(|tenth| (ms(100 * tenth), Bytes::ZERO));
        let data = prompt.intervals().iter().map(|interval| (interval.end + ms(300), interval.bytes));
        let later: Series = silence.chain(data).collect();
        assert_eq!([&later, &prompt].map(|series| series.from_first_byte(ms(310))), [prompt.clone(), prompt]);
        // What was silent for longer had something to send, and lost it.
        assert_eq!(later.from_first_byte(ms(210)).end(), ms(1000));
        assert_eq!(Series::default().from_first_byte(ms(310)), Series::default());
    }

    #[test]
    fn rates_are_those_of_the_intervals() {
        let series: Series =
            [(ms(100), Bytes(125_000)), (ms(300), Bytes(125_000)), (ms(300), Bytes(125_000))].into_iter().collect();
        let rates: Vec<_> = series.rates().collect();
        assert_eq!(rates, [(ms(100), BitRate::mbps(10)), (ms(300), BitRate::mbps(10))]);
        let stored = serde_json::to_string(&series).expect("plain numbers");
        assert_eq!(stored, "[[0.1,125000],[0.3,250000]]");
        assert_eq!(serde_json::from_str::<Series>(&stored).ok(), Some(series));
    }
}
