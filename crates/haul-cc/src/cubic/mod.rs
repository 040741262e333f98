//! CUBIC: the congestion control of most TCP traffic, polite and slow on long fat paths.
//!
//! The window follows a cubic function of the time since the last cut, flat around the window at which that cut came. Any loss is
//! congestion, once a round trip. Windows are counted in bytes, the formulae in packets of the full size.
//! Sources: RFC 9438 (CUBIC), RFC 9406 (HyStart++ in slow start), RFC 9002 7 (loss epochs, under-used windows).

mod hystart;

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use self::hystart::{HyStart, Verdict};
use crate::pacer::quantum;
use crate::{AckSample, Controller, EcnSample, LossSample, PathStart, SentSample, Snapshot};

/// The CUBIC controller.
#[derive(Debug, Clone)]
pub struct Cubic {
    packet: Bytes,
    curve: Curve,
    hystart: HyStart,
    /// What was sent before belongs to the cut made then.
    last_cut: Option<Time>,
    undo: Option<Undo>,
    smoothed_rtt: Option<Duration>,
    /// Most bytes in flight in the round before and in this one: a window that is not used does not grow.
    used: [Bytes; 2],
}

/// The window and what determines its growth: what an undo restores.
#[derive(Debug, Clone, Copy)]
struct Curve {
    window: f64,
    ssthresh: f64,
    /// Window before the last cut, lowered by fast convergence.
    w_max: f64,
    epoch: Option<Epoch>,
}

/// A stretch of congestion avoidance. Windows in bytes, times in seconds.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    start: Time,
    k_seconds: f64,
    /// The window around which the curve is flat.
    origin: f64,
    /// The window a Reno flow would have.
    w_est: f64,
}

/// How to take back a cut if all losses that caused it turn out spurious.
#[derive(Debug, Clone)]
struct Undo {
    before: Curve,
    lost: Bytes,
    spurious: Bytes,
}

impl Cubic {
    /// A controller in slow start; in congestion avoidance if the path is known.
    pub fn new(start: &PathStart) -> Self {
        Self {
            packet: start.packet,
            curve: Curve::new(start),
            hystart: HyStart::new(),
            last_cut: None,
            undo: None,
            smoothed_rtt: start.learned.map(|learned| learned.min_rtt),
            used: [Bytes::ZERO; 2],
        }
    }

    fn in_slow_start(&self) -> bool {
        self.curve.window < self.curve.ssthresh
    }

    fn slow_start(&mut self, ack: &AckSample) {
        match self.hystart.on_ack(ack.round_start, ack.rtt) {
            Verdict::Grow { divisor } if self.curve.window < 2.0 * self.used_window() => {
                self.curve.window += ack.acked.as_u64() as f64 / f64::from(divisor);
            }
            Verdict::Grow { .. } => {}
            Verdict::Leave => self.curve.ssthresh = self.curve.window,
        }
    }

    fn avoid(&mut self, ack: &AckSample) {
        // RFC 9438 5.8: time in which the application limits the flow does not move the curve.
        if self.used_window() + (self.burst() * 2).as_u64() as f64 + ack.acked.as_u64() as f64 <= self.curve.window {
            self.curve.epoch = None;
            return;
        }
        let packet = self.packet.as_u64() as f64;
        let curve = &mut self.curve;
        let epoch = curve.epoch.get_or_insert_with(|| Epoch::new(ack.now, curve.window, curve.w_max, packet));
        let share = ack.acked.as_u64() as f64 / curve.window;
        // RFC 9438 4.3 Eq. 4: W_est += alpha * segments_acked / cwnd; alpha = 1 once it has reached the window before the cut
        let alpha = if epoch.w_est >= curve.w_max { 1.0 } else { ALPHA };
        epoch.w_est += alpha * share * packet;
        // RFC 9438 4.2 Eq. 1: W_cubic(t) = C*(t-K)^3 + W_max, one round trip ahead
        let t = (ack.now.since(epoch.start) + ack.smoothed_rtt).as_secs_f64();
        let w_cubic = C * (t - epoch.k_seconds).powi(3) * packet + epoch.origin;
        let target = w_cubic.clamp(curve.window, 1.5 * curve.window);
        curve.window = (curve.window + (target - curve.window) * share).max(epoch.w_est);
    }

    fn used_window(&self) -> f64 {
        self.used[0].max(self.used[1]).as_u64() as f64
    }

