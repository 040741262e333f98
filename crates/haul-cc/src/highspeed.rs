//! HighSpeed TCP: Reno that grows faster and cuts less the larger its window is.
//!
//! The response function goes through two points: 38 packets at a loss ratio of 1e-3, where it meets Reno's, and 83,000 packets at 1e-7,
//! which is 10 Gbit/s over 100 ms. From it and a decrease that falls from a half to a tenth with the logarithm of the window the increase
//! follows. Source: RFC 3649 5; slow start is limited to half a hundred packets a round trip (RFC 3742).

use crate::reno::BETA_MARK;
use crate::window::{Acked, Cause, Law, SlowStart, Verdict};

/// Increase and decrease that depend on the window.
#[derive(Debug, Clone, Default)]
pub(crate) struct HighSpeed;

impl Law for HighSpeed {
    const NAME: &'static str = "highspeed";
    type Start = LimitedSlowStart;

    fn grow(&mut self, window: f64, ack: &Acked<'_>) -> f64 {
        // RFC 3649 5: w += a(w)/w for each acknowledgement
        window + increase(window) * ack.packets / window
    }

    fn cut(&mut self, window: f64, cause: Cause) -> f64 {
        match cause {
            // RFC 3649 5: w -= b(w) w
            Cause::Loss => window * (1.0 - decrease(window)),
            // RFC 8511: less than for a loss, where the decrease is larger than that.
            Cause::Mark => window * (1.0 - decrease(window)).max(BETA_MARK),
        }
    }
}

/// b(w): part of the window that congestion takes.
fn decrease(window: f64) -> f64 {
    if window <= LOW_WINDOW {
        return LOW_DECREASE;
    }
    // RFC 3649 5: b(w) = (High_Decrease - 0.5) (log w - log W) / (log W_1 - log W) + 0.5
    let part = (window / LOW_WINDOW).ln() / (HIGH_WINDOW / LOW_WINDOW).ln();
    // Beyond the last point of the table it goes on falling; it must not reach zero.
    ((HIGH_DECREASE - LOW_DECREASE) * part + LOW_DECREASE).max(LEAST_DECREASE)
}

/// a(w): packets gained in a round trip.
fn increase(window: f64) -> f64 {
    if window <= LOW_WINDOW {
        return 1.0;
    }
    // RFC 3649 5: a(w) = w^2 p(w) 2 b(w) / (2 - b(w))
    let b = decrease(window);
    (window * window * loss(window) * 2.0 * b / (2.0 - b)).max(1.0)
}

/// p(w): the loss ratio at which the mean window is to be w.
fn loss(window: f64) -> f64 {
    // RFC 3649 5: w = (p / Low_P)^S Low_Window, S = (log High_Window - log Low_Window) / (log High_P - log Low_P)
    let slope = (HIGH_WINDOW / LOW_WINDOW).ln() / (HIGH_LOSS / LOW_LOSS).ln();
    LOW_LOSS * (window / LOW_WINDOW).powf(1.0 / slope)
}

/// Slow start that from 100 packets on gains at most 50 a round trip.
#[derive(Debug, Clone, Default)]
pub(crate) struct LimitedSlowStart;

impl LimitedSlowStart {
    /// Packets gained for one acknowledged.
    fn share(window: f64) -> f64 {
        if window <= MAX_SSTHRESH {
            return 1.0;
        }
        // RFC 3742 2: K = int(cwnd / (0.5 max_ssthresh)), cwnd += MSS / K
        1.0 / (window / (0.5 * MAX_SSTHRESH)).floor()
    }
}

impl SlowStart for LimitedSlowStart {
    fn on_ack(&mut self, window: f64, _ack: &Acked<'_>) -> Verdict {
        Verdict::Grow(Self::share(window))
    }
}

/// RFC 3649 5
const LOW_WINDOW: f64 = 38.0;
/// RFC 3649 5: 10 Gbit/s with packets of 1500 bytes and 100 ms.
const HIGH_WINDOW: f64 = 83_000.0;
/// RFC 3649 5: P, at which the window is the low one.
const LOW_LOSS: f64 = 1e-3;
/// RFC 3649 5: High_P, at which it is the high one.
const HIGH_LOSS: f64 = 1e-7;
const LOW_DECREASE: f64 = 0.5;
/// RFC 3649 5: High_Decrease.
const HIGH_DECREASE: f64 = 0.1;
/// Windows beyond the high one still give way to others; RFC 3649 leaves them open.
const LEAST_DECREASE: f64 = 0.05;
/// RFC 3742 2: in packets.
const MAX_SSTHRESH: f64 = 100.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::mean_window;

    /// RFC 3649 Appendix B: w, a(w), b(w).
    const TABLE: [(f64, f64, f64); 12] = [
        (38.0, 1.0, 0.50),
        (118.0, 2.0, 0.44),
        (221.0, 3.0, 0.41),
        (347.0, 4.0, 0.38),
        (495.0, 5.0, 0.37),
        (1058.0, 8.0, 0.33),
        (2699.0, 14.0, 0.28),
        (6483.0, 23.0, 0.23),
        (10661.0, 30.0, 0.21),
        (19965.0, 41.0, 0.17),
        (40808.0, 56.0, 0.14),
        (84035.0, 71.0, 0.10),
    ];

    #[test]
    fn table_of_appendix_b() {
        for (window, a, b) in TABLE {
            let (increase, decrease) = (increase(window), decrease(window));
            assert!((increase / a - 1.0).abs() < 0.04, "a({window}) = {increase}, {a} in the table");
            assert!((decrease - b).abs() < 0.011, "b({window}) = {decrease}, {b} in the table");
        }
    }

    #[test]
    fn response_function() {
        // RFC 3649 5: w = 0.12 / p^0.835
        for loss in [1e-3, 1e-4, 1e-5, 1e-6] {
            let ratio = mean_window::<HighSpeed>(loss) / (0.12 / loss.powf(0.835));
            assert!((0.85..1.15).contains(&ratio), "{ratio} at {loss}");
        }
    }

    #[test]
    fn slow_start_gains_fifty_a_round_trip() {
        // RFC 3742 2: from 100 packets on between 50 and 100.
        let mut window = 10.0;
        let mut rounds = 0;
        while window < 1_000.0 {
            let before = window;
            let mut acked = 0.0;
            while acked < before {
                window += LimitedSlowStart::share(window);
                acked += 1.0;
            }
            assert!(before <= MAX_SSTHRESH || window - before <= MAX_SSTHRESH, "{before} -> {window}");
            rounds += 1;
        }
        assert!((15..=25).contains(&rounds), "{rounds}");
    }
}
