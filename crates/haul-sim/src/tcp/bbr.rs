//! BBR, version 1: the rate at which packets arrive and the smallest round-trip time decide, loss does not.
//!
//! The largest rate of ten rounds is paced out with gains of 5/4, 3/4 and six times 1, each for a round-trip time, and at most two products
//! of that rate and the smallest round-trip time of ten seconds are in flight. Beside a queue of one product a flow that gives way to loss
//! ends with little: the rate of the filter rises whenever the queue has room and falls only after ten rounds in which it had none.
//! Sources: Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5) (2016);
//! draft-cardwell-iccrg-bbr-congestion-control-00.
//! Not modelled: samples limited by the application, long-term sampling against policers, idle restart, bursts of segmentation offloads.

use std::collections::VecDeque;
use std::time::Duration;

use haul_units::Time;

/// What an acknowledgement tells.
#[derive(Debug, Clone, Copy)]
pub(super) struct BbrAck {
    pub now: Time,
    pub rtt: Option<Duration>,
    /// Arrived and lost, by this acknowledgement.
    pub arrived_pkts: u32,
    pub lost_pkts: u32,
    pub in_flight: u32,
    /// Arrived in all.
    pub delivered: u64,
    /// Packets a second, and what had arrived in all when the newest packet that has arrived left.
    pub rate: Option<(f64, u64)>,
    pub recovering: bool,
}

#[derive(Debug)]
pub(super) struct Bbr {
    state: State,
    window: f64,
    /// Before recovery.
    prior_window: f64,
    /// Recovery began in this round: what arrives goes out, no more.
    conserving: bool,
    recovering: bool,
    /// Round, packets a second: decreasing.
    rates: VecDeque<(u64, f64)>,
    round: u64,
    round_end: u64,
    min_rtt: Duration,
    min_rtt_at: Time,
    full_rate: f64,
    flat_rounds: u32,
    filled: bool,
    initial_pkts: f64,
    /// Where the cycle begins.
    seed: u32,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Startup,
    Drain,
    /// Place in the cycle, since when.
    ProbeBw(usize, Time),
    /// Until then, known once little is in flight.
    ProbeRtt(Option<Time>),
}

impl Bbr {
    pub(super) fn new(initial_window_pkts: u32) -> Self {
        let window = f64::from(initial_window_pkts);
        Self {
            state: State::Startup,
            window,
            prior_window: window,
            conserving: false,
            recovering: false,
            rates: VecDeque::new(),
            round: 0,
            round_end: 0,
            min_rtt: Duration::MAX,
            min_rtt_at: Time::ZERO,
            full_rate: 0.0,
            flat_rounds: 0,
            filled: false,
            initial_pkts: window,
            seed: 0,
        }
    }

    pub(super) fn window(&self) -> f64 {
        if matches!(self.state, State::ProbeRtt(_)) { self.window.min(LEAST_WINDOW) } else { self.window }
    }

    /// Time between two packets.
    pub(super) fn gap(&self) -> Duration {
        let rate = if self.rate() > 0.0 {
            self.rate()
        } else {
            let rtt = if self.min_rtt == Duration::MAX { FIRST_RTT } else { self.min_rtt };
            self.initial_pkts / rtt.as_secs_f64()
        };
        Duration::from_secs_f64(1.0 / (rate * self.pacing_gain() * (1.0 - PACING_MARGIN)).max(1.0))
    }

    fn rate(&self) -> f64 {
        self.rates.front().map_or(0.0, |(_, rate)| *rate)
    }

    fn pacing_gain(&self) -> f64 {
        match self.state {
            State::Startup => HIGH_GAIN,
            State::Drain => 1.0 / HIGH_GAIN,
            State::ProbeBw(place, _) => CYCLE[place],
            State::ProbeRtt(_) => 1.0,
        }
    }

    /// So many products of rate and round-trip time, in packets.
    fn in_pipe(&self, gain: f64) -> f64 {
        if self.min_rtt == Duration::MAX { self.initial_pkts } else { gain * self.rate() * self.min_rtt.as_secs_f64() }
    }

    pub(super) fn on_ack(&mut self, ack: &BbrAck) {
        let round_start = self.on_rate(ack);
        if round_start {
            self.check_full();
        }
        self.on_rtt(ack);
        self.advance(ack);
        self.set_window(ack, round_start);
    }

    fn on_rate(&mut self, ack: &BbrAck) -> bool {
        let Some((rate, delivered_then)) = ack.rate else { return false };
        let round_start = delivered_then >= self.round_end;
        if round_start {
            self.round += 1;
            self.round_end = ack.delivered;
        }
        while self.rates.back().is_some_and(|(_, old)| *old <= rate) {
            self.rates.pop_back();
        }
        self.rates.push_back((self.round, rate));
        while self.rates.front().is_some_and(|(round, _)| round + FILTER_ROUNDS < self.round) {
            self.rates.pop_front();
        }
        round_start
    }

