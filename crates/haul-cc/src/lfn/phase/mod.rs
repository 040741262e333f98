//! The fourth layer: the phases, their gains, and when each gives way to which.

mod attempts;
mod startup;
mod transitions;
mod turn;
mod up;

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use self::attempts::Attempts;
use self::startup::{STARTUP_GAIN, Startup};
use self::transitions::Kind;
use self::turn::Turn;
use self::up::Up;
use super::law::{Compete, Doing, Flow, Outcome};
use super::measure::{Summary, behind_bucket};
use crate::{AckSample, EcnSample, LossSample, RateSample};

/// Where the controller is, and where it goes next.
#[derive(Debug, Clone)]
pub(in crate::lfn) struct Phases {
    phase: Phase,
    attempts: Attempts,
}

/// What the controller is up to.
#[derive(Debug, Clone)]
enum Phase {
    /// Looking for the bandwidth.
    Startup(Startup),
    /// Emptying the queue that startup has built; the search goes on if there was none.
    Drain { since: Time, search: Option<Startup> },
    /// Sending what arrives.
    Cruise,
    /// Trying for more.
    Up(Up),
    /// Emptying the queue that the attempt has built.
    Down { since: Time },
    /// Holding an equal part beside flows that keep the queue full.
    Compete(Compete),
    /// Leaving the queue empty for a moment to see the smallest round-trip time.
    ProbeRtt { empty: Time, until: Time },
}

impl Phases {
    /// Startup; `seed` spreads the attempts of flows that share a path.
    pub(in crate::lfn) fn new(seed: u64, now: Time) -> Self {
        Self { phase: Phase::Startup(Startup::new()), attempts: Attempts::new(seed, now) }
    }

    /// Trains have gone before the search, and have not found the path's rate.
    pub(in crate::lfn) fn note_trains(&mut self, ack: &AckSample) {
        if let Phase::Startup(search) = &mut self.phase {
            search.note_trains(ack);
        }
    }

    /// The path is known: no search.
    pub(in crate::lfn) fn begin_known(&mut self, now: Time, flow: &mut Flow) {
        self.turn(now, Turn::Cruise, flow);
    }

    /// Something is known, and there may be much more.
    pub(in crate::lfn) fn begin_low(&mut self, now: Time, flow: &mut Flow) {
        self.turn(now, Turn::Up, flow);
    }

    /// The path is full: on with emptying its queue, without a search.
    pub(in crate::lfn) fn begin_full(&mut self, now: Time, flow: &mut Flow) {
        flow.path.end_search(now);
        self.begin_measured(now);
    }

    /// The same, at a rate that has been measured: what arrives now raises it no more.
    pub(in crate::lfn) fn begin_measured(&mut self, now: Time) {
        self.enter(Phase::Drain { since: now, search: None });
    }

    pub(in crate::lfn) fn on_ack(&mut self, ack: &AckSample, summary: Option<&Summary>, flow: &mut Flow) {
        let turn = self.phase.on_ack(ack, summary, flow, &self.attempts);
        if turn == Turn::Compete {
            flow.cross.begin_competition(ack.now);
            self.enter(Phase::Compete(Compete::new(ack, flow)));
        }
        self.turn(ack.now, turn, flow);
        if flow.is_offered_room() {
            self.take_room(ack.now, flow);
        }
    }

    /// Packets are lost; what counts beyond base loss the epochs say.
    pub(in crate::lfn) fn on_loss(&mut self, loss: &LossSample, flow: &Flow) {
        if let Phase::Compete(compete) = &mut self.phase {
            compete.on_loss(loss, flow);
        }
    }

    /// After an outage: somewhat less than before, and from there an attempt at more. In startup it stays startup.
    pub(in crate::lfn) fn on_outage(&mut self, now: Time, flow: &mut Flow) {
        flow.on_outage();
        if !matches!(self.phase, Phase::Startup(_)) {
            self.turn(now, Turn::Up, flow);
        }
    }

    /// The network marks many packets.
    pub(in crate::lfn) fn on_marks(&mut self, ecn: &EcnSample, flow: &mut Flow) {
        let turn = self.phase.on_marks(ecn, flow);
        self.turn(ecn.now, turn, flow);
    }

    /// The receiver has made room for a rate.
    pub(in crate::lfn) fn on_room(&mut self, now: Time, rate: BitRate, flow: &mut Flow) {
        flow.offer_room(now, rate);
        self.take_room(now, flow);
    }

    /// Takes the room that was made, once nobody else's bytes stand there.
    fn take_room(&mut self, now: Time, flow: &mut Flow) {
        match &mut self.phase {
            Phase::Cruise if flow.is_clear() => _ = flow.take_room(now),
            Phase::Compete(compete) => {
                if let Some(bps) = flow.take_room(now) {
                    compete.take_room(bps);
                }
            }
            // What is under way there tells of the path too.
            _ => {}
        }
    }

