//! CUBIC: the congestion control of most TCP traffic, polite and slow on long fat paths.
//!
//! The window follows a cubic function of the time since the last cut, flat around the window at which that cut came. Where Reno would
//! have the larger window, CUBIC has it too. Any loss is congestion. Source: RFC 9438; slow start by HyStart++ (RFC 9406).

use std::time::Duration;

use haul_units::Time;

use crate::window::{Acked, Cause, HyStart, Law};

/// The curve and where on it the window is. Windows in packets, times in seconds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cubic {
    /// Window before the last cut, lowered by fast convergence.
    w_max: f64,
    /// Window before the last cut.
    prior: f64,
    epoch: Option<Epoch>,
}

/// A stretch of congestion avoidance.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    start: Time,
    k_seconds: f64,
    /// The window around which the curve is flat.
    origin: f64,
    /// The window a Reno flow would have.
    w_est: f64,
}

impl Law for Cubic {
    const NAME: &'static str = "cubic";
    type Start = HyStart;

    fn grow(&mut self, window: f64, ack: &Acked<'_>) -> f64 {
        let now = ack.sample.now;
        let epoch = self.epoch.get_or_insert_with(|| Epoch::new(now, window, self.w_max));
        let share = ack.packets / window;
        // RFC 9438 4.3 Eq. 4: W_est += alpha * segments_acked / cwnd; alpha = 1 once it has reached the window before the cut
        epoch.w_est += share * if epoch.w_est >= self.prior { 1.0 } else { ALPHA };
        if epoch.curve(now, Duration::ZERO) < epoch.w_est {
            // RFC 9438 4.3: the Reno-friendly region
            return window.max(epoch.w_est);
        }
        // RFC 9438 4.2: towards W_cubic(t + RTT), at most half as much again in a round trip
        let target = epoch.curve(now, ack.sample.smoothed_rtt).clamp(window, 1.5 * window);
        window + (target - window) * share.min(1.0)
    }

    fn cut(&mut self, window: f64, cause: Cause) -> f64 {
        // RFC 9438 4.7, fast convergence: a window that shrinks makes room for new flows.
        self.w_max = if window < self.w_max { window * (1.0 + BETA) / 2.0 } else { window };
        self.prior = window;
        self.epoch = None;
        match cause {
            Cause::Loss => window * BETA,
            Cause::Mark => window * BETA_MARK,
        }
    }

    /// RFC 9438 5.8: a pause does not count as time on the curve.
    fn pause(&mut self) {
        self.epoch = None;
    }

    /// RFC 9438 4.8: the first curve after a timeout starts from its flat part.
    fn collapse(&mut self) {
        self.w_max = 0.0;
        self.epoch = None;
    }

    fn rescale(&mut self, factor: f64) {
        self.w_max *= factor;
        self.prior *= factor;
        self.epoch = None;
    }
}

impl Epoch {
    fn new(start: Time, window: f64, w_max: f64) -> Self {
        // RFC 9438 4.2 Eq. 2: K = cbrt((W_max - cwnd_epoch) / C); zero where the window is beyond W_max
        let k_seconds = ((w_max - window).max(0.0) / C).cbrt();
        Self { start, k_seconds, origin: w_max.max(window), w_est: window }
    }

    /// RFC 9438 4.2 Eq. 1: W_cubic(t) = C*(t-K)^3 + W_max
    fn curve(&self, now: Time, ahead: Duration) -> f64 {
        let t = (now.since(self.start) + ahead).as_secs_f64();
        C * (t - self.k_seconds).powi(3) + self.origin
    }
}

