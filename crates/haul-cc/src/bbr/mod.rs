//! BBR, version 3: a model of the path, bandwidth and smallest round-trip time, bounded by where loss exceeded 2 %.
//!
//! ```text
//! startup -> drain -> down -> cruise -> refill -> up -> down ..      an attempt at more every 2 to 3 s, sooner on short pipes
//!                       ^--- probe rtt ----^                         half a pipe for 200 ms when 5 s old
//! ```
//!
//! The long-term model is what was delivered and survived (`max_bw`, `inflight_longterm`), the short-term model what is safe since the last
//! loss (`bw_shortterm`, `inflight_shortterm`). Beyond 2 % of random loss it stops growing: use `fair` there.
//! Source: draft-ietf-ccwg-bbr 5 (BBRv3); names and sections are the draft's.
//! DEVIATION: acknowledgements come in batches, so losses are judged once per batch, with the state of its newest packet.

mod cycle;
mod model;
mod probe_rtt;
mod startup;
mod state;

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use self::cycle::Cycle;
use self::model::Model;
use self::probe_rtt::ProbeRtt;
use self::startup::FullPipe;
use self::state::{DEFAULT_CWND_GAIN, PROBE_RTT_CWND_GAIN, STARTUP_PACING_GAIN, State};
use crate::pacer::quantum;
use crate::{AckSample, Controller, EcnSample, Learned, LossSample, PathStart, SentSample, Snapshot};

/// The controller.
#[derive(Debug, Clone)]
pub(crate) struct Bbr {
    packet: Bytes,
    state: State,
    model: Model,
    full_pipe: FullPipe,
    cycle: Cycle,
    probe_rtt: ProbeRtt,
    undo: Option<Undo>,
    pacing_bps: f64,
    window: f64,
    /// The window before loss or ProbeRTT took it.
    prior_window: f64,
    /// The window was filled in this round, or in the last.
    limited: [bool; 2],
    drain_round: u64,
    /// Everything was lost, and nothing has arrived since.
    silent: bool,
}

/// 5.5.11: what a loss that was none gives back.
#[derive(Debug, Clone, Copy)]
struct Undo {
    state: Option<State>,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,
    lost: Bytes,
    spurious: Bytes,
}

impl Bbr {
    /// The algorithm's name.
    pub(crate) const NAME: &'static str = "bbr";

    /// A controller in startup.
    pub(crate) fn new(start: &PathStart) -> Self {
        let window = initial_window(start.packet);
        let mut bbr = Self {
            packet: start.packet,
            state: State::Startup,
            model: Model::new(start.now),
            full_pipe: FullPipe::default(),
            cycle: Cycle::new(start.now, start.seed),
            probe_rtt: ProbeRtt::new(start.now),
            undo: None,
            // 5.6.2: InitPacingRate
            pacing_bps: STARTUP_PACING_GAIN * window * 8.0 / start.rtt.unwrap_or(UNMEASURED_RTT).as_secs_f64().max(1e-6),
            window,
            prior_window: window,
            limited: [false; 2],
            drain_round: 0,
            silent: false,
        };
        if let Some(learned) = start.learned {
            bbr.know(start.now, &learned);
        }
        bbr
    }

    /// The controller before has found the pipe: no startup.
    fn know(&mut self, now: Time, learned: &Learned) {
        self.model.know(now, learned);
        self.full_pipe.reached = true;
        self.window = self.bdp(DEFAULT_CWND_GAIN).max(self.least_window());
        self.pacing_bps = self.model.bw() * (1.0 - PACING_MARGIN);
        self.start_down(now);
    }

    fn update_model_and_state(&mut self, ack: &AckSample) {
        self.model.on_ack(ack, self.state.is_probing(), self.window, self.full_pipe.reached);
        if self.model.round_start {
            self.cycle.rounds_since_up += 1;
        }
        if self.state != State::ProbeRtt {
            self.full_pipe.on_ack(&self.model);
        }
        self.check_startup_done();
        self.check_drain_done(ack);
        if self.full_pipe.reached {
            self.update_cycle(ack);
        }
        self.check_probe_rtt(ack);
        self.model.advance();
    }

    /// 5.6.2
    fn set_pacing_rate(&mut self) {
        let rate = self.state.gains().0 * self.model.bw() * (1.0 - PACING_MARGIN);
        if rate > 0.0 && (self.full_pipe.reached || rate > self.pacing_bps) {
            self.pacing_bps = rate;
        }
    }

