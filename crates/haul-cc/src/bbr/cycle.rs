//! ProbeBW: cruise at what is known, and an attempt at more now and then.
//!
//! Down leaves room, cruise holds, refill fills the pipe for a round, up sends a quarter more until the rate stops growing or more than
//! 2 % is lost. Source: draft-ietf-ccwg-bbr 5.3.3 and 5.5.10.2.

use std::time::Duration;

use haul_units::Time;

use super::Bbr;
use super::model::{BETA, LOSS_THRESH};
use super::state::State;
use crate::{AckSample, LossSample};

/// Where in the cycle we are.
#[derive(Debug, Clone)]
pub(super) struct Cycle {
    acks: Acks,
    /// Samples come from an attempt at more.
    pub(super) sample: bool,
    /// Acknowledged since `inflight_longterm` was raised, what it takes to raise it by a packet, and for how many rounds.
    up_acked: f64,
    up_acked_per_packet: f64,
    up_rounds: u32,
    pub(super) rounds_since_up: u64,
    wait: Duration,
    since: Time,
    too_high: bool,
    precautionary: bool,
    /// State of the generator of random waits.
    seed: u64,
}

/// 2.13: what acknowledgements tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Acks {
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

impl Cycle {
    pub(super) fn new(now: Time, seed: u64) -> Self {
        Self {
            acks: Acks::Init,
            sample: false,
            up_acked: 0.0,
            up_acked_per_packet: f64::INFINITY,
            up_rounds: 0,
            rounds_since_up: 0,
            wait: Duration::ZERO,
            since: now,
            too_high: false,
            precautionary: false,
            seed,
        }
    }

    pub(super) fn seed(&self) -> u64 {
        self.seed
    }

    /// Samples of the attempt still come in for a round.
    pub(super) fn stop_probing(&mut self) {
        self.acks = Acks::ProbeStopping;
    }

    fn random(&mut self) -> f64 {
        // Knuth's MMIX generator; the high bits are the good ones.
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // The upper 24 bits, which a float holds.
        (self.seed >> 40) as f64 / (1u64 << 24) as f64
    }

    /// 5.3.3.5.3: PickProbeWait
    fn pick_wait(&mut self) {
        self.rounds_since_up = u64::from(self.random() < 0.5);
        self.wait = PROBE_WAIT.mul_f64(1.0 + self.random() / 2.0);
    }
}

impl Bbr {
    /// 5.3.3.6: UpdateProbeBWCyclePhase
    pub(super) fn update_cycle(&mut self, ack: &AckSample) {
        if self.adapt_longterm(ack) || !self.state.is_probe_bw() {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(ack.now) => self.start_refill(),
            State::Down if self.is_time_to_cruise(ack) => self.state = State::Cruise,
            State::Refill if self.model.round_start => {
                self.cycle.sample = true;
                self.start_up();
            }
            State::Up if self.is_time_to_go_down(ack) => {
                self.cycle.too_high = false;
                self.start_down(ack.now);
            }
            _ => {}
        }
    }

    pub(super) fn start_down(&mut self, now: Time) {
        self.model.reset_congestion_signals();
        self.cycle.up_acked_per_packet = f64::INFINITY;
        self.cycle.pick_wait();
        self.cycle.since = now;
        self.cycle.stop_probing();
        self.model.start_round();
        self.state = State::Down;
    }

    pub(super) fn start_cruise(&mut self) {
        self.state = State::Cruise;
    }

    pub(super) fn start_refill(&mut self) {
        self.model.reset_shortterm();
        self.cycle.up_rounds = 0;
        self.cycle.up_acked = 0.0;
        self.cycle.precautionary = false;
        self.cycle.acks = Acks::Refilling;
        self.model.start_round();
        self.state = State::Refill;
    }

    fn start_up(&mut self) {
        self.cycle.acks = Acks::ProbeStarting;
        self.model.start_round();
        self.full_pipe.reset(self.model.rate_bps);
        self.state = State::Up;
        self.raise_slope();
    }

    /// 5.3.3.5.3: by the clock, or as often as a Reno flow of our size would fill the queue.
    fn is_time_to_probe(&self, now: Time) -> bool {
        let reno_rounds = (self.target_inflight() / self.packet_bytes()).min(MOST_RENO_ROUNDS) as u64;
        now.since(self.cycle.since) > self.cycle.wait || self.cycle.rounds_since_up >= reno_rounds
    }