/// RFC 9438 5.1
const C: f64 = 0.4;
/// RFC 9438 4.6
const BETA: f64 = 0.7;
/// RFC 8511 4.1
const BETA_MARK: f64 = 0.85;
/// RFC 9438 4.3: 3 (1 - beta) / (1 + beta)
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::{Rounds, mean_window_at};

    #[test]
    fn response_function() {
        // RFC 9438 5.1 Eq. 6: mean window = 1.054 (RTT / p)^(3/4), where it is larger than Reno's
        for (loss, rtt_ms) in [(1e-4, 100), (1e-5, 100), (1e-6, 20), (1e-6, 50)] {
            let rtt = Duration::from_millis(rtt_ms);
            let ratio = mean_window_at::<Cubic>(loss, rtt) / (1.054 * (rtt.as_secs_f64() / loss).powf(0.75));
            assert!((0.9..1.15).contains(&ratio), "{ratio} at {loss}, {rtt:?}");
        }
    }

    #[test]
    fn as_reno_where_reno_is_faster() {
        // RFC 9438 5.1: mean window = 1.2 / sqrt(p) at short round trips
        for loss in [1e-2, 1e-3] {
            let ratio = mean_window_at::<Cubic>(loss, Duration::from_millis(5)) / (1.22 / f64::sqrt(loss));
            assert!((0.85..1.15).contains(&ratio), "{ratio} at {loss}");
        }
    }

    #[test]
    fn the_curve_returns_to_the_old_window_after_k() {
        let mut path = Rounds::<Cubic>::avoiding(1_000.0, Duration::from_millis(100));
        path.lose();
        assert!((path.window() - 700.0).abs() < 1.0);
        // RFC 9438 4.2 Eq. 2: cbrt(300 / 0.4) = 9.09 s
        let k = (300.0_f64 / C).cbrt();
        for _ in 0..(k / 0.1) as u64 {
            path.round();
        }
        assert!((980.0..1_010.0).contains(&path.window()), "{}", path.window());
    }

    #[test]
    fn a_window_that_shrinks_makes_room() {
        let mut law = Cubic::default();
        law.cut(1_000.0, Cause::Loss);
        assert!((law.w_max - 1_000.0).abs() < 1e-9);
        law.cut(800.0, Cause::Loss);
        assert!((law.w_max - 800.0 * 0.85).abs() < 1e-9);
        assert!((law.prior - 800.0).abs() < 1e-9);
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn a_mark_costs_less_than_a_loss_and_an_equal_window_does_not_shrink() {
        let mut law = Cubic::default();
        // RFC 8511 4.1
        assert!(near(law.cut(1_000.0, Cause::Mark), 850.0));
        // RFC 9438 4.6
        assert!(near(law.cut(1_000.0, Cause::Loss), 700.0));
        assert!(near(law.w_max, 1_000.0), "fast convergence is for windows below the last maximum");
    }

    #[test]
    fn the_curve_is_the_cube_around_its_origin() {
        // RFC 9438 4.2 Eq. 1: 0.4 (10 - 4)^3 + 100 = 186.4
        let epoch = Epoch { start: Time::ZERO, k_seconds: 4.0, origin: 100.0, w_est: 0.0 };
        let at = Time::ZERO + Duration::from_secs(7);
        assert!(near(epoch.curve(at, Duration::from_secs(3)), 186.4));
        // Eq. 2: cbrt((1000 - 700) / 0.4); beyond the maximum it begins at the flat part.
        assert!(near(Epoch::new(at, 700.0, 1_000.0).k_seconds, 750.0_f64.cbrt()));
        let beyond = Epoch::new(at, 1_200.0, 1_000.0);
        assert!(near(beyond.k_seconds, 0.0) && near(beyond.origin, 1_200.0));
    }

    #[test]
    fn a_pause_ends_a_curve_a_timeout_forgets_the_maximum_and_another_packet_size_scales_all() {
        let epoch = || Some(Epoch::new(Time::ZERO, 700.0, 1_000.0));
        let law = || Cubic { w_max: 1_000.0, prior: 800.0, epoch: epoch() };
        let mut paused = law();
        paused.pause();
        assert!(paused.epoch.is_none() && near(paused.w_max, 1_000.0));
        let mut collapsed = law();
        collapsed.collapse();
        assert!(collapsed.epoch.is_none() && near(collapsed.w_max, 0.0));
        let mut rescaled = law();
        rescaled.rescale(0.5);
        assert!(rescaled.epoch.is_none() && near(rescaled.w_max, 500.0) && near(rescaled.prior, 400.0));
    }
}
