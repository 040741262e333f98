//! Silences: moments in which the rival sends nothing.
//!
//! BBR stops sending for 200 ms every 10 s to see the smallest round-trip time (ProbeRTT, draft-cardwell-iccrg-bbr-congestion-control-00 4.3.5),
//! and then goes on as before. A flow that gives way to loss and has something to send never does: its queue falls by what it cuts, in round trips, and comes back
//! in seconds. So a queue that vanishes at once and comes back at once belongs to a flow that does not give way to loss.
//!
//! ```text
//! delay  ------.                 .-----   while it is silent only our packets enter the queue, so those that were spread between
//!               \               /         the rival's leave one behind another: they arrive at what the bottleneck carries
//!                '--- 200 ms --'
//! ```

use std::time::Duration;

use haul_units::{Bytes, Time};

/// Watches a queue that others keep long.
#[derive(Debug, Clone, Default)]
pub(in crate::lfn) struct Silences {
    /// Shortest queue of each of the last epochs, and of this one.
    levels: [Duration; LEVELS],
    lowest: Option<Duration>,
    /// Newest moment at which the queue was as long as usual.
    high: Option<Moment>,
    vanished: Option<Vanished>,
}

#[derive(Debug, Clone, Copy)]
pub(in crate::lfn) struct Moment {
    pub now: Time,
    pub delivered: Bytes,
    /// Queueing delay.
    pub delay: Duration,
}

/// A silence that has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::lfn) struct Silence {
    /// How long the queue was before, at least.
    pub level: Duration,
    /// What the bottleneck carries, bits per second.
    pub carries_bps: f64,
}

/// A queue that is gone.
#[derive(Debug, Clone, Copy)]
struct Vanished {
    since: Time,
    /// How long it was.
    level: Duration,
    carries_bps: f64,
    /// Epochs since then, the first is half of another.
    epochs: u32,
}

impl Silences {
    /// Another phase: a new look.
    pub(in crate::lfn) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Takes a queueing delay in, while so many bytes less than usual are in flight; a silence that has ended. Only queues at least as long as
    /// `long` count, and `usual_bps` is what usually arrives.
    pub(in crate::lfn) fn on_ack(
        &mut self,
        newest: Moment,
        less: f64,
        usual_bps: f64,
        long: Duration,
        ends_epoch: bool,
    ) -> Option<Silence> {
        let lowest = self.lowest.map_or(newest.delay, |lowest| lowest.min(newest.delay));
        self.lowest = (!ends_epoch).then_some(lowest);
        if let Some(vanished) = &mut self.vanished {
            vanished.epochs += u32::from(ends_epoch);
            let (gone, lasted) = (*vanished, newest.now.since(vanished.since));
            let back = ends_epoch && gone.epochs > 1 && lowest >= gone.level.mul_f64(BACK);
            if back || lasted > LONGEST {
                self.restart();
            }
            return (back && lasted >= SHORTEST && lasted <= LONGEST)
                .then_some(Silence { level: gone.level, carries_bps: gone.carries_bps });
        }
        let level = self.levels.iter().min().copied().unwrap_or_default();
        if ends_epoch {
            self.levels.rotate_left(1);
            self.levels[LEVELS - 1] = lowest;
        }
        if newest.delay >= level.mul_f64(HIGH) {
            self.high = Some(newest);
        } else if newest.delay <= level.mul_f64(LOW)
            && let Some(high) = self.high.take()
            && level >= long
        {
            self.fall(high, newest, level, less, usual_bps);
        }
        None
    }

    /// The queue has fallen from one moment to the other.
    fn fall(&mut self, high: Moment, newest: Moment, level: Duration, less: f64, usual_bps: f64) {
        let took = newest.now.since(high.now);
        let fall = high.delay.saturating_sub(newest.delay);
        let arrived = newest.delivered.saturating_sub(high.delivered).as_u64() as f64;
        let carries_bps = arrived * 8.0 / took.as_secs_f64().max(LEAST_TIME);
        // What has arrived was sent over the time of its arrival and that by which the delay fell. Where we have sent less than usual, or it was dropped, the queue has fallen by that.
        let missing = usual_bps / 8.0 * (took + fall).as_secs_f64() - arrived;
        let ours = less.max(missing) * 8.0 / carries_bps;
        if took <= fall.mul_f64(SLOWEST) && fall.as_secs_f64() > ours * 2.0 {
            self.vanished = Some(Vanished { since: newest.now, level, carries_bps, epochs: 0 });
        }
    }
}

