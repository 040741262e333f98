//! LEDBAT++: the scavenger: takes what others leave, and gets out of the way at 60 ms of queue.
//!
//! Grows no faster than Reno and on short paths up to sixteen times slower, shrinks in proportion to the delay beyond the target, and
//! now and then steps aside for two round trips, so that the empty queue is seen and flows that came later get their share.
//!
//! ```text
//! slow start, to 3/4 of the target -> 2 round trips -> slowdown: 2 packets for 2 round trips, then slow start to where it was
//!                                                         ^------ after nine times as long as the last one took
//! ```
//!
//! Sources: draft-irtf-iccrg-ledbat-plus-plus 4, RFC 6817 (base delay and noise filter).

use std::time::Duration;

use haul_units::Time;

use crate::reno::{BETA_LOSS, BETA_MARK};
use crate::window::{AVOIDANCE_GAIN, Acked, Cause, Law, MIN_WINDOW, SlowStart, Verdict};
use crate::windowed::WindowedMin;

/// Delays, and when to step aside. Windows in packets.
#[derive(Debug, Clone)]
pub(crate) struct Ledbat {
    base: WindowedMin<Duration>,
    recent: [Duration; CURRENT_FILTER],
    turn: Turn,
    /// When it was last asked, and whether the application has paused since.
    asked_at: Time,
    paused: bool,
}

#[derive(Debug, Clone, Copy)]
enum Turn {
    /// Nothing has been planned yet.
    Fresh,
    /// Follows the delay until a slowdown is due.
    Follow { slowdown_at: Time },
    /// Holds still at the minimum.
    Aside { since: Time, until: Time, window: f64 },
    /// Slow start back to the window before.
    Return { since: Time, window: f64 },
}

impl Default for Ledbat {
    fn default() -> Self {
        let (base, recent) = (WindowedMin::new(BASE_HISTORY), [Duration::MAX; CURRENT_FILTER]);
        Self { base, recent, turn: Turn::Fresh, asked_at: Time::ZERO, paused: false }
    }
}

impl Ledbat {
    /// A slowdown in which the application pauses takes no longer for that.
    fn leave_out_pause(&mut self, now: Time) {
        let passed = now.since(std::mem::replace(&mut self.asked_at, now));
        if std::mem::take(&mut self.paused)
            && let Turn::Aside { since, .. } | Turn::Return { since, .. } = &mut self.turn
        {
            *since += passed;
        }
    }

    fn measure(&mut self, ack: &Acked<'_>) {
        let Some(rtt) = ack.sample.rtt else { return };
        self.base.insert(ack.sample.now, rtt);
        self.recent.rotate_left(1);
        self.recent[CURRENT_FILTER - 1] = rtt;
    }

    fn base(&self, ack: &Acked<'_>) -> Duration {
        self.base.get().unwrap_or(ack.sample.min_rtt).min(ack.sample.min_rtt)
    }

    /// RFC 6817 2.4.2: the smallest of the last samples, less the base.
    fn queue_delay(&self, base: Duration) -> Duration {
        self.recent
            .iter()
            .min()
            .filter(|delay| **delay != Duration::MAX)
            .map_or(Duration::ZERO, |delay| delay.saturating_sub(base))
    }

    /// The window towards the target.
    fn follow(&self, window: f64, ack: &Acked<'_>) -> f64 {
        let base = self.base(ack);
        let off_target = self.queue_delay(base).as_secs_f64() / TARGET.as_secs_f64() - 1.0;
        let share = ack.packets / window;
        if off_target <= 0.0 {
            // draft 4.2: W += GAIN a round trip
            return window + gain(base) * share;
        }
        // draft 4.2: W += max(GAIN - Constant W (delay/target - 1), -W/2) a round trip
        window + (gain(base) - CONSTANT * window * off_target).max(-window / 2.0) * share.min(1.0)
    }
}

