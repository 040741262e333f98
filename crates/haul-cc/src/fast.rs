//! FAST TCP: a window at which a fixed number of our packets waits in the queue.
//!
//! Delay says how far from the balance the window is, so it gets there in a few round trips and stays, without loss. Flows on one queue
//! have the same number of packets in it and so the same rate, whatever their round-trip times. A queue that others keep full is taken
//! for ours: beside loss-based flows it gets little. Loss halves the window, once a round trip.
//! Source: D. Wei, C. Jin, S. Low, S. Hegde, FAST TCP: motivation, architecture, algorithms, performance, ToN 14(6), 2006.
//!
//! DEVIATION: every 8 s somewhat less than the window for two round trips, so that our packets leave the queue. The smallest round-trip time lasts 10 s; our own packets would otherwise
//! pass for part of the path then, and a path that has become longer, or a flow that came later, would never be told from a queue.

use std::time::Duration;

use haul_units::Time;

use crate::reno::{BETA_LOSS, BETA_MARK};
use crate::window::{Acked, Cause, Law, MIN_WINDOW, SlowStart, Verdict};

/// The balance and the search for the smallest round-trip time. Windows in packets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fast {
    /// Step of [`alpha`] in use.
    decade: Option<i32>,
    /// Round-trip times of this round: their sum and number.
    rtt_sum: Duration,
    rtt_samples: u32,
    /// When the queue was last left to drain.
    drained_at: Option<Time>,
    drain: Option<Drain>,
}

/// A smaller window until the smallest round-trip time has been seen.
#[derive(Debug, Clone, Copy)]
struct Drain {
    /// The window to go back to.
    window: f64,
    rounds: u32,
}

impl Fast {
    /// Packets to keep in the queue, for a window that at this round-trip time gives the rate.
    fn alpha(&mut self, window: f64, rtt: Duration) -> f64 {
        let packets_per_second = window / rtt.as_secs_f64().max(1e-6);
        let decade = (packets_per_second / SLOWEST_PPS).log10();
        // A rate near a boundary must not go back and forth.
        let kept = self.decade.is_some_and(|kept| (decade - f64::from(kept)).abs() < 0.55 && kept >= 0);
        if !kept {
            // Up to 1 Tbit/s, four decades above.
            self.decade = Some((decade + 0.5).floor().clamp(0.0, 4.0) as i32);
        }
        // Ten times the rate, ten times the packets.
        ALPHA_SLOWEST * 10_f64.powi(self.decade.unwrap_or(0))
    }

    /// The next window, from the mean of the round-trip times of the round.
    fn next(&mut self, window: f64, base: Duration, rtt: Duration) -> f64 {
        let alpha = self.alpha(window, rtt);
        let balance = base.as_secs_f64() / rtt.as_secs_f64().max(1e-6) * window + alpha;
        // Wei 2006, III Eq. 6: w = min(2w, (1 - gamma) w + gamma (baseRTT/RTT w + alpha))
        (2.0 * window).min((1.0 - GAMMA) * window + GAMMA * balance)
    }

    /// Begins or goes on draining; the window if it does.
    fn drain(&mut self, window: f64, now: Time) -> Option<f64> {
        if let Some(drain) = &mut self.drain {
            drain.rounds += 1;
            if drain.rounds < DRAIN_ROUNDS {
                return Some(window);
            }
            let before = drain.window;
            self.drain = None;
            self.drained_at = Some(now);
            return Some(before);
        }
        let due = now.since(*self.drained_at.get_or_insert(now)) >= DRAIN_INTERVAL;
        if !due {
            return None;
        }
        self.drain = Some(Drain { window, rounds: 0 });
        // Twice what waits there, for round-trip times vary, and a tenth: a long path has more packets than the queue of ours.
        let alpha = ALPHA_SLOWEST * 10_f64.powi(self.decade.unwrap_or(0));
        // The tenth.
        Some((window * 0.9).min(window - 2.0 * alpha).max(window / 2.0))
    }
}

impl Law for Fast {
    const NAME: &'static str = "fast";
    type Start = FastStart;