    /// 5.6.4.6
    fn set_window(&mut self, ack: &AckSample) {
        let acked = ack.acked.as_u64() as f64;
        let most = self.quantized(self.bdp(self.state.gains().1) + self.model.extra_acked());
        if self.full_pipe.reached {
            self.window = (self.window + acked).min(most);
        } else if self.window < most || (ack.delivered.as_u64() as f64) < initial_window(self.packet) {
            self.window += acked;
        }
        self.window = self.window.max(self.least_window());
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        self.bound_window();
    }

    /// 5.6.4.7
    fn bound_window(&mut self) {
        let cap = match self.state {
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Down | State::Refill | State::Up => self.model.inflight_longterm,
            State::Startup | State::Drain => f64::INFINITY,
        };
        let cap = cap.min(self.model.inflight_shortterm).max(self.least_window());
        self.window = self.window.min(cap);
    }

    /// Bytes that at this gain fill the pipe.
    fn bdp(&self, gain: f64) -> f64 {
        match self.model.min_rtt {
            Some(min_rtt) => gain * self.model.bw() / 8.0 * min_rtt.as_secs_f64(),
            None => initial_window(self.packet),
        }
    }

    /// 5.6.4.2: QuantizationBudget; a train is at both ends and on its way.
    fn quantized(&self, inflight: f64) -> f64 {
        let inflight = inflight.max(3.0 * self.burst().as_u64() as f64).max(self.least_window());
        if self.state == State::Up { inflight + 2.0 * self.packet_bytes() } else { inflight }
    }

    /// Leaves free room in the queue, for others to grow into.
    fn inflight_with_headroom(&self) -> f64 {
        let longterm = self.model.inflight_longterm;
        if longterm.is_infinite() {
            return longterm;
        }
        (longterm - (HEADROOM * longterm).max(self.packet_bytes())).max(self.least_window())
    }

    /// Our pipe, unless congestion has cut the window below it.
    fn target_inflight(&self) -> f64 {
        self.bdp(1.0).min(self.window)
    }

    fn probe_rtt_window(&self) -> f64 {
        self.bdp(PROBE_RTT_CWND_GAIN).max(self.least_window())
    }

    /// 5.6.4.3: MinPipeCwnd
    fn least_window(&self) -> f64 {
        4.0 * self.packet_bytes()
    }

    fn packet_bytes(&self) -> f64 {
        self.packet.as_u64().max(1) as f64
    }

    /// 5.6.4.4: SaveCwnd
    fn save_window(&mut self) {
        let keep = self.silent || self.state == State::ProbeRtt;
        self.prior_window = if keep { self.prior_window.max(self.window) } else { self.window };
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    /// 5.5.11: SaveStateUponLoss
    fn save_state(&mut self) {
        self.save_window();
        self.undo = Some(Undo {
            state: None,
            bw_shortterm: self.model.bw_shortterm,
            inflight_shortterm: self.model.inflight_shortterm,
            inflight_longterm: self.model.inflight_longterm,
            lost: Bytes::ZERO,
            spurious: Bytes::ZERO,
        });
    }

    fn remember_state(&mut self, state: State) {
        if let Some(undo) = &mut self.undo {
            undo.state = Some(state);
        }
    }

    /// 5.5.11: HandleSpuriousLossDetection
    fn undo(&mut self, undo: &Undo) {
        self.restore_window();
        self.model.loss_in_round = false;
        self.full_pipe.reset(0.0);
        self.model.bw_shortterm = self.model.bw_shortterm.max(undo.bw_shortterm);
        self.model.inflight_shortterm = self.model.inflight_shortterm.max(undo.inflight_shortterm);
        self.model.inflight_longterm = self.model.inflight_longterm.max(undo.inflight_longterm);
        if self.state == State::ProbeRtt {
            return;
        }
        match undo.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.reached = false;
                self.state = State::Startup;
            }
            Some(State::Up) if self.state != State::Up => self.start_refill(),
            _ => {}
        }
    }

    /// The last or this round filled the window.
    fn is_window_limited(&self) -> bool {
        self.limited[0] || self.limited[1]
    }
}