impl Law for Ledbat {
    const NAME: &'static str = "ledbat";
    /// draft 4.3
    const INITIAL_WINDOW: f64 = 2.0;
    type Start = LedbatStart;

    fn grow(&mut self, window: f64, ack: &Acked<'_>) -> f64 {
        self.measure(ack);
        let (now, round_trip) = (ack.sample.now, ack.sample.smoothed_rtt);
        self.leave_out_pause(now);
        match self.turn {
            Turn::Fresh => {
                // draft 4.4: the first slowdown two round trips after slow start
                self.turn = Turn::Follow { slowdown_at: now + round_trip * 2 };
                window
            }
            Turn::Follow { slowdown_at } if now >= slowdown_at => {
                self.turn = Turn::Aside { since: now, until: now + round_trip * 2, window };
                MIN_WINDOW
            }
            Turn::Follow { .. } => self.follow(window, ack),
            Turn::Aside { since, until, window: before } => {
                if now >= until {
                    self.turn = Turn::Return { since, window: before };
                }
                MIN_WINDOW
            }
            Turn::Return { since, window: before } => {
                let grown = window + gain(self.base(ack)) * ack.packets;
                if grown < before {
                    return grown;
                }
                // draft 4.4: nine times as long as this one took
                self.turn = Turn::Follow { slowdown_at: now + now.since(since).saturating_mul(SLOWDOWN_INTERVAL) };
                before
            }
        }
    }

    fn grow_unused(&mut self, window: f64, ack: &Acked<'_>) -> f64 {
        self.grow(window, ack).min(window)
    }

    fn pause(&mut self) {
        self.paused = true;
    }

    fn cut(&mut self, window: f64, cause: Cause) -> f64 {
        if let Turn::Aside { since, window: before, .. } | Turn::Return { since, window: before } = self.turn {
            // Back no further than to half of what it was.
            self.turn = Turn::Return { since, window: (before / 2.0).max(MIN_WINDOW) };
        }
        window * if cause == Cause::Loss { BETA_LOSS } else { BETA_MARK }
    }

    fn rescale(&mut self, factor: f64) {
        if let Turn::Aside { window, .. } | Turn::Return { window, .. } = &mut self.turn {
            *window *= factor;
        }
    }

    fn phase(&self) -> &'static str {
        match self.turn {
            Turn::Fresh | Turn::Follow { .. } => "follow",
            Turn::Aside { .. } => "aside",
            Turn::Return { .. } => "return",
        }
    }

    fn pacing_gain(&self) -> f64 {
        if matches!(self.turn, Turn::Return { .. }) { 2.0 } else { AVOIDANCE_GAIN }
    }
}

/// Slow start at GAIN, which ends before the target is reached.
#[derive(Debug, Clone, Default)]
pub(crate) struct LedbatStart;

impl SlowStart for LedbatStart {
    fn on_ack(&mut self, window: f64, ack: &Acked<'_>) -> Verdict {
        let delay = ack.sample.rtt.map_or(Duration::ZERO, |rtt| rtt.saturating_sub(ack.sample.min_rtt));
        // draft 4.3: 3/4 of the target, in the first slow start only
        if ack.first && delay > TARGET * 3 / 4 {
            return Verdict::Leave(window);
        }
        Verdict::Grow(gain(ack.sample.min_rtt))
    }
}

/// draft 4.2: GAIN = 1 / min(16, ceil(2 TARGET / base))
fn gain(base: Duration) -> f64 {
    let ratio = (2.0 * TARGET.as_secs_f64() / base.as_secs_f64().max(1e-6)).ceil();
    1.0 / ratio.clamp(1.0, 16.0)
}

/// draft 4.2
const TARGET: Duration = Duration::from_millis(60);
const CONSTANT: f64 = 1.0;
/// RFC 6817 2.5
const BASE_HISTORY: Duration = Duration::from_secs(600);
/// RFC 6817 2.5: the smallest of the last few samples is the current delay.
const CURRENT_FILTER: usize = 4;
/// draft 4.4
const SLOWDOWN_INTERVAL: u32 = 9;