    fn is_time_to_cruise(&self, ack: &AckSample) -> bool {
        let in_flight = ack.in_flight.as_u64() as f64;
        in_flight <= self.inflight_with_headroom() && in_flight <= self.quantized(self.bdp(1.0))
    }

    fn is_time_to_go_down(&mut self, ack: &AckSample) -> bool {
        let longterm = self.model.inflight_longterm;
        if self.cycle.too_high && ack.in_flight.as_u64() as f64 >= longterm {
            self.cycle.precautionary = true;
            return true;
        }
        if self.is_window_limited() && self.window >= longterm {
            self.full_pipe.reset(self.model.rate_bps);
            return false;
        }
        self.full_pipe.now
    }

    fn raise_slope(&mut self) {
        let growth = f64::from(1u32 << self.cycle.up_rounds);
        // draft-ietf-ccwg-bbr 5.3.3.6: growth doubles each round, at most thirty times.
        self.cycle.up_rounds = (self.cycle.up_rounds + 1).min(30);
        self.cycle.up_acked_per_packet = (self.window / growth).max(self.packet_bytes());
    }

    /// 5.3.3.6: ProbeInflightLongtermUpward
    fn raise_longterm(&mut self, ack: &AckSample) {
        if !self.is_window_limited() || self.window < self.model.inflight_longterm {
            return;
        }
        self.cycle.up_acked += ack.acked.as_u64() as f64;
        if self.cycle.up_acked >= self.cycle.up_acked_per_packet {
            let packets = (self.cycle.up_acked / self.cycle.up_acked_per_packet).floor();
            self.cycle.up_acked -= packets * self.cycle.up_acked_per_packet;
            self.model.inflight_longterm += packets * self.packet_bytes();
        }
        if self.model.round_start {
            self.raise_slope();
        }
    }

    /// 5.3.3.6: AdaptLongTermModel; whether it has decided where to go.
    fn adapt_longterm(&mut self, ack: &AckSample) -> bool {
        if self.cycle.acks == Acks::ProbeStarting && self.model.round_start {
            self.cycle.acks = Acks::ProbeFeedback;
        }
        if self.cycle.acks == Acks::ProbeStopping && self.model.round_start {
            self.cycle.sample = false;
            self.cycle.acks = Acks::Init;
            if self.state.is_probe_bw() && !self.model.app_limited {
                self.model.advance_max_bw();
            }
            if self.state.is_probe_bw() && self.cycle.precautionary && !self.cycle.too_high {
                self.start_refill();
                return true;
            }
        }
        if !self.model.is_inflight_too_high() && self.model.inflight_longterm.is_finite() {
            self.model.inflight_longterm = self.model.inflight_longterm.max(self.model.tx_in_flight);
            if self.state == State::Up {
                self.raise_longterm(ack);
            }
        }
        false
    }

    /// 5.5.10.2: HandleLostPacket, for a batch of them.
    pub(super) fn handle_loss(&mut self, loss: &LossSample, lost_since_sent: f64) {
        if !self.cycle.sample {
            return;
        }
        let in_flight = loss.in_flight_at_send.as_u64() as f64;
        if lost_since_sent <= in_flight * LOSS_THRESH {
            return;
        }
        // InflightAtLoss: where within the batch the threshold was crossed.
        let lost = loss.lost.as_u64() as f64;
        let (in_flight_before, lost_before) = ((in_flight - lost).max(0.0), lost_since_sent - lost);
        let prefix = ((LOSS_THRESH * in_flight_before - lost_before) / (1.0 - LOSS_THRESH)).max(0.0);
        // HandleInflightTooHigh
        self.cycle.too_high = true;
        self.cycle.sample = false;
        if !self.model.app_limited {
            self.model.limit_longterm((in_flight_before + prefix).max(self.target_inflight() * BETA));
        }
        if self.state == State::Up {
            self.remember_state(State::Up);
            self.start_down(loss.now);
        }
    }
}

/// 5.3.3.5.3: 2 to 3 s.
const PROBE_WAIT: Duration = Duration::from_secs(2);
/// 5.3.3.5.3: the pace of Reno is matched for so many rounds at most.
const MOST_RENO_ROUNDS: f64 = 63.0;
