//! The congestion window: slow start, Reno alone and coupled, CUBIC. In packets.
//!
//! CUBIC is Linux's where that differs from RFC 9438, marked so below: the model stands for the TCP that others run.

use std::time::Duration;

use haul_units::Time;

use super::bbr::{Bbr, BbrAck};
use super::hystart::HyStart;
use super::{TcpConfig, TcpControl};

/// What the other subflows of a connection allow this one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Coupled {
    /// What the window grows by for each packet acknowledged, in packets.
    pub growth: f64,
    /// What is left of it after a loss.
    pub left: f64,
}

#[derive(Debug)]
pub(super) struct Window {
    control: TcpControl,
    pkts: f64,
    threshold: f64,
    cubic: Cubic,
    hystart: Option<HyStart>,
    /// In place of all others.
    bbr: Option<Box<Bbr>>,
}

#[derive(Debug, Default)]
struct Cubic {
    /// Window before the last cut; `None` after a timeout: where avoidance starts.
    w_max: Option<f64>,
    epoch: Option<Epoch>,
}

#[derive(Debug)]
struct Epoch {
    start: Time,
    k_seconds: f64,
    w_max: f64,
    w_est: f64,
}

impl Window {
    pub(super) fn new(config: &TcpConfig) -> Self {
        Self {
            control: config.control,
            pkts: f64::from(config.initial_window_pkts),
            threshold: f64::INFINITY,
            cubic: Cubic::default(),
            hystart: config.hystart.then(HyStart::new),
            bbr: (config.control == TcpControl::Bbr).then(|| Box::new(Bbr::new(config.initial_window_pkts))),
        }
    }

    pub(super) fn pkts(&self) -> f64 {
        self.bbr.as_ref().map_or(self.pkts, |bbr| bbr.window())
    }

    /// Time between packets, where they are paced.
    pub(super) fn gap(&self) -> Option<Duration> {
        self.bbr.as_ref().map(|bbr| bbr.gap())
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.bbr.is_none() && self.pkts < self.threshold
    }

    /// Whether rates decide, and have taken the acknowledgement in.
    pub(super) fn on_rate(&mut self, ack: &BbrAck) -> bool {
        self.bbr.as_mut().map(|bbr| bbr.on_ack(ack)).is_some()
    }

    /// So many packets have arrived, while the window was in use and nothing was being recovered.
    pub(super) fn on_ack(&mut self, now: Time, mut acked_pkts: f64, rtt: Duration, coupled: Option<Coupled>) {
        if self.in_slow_start() {
            let room = self.threshold - self.pkts;
            let step = acked_pkts.min(room);
            self.pkts += step;
            acked_pkts -= step;
        }
        if acked_pkts > 0.0 {
            match self.control {
                TcpControl::Reno => self.pkts += acked_pkts / self.pkts,
                TcpControl::Lia | TcpControl::Olia | TcpControl::Balia => {
                    // OLIA's growth can be negative.
                    self.pkts = (self.pkts + acked_pkts * coupled.map_or(1.0 / self.pkts, |coupled| coupled.growth)).max(1.0);
                }
                TcpControl::Cubic | TcpControl::Bbr => self.pkts = self.cubic.grown(now, self.pkts, acked_pkts, rtt),
            }
        }
    }

    /// A round-trip time; `round_start`: the first of a round.
    pub(super) fn on_rtt(&mut self, now: Time, rtt: Duration, round_start: bool) {
        let slow_start = self.in_slow_start();
        let Some(hystart) = &mut self.hystart else { return };
        if slow_start && hystart.is_full(now, rtt, round_start, self.pkts) {
            self.threshold = self.pkts;
        }
    }

    /// Something was lost or marked, once for all that was in flight then.
    pub(super) fn on_loss(&mut self, coupled: Option<Coupled>) {
        if let Some(bbr) = &mut self.bbr {
            bbr.on_loss();
            return;
        }
        self.threshold = self.cut(coupled);
        self.pkts = self.threshold;
    }

    /// Nothing has arrived for long.
    pub(super) fn on_timeout(&mut self, first: bool) {
        if let Some(bbr) = &mut self.bbr {
            bbr.on_timeout();
            return;
        }
        if first {
            self.threshold = self.cut(None);
        }
        self.cubic.w_max = None;
        self.pkts = 1.0;
    }

    fn cut(&mut self, coupled: Option<Coupled>) -> f64 {
        match self.control {
            TcpControl::Reno | TcpControl::Lia | TcpControl::Olia | TcpControl::Balia => {
                (self.pkts * coupled.map_or(0.5, |coupled| coupled.left)).max(2.0)
            }
            TcpControl::Cubic | TcpControl::Bbr => {
                // RFC 9438 4.7, fast convergence
                let shrinks = self.cubic.w_max.is_some_and(|w_max| self.pkts < w_max);
                self.cubic.w_max = Some(if shrinks { self.pkts * (1.0 + BETA) / 2.0 } else { self.pkts });
                self.cubic.epoch = None;
                (self.pkts * BETA).max(2.0)
            }
        }
    }
}

impl Cubic {
    fn grown(&mut self, now: Time, pkts: f64, acked_pkts: f64, rtt: Duration) -> f64 {
        let epoch = self.epoch.get_or_insert_with(|| {
            // RFC 9438 4.8: after a timeout, or without any loss before, K = 0 and W_max = cwnd
            let w_max = self.w_max.unwrap_or(pkts).max(pkts);
            // RFC 9438 4.2 Eq. 2: K = cbrt((W_max - cwnd_epoch) / C)
            Epoch { start: now, k_seconds: ((w_max - pkts) / C).cbrt(), w_max, w_est: pkts }
        });
        // RFC 9438 4.3 Eq. 4. DEVIATION: alpha does not become 1 above the window before the cut; Linux keeps it.
        epoch.w_est += 3.0 * (1.0 - BETA) / (1.0 + BETA) * acked_pkts / pkts;
        // RFC 9438 4.2 Eq. 1: W_cubic(t) = C*(t-K)^3 + W_max, one round trip ahead
        let t = (now.since(epoch.start) + rtt).as_secs_f64() - epoch.k_seconds;
        let target = (C * t.powi(3) + epoch.w_max).clamp(pkts, 1.5 * pkts);
        let mut growth = (target - pkts) / pkts;
        if self.w_max.is_none() {
            // DEVIATION: Linux grows by a twentieth a round trip at least until the first loss.
            growth = growth.max(LEAST_GROWTH);
        }
        (pkts + growth * acked_pkts).max(epoch.w_est)
    }
}

const C: f64 = 0.4;
const BETA: f64 = 0.7;
const LEAST_GROWTH: f64 = 0.05;
