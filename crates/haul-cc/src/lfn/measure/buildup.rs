//! A queue of ours, told from a stall.
//!
//! An end or a network element that stands still for some milliseconds delays what waits for it, and the delay falls as soon as it goes
//! on. A queue that is fed faster than it drains grows: its delay lasts and does not fall.

use std::time::Duration;

use haul_units::Time;

/// Watches a delay that may become a queue.
#[derive(Debug, Clone, Default)]
pub(in crate::lfn) struct Buildup {
    /// Since when the delay has been above the threshold without falling, and what it was then.
    since: Option<(Time, Duration)>,
}

impl Buildup {
    /// Whether the delay has been above the threshold for long enough, and has not fallen.
    pub(in crate::lfn) fn on_delay(&mut self, now: Time, delay: Duration, threshold: Duration, min_rtt: Duration) -> bool {
        if delay <= threshold {
            self.since = None;
            return false;
        }
        let (since, first) = *self.since.get_or_insert((now, delay));
        if delay < first.mul_f64(FALLEN) {
            self.since = Some((now, delay));
            return false;
        }
        now.since(since) >= hold(min_rtt)
    }
}

/// A thirty-second part of the round trip; on short paths, where stalls are longer than round trips and a queue of ours is no burden, longer than those.
fn hold(min_rtt: Duration) -> Duration {
    // The thirty-second part.
    if min_rtt < SHORT_PATH { SHORT_PATH_HOLD } else { (min_rtt / 32).max(LEAST_HOLD) }
}

/// Part of what it was first, below which a delay is falling.
const FALLEN: f64 = 0.8;
const SHORT_PATH: Duration = Duration::from_millis(2);
/// The emulators and hosts that stand still do so for some milliseconds.
const SHORT_PATH_HOLD: Duration = Duration::from_millis(10);
const LEAST_HOLD: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Delays one millisecond apart on a path of 100 ms.
    fn buildups(delays: impl IntoIterator<Item = u64>) -> bool {
        let mut buildup = Buildup::default();
        delays.into_iter().enumerate().any(|(n, delay)| buildup.on_delay(Time::ZERO + ms(n as u64), ms(delay), ms(3), ms(100)))
    }

    #[test]
    fn a_stall_is_no_queue() {
        assert!(!buildups([0, 0, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0, 0]));
    }

    #[test]
    fn a_queue_is_one_while_it_grows_or_stands() {
        assert!(buildups(0..20));
        assert!(buildups([5; 20]));
        assert!(buildups([20, 15, 10, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]), "behind a stall");
    }
}
