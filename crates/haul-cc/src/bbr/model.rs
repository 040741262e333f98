//! What is known about the path: bandwidth, round-trip time, what may be in flight, and how acknowledgements bunch.
//!
//! Rates in bits per second, volumes in bytes. Source: draft-ietf-ccwg-bbr 5.5.

use std::collections::VecDeque;
use std::time::Duration;

use haul_units::{Bytes, Time};

use crate::{AckSample, Learned, LossSample};

/// The model of the path.
#[derive(Debug, Clone)]
pub(super) struct Model {
    /// The largest rate of the last cycle and of this one (5.5.5: MaxBwFilterLen = 2).
    max_bw: [f64; 2],
    pub(super) bw_shortterm: f64,
    pub(super) inflight_longterm: f64,
    pub(super) inflight_shortterm: f64,
    /// 5.5.10: the best of the last round.
    bw_latest: f64,
    inflight_latest: f64,
    pub(super) min_rtt: Option<Duration>,
    min_rtt_at: Time,
    /// The newest sample, bits per second.
    pub(super) rate_bps: f64,
    pub(super) app_limited: bool,
    /// In flight when the newest packet left, and lost since.
    pub(super) tx_in_flight: f64,
    lost: f64,
    delivered_sample: f64,
    /// 5.5.1: rounds by what was delivered when the newest packet left.
    pub(super) round: u64,
    pub(super) round_start: bool,
    next_round_delivered: u64,
    delivered: u64,
    loss_round_delivered: u64,
    loss_round_start: bool,
    pub(super) loss_in_round: bool,
    /// Gaps among the lost in this round of losses.
    pub(super) loss_runs: u64,
    losses: LossHistory,
    aggregation: Aggregation,
}

impl Model {
    pub(super) fn new(now: Time) -> Self {
        Self {
            max_bw: [0.0; 2],
            bw_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            bw_latest: 0.0,
            inflight_latest: 0.0,
            min_rtt: None,
            min_rtt_at: now,
            rate_bps: 0.0,
            app_limited: false,
            tx_in_flight: 0.0,
            lost: 0.0,
            delivered_sample: 0.0,
            round: 0,
            round_start: false,
            next_round_delivered: 0,
            delivered: 0,
            loss_round_delivered: 0,
            loss_round_start: false,
            loss_in_round: false,
            loss_runs: 0,
            losses: LossHistory::default(),
            aggregation: Aggregation::new(now),
        }
    }

    /// What the controller before knew.
    pub(super) fn know(&mut self, now: Time, learned: &Learned) {
        self.max_bw[1] = learned.bandwidth.as_bps() as f64;
        self.min_rtt = Some(learned.min_rtt);
        self.min_rtt_at = now;
    }

    /// Takes a sample in: the draft's UpdateLatestDeliverySignals, UpdateCongestionSignals and UpdateACKAggregation.
    pub(super) fn on_ack(&mut self, ack: &AckSample, probing: bool, window: f64, full: bool) {
        self.delivered = ack.delivered.as_u64();
        self.round_start = false;
        self.loss_round_start = false;
        if let Some(sample) = ack.rate {
            self.rate_bps = sample.rate.as_bps() as f64;
            self.app_limited = sample.app_limited;
            self.tx_in_flight = sample.in_flight_at_send.as_u64() as f64;
            self.lost = sample.lost.as_u64() as f64;
            self.delivered_sample = sample.delivered.as_u64() as f64;
            // P.delivered: what had been delivered when the newest packet left.
            let prior = self.delivered.saturating_sub(sample.delivered.as_u64());
            if prior >= self.next_round_delivered {
                self.start_round();
                self.round += 1;
                self.round_start = true;
            }
            if prior >= self.loss_round_delivered {
                self.loss_round_delivered = self.delivered;
                self.loss_round_start = true;
            }
            self.bw_latest = self.bw_latest.max(self.rate_bps);
            self.inflight_latest = self.inflight_latest.max(self.delivered_sample);
            if self.rate_bps >= self.max_bw() || !self.app_limited {
                self.max_bw[1] = self.max_bw[1].max(self.rate_bps);
            }
        }
        if self.loss_round_start && self.loss_in_round && !probing {
            self.lower_bounds(window);
        }
        let memory = if full { EXTRA_ACKED_ROUNDS } else { 1 };
        self.aggregation.on_ack(ack, self.bw(), window, self.round_start, memory);
    }

    /// Near the end of an acknowledgement: AdvanceLatestDeliverySignals, and the end of a round of losses.
    pub(super) fn advance(&mut self) {
        if self.loss_round_start {
            self.bw_latest = self.rate_bps;
            self.inflight_latest = self.delivered_sample;
            self.loss_in_round = false;
            self.loss_runs = 0;
        }
    }

    /// 5.5.10.3: once a round with loss, not while probing.
    fn lower_bounds(&mut self, window: f64) {
        if self.bw_shortterm.is_infinite() {
            self.bw_shortterm = self.max_bw();
        }
        if self.inflight_shortterm.is_infinite() {
            self.inflight_shortterm = window;
        }
        self.bw_shortterm = self.bw_latest.max(BETA * self.bw_shortterm);
        self.inflight_shortterm = self.inflight_latest.max(BETA * self.inflight_shortterm);
    }

    /// Notes a loss; what was lost since the newest of the packets left, itself included.
    pub(super) fn on_loss(&mut self, loss: &LossSample) -> f64 {
        self.note_congestion();
        self.loss_runs = self.loss_runs.saturating_add(loss.runs);
        self.losses.add(loss.now, loss.lost, loss.sent_at)
    }

