//! Queueing delay on the way to the receiver, from its clock.
//!
//! Arrival by the receiver's clock minus departure by ours is the one-way delay plus an unknown offset. Only the distance from the
//! smallest value of the last 10 s counts, so the offset falls out, and drift of 100 ppm adds up to at most 1 ms. Delay of the way
//! back, where acknowledgements queue, does not show.

use std::time::Duration;

use haul_units::Time;

use crate::windowed::WindowedMin;

/// Measures queueing delay towards the receiver.
#[derive(Debug, Clone)]
pub struct OneWayDelay {
    base_nanos: WindowedMin<i64>,
    /// One fixed difference, so that the differences kept are small whatever the two origins are.
    offset: Option<u64>,
}

impl OneWayDelay {
    /// Nothing measured yet.
    pub fn new() -> Self {
        Self { base_nanos: WindowedMin::new(BASE_WINDOW), offset: None }
    }

    /// A packet left at `sent` by our clock and arrived at `received` by the receiver's: returns its queueing delay.
    ///
    /// `received` comes from the peer: any value is safe, and none gives more than `round_trip`, in which the queueing took place.
    pub fn on_sample(&mut self, now: Time, sent: Time, received: Time, round_trip: Duration) -> Duration {
        let difference = received.as_nanos().wrapping_sub(sent.as_nanos());
        let offset = *self.offset.get_or_insert(difference);
        let relative = difference.wrapping_sub(offset) as i64;
        self.base_nanos.insert(now, relative);
        let above = relative.saturating_sub(self.base_nanos.get().unwrap_or(relative)).max(0);
        Duration::from_nanos(above as u64).min(round_trip)
    }
}

impl Default for OneWayDelay {
    fn default() -> Self {
        Self::new()
    }
}

/// In which drift of 100 ppm adds up to a millisecond.
const BASE_WINDOW: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn offset_falls_out() {
        let mut delay = OneWayDelay::new();
        let (t, far) = (Time::from_nanos(7), Time::from_nanos(u64::MAX - 5));
        assert_eq!(delay.on_sample(t, t, far, ms(100)), ms(0));
        // The receiver's clock wraps: still only the change counts.
        let later = Time::from_nanos(far.as_nanos().wrapping_add(33_000_000));
        assert_eq!(delay.on_sample(t + ms(30), t + ms(30), later, ms(100)), ms(3));
    }

    #[test]
    fn a_lie_is_bounded_by_the_round_trip() {
        let mut delay = OneWayDelay::new();
        delay.on_sample(Time::ZERO, Time::ZERO, Time::ZERO, ms(50));
        assert_eq!(delay.on_sample(Time::ZERO, Time::ZERO, Time::from_nanos(u64::MAX / 2), ms(50)), ms(50));
        delay.on_sample(Time::ZERO, Time::ZERO, Time::from_nanos(u64::MAX / 2 + 9), ms(50));
    }

    #[test]
    fn drift_is_forgotten() {
        let mut delay = OneWayDelay::new();
        let mut worst = Duration::ZERO;
        for step in 0..1_000 {
            let now = Time::ZERO + ms(100) * step;
            let received = now + ms(100) * step / 10_000;
            worst = worst.max(delay.on_sample(now, now, received, ms(100)));
        }
        assert!(worst <= ms(1), "{worst:?}");
    }
}