    /// Cuts the window, unless the newest packet concerned left before the last cut.
    fn cut(&mut self, now: Time, sent_at: Time) -> bool {
        if self.last_cut.is_some_and(|cut| sent_at <= cut) {
            return false;
        }
        let before = self.curve;
        let curve = &mut self.curve;
        // RFC 9438 4.7, fast convergence: a window that shrinks makes room for new flows.
        curve.w_max = if curve.window < curve.w_max { curve.window * (1.0 + BETA) / 2.0 } else { curve.window };
        let floor = (self.packet * 2).as_u64() as f64;
        curve.window = (curve.window * BETA).max(floor);
        curve.ssthresh = curve.window;
        curve.epoch = None;
        self.undo = Some(Undo { before, lost: Bytes::ZERO, spurious: Bytes::ZERO });
        self.last_cut = Some(now);
        true
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, sent: &SentSample) {
        self.used[1] = self.used[1].max(sent.in_flight);
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.smoothed_rtt = Some(ack.smoothed_rtt);
        if ack.round_start {
            self.used = [self.used[1], ack.in_flight];
        }
        if self.in_slow_start() {
            self.slow_start(ack);
        } else {
            self.avoid(ack);
        }
    }

    fn on_loss(&mut self, loss: &LossSample) {
        self.cut(loss.now, loss.sent_at);
        if let Some(undo) = &mut self.undo {
            undo.lost += loss.lost;
        }
        if loss.persistent {
            // RFC 9002 7.6.2: persistent congestion collapses the window to the minimum.
            self.curve.window = (self.packet * 2).as_u64() as f64;
            self.curve.epoch = None;
            self.undo = None;
        }
    }

    fn on_spurious(&mut self, _now: Time, bytes: Bytes) {
        let Some(undo) = &mut self.undo else { return };
        undo.spurious += bytes;
        if undo.spurious >= undo.lost {
            // RFC 9438 4.9: restore what the spurious congestion event took, unless the window has passed it since.
            if undo.before.window > self.curve.window {
                self.curve = undo.before;
            }
            self.undo = None;
        }
    }

    fn on_ecn(&mut self, ecn: &EcnSample) {
        if self.cut(ecn.now, ecn.sent_at) {
            self.undo = None;
        }
    }

    fn on_idle(&mut self, _now: Time) {
        // RFC 9438 5.8: a pause does not count as time on the curve.
        self.curve.epoch = None;
        self.used = [Bytes::ZERO; 2];
    }

    fn on_mtu(&mut self, packet: Bytes) {
        self.packet = packet;
    }

    fn on_path_change(&mut self, now: Time) {
        *self = Self::new(&PathStart::new(now, self.packet, 0));
    }

    fn window(&self) -> Bytes {
        Bytes(self.curve.window as u64).clamp(self.packet, MAX_WINDOW)
    }

    fn rate(&self) -> BitRate {
        let gain = if self.in_slow_start() { SLOW_START_GAIN } else { AVOIDANCE_GAIN };
        let over = self.smoothed_rtt.unwrap_or(UNMEASURED_RTT).max(Duration::from_micros(1));
        BitRate::of(self.window(), over).scaled(gain)
    }

    fn burst(&self) -> Bytes {
        quantum(self.rate(), self.packet)
    }

    fn snapshot(&self) -> Snapshot {
        let slow_start = self.in_slow_start();
        Snapshot {
            algorithm: "cubic",
            phase: if slow_start { "slow start" } else { "avoidance" },
            bandwidth: None,
            base_loss: None,
            ssthresh: self.curve.ssthresh.is_finite().then_some(Bytes(self.curve.ssthresh as u64)),
        }
    }
}

impl Curve {
    fn new(start: &PathStart) -> Self {
        if let Some(window) = start.learned_window() {
            let window = window.as_u64() as f64;
            return Self { window, ssthresh: window, w_max: window, epoch: None };
        }
        let packet = start.packet;
        // RFC 9002 7.2: ten packets, at most the larger of 14,720 bytes and two packets.
        let window = (packet.as_u64() * 10).min(14_720.max(packet.as_u64() * 2)) as f64;
        Self { window, ssthresh: f64::INFINITY, w_max: 0.0, epoch: None }
    }
}

impl Epoch {
    fn new(start: Time, window: f64, w_max: f64, packet: f64) -> Self {
        // RFC 9438 4.2 Eq. 2: K = cbrt((W_max - cwnd_epoch) / C); zero where the window is beyond W_max
        let k_seconds = ((w_max - window).max(0.0) / packet / C).cbrt();
        Self { start, k_seconds, origin: w_max.max(window), w_est: window }
    }
}

/// Beyond any path.
const MAX_WINDOW: Bytes = Bytes::gib(1024);
/// RFC 9438 5.1
const C: f64 = 0.4;
/// RFC 9438 4.6
const BETA: f64 = 0.7;
/// RFC 9438 4.3: 3 (1 - beta) / (1 + beta)
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Room for the window to rule, not the pacer.
const SLOW_START_GAIN: f64 = 2.0;
const AVOIDANCE_GAIN: f64 = 1.25;
/// The first window leaves within this time.
const UNMEASURED_RTT: Duration = Duration::from_millis(1);

#[cfg(test)]
mod tests;