impl Controller for Bbr {
    fn on_sent(&mut self, sent: &SentSample) {
        let full = sent.in_flight + self.packet * 2 >= self.window();
        self.limited[1] |= full && !sent.app_limited;
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if std::mem::take(&mut self.silent) {
            self.restore_window();
        }
        self.update_model_and_state(ack);
        if ack.round_start {
            self.limited = [self.limited[1], false];
        }
        self.set_pacing_rate();
        self.set_window(ack);
    }

    fn on_loss(&mut self, loss: &LossSample) {
        if !self.model.loss_in_round {
            self.save_state();
        }
        if let Some(undo) = &mut self.undo {
            undo.lost += loss.lost;
        }
        let lost_since_sent = self.model.on_loss(loss);
        self.handle_loss(loss, lost_since_sent);
        if loss.persistent && !self.silent {
            // 5.6.4.4: OnEnterRTO
            self.save_window();
            self.silent = true;
            self.window = loss.in_flight.as_u64() as f64 + self.packet_bytes();
        }
    }

    fn on_spurious(&mut self, _now: Time, bytes: Bytes) {
        let Some(undo) = &mut self.undo else { return };
        undo.spurious += bytes;
        if undo.spurious >= undo.lost
            && let Some(undo) = self.undo.take()
        {
            self.undo(&undo);
        }
    }

    fn on_ecn(&mut self, ecn: &EcnSample) {
        // 2.10: the draft leaves marks open. RFC 3168: they are congestion, as loss is.
        // A round that many marks came in counts as one in which a packet was lost.
        if ecn.marked_pkts.saturating_mul(2) > ecn.reported_pkts {
            self.model.note_congestion();
            if self.state == State::Up {
                self.cycle.sample = false;
                self.model.limit_longterm(self.target_inflight());
                self.start_down(ecn.now);
            } else if self.state == State::Startup {
                self.full_pipe.reached = true;
                self.model.limit_longterm(self.bdp(1.0).max(self.model.inflight_latest()));
            }
        }
    }

    fn on_idle(&mut self, now: Time) {
        // 5.4.1: HandleRestartFromIdle
        self.model.restart_aggregation(now);
        self.probe_rtt.idle_restart = true;
        if self.state.is_probe_bw() && self.model.bw() > 0.0 {
            self.pacing_bps = self.model.bw() * (1.0 - PACING_MARGIN);
        }
    }

    fn on_mtu(&mut self, packet: Bytes) {
        self.packet = packet;
        self.window = self.window.max(self.least_window());
    }

    fn on_path_change(&mut self, now: Time, rtt: Option<Duration>) {
        let seed = self.cycle.seed();
        *self = Self::new(&PathStart { rtt, ..PathStart::new(now, self.packet, seed) });
    }

    fn window(&self) -> Bytes {
        Bytes(self.window as u64).clamp(self.packet * 2, MAX_WINDOW)
    }

    fn rate(&self) -> BitRate {
        BitRate::from_bps(self.pacing_bps as u64).max(LEAST_RATE)
    }

    fn burst(&self) -> Bytes {
        quantum(self.rate(), self.packet)
    }

    fn learned(&self) -> Option<Learned> {
        let bandwidth = BitRate::from_bps(self.model.max_bw() as u64);
        (bandwidth > BitRate::ZERO).then_some(Learned { bandwidth, min_rtt: self.model.min_rtt?, base_loss: 0.0 })
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            algorithm: Self::NAME,
            phase: self.state.name(),
            is_starting: matches!(self.state, State::Startup),
            bandwidth: Some(BitRate::from_bps(self.model.bw() as u64)),
            base_loss: None,
            ssthresh: None,
        }
    }
}

/// RFC 6928
fn initial_window(packet: Bytes) -> f64 {
    packet.as_u64().max(1) as f64 * 10.0
}

/// 2.4: so much below the bandwidth, for the queue to stay empty.
const PACING_MARGIN: f64 = 0.01;
/// 2.7
const HEADROOM: f64 = 0.15;
/// 5.6.2
const UNMEASURED_RTT: Duration = Duration::from_millis(1);
/// Beyond any path.
const MAX_WINDOW: Bytes = Bytes::gib(1024);
/// So that a path that has stood still is tried again.
const LEAST_RATE: BitRate = BitRate::from_bps(8_000);

#[cfg(test)]
mod tests;
