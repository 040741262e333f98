//! Reno: one packet more each round trip, half on congestion.
//!
//! The standard that all others are measured against, and on a long fat path hopeless: 10 Gbit/s over 100 ms takes a loss ratio below 2e-10.
//! Sources: RFC 5681 3.1, RFC 6582 and 6675 (one reduction a round trip), RFC 3465 (bytes counted), RFC 8511 (marks).

use crate::window::{Acked, Cause, HyStart, Law};

/// Additive increase, multiplicative decrease.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reno;

impl Law for Reno {
    const NAME: &'static str = "reno";
    type Start = HyStart;

    fn grow(&mut self, window: f64, ack: &Acked<'_>) -> f64 {
        // RFC 5681 3.1 Eq. 3: cwnd += SMSS*SMSS/cwnd
        window + ack.packets / window
    }

    fn cut(&mut self, window: f64, cause: Cause) -> f64 {
        match cause {
            // RFC 5681 3.1 Eq. 4: ssthresh = max(FlightSize / 2, 2*SMSS)
            Cause::Loss => window * BETA_LOSS,
            Cause::Mark => window * BETA_MARK,
        }
    }
}

pub(crate) const BETA_LOSS: f64 = 0.5;
/// RFC 8511 4.1
pub(crate) const BETA_MARK: f64 = 0.8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rounds::mean_window;

    #[test]
    fn response_function_of_rfc_3649() {
        // RFC 3649 3: w = 1.2 / sqrt(p)
        for loss in [1e-2, 1e-3, 1e-4] {
            let ratio = mean_window::<Reno>(loss) / (1.22 / f64::sqrt(loss));
            assert!((0.9..1.1).contains(&ratio), "{ratio} at {loss}");
        }
    }
}
