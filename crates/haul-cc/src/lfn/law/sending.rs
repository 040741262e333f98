//! The rate and the window that follow from what is known about the path, with what is lost on it by itself made up for.

use std::time::Duration;

use haul_units::{BitRate, Bytes};

use super::Flow;
use crate::lfn::measure::LEAST_PIPE_PKTS;

impl Flow {
    pub(in crate::lfn) fn pacing_rate(&self, gain: f64) -> BitRate {
        if self.path.measured_rtt().is_none() {
            return BitRate::of(self.initial_window(), FIRST_FLIGHT);
        }
        if self.path.bandwidth_bps() == 0.0 {
            return self.initial_rate();
        }
        BitRate::from_bps((self.path.bandwidth_bps() * gain * self.trials.share(self.path.base_loss())) as u64)
            .max(self.least_rate())
    }

    fn least_rate(&self) -> BitRate {
        self.a_round_trip(self.least_pipe())
    }

    /// So many bytes each round trip.
    fn a_round_trip(&self, bytes: Bytes) -> BitRate {
        // Loopback's round trips would make a burst of it.
        BitRate::of(bytes, self.path.min_rtt().max(Duration::from_micros(100)))
    }

    fn initial_rate(&self) -> BitRate {
        self.a_round_trip(self.initial_window()).scaled(2.0)
    }

    /// What startup sends at, at least: until the first window has arrived the samples are of a handshake's few packets.
    pub(in crate::lfn) fn least_startup_rate(&self) -> BitRate {
        if self.path.delivered() < self.initial_window() { self.initial_rate() } else { BitRate::from_bps(0) }
    }

    /// Bytes in flight of which this much arrives.
    pub(in crate::lfn) fn made_up(&self, bytes: f64) -> Bytes {
        Bytes((bytes / (1.0 - self.path.base_loss())) as u64).clamp(self.least_pipe(), MAX_WINDOW)
    }

    /// A rate of which this much arrives.
    pub(in crate::lfn) fn pacing_rate_of(&self, arriving_bps: f64) -> BitRate {
        BitRate::from_bps((arriving_bps / (1.0 - self.path.base_loss())) as u64).max(self.least_rate())
    }

    pub(in crate::lfn) fn window(&self, gain: f64) -> Bytes {
        let rtt = self.path.min_rtt();
        // Jitter may hold reports up.
        let late = self.path.jitter() * 3 + STALL;
        // A queue that has overflowed has no place for it, and what waits in one that is longer than wanted is not late: others may have filled it, who find no room if we do not make some
        // within a round trip. A round trip of what arrives is what BBR keeps in flight beyond the pipe.
        let late = if self.overflows() || !self.is_clear() { late.min(rtt) } else { late };
        // Two reports of the receiver must come, one each RTT / 32.
        let time = rtt.mul_f64(gain) + late + (rtt / 16).clamp(MIN_ACK_TIME, MAX_ACK_TIME);
        let rate = BitRate::from_bps((self.path.bandwidth_bps() / (1.0 - self.path.base_loss())) as u64);
        rate.bytes_in(time).clamp(self.least_window(), MAX_WINDOW)
    }

    /// The initial window until it has arrived: more than a short path with a short queue holds must not be in flight for good.
    fn least_window(&self) -> Bytes {
        if self.path.delivered() < self.initial_window() { self.initial_window() } else { self.least_pipe() }
    }

    fn least_pipe(&self) -> Bytes {
        // MinPipeCwnd is the connection's; two packets are what a report can tell apart.
        self.path.packet() * ((LEAST_PIPE_PKTS as f64 * self.part()).ceil() as u64).max(2)
    }

    /// DEVIATION from RFC 9002 7.2 (10 packets): a start on a long fat path takes 14 round trips from there.
    fn initial_window(&self) -> Bytes {
        self.path.packet() * 64
    }
}

/// Beyond any path: 100 Gbit/s over a minute.
const MAX_WINDOW: Bytes = Bytes::gib(1024);
/// The first window leaves within this time.
const FIRST_FLIGHT: Duration = Duration::from_millis(10);
/// A thread that loses the processor for this long must not empty the pipe.
const STALL: Duration = Duration::from_millis(5);
/// Twice the shortest time between two reports of the receiver.
const MIN_ACK_TIME: Duration = Duration::from_micros(500);
/// Twice the longest.
const MAX_ACK_TIME: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use haul_units::Time;

    use super::*;
    use crate::lfn::law::Doing;
    use crate::lfn::mode::Mode;
    use crate::{AckSample, RateSample};

    /// What may be in flight on a path of 100 Mbit/s whose packets meet this delay, in milliseconds of its rate.
    fn window_ms(rtt: Duration, delay: Duration) -> f64 {
        let packet = Bytes(1472);
        let mut flow = Flow::new(Mode::Fair, packet);
        for n in 1..=8_u32 {
            let rate = RateSample {
                rate: BitRate::mbps(100),
                sent: BitRate::mbps(100),
                interval: rtt,
                app_limited: false,
                in_flight_at_send: packet,
                lost: Bytes::ZERO,
                delivered: packet,
            };
            let ack = AckSample {
                now: Time::ZERO + rtt * n,
                acked: packet,
                delivered: packet * 1000,
                in_flight: packet,
                rtt: Some(rtt + if n == 1 { Duration::ZERO } else { delay }),
                smoothed_rtt: rtt,
                min_rtt: rtt,
                queue_delay: Some(delay),
                rate: Some(rate),
                round: u64::from(n),
                round_start: true,
                lost_total: Bytes::ZERO,
            };
            flow.on_ack(&ack, Doing::Search);
        }
        BitRate::mbps(100).time_for(flow.window(1.5)).as_secs_f64() * 1e3
    }

    #[test]
    fn what_waits_in_a_queue_is_not_taken_for_late() {
        let ms = Duration::from_millis;
        let near = |value: f64, wanted: f64| assert!((value - wanted).abs() < 0.01, "{value} for {wanted}");
        near(window_ms(ms(1), Duration::ZERO), 1.5 + 5.0 + 0.5);
        near(window_ms(ms(1), ms(8)), 1.5 + 1.0 + 0.5);
        // A queue as long as wanted is the flow's own.
        near(window_ms(ms(1), Duration::from_micros(800)), 1.5 + 5.0 + 0.5);
        // Where the round trip is longer than a stall nothing changes.
        near(window_ms(ms(20), ms(30)), 30.0 + 5.0 + 1.25);
        near(window_ms(ms(20), Duration::ZERO), 30.0 + 5.0 + 1.25);
    }
}
