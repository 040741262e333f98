//! Scalable TCP: a hundredth more each round trip, an eighth less on congestion.
//!
//! The time between two losses, and the time to make up for one (14 round trips), do not depend on the rate. Shares do not become equal:
//! who has more gains more. Source: T. Kelly, Scalable TCP: improving performance in highspeed wide area networks, CCR 33(2), 2003.

use crate::reno::{BETA_LOSS, BETA_MARK};
use crate::window::{Acked, Cause, HyStart, Law};

/// Multiplicative increase, multiplicative decrease.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scalable;

impl Law for Scalable {
    const NAME: &'static str = "scalable";
    type Start = HyStart;

    fn grow(&mut self, window: f64, ack: &Acked<'_>) -> f64 {
        // Kelly 2003, 3: cwnd += a for each acknowledgement; below the legacy window as Reno, which there is faster.
        if window <= LEGACY_WINDOW { window + ack.packets / window } else { window + A * ack.packets }
    }

    fn cut(&mut self, window: f64, cause: Cause) -> f64 {
        let legacy = window <= LEGACY_WINDOW;
        match cause {
            Cause::Loss if legacy => window * BETA_LOSS,
            Cause::Mark if legacy => window * BETA_MARK,
            // Kelly 2003, 3: cwnd -= b cwnd
            _ => window * (1.0 - B),
        }
    }
}

/// Kelly 2003, 3
const A: f64 = 0.01;
/// Kelly 2003, 3: an eighth less.
const B: f64 = 0.125;
/// Kelly 2003, 3: lwnd
const LEGACY_WINDOW: f64 = 16.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::{mean_window, rounds_to_recover};

    #[test]
    fn response_function() {
        // Kelly 2003, 3: cwnd = a / (b p), the window at which what a round trip gains is what its losses take.
        for loss in [1e-3, 1e-4, 1e-5] {
            let ratio = mean_window::<Scalable>(loss) / (A / B / loss);
            assert!((0.9..1.1).contains(&ratio), "{ratio} at {loss}");
        }
    }

    #[test]
    fn a_loss_is_made_up_for_in_fourteen_round_trips_at_any_rate() {
        // Kelly 2003, 3: log(1 - b) / log(1 + a) round trips = 13.4
        for window in [100.0, 10_000.0, 1e6] {
            let rounds = rounds_to_recover::<Scalable>(window);
            assert!((13..=15).contains(&rounds), "{rounds} from {window}");
        }
    }
}