    /// Bytes that may be in flight.
    pub(in crate::lfn) fn window(&self, flow: &Flow) -> Bytes {
        match &self.phase {
            Phase::Compete(compete) => flow.made_up(compete.window()),
            phase => flow.window(phase.window_gain(flow)),
        }
    }

    pub(in crate::lfn) fn rate(&self, flow: &Flow) -> BitRate {
        match &self.phase {
            Phase::Compete(compete) => flow.pacing_rate_of(compete.rate_bps()),
            phase @ Phase::Startup(_) => flow.pacing_rate(phase.pacing_gain(flow)).max(flow.least_startup_rate()),
            phase => flow.pacing_rate(phase.pacing_gain(flow)),
        }
    }

    /// What the laws have to know of the phase.
    pub(in crate::lfn) fn doing(&self) -> Doing {
        match &self.phase {
            Phase::Startup(_) => Doing::Search,
            Phase::Drain { .. } => Doing::Drain,
            Phase::Cruise => Doing::Cruise,
            Phase::Up(_) | Phase::Down { .. } => Doing::Attempt,
            Phase::Compete(compete) => Doing::Compete { less: compete.less() },
            Phase::ProbeRtt { .. } => Doing::ProbeRtt,
        }
    }

    pub(in crate::lfn) const fn name(&self) -> &'static str {
        self.phase.kind().name()
    }

    /// Goes where the phase says; a phase that ends is left at once, so that the new gains hold from this acknowledgement on.
    fn turn(&mut self, now: Time, turn: Turn, flow: &mut Flow) {
        let min_rtt = flow.path.min_rtt();
        match turn {
            Turn::Stay | Turn::Compete => {}
            Turn::Resume => {
                if let Phase::Drain { search: Some(search), .. } = &self.phase {
                    self.enter(Phase::Startup(search.clone().after_stall(flow)));
                }
            }
            Turn::Drain => {
                flow.path.end_search(now);
                let search = match &self.phase {
                    Phase::Startup(search) => {
                        flow.expect_room();
                        search.has_seen_delay().then(|| search.clone())
                    }
                    _ => None,
                };
                self.enter(Phase::Drain { since: now, search });
            }
            Turn::Cruise => {
                // Where much was gained there may be more, and the estimate that startup left may be low.
                if matches!(self.phase, Phase::Drain { .. }) || flow.path.bandwidth.has_gained() {
                    self.attempts.soon(now, min_rtt);
                } else {
                    self.attempts.later(now, min_rtt);
                }
                self.enter(Phase::Cruise);
                flow.enter_cruise(now);
            }
            Turn::Wait => {
                self.attempts.later(now, min_rtt);
                flow.test_loss(now);
            }
            Turn::Up => {
                flow.enter_up(now);
                self.enter(Phase::Up(Up::new(flow)));
            }
            Turn::Down => self.enter(Phase::Down { since: now }),
            Turn::ProbeRtt => {
                // The queue drains for a round trip; what comes then is the path.
                self.enter(Phase::ProbeRtt { empty: now + min_rtt, until: now + min_rtt + min_rtt.max(PROBE_RTT_TIME) });
            }
        }
    }

    fn enter(&mut self, next: Phase) {
        debug_assert!(self.phase.kind().may_become(next.kind()), "{:?} to {:?}", self.phase.kind(), next.kind());
        self.phase = next;
    }
}

impl Phase {
    /// Looks at an acknowledgement, and at the epoch if one has ended with it.
    fn on_ack(&mut self, ack: &AckSample, summary: Option<&Summary>, flow: &mut Flow, attempts: &Attempts) -> Turn {
        match self {
            Self::Startup(startup) => {
                if startup.on_ack(ack, summary, flow) {
                    forget_bucket(ack, flow);
                    Turn::Drain
                } else {
                    Turn::Stay
                }
            }
            // What was sent before goes on filling a queue of ours for a round trip: a delay that is gone sooner was some thread's.
            Self::Drain { since, search: Some(_) } if ack.now.since(*since) < flow.path.min_rtt() && is_empty(flow) => {
                Turn::Resume
            }
            Self::Drain { since, .. } | Self::Down { since } => {
                let empty = ack.in_flight <= flow.path.pipe() || is_empty(flow);
                // The estimate still rises while the queue is there; a round trip after it is gone there is nothing to gain.
                let late = ack.now.since(*since) > flow.path.min_rtt() * MAX_DRAIN_ROUNDS;
                if empty || late { Turn::Cruise } else { Turn::Stay }
            }
            Self::Cruise => cruise(ack, flow, attempts),
            Self::Up(up) => up.on_ack(ack, summary, flow),
            Self::Compete(compete) => match compete.on_ack(ack, flow) {
                Outcome::GoesOn => Turn::Stay,
                Outcome::Alone => Turn::Down,
                Outcome::Gone => Turn::Cruise,
            },
            Self::ProbeRtt { until, .. } if ack.now >= *until => Turn::Cruise,
            Self::ProbeRtt { empty, .. } if ack.now >= *empty => {
                flow.path.base_delay.forget();
                *empty = Time::NEVER;
                Turn::Stay
            }
            Self::ProbeRtt { .. } => Turn::Stay,
        }
    }

