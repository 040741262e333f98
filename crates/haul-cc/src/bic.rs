//! BIC: a binary search for the window between the last one that was lossless and the one at which loss came.
//!
//! Half the distance each round trip, at most 32 packets; once the old maximum is passed, ever larger steps away from it. Flows with a
//! large window grow by the same 32 packets and cut by the same eighth, so that their shares become equal quickly; below 14 packets as
//! Reno. Source: L. Xu, K. Harfoush, I. Rhee, Binary increase congestion control for fast long-distance networks, INFOCOM 2004.

use crate::reno::{BETA_LOSS, BETA_MARK};
use crate::window::{Acked, Cause, HyStart, Law};

/// The search and where it is. Windows in packets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Bic {
    /// The window at which loss came; unknown at the start, and once it has been passed.
    max: Option<f64>,
    /// The search for a new maximum.
    probe: Probe,
}

/// Steps away from the old maximum: 1, 2, 4 .. packets a round trip.
#[derive(Debug, Clone, Copy)]
struct Probe {
    step: f64,
    /// The window at which the step doubles.
    until: f64,
}

impl Default for Probe {
    fn default() -> Self {
        Self { step: 0.0, until: 0.0 }
    }
}

impl Bic {
    /// Packets to gain in a round trip.
    fn step(&mut self, window: f64) -> f64 {
        if let Some(max) = self.max {
            if window < max {
                // Xu 2004, 3.1: to the midpoint, by at most S_max; closer than S_min is there.
                return ((max - window) / 2.0).clamp(S_MIN, S_MAX);
            }
            self.max = None;
            self.probe = Probe { step: 1.0, until: window + 1.0 };
        }
        if self.probe.step <= 0.0 {
            // Slow start ended without loss: there is no maximum to be careful about.
            self.probe = Probe { step: 1.0, until: window + 1.0 };
        }
        // Xu 2004, 3.1, slow start strategy beyond the maximum: 1, 2, 4 .. S_max
        if window >= self.probe.until {
            self.probe.step = (self.probe.step * 2.0).min(S_MAX);
            self.probe.until = window + self.probe.step;
        }
        self.probe.step
    }
}

impl Law for Bic {
    const NAME: &'static str = "bic";
    type Start = HyStart;

    fn grow(&mut self, window: f64, ack: &Acked<'_>) -> f64 {
        if window < LOW_WINDOW {
            return window + ack.packets / window;
        }
        window + self.step(window) * ack.packets / window
    }

    fn cut(&mut self, window: f64, cause: Cause) -> f64 {
        if window < LOW_WINDOW {
            return window * if cause == Cause::Loss { BETA_LOSS } else { BETA_MARK };
        }
        let cut = window * (1.0 - BETA);
        // Xu 2004, 3.1, fast convergence: a maximum below the last one gives way to other flows.
        let shrinks = self.max.is_some_and(|max| window < max);
        self.max = Some(if shrinks { f64::midpoint(window, cut) } else { window });
        self.probe = Probe::default();
        cut
    }

    fn collapse(&mut self) {
        self.max = None;
        self.probe = Probe::default();
    }

    fn rescale(&mut self, factor: f64) {
        self.max = self.max.map(|max| max * factor);
        self.probe.until *= factor;
    }

    fn phase(&self) -> &'static str {
        if self.max.is_some() { "binary search" } else { "max probing" }
    }
}

/// Xu 2004, 4: parameters of the experiments.
const S_MAX: f64 = 32.0;
/// Xu 2004, 4
const S_MIN: f64 = 0.01;
/// Xu 2004, 4: the eighth that a loss takes.
const BETA: f64 = 0.125;
/// Xu 2004, 4: below it, Reno is as fast.
const LOW_WINDOW: f64 = 14.0;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rounds::{Rounds, mean_window};

    #[test]
    fn towards_the_midpoint_each_round_trip() {
        let mut path = Rounds::<Bic>::avoiding(400.0, Duration::from_millis(100));
        path.lose();
        // The midpoint moves with each acknowledgement: exp(-1/2) of the distance is left.
        let mut distances = vec![400.0 - path.window()];
        for _ in 0..4 {
            path.round();
            distances.push(400.0 - path.window());
        }
        for pair in distances.windows(2) {
            let ratio = pair[1] / pair[0];
            assert!((0.59..0.63).contains(&ratio), "{distances:?}");
        }
    }

    #[test]
    fn at_most_s_max_then_ever_larger_steps_beyond_the_maximum() {
        let mut path = Rounds::<Bic>::avoiding(8_000.0, Duration::from_millis(100));
        path.lose();
        let start = path.window();
        path.round();
        assert!((path.window() - start - S_MAX).abs() < 0.5, "{} from {start}", path.window());
        let mut law = Bic { max: Some(1_000.0), probe: Probe::default() };
        let (mut window, mut steps) = (1_000.0, Vec::new());
        for _ in 0..8 {
            let step = law.step(window);
            window += step;
            steps.push(step);
        }
        assert_eq!(steps, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 32.0, 32.0]);
    }

    #[test]
    fn response_function() {
        // Xu 2004, 4.1: sqrt(S_max / 2 (2 - beta) / beta / p) where the additive part rules, beta W >> 2 S_max;
        // the search at its end takes some 18 round trips more, which at 1e-6 are a quarter of all.
        for loss in [1e-7, 1e-8] {
            let ratio = mean_window::<Bic>(loss) / (S_MAX / 2.0 * (2.0 - BETA) / BETA / loss).sqrt();
            assert!((0.94..1.02).contains(&ratio), "{ratio} at {loss}");
        }
    }

    #[test]
    fn a_maximum_below_the_last_gives_way() {
        let mut law = Bic { max: Some(1_000.0), probe: Probe::default() };
        law.cut(800.0, Cause::Loss);
        assert_eq!(law.max, Some(750.0));
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn a_small_window_is_reno_s() {
        // Xu 2004, 4: below 14 packets.
        let mut law = Bic::default();
        assert!(near(law.cut(13.9, Cause::Loss), 6.95) && near(law.cut(13.9, Cause::Mark), 11.12));
        assert!(law.max.is_none());
        assert!(near(law.cut(14.0, Cause::Loss), 12.25) && law.max == Some(14.0));
        let mut path = Rounds::<Bic>::avoiding(5.0, Duration::from_millis(100));
        let before = path.window();
        path.round();
        assert!((0.8..1.1).contains(&(path.window() - before)), "{} from {before}", path.window());
    }

    #[test]
    fn without_a_maximum_steps_begin_at_one() {
        let (mut law, mut window, mut steps) = (Bic::default(), 500.0, Vec::new());
        for _ in 0..4 {
            let step = law.step(window);
            window += step;
            steps.push(step);
        }
        assert_eq!(steps, [1.0, 2.0, 4.0, 8.0]);
    }

    #[test]
    fn the_same_window_again_is_no_sign_of_others_a_timeout_forgets_and_another_packet_size_scales() {
        let mut law = Bic { max: Some(800.0), probe: Probe { step: 4.0, until: 900.0 } };
        assert_eq!(law.phase(), "binary search");
        law.rescale(0.5);
        assert!(law.max == Some(400.0) && near(law.probe.until, 450.0) && near(law.probe.step, 4.0));
        law.cut(400.0, Cause::Loss);
        assert_eq!(law.max, Some(400.0));
        law.collapse();
        assert!(law.max.is_none() && near(law.probe.step, 0.0));
        assert_eq!(law.phase(), "max probing");
    }
}