    /// 5.5.10.2: NoteLoss
    pub(super) fn note_congestion(&mut self) {
        if !self.loss_in_round {
            self.loss_round_delivered = self.delivered;
        }
        self.loss_in_round = true;
    }

    /// 5.5.10.2: IsInflightTooHigh
    pub(super) fn is_inflight_too_high(&self) -> bool {
        self.lost > self.tx_in_flight * LOSS_THRESH
    }

    /// A round of losses that is over now lost more than the threshold.
    pub(super) fn is_loss_round_over(&self) -> bool {
        self.loss_round_start && self.loss_in_round
    }

    pub(super) fn limit_longterm(&mut self, inflight: f64) {
        self.inflight_longterm = inflight;
    }

    pub(super) fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    pub(super) fn reset_shortterm(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    /// A round begins with what is sent from now on.
    pub(super) fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    /// 5.5.6: a cycle is over.
    pub(super) fn advance_max_bw(&mut self) {
        if self.max_bw[1] > 0.0 {
            self.max_bw = [self.max_bw[1], 0.0];
        }
    }

    /// 5.3.4.3: takes the smallest of the last interval of ProbeRTT.
    pub(super) fn update_min_rtt(&mut self, now: Time, recent: Duration, recent_at: Time) {
        let expired = now.since(self.min_rtt_at) > MIN_RTT_FILTER_LEN;
        if expired || self.min_rtt.is_none_or(|min| recent < min) {
            self.min_rtt = Some(recent);
            self.min_rtt_at = recent_at;
        }
    }

    pub(super) fn restart_aggregation(&mut self, now: Time) {
        self.aggregation.restart(now);
    }

    pub(super) fn max_bw(&self) -> f64 {
        self.max_bw[0].max(self.max_bw[1])
    }

    /// BoundBWForModel
    pub(super) fn bw(&self) -> f64 {
        self.max_bw().min(self.bw_shortterm)
    }

    pub(super) fn extra_acked(&self) -> f64 {
        self.aggregation.extra()
    }

    pub(super) fn inflight_latest(&self) -> f64 {
        self.inflight_latest
    }
}

/// What was lost when, to tell what was lost since a packet left.
#[derive(Debug, Clone, Default)]
struct LossHistory {
    total: u64,
    /// Instants and totals before what was lost then.
    before: VecDeque<(Time, u64)>,
}

impl LossHistory {
    fn add(&mut self, now: Time, lost: Bytes, sent_at: Time) -> f64 {
        self.before.push_back((now, self.total));
        self.total = self.total.saturating_add(lost.as_u64());
        // What was known before the packet left no longer matters; a history that is full forgets a little early.
        while self.before.len() > 1 && (self.before[0].0 < sent_at || self.before.len() > MOST_LOSSES) {
            self.before.pop_front();
        }
        let at_sending = self.before.front().map_or(self.total, |(_, before)| *before);
        (self.total - at_sending) as f64
    }
}

/// 5.5.9: how much more is acknowledged at times than the bandwidth lets through.
#[derive(Debug, Clone)]
struct Aggregation {
    since: Time,
    delivered: f64,
    /// The largest excess of the rounds, newest last.
    rounds: VecDeque<f64>,
}

impl Aggregation {
    fn new(now: Time) -> Self {
        Self { since: now, delivered: 0.0, rounds: VecDeque::from([0.0]) }
    }

    fn restart(&mut self, now: Time) {
        self.since = now;
        self.delivered = 0.0;
    }

    fn on_ack(&mut self, ack: &AckSample, bw: f64, window: f64, round_start: bool, memory: usize) {
        let mut expected = bw / 8.0 * ack.now.since(self.since).as_secs_f64();
        if self.delivered <= expected {
            self.restart(ack.now);
            expected = 0.0;
        }
        self.delivered += ack.acked.as_u64() as f64;
        let extra = (self.delivered - expected).clamp(0.0, window.max(0.0));
        if round_start {
            self.rounds.push_back(0.0);
        }
        while self.rounds.len() > memory {
            self.rounds.pop_front();
        }
        if let Some(newest) = self.rounds.back_mut() {
            *newest = newest.max(extra);
        }
    }

    fn extra(&self) -> f64 {
        self.rounds.iter().copied().fold(0.0, f64::max)
    }
}

/// draft-ietf-ccwg-bbr 2.7
pub(super) const LOSS_THRESH: f64 = 0.02;
/// 2.7
pub(super) const BETA: f64 = 0.7;
/// 2.14.1
const MIN_RTT_FILTER_LEN: Duration = Duration::from_secs(10);
/// 2.12: ExtraAckedFilterLen
const EXTRA_ACKED_ROUNDS: usize = 10;
/// A bound on memory: reports come no less than 5 ms apart on long paths, so these reach back over 1.2 s.
const MOST_LOSSES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_since_a_packet_left() {
        let mut history = LossHistory::default();
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        assert!((history.add(at(100), Bytes(10), at(50)) - 10.0).abs() < 1e-9);
        assert!((history.add(at(110), Bytes(5), at(60)) - 15.0).abs() < 1e-9);
        assert!((history.add(at(210), Bytes(1), at(105)) - 6.0).abs() < 1e-9, "the first was lost before it left");
    }

    #[test]
    fn the_largest_rate_lasts_two_cycles() {
        let mut model = Model::new(Time::ZERO);
        model.max_bw[1] = 9.0;
        model.advance_max_bw();
        model.max_bw[1] = 5.0;
        assert!((model.max_bw() - 9.0).abs() < 1e-9);
        model.advance_max_bw();
        assert!((model.max_bw() - 5.0).abs() < 1e-9);
    }
}
