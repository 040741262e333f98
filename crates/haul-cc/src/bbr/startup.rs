//! Startup and drain: doubles until the pipe is full, then empties the queue that this has built.
//!
//! Full is: three rounds that grew by less than a quarter, or a round that lost more than 2 % in at least six places.
//! Source: draft-ietf-ccwg-bbr 5.3.1 and 5.3.2.

use super::Bbr;
use super::model::Model;
use super::state::State;
use crate::AckSample;

/// 5.3.1.2: whether the delivery rate has stopped growing.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FullPipe {
    best_bps: f64,
    rounds: u32,
    /// Since the search began.
    pub(super) now: bool,
    /// At any time.
    pub(super) reached: bool,
}

impl FullPipe {
    /// Searches anew, from this rate.
    pub(super) fn reset(&mut self, best_bps: f64) {
        (self.best_bps, self.rounds, self.now) = (best_bps, 0, false);
    }

    pub(super) fn on_ack(&mut self, model: &Model) {
        if self.now || !model.round_start || model.app_limited {
            return;
        }
        if model.rate_bps >= self.best_bps * FULL_GROWTH {
            self.reset(model.rate_bps);
            return;
        }
        self.rounds += 1;
        self.now = self.rounds >= FULL_ROUNDS;
        self.reached |= self.now;
    }
}

impl Bbr {
    pub(super) fn check_startup_done(&mut self) {
        if self.state != State::Startup {
            return;
        }
        // 5.3.1.3: CheckStartupHighLoss
        let model = &self.model;
        let lossy = model.is_loss_round_over() && model.loss_runs >= FULL_LOSS_RUNS && model.is_inflight_too_high();
        if lossy {
            self.remember_state(State::Startup);
            self.full_pipe.reached = true;
            let safe = self.bdp(1.0).max(self.model.inflight_latest());
            self.model.limit_longterm(safe);
        }
        if self.full_pipe.reached {
            self.state = State::Drain;
            self.drain_round = self.model.round;
        }
    }

    pub(super) fn check_drain_done(&mut self, ack: &AckSample) {
        let in_flight = ack.in_flight.as_u64() as f64;
        let drained = in_flight <= self.quantized(self.bdp(1.0)) || self.model.round > self.drain_round + MOST_DRAIN_ROUNDS;
        if self.state == State::Drain && drained {
            self.start_down(ack.now);
        }
    }
}

/// 5.3.1.2: a rate that grows by less has found the pipe.
const FULL_GROWTH: f64 = 1.25;
/// 5.3.1.2
const FULL_ROUNDS: u32 = 3;
/// 5.3.1.3: BBRStartupFullLossCnt
const FULL_LOSS_RUNS: u64 = 6;
/// 5.3.2
const MOST_DRAIN_ROUNDS: u64 = 3;
