//! What is seen of a copy at one moment; the bars, lines and events that are made of it know nothing else.

use std::time::Duration;

use haul_units::BitRate;

use crate::tally::{ActiveFile, Counts};
use crate::telemetry::PathView;

/// One look.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Totals.
    pub counts: Counts,
    /// The path.
    pub path: PathView,
    /// Rate at which bytes have arrived of late.
    pub rate: BitRate,
    /// Since the start.
    pub elapsed: Duration,
    /// A file under way, and how many more.
    pub active: Option<(ActiveFile, usize)>,
}

impl Look {
    /// Time until everything found has arrived, if that can be said.
    pub fn left(&self) -> Option<Duration> {
        let missing = self.counts.found.saturating_sub(self.counts.present());
        (self.counts.complete && self.rate > BitRate::ZERO).then(|| self.rate.time_for(missing))
    }
}

#[cfg(test)]
mod tests {
    use haul_units::Bytes;

    use super::*;

    #[test]
    fn time_left_is_not_guessed() {
        let counts = Counts { found: Bytes(2_000_000), arrived: Bytes(500_000), kept: Bytes(500_000), ..Counts::default() };
        let mut look = Look { counts, path: PathView::default(), rate: BitRate::mbps(8), elapsed: Duration::ZERO, active: None };
        assert_eq!(look.left(), None);
        look.counts.complete = true;
        assert_eq!(look.left(), Some(Duration::from_secs(1)));
        look.rate = BitRate::ZERO;
        assert_eq!(look.left(), None);
    }
}