    fn grow(&mut self, window: f64, ack: &Acked<'_>) -> f64 {
        if let Some(rtt) = ack.sample.rtt {
            self.rtt_sum += rtt;
            self.rtt_samples += 1;
        }
        if !ack.sample.round_start || self.rtt_samples == 0 {
            return window;
        }
        let rtt = std::mem::take(&mut self.rtt_sum) / std::mem::take(&mut self.rtt_samples);
        if let Some(window) = self.drain(window, ack.sample.now) {
            return window;
        }
        self.next(window, ack.sample.min_rtt, rtt).max(MIN_WINDOW)
    }

    fn grow_unused(&mut self, window: f64, ack: &Acked<'_>) -> f64 {
        // What a drain gives back had been used before it.
        let most = self.drain.map_or(window, |drain| drain.window.max(window));
        self.grow(window, ack).min(most)
    }

    fn cut(&mut self, window: f64, cause: Cause) -> f64 {
        let before = self.drain.take().map_or(window, |drain| drain.window);
        before * if cause == Cause::Loss { BETA_LOSS } else { BETA_MARK }
    }

    fn rescale(&mut self, factor: f64) {
        if let Some(drain) = &mut self.drain {
            drain.window *= factor;
        }
    }

    /// A rate near the balance: trains and gaps would pass for a queue.
    fn pacing_gain(&self) -> f64 {
        // A tenth above it: the window rules.
        1.1
    }

    fn phase(&self) -> &'static str {
        if self.drain.is_some() { "drain" } else { "balance" }
    }
}

/// Doubles until a fraction of alpha stands in the queue.
#[derive(Debug, Clone, Default)]
pub(crate) struct FastStart;

impl SlowStart for FastStart {
    fn on_ack(&mut self, window: f64, ack: &Acked<'_>) -> Verdict {
        let Some(queue) = ack.sample.queue_delay else { return Verdict::Grow(1.0) };
        let rtt = ack.sample.smoothed_rtt.as_secs_f64().max(1e-6);
        let queued = window * queue.as_secs_f64() / rtt;
        // What scheduling alone makes of a delay.
        let pause = ack.sample.min_rtt.max(Duration::from_millis(1)) / 32;
        if queued > Fast::default().alpha(window, ack.sample.smoothed_rtt) && queue > pause {
            // Twice what fits was sent within the round trip that this news took.
            return Verdict::Leave(window * ack.sample.min_rtt.as_secs_f64() / rtt);
        }
        Verdict::Grow(1.0)
    }
}

/// Wei 2006, III: gamma in (0, 1]
const GAMMA: f64 = 0.5;
/// 20 packets up to 100 Mbit/s, 200 up to 1 Gbit/s and so on: 2.4 ms of queue or less at the upper end of each decade.
/// Jin, Wei, Low, FAST TCP, INFOCOM 2004, IV: alpha by the rate.
const ALPHA_SLOWEST: f64 = 20.0;
/// The middle, in logarithms, of the slowest decade: 30 Mbit/s of packets of 1500 bytes.
const SLOWEST_PPS: f64 = 2_600.0;
const DRAIN_INTERVAL: Duration = Duration::from_secs(8);
const DRAIN_ROUNDS: u32 = 2;

#[cfg(test)]
mod tests {
    use haul_units::Bytes;

    use super::*;
    use crate::rounds::{PACKET, Rounds};
    use crate::{Controller, SentSample};

    /// A link of so many packets a second, round by round: what does not fit into the round trip waits.
    fn settle(path: &mut Rounds<Fast>, base: Duration, packets_per_second: f64, rounds: u32) {
        for _ in 0..rounds {
            let pipe = packets_per_second * base.as_secs_f64();
            path.queue = Duration::from_secs_f64((path.window() - pipe).max(0.0) / packets_per_second);
            path.round();
        }
    }

