//! HyStart++: leaves slow start when the round-trip time rises, before the queue overflows.
//!
//! When the smallest round-trip time of a round exceeds the last round's by a margin, slow start becomes conservative (a quarter of the
//! growth) for five rounds; if the delay turns out not to persist, it becomes slow start again. Source: RFC 9406 4.2.

use std::time::Duration;

use super::{Acked, SlowStart, Verdict};

/// The start-up search.
#[derive(Debug, Clone)]
pub(crate) struct HyStart {
    last_round_min: Duration,
    round_min: Duration,
    round_samples: u32,
    conservative: Option<Conservative>,
}

#[derive(Debug, Clone, Copy)]
struct Conservative {
    baseline: Duration,
    rounds: u32,
}

impl Default for HyStart {
    fn default() -> Self {
        Self { last_round_min: Duration::MAX, round_min: Duration::MAX, round_samples: 0, conservative: None }
    }
}

impl SlowStart for HyStart {
    fn on_ack(&mut self, window: f64, ack: &Acked<'_>) -> Verdict {
        // RFC 9406 4.3: in the first slow start only; later ones end at the threshold.
        if !ack.first {
            return Verdict::Grow(1.0);
        }
        if self.search(ack.sample.round_start, ack.sample.rtt) {
            return Verdict::Leave(window);
        }
        Verdict::Grow(if self.conservative.is_some() { 1.0 / CSS_GROWTH_DIVISOR } else { 1.0 })
    }
}

impl HyStart {
    /// Whether slow start is over.
    fn search(&mut self, round_start: bool, rtt: Option<Duration>) -> bool {
        if round_start && self.round_samples > 0 {
            self.last_round_min = self.round_min;
            self.round_min = Duration::MAX;
            self.round_samples = 0;
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                if conservative.rounds >= CSS_ROUNDS {
                    return true;
                }
            }
        }
        if let Some(rtt) = rtt {
            self.round_min = self.round_min.min(rtt);
            self.round_samples += 1;
            self.judge();
        }
        false
    }

    fn judge(&mut self) {
        if self.round_samples < RTT_SAMPLES || self.last_round_min == Duration::MAX {
            return;
        }
        match self.conservative {
            // RFC 9406 4.2: RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / 8, MAX_RTT_THRESH))
            None => {
                let margin = (self.last_round_min / 8).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                if self.round_min >= self.last_round_min + margin {
                    self.conservative = Some(Conservative { baseline: self.round_min, rounds: 0 });
                }
            }
            // The delay did not persist: back to slow start.
            Some(conservative) if self.round_min < conservative.baseline => self.conservative = None,
            Some(_) => {}
        }
    }
}

const MIN_RTT_THRESH: Duration = Duration::from_millis(4);
const MAX_RTT_THRESH: Duration = Duration::from_millis(16);
const RTT_SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten samples; whether it is over, and whether it is conservative.
    fn round(hystart: &mut HyStart, rtt_ms: u64) -> (bool, bool) {
        let over = (0..10).map(|n| hystart.search(n == 0, Some(Duration::from_millis(rtt_ms)))).any(|over| over);
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