    /// Three rounds that grew by less than a quarter.
    fn check_full(&mut self) {
        if self.filled {
            return;
        }
        if self.rate() >= self.full_rate * 1.25 {
            (self.full_rate, self.flat_rounds) = (self.rate(), 0);
            return;
        }
        self.flat_rounds += 1;
        self.filled = self.flat_rounds >= 3;
    }

    fn on_rtt(&mut self, ack: &BbrAck) {
        let Some(rtt) = ack.rtt else { return };
        let expired = ack.now.since(self.min_rtt_at) > MIN_RTT_LIFETIME;
        if rtt <= self.min_rtt || expired {
            (self.min_rtt, self.min_rtt_at) = (rtt, ack.now);
        }
        if expired && !matches!(self.state, State::ProbeRtt(_)) {
            self.prior_window = self.prior_window.max(self.window);
            self.state = State::ProbeRtt(None);
        }
    }

    fn advance(&mut self, ack: &BbrAck) {
        let in_flight = f64::from(ack.in_flight);
        match self.state {
            State::Startup if self.filled => self.state = State::Drain,
            State::Drain if in_flight <= self.in_pipe(1.0) => self.enter_probe_bw(ack.now),
            State::ProbeBw(place, since) => {
                let long = ack.now.since(since) > self.min_rtt;
                let over = match CYCLE[place] {
                    gain if gain > 1.0 => long && (ack.lost_pkts > 0 || in_flight >= self.in_pipe(gain)),
                    gain if gain < 1.0 => long || in_flight <= self.in_pipe(1.0),
                    _ => long,
                };
                if over {
                    self.state = State::ProbeBw((place + 1) % CYCLE.len(), ack.now);
                }
            }
            State::ProbeRtt(None) if in_flight <= LEAST_WINDOW => {
                self.state = State::ProbeRtt(Some(ack.now + PROBE_RTT_TIME.max(self.min_rtt)));
            }
            State::ProbeRtt(Some(until)) if ack.now >= until => {
                self.min_rtt_at = ack.now;
                self.window = self.window.max(self.prior_window);
                if self.filled { self.enter_probe_bw(ack.now) } else { self.state = State::Startup }
            }
            _ => {}
        }
    }

    /// Anywhere in the cycle but where the queue is drained.
    fn enter_probe_bw(&mut self, now: Time) {
        self.seed = self.seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let place = (self.seed >> 16) as usize % (CYCLE.len() - 1);
        self.state = State::ProbeBw(if place == 0 { 0 } else { place + 1 }, now);
    }

    fn set_window(&mut self, ack: &BbrAck, round_start: bool) {
        if self.recovering && !ack.recovering {
            self.window = self.window.max(self.prior_window);
        }
        if ack.recovering && !self.recovering {
            self.conserving = true;
            self.window = f64::from(ack.in_flight + ack.arrived_pkts.max(1));
        } else if round_start {
            self.conserving = false;
        }
        self.recovering = ack.recovering;
        self.window = (self.window - f64::from(ack.lost_pkts)).max(1.0);
        let arrived = f64::from(ack.arrived_pkts);
        if self.recovering && self.conserving {
            self.window = self.window.max(f64::from(ack.in_flight) + arrived);
        } else {
            let gain = if matches!(self.state, State::Startup | State::Drain) { HIGH_GAIN } else { WINDOW_GAIN };
            let target = self.in_pipe(gain) + QUANTA;
            if self.filled {
                self.window = (self.window + arrived).min(target);
            } else if self.window < target || (ack.delivered as f64) < self.initial_pkts {
                self.window += arrived;
            }
        }
        self.window = self.window.max(LEAST_WINDOW);
    }

    /// Recovery begins, before the acknowledgement that says so is taken in.
    pub(super) fn on_loss(&mut self) {
        self.prior_window =
            if matches!(self.state, State::ProbeRtt(_)) { self.prior_window.max(self.window) } else { self.window };
    }

    pub(super) fn on_timeout(&mut self) {
        self.on_loss();
        (self.window, self.recovering, self.conserving) = (1.0, true, true);
    }
}

/// 2 / ln 2
const HIGH_GAIN: f64 = 2.885;
const CYCLE: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
const WINDOW_GAIN: f64 = 2.0;
const FILTER_ROUNDS: u64 = 10;
const MIN_RTT_LIFETIME: Duration = Duration::from_secs(10);
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
const LEAST_WINDOW: f64 = 4.0;
/// Three bursts of two packets beyond what is in the pipe.
const QUANTA: f64 = 6.0;
/// Linux sends a hundredth less than it computes, so that queues drain.
const PACING_MARGIN: f64 = 0.01;
const FIRST_RTT: Duration = Duration::from_millis(1);