    /// The network marks many packets.
    fn on_marks(&mut self, ecn: &EcnSample, flow: &mut Flow) -> Turn {
        match self {
            Self::Startup(_) => return Turn::Drain,
            Self::Up(_) => return Turn::Down,
            Self::Cruise => flow.hold_back(),
            Self::Compete(compete) => compete.on_marks(ecn.now, ecn.sent_at, flow),
            _ => {}
        }
        Turn::Stay
    }

    /// Part of the bandwidth to send at.
    fn pacing_gain(&self, flow: &Flow) -> f64 {
        match self {
            Self::Startup(_) => STARTUP_GAIN,
            Self::Drain { .. } => DRAIN_GAIN,
            Self::Cruise => flow.cruise_gain(),
            Self::Compete(_) => 1.0,
            Self::Up(up) => up.gain(),
            Self::Down { .. } | Self::ProbeRtt { .. } => DOWN_GAIN,
        }
    }

    /// Products of bandwidth and round-trip time that may be in flight.
    fn window_gain(&self, flow: &Flow) -> f64 {
        match self {
            Self::Startup(_) | Self::Drain { .. } => STARTUP_WINDOW,
            Self::Cruise | Self::Down { .. } | Self::Compete(_) => flow.mode().window_gain(),
            Self::Up(up) => 1.0 + up.gain(),
            Self::ProbeRtt { .. } => PROBE_RTT_WINDOW,
        }
    }

    const fn kind(&self) -> Kind {
        match self {
            Self::Startup(_) => Kind::Startup,
            Self::Drain { .. } => Kind::Drain,
            Self::Cruise => Kind::Cruise,
            Self::Up(_) => Kind::Up,
            Self::Down { .. } => Kind::Down,
            Self::Compete(_) => Kind::Compete,
            Self::ProbeRtt { .. } => Kind::ProbeRtt,
        }
    }
}

/// Where cruise goes: to see the round trip without a queue, to compete, to try for more.
fn cruise(ack: &AckSample, flow: &Flow, attempts: &Attempts) -> Turn {
    let app_limited = ack.rate.is_some_and(|sample| sample.app_limited);
    if flow.path.base_delay.is_stale(ack.now) {
        Turn::ProbeRtt
    } else if flow.has_competitors() {
        Turn::Compete
    } else if flow.has_room() && !app_limited {
        Turn::Up
    } else if !attempts.is_due(ack.now) {
        Turn::Stay
    } else if !flow.overflows() || flow.path.queue_delay() > flow.standing_threshold() {
        Turn::Wait
    } else if app_limited {
        Turn::Stay
    } else {
        Turn::Up
    }
}

/// A token bucket lets its first bytes pass at the rate of the wire behind it: what arrives when startup ends is the path's rate. Unless less was sent than the estimate,
/// because what had been lost filled the window.
fn forget_bucket(ack: &AckSample, flow: &mut Flow) {
    let was_sent = |sample: &RateSample| sample.sent.as_bps() as f64 >= flow.path.bandwidth_bps();
    let now_bps = ack.rate.filter(was_sent).map(|sample| sample.rate.as_bps() as f64);
    if let Some(rate_bps) = now_bps.and_then(|now_bps| behind_bucket(flow.path.bandwidth_bps(), now_bps)) {
        flow.path.bandwidth.limit(rate_bps);
    }
}

/// Not even the least that is seen of a queue is there.
fn is_empty(flow: &Flow) -> bool {
    // A report of the receiver apart.
    flow.path.queue_delay() <= flow.path.queue_threshold(32)
}

/// As BBR, version 1: 1 / 2.89.
const DRAIN_GAIN: f64 = 0.35;
/// As BBR, version 1, after an attempt.
const DOWN_GAIN: f64 = 0.75;
/// The rate grows threefold a round trip (`startup.rs`); half a pipe more, so that the window does not rule.
const STARTUP_WINDOW: f64 = 3.5;
/// Less than a pipe empties any queue of ours; half, as BBR has it, would cost more.
const PROBE_RTT_WINDOW: f64 = 0.75;
/// A queue of two products is gone after three at that gain; what stands after four is not ours.
const MAX_DRAIN_ROUNDS: u32 = 4;
/// draft-ietf-ccwg-bbr 5.3.4.3: ProbeRTTDuration
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