    #[test]
    fn alpha_packets_wait_in_the_queue() {
        // Wei 2006, III: x q = alpha in equilibrium, whatever rate and round-trip time are.
        for (pps, alpha) in [(8_000.0, 20.0), (80_000.0, 200.0), (800_000.0, 2_000.0)] {
            for base_ms in [20, 50, 200] {
                let base = Duration::from_millis(base_ms);
                let mut path = Rounds::<Fast>::avoiding(pps * base.as_secs_f64(), base);
                settle(&mut path, base, pps, 30);
                let queued = path.window() - pps * base.as_secs_f64();
                assert!((queued / alpha - 1.0).abs() < 0.06, "{queued} of {alpha} at {pps}/s, {base_ms} ms");
            }
        }
    }

    #[test]
    fn the_queue_is_left_to_drain_and_the_window_restored() {
        let base = Duration::from_millis(50);
        let mut path = Rounds::<Fast>::avoiding(420.0, base);
        let mut least = f64::MAX;
        for _ in 0..200 {
            settle(&mut path, base, 8_000.0, 1);
            least = least.min(path.window());
        }
        assert!(least < 385.0, "{least}");
        assert!((path.window() - 420.0).abs() < 6.0, "{}", path.window());
    }

    #[test]
    fn a_drain_that_ends_while_little_is_sent_gives_the_window_back() {
        let mut path = Rounds::<Fast>::avoiding(420.0, Duration::from_millis(50));
        path.controller.law().drain = Some(Drain { window: 420.0, rounds: 0 });
        path.controller.leave_slow_start(378.0);
        for _ in 0..4 {
            path.now += Duration::from_millis(50);
            path.controller.on_sent(&SentSample { now: path.now, bytes: PACKET, in_flight: PACKET * 20, app_limited: true });
            path.acknowledge(PACKET * 20, Bytes::ZERO, true);
        }
        assert_eq!(path.controller.snapshot().phase, "balance");
        assert!((path.window() - 420.0).abs() < 1.0, "{}", path.window());
    }

    #[test]
    fn never_more_than_twice() {
        let mut law = Fast::default();
        let base = Duration::from_millis(100);
        assert!((law.next(4.0, base, base) - 8.0).abs() < 1e-9);
        assert!((law.next(400.0, base, base) - 410.0).abs() < 1e-9);
    }

    fn near(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn a_loss_takes_half_and_a_mark_a_fifth_of_what_was_before_draining() {
        let draining = || Fast { drain: Some(Drain { window: 1_000.0, rounds: 1 }), ..Fast::default() };
        let mut law = draining();
        assert_eq!(law.phase(), "drain");
        assert!(near(law.cut(900.0, Cause::Loss), 500.0) && law.drain.is_none());
        assert_eq!(law.phase(), "balance");
        assert!(near(draining().cut(900.0, Cause::Mark), 800.0));
        let mut law = draining();
        law.rescale(0.5);
        assert!(law.drain.is_some_and(|drain| near(drain.window, 500.0)));
        assert!(near(Fast::default().cut(100.0, Cause::Loss), 50.0));
    }

    #[test]
    fn a_drain_is_due_every_interval_and_gives_the_window_back() {
        let mut law = Fast { decade: Some(1), ..Fast::default() };
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        assert_eq!(law.drain(10_000.0, at(1)), None);
        assert_eq!(law.drain(10_000.0, at(8)), None);
        // A tenth, which is more than twice alpha: 200 packets in the second decade.
        assert!(law.drain(10_000.0, at(9)).is_some_and(|window| near(window, 9_000.0)));
        assert!(law.drain(9_000.0, at(9)).is_some_and(|window| near(window, 9_000.0)));
        assert!(law.drain(9_000.0, at(10)).is_some_and(|window| near(window, 10_000.0)));
        assert_eq!(law.drain(10_000.0, at(17)), None);
        // Twice alpha, and no more than half.
        assert!(law.drain(1_000.0, at(18)).is_some_and(|window| near(window, 600.0)));
        let mut law = Fast { decade: Some(1), drained_at: Some(at(0)), ..Fast::default() };
        assert!(law.drain(500.0, at(8)).is_some_and(|window| near(window, 250.0)));
    }
}
