//! HyStart++: leaves slow start when the round-trip time rises, before the queue overflows.
//!
//! When the smallest round-trip time of a round exceeds the last round's by a margin, slow start becomes conservative (a quarter of the
//! growth) for five rounds; if the delay turns out not to persist, it becomes slow start again. Source: RFC 9406 4.2.

use std::time::Duration;

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

/// What slow start is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Grow by the bytes acknowledged, divided by this.
    Grow { divisor: u32 },
    /// Leave slow start.
    Leave,
}

impl HyStart {
    pub(crate) fn new() -> Self {
        Self { last_round_min: Duration::MAX, round_min: Duration::MAX, round_samples: 0, conservative: None }
    }

    /// An acknowledgement in slow start.
    pub(crate) fn on_ack(&mut self, round_start: bool, rtt: Option<Duration>) -> Verdict {
        if round_start && self.round_samples > 0 {
            self.last_round_min = self.round_min;
            self.round_min = Duration::MAX;
            self.round_samples = 0;
            if let Some(conservative) = &mut self.conservative {
                conservative.rounds += 1;
                if conservative.rounds >= CSS_ROUNDS {
                    return Verdict::Leave;
                }
            }
        }
        if let Some(rtt) = rtt {
            self.round_min = self.round_min.min(rtt);
            self.round_samples += 1;
            self.judge();
        }
        Verdict::Grow { divisor: if self.conservative.is_some() { CSS_GROWTH_DIVISOR } else { 1 } }
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
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;

    fn round(hystart: &mut HyStart, rtt_ms: u64) -> Verdict {
        (0..10).map(|n| hystart.on_ack(n == 0, Some(Duration::from_millis(rtt_ms)))).last().expect("ten of them")
    }

    #[test]
    fn delay_that_persists_ends_slow_start() {
        let mut hystart = HyStart::new();
        assert_eq!(round(&mut hystart, 100), Verdict::Grow { divisor: 1 });
        assert_eq!(round(&mut hystart, 105), Verdict::Grow { divisor: 1 });
        assert_eq!(round(&mut hystart, 130), Verdict::Grow { divisor: 4 });
        for _ in 0..4 {
            round(&mut hystart, 135);
        }
        assert_eq!(hystart.on_ack(true, Some(Duration::from_millis(135))), Verdict::Leave);
    }

    #[test]
    fn delay_that_passes_resumes_it() {
        let mut hystart = HyStart::new();
        round(&mut hystart, 100);
        assert_eq!(round(&mut hystart, 130), Verdict::Grow { divisor: 4 });
        assert_eq!(round(&mut hystart, 100), Verdict::Grow { divisor: 1 });
    }
}