/// Epochs whose shortest queue is the usual one: a queue that a window fills and empties is not as long throughout.
const LEVELS: usize = 4;
/// Part of the usual length above which the queue stands.
const HIGH: f64 = 0.8;
/// Part of it below which the queue is gone; a rival that cuts to 0.7 leaves more.
const LOW: f64 = 0.2;
/// Part of its length at which the queue is back.
const BACK: f64 = 0.2;
/// A queue whose rival is silent falls, for each second in which ours arrive, by its part of the bottleneck over ours; one whose rival has cut
/// to 0.7 by a third at most.
const SLOWEST: f64 = 2.0;
/// Three quarters of the 200 ms for which BBR is silent: the queue falls and comes back in the rest.
const SHORTEST: Duration = Duration::from_millis(150);
const LONGEST: Duration = Duration::from_secs(2);
/// Seconds; no division by nothing where both moments are one.
const LEAST_TIME: f64 = 1e-4;

#[cfg(test)]
mod tests {
    use super::*;

    const EPOCH_MS: u64 = 50;
    /// A tenth of the 100 Mbit/s that the bottleneck carries.
    const OURS_BPMS: u64 = 1_250;

    /// One acknowledgement a millisecond; an epoch is 50 ms. Queueing delays in milliseconds, and what arrived in each step in bytes.
    fn silences(steps: impl IntoIterator<Item = (u64, u64)>, less: f64) -> Vec<Silence> {
        let usual_bps = OURS_BPMS as f64 * 8e3;
        let (mut silences, mut delivered) = (Silences::default(), Bytes::ZERO);
        let mut seen = Vec::new();
        for (n, (delay_ms, arrived)) in steps.into_iter().enumerate() {
            delivered += Bytes(arrived);
            let now = Time::ZERO + Duration::from_millis(n as u64);
            let newest = Moment { now, delivered, delay: Duration::from_millis(delay_ms) };
            let ends_epoch = n as u64 % EPOCH_MS == EPOCH_MS - 1;
            seen.extend(silences.on_ack(newest, less, usual_bps, Duration::from_millis(6), ends_epoch));
        }
        seen
    }

    /// A queue of 40 ms that stands, falls in so many steps, stays away for so long and stands again.
    fn queue(fall_steps: u64, fall_bytes: u64, away: u64) -> Vec<(u64, u64)> {
        let stands = (0..400).map(|_| (40, OURS_BPMS));
        let falls = (1..=fall_steps).map(|n| (40 - 40 * n / fall_steps, fall_bytes));
        let gone = (0..away).map(|_| (0, OURS_BPMS * 2));
        stands.clone().chain(falls).chain(gone).chain(stands).collect()
    }

    #[test]
    fn a_queue_that_is_gone_at_once_and_back_soon_shows_a_silence_and_the_bottleneck() {
        let seen = silences(queue(5, 12_500, 220), 0.0);
        assert_eq!(seen.len(), 1);
        assert_eq!(seen[0].level, Duration::from_millis(40));
        assert!((seen[0].carries_bps / 1e8 - 1.0).abs() < 0.01, "{}", seen[0].carries_bps);
    }

    #[test]
    fn what_gives_way_to_loss_has_no_silences() {
        assert_eq!(silences(queue(200, 3_000, 220), 0.0), [], "a slow fall");
        assert_eq!(silences(queue(5, 12_500, 3_000), 0.0), [], "a queue that stays away");
        assert_eq!(silences(queue(5, 12_500, 40), 0.0), [], "a queue that is back at once");
    }

    #[test]
    fn what_we_did_not_send_or_was_dropped_is_no_silence_of_the_rival() {
        // Alone at 10 Mbit/s: the queue of 40 ms overflows, and of what was sent in 45 ms a ninth arrives.
        assert_eq!(silences(queue(5, OURS_BPMS, 220), 0.0), []);
    }

    #[test]
    fn what_we_do_ourselves_is_no_silence_of_the_rival() {
        // 100 Mbit/s carry 400 kB less in 32 ms.
        assert_eq!(silences(queue(5, 12_500, 220), 400_000.0), []);
        assert_eq!(silences(queue(5, 12_500, 220), 100_000.0).len(), 1);
    }
}