#[cfg(test)]
mod tests {
    use haul_units::Bytes;

    use super::*;
    use crate::SentSample;
    use crate::rounds::{PACKET, Rounds};

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn gain_by_the_round_trip() {
        for (base_ms, divisor) in [(1, 16.0), (10, 12.0), (50, 3.0), (60, 2.0), (100, 2.0), (120, 1.0), (500, 1.0)] {
            assert!((gain(ms(base_ms)) * divisor - 1.0).abs() < 1e-9, "{base_ms} ms: {}", gain(ms(base_ms)));
        }
    }

    /// A law that has seen an empty path of 100 ms and then this queue.
    fn after(queue: Duration, window: f64) -> f64 {
        let mut path = Rounds::<Ledbat>::avoiding(window, ms(100));
        path.controller.law().turn = Turn::Follow { slowdown_at: Time::NEVER };
        path.round();
        let before = path.window();
        path.queue = queue;
        path.round();
        path.window() - before
    }

    #[test]
    fn grows_below_the_target_and_shrinks_beyond_in_proportion() {
        assert!((after(ms(30), 200.0) - 0.5).abs() < 0.02, "{}", after(ms(30), 200.0));
        // A tenth beyond the target takes a tenth of the window, twice the target half of it.
        let tenth = after(ms(66), 200.0);
        assert!((-20.0..-17.0).contains(&tenth), "{tenth}");
        let most = after(ms(600), 200.0);
        assert!((-101.0..-75.0).contains(&most), "{most}");
    }

    #[test]
    fn steps_aside_and_comes_back_for_nine_times_as_long() {
        let mut path = Rounds::<Ledbat>::avoiding(400.0, ms(120));
        let mut windows = Vec::new();
        for _ in 0..200 {
            path.round();
            windows.push(path.window());
        }
        let aside = windows.iter().filter(|window| **window < 3.0).count();
        let low = windows.iter().filter(|window| **window < 390.0).count();
        assert!((4..=6).contains(&aside), "{aside} rounds aside");
        // At 120 ms slow start doubles: some ten rounds of a hundred.
        assert!((10..=25).contains(&low), "{low} rounds below");
        assert!(windows.iter().take(30).any(|window| *window < 3.0), "the first one soon");
    }

    #[test]
    fn a_pause_of_the_application_in_a_slowdown_puts_the_next_one_off_by_nothing() {
        for is_idle in [true, false] {
            let mut path = Rounds::<Ledbat>::avoiding(400.0, ms(120));
            while !matches!(path.controller.law().turn, Turn::Return { .. }) {
                path.round();
            }
            path.round();
            if is_idle {
                path.now += Duration::from_secs(60);
                path.controller.on_idle(path.now);
            } else {
                for _ in 0..60 {
                    path.now += Duration::from_secs(1);
                    let sent = SentSample { now: path.now, bytes: PACKET, in_flight: PACKET, app_limited: true };
                    path.controller.on_sent(&sent);
                    path.acknowledge(PACKET, Bytes::ZERO, true);
                }
            }
            while matches!(path.controller.law().turn, Turn::Return { .. }) {
                path.round();
            }
            let Turn::Follow { slowdown_at } = path.controller.law().turn else { panic!("it follows") };
            // Nine times some dozen round trips.
            let wait = slowdown_at.since(path.now);
            assert!((Duration::from_secs(8)..Duration::from_secs(25)).contains(&wait), "idle: {is_idle}: {wait:?}");
        }
    }

    #[test]
    fn slow_start_ends_before_the_target() {
        let mut path = Rounds::<Ledbat>::new(ms(120));
        for _ in 0..5 {
            path.round();
        }
        assert!((60.0..70.0).contains(&path.window()), "{}", path.window());
        path.queue = ms(46);
        path.round();
        assert!(path.controller.snapshot().ssthresh.is_some());
    }

    use crate::Controller as _;
}
