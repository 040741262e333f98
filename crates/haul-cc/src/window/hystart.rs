//! HyStart++: leaves slow start when the round-trip time rises, before the queue overflows.
//!
//! When the round-trip time exceeds the last round's smallest by a margin, slow start becomes conservative (a quarter of the growth); if
//! the delay turns out not to persist, it becomes slow start again, and if it does, it ends. Source: RFC 9406 4.2.
//!
//! DEVIATION: the RFC compares the smallest of a round, and goes on for five rounds. A round that begins with an empty queue can fill
//! one of a whole pipe before it ends, so the last eight samples are compared instead; and where the delay persists for a round while
//! more is in flight than what arrives in the smallest round-trip time, and a quarter, slow start ends with what does arrive in it.

use std::time::Duration;

use haul_units::BitRate;

use super::{Acked, SlowStart, Verdict};

/// The start-up search.
#[derive(Debug, Clone)]
pub(crate) struct HyStart {
    last_round_min: Duration,
    round_min: Duration,
    round_samples: u32,
    recent: [Duration; RTT_SAMPLES],
    conservative: Option<Conservative>,
    /// The largest delivery rate.
    rate: BitRate,
}

#[derive(Debug, Clone, Copy)]
struct Conservative {
    baseline: Duration,
    rounds: u32,
}

impl Default for HyStart {
    fn default() -> Self {
        Self {
            last_round_min: Duration::MAX,
            round_min: Duration::MAX,
            round_samples: 0,
            recent: [Duration::ZERO; RTT_SAMPLES],
            conservative: None,
            rate: BitRate::ZERO,
        }
    }
}

impl SlowStart for HyStart {
    fn on_ack(&mut self, window: f64, ack: &Acked<'_>) -> Verdict {
        // RFC 9406 4.3: in the first slow start only; later ones end at the threshold.
        if !ack.first {
            return Verdict::Grow(1.0);
        }
        // What the application has limited says nothing of how much more fits.
        if let Some(sample) = ack.sample.rate.filter(|sample| !sample.app_limited) {
            self.rate = self.rate.max(sample.rate);
        }
        let pipe = self.rate.bytes_in(ack.sample.min_rtt).as_u64() as f64 / ack.packet.as_u64().max(1) as f64;
        let beyond = pipe > 0.0 && window > pipe * MOST_BEYOND_PIPE;
        let rounds = self.search(ack.sample.round_start, ack.sample.rtt);
        if rounds >= CSS_ROUNDS || (rounds >= 1 && beyond) {
            return Verdict::Leave(if beyond { pipe * GROWTH_IN_SAMPLE } else { window });
        }
        Verdict::Grow(if self.conservative.is_some() { 1.0 / CSS_GROWTH_DIVISOR } else { 1.0 })
    }
}

impl HyStart {
    /// For how many rounds delay has persisted.
    fn search(&mut self, round_start: bool, rtt: Option<Duration>) -> u32 {
        if round_start && self.round_samples > 0 {
            self.last_round_min = self.round_min;
            self.round_min = Duration::MAX;
            self.round_samples = 0;
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
            }
        }
        if let Some(rtt) = rtt {
            self.round_min = self.round_min.min(rtt);
            self.round_samples += 1;
            self.recent.rotate_left(1);
            self.recent[RTT_SAMPLES - 1] = rtt;
            self.judge();
        }
        self.conservative.map_or(0, |conservative| conservative.rounds)
    }

    fn judge(&mut self) {
        if self.round_samples < RTT_SAMPLES as u32 || self.last_round_min == Duration::MAX {
            return;
        }
        let recent = self.recent.iter().min().copied().unwrap_or_default();
        match self.conservative {
            // RFC 9406 4.2: RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / 8, MAX_RTT_THRESH))
            None => {
                let margin = (self.last_round_min / 8).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if recent >= self.last_round_min + margin {
                    self.conservative = Some(Conservative { baseline: recent, rounds: 0 });
                }
            }
            // The delay did not persist: back to slow start.
            Some(conservative) if recent < conservative.baseline => self.conservative = None,
            Some(_) => {}
        }
    }
}

/// RFC 9406 4.3
const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
/// RFC 9406 4.3
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
/// RFC 9406 4.3: N_RTT_SAMPLE
const RTT_SAMPLES: usize = 8;
/// RFC 9406 4.3
const CSS_GROWTH_DIVISOR: f64 = 4.0;
/// RFC 9406 4.3
const CSS_ROUNDS: u32 = 5;
/// A quarter more than arrives, for samples of a rate that grows are low.
const MOST_BEYOND_PIPE: f64 = 1.25;
/// A rate sample is a mean over the last round trip, in which the rate has grown.
const GROWTH_IN_SAMPLE: f64 = 1.1;

#[cfg(test)]
mod tests {
    use haul_units::{Bytes, Time};

    use super::*;
    use crate::{AckSample, Company, RateSample};

    #[test]
    fn a_rate_that_the_application_has_limited_is_no_pipe() {
        let verdict = |app_limited| {
            let (mut hystart, mut last) = (HyStart::default(), Verdict::Grow(1.0));
            for n in 0..30 {
                let rtt = Duration::from_millis(if n < 10 { 100 } else { 130 });
                let rate = RateSample {
                    rate: BitRate::mbps(1),
                    sent: BitRate::mbps(1),
                    interval: rtt,
                    app_limited,
                    in_flight_at_send: Bytes::ZERO,
                    lost: Bytes::ZERO,
                    delivered: Bytes(12_500),
                };
                let sample = AckSample {
                    now: Time::ZERO + rtt * n,
                    acked: Bytes(1_000),
                    delivered: Bytes(1_000),
                    in_flight: Bytes::ZERO,
                    rtt: Some(rtt),
                    smoothed_rtt: rtt,
                    min_rtt: Duration::from_millis(100),
                    queue_delay: None,
                    rate: Some(rate),
                    round: 0,
                    round_start: n % 10 == 0,
                    lost_total: Bytes::ZERO,
                };
                let company = Company::default();
                let ack = Acked { packets: 1.0, first: true, sample: &sample, packet: Bytes(1_000), company: &company };
                last = hystart.on_ack(100.0, &ack);
            }
            last
        };
        // 12.5 packets in 100 ms, and growth in the sample.
        assert!(matches!(verdict(false), Verdict::Leave(window) if (13.0..14.0).contains(&window)), "{:?}", verdict(false));
        assert_eq!(verdict(true), Verdict::Grow(1.0 / CSS_GROWTH_DIVISOR));
    }

    /// Ten samples; whether it is over, and whether it is conservative.
    fn round(hystart: &mut HyStart, rtt_ms: u64) -> (bool, bool) {
        let over =
            (0..10).map(|n| hystart.search(n == 0, Some(Duration::from_millis(rtt_ms)))).any(|rounds| rounds >= CSS_ROUNDS);
        (over, hystart.conservative.is_some())
    }

    #[test]
    fn delay_that_persists_ends_slow_start() {
        let mut hystart = HyStart::default();
        assert_eq!(round(&mut hystart, 100), (false, false));
        assert_eq!(round(&mut hystart, 105), (false, false));
        assert_eq!(round(&mut hystart, 130), (false, true));
        for _ in 0..4 {
            assert_eq!(round(&mut hystart, 135), (false, true));
        }
        assert_eq!(round(&mut hystart, 135), (true, true));
    }

    #[test]
    fn delay_that_passes_resumes_it() {
        let mut hystart = HyStart::default();
        round(&mut hystart, 100);
        assert_eq!(round(&mut hystart, 130), (false, true));
        assert_eq!(round(&mut hystart, 100), (false, false));
    }
}
