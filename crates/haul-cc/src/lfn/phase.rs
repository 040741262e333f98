//! The phases: their gains, and when each gives way to which.

use haul_units::Time;

use super::contest::Contest;
use super::epoch::Summary;
use super::path::{Doing, MIN_RTT_LIFETIME, PathModel};
use super::quick::{Quick, Verdict};
use super::startup::{STARTUP_GAIN, Startup};
use super::turn::Turn;
use super::up::Up;
use crate::{AckSample, EcnSample};

/// What the controller is up to.
#[derive(Debug, Clone)]
pub(super) enum Phase {
    /// Measuring the bandwidth by the first packets.
    Quick(Box<Quick>),
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
    Contest(Contest),
    /// Leaving the queue empty for a moment to see the smallest round-trip time.
    ProbeRtt { empty: Time, until: Time },
}

/// An estimate so many times above what arrives when startup ends was made of a bucket's first bytes.
const BUCKET: f64 = 4.0;
/// One sample alone may be low.
const BUCKET_MARGIN: f64 = 1.5;

impl Phase {
    /// Looks at an acknowledgement, and at the epoch if one has ended with it.
    pub(super) fn on_ack(&mut self, ack: &AckSample, summary: Option<&Summary>, path: &mut PathModel, next_probe: Time) -> Turn {
        let stale = ack.now.since(path.min_rtt_at()) > MIN_RTT_LIFETIME;
        match self {
            Self::Quick(quick) => on_verdict(quick.on_ack(ack, path), path),
            Self::Startup(startup) => {
                if startup.on_ack(ack, summary, path) {
                    // A token bucket lets its first bytes pass at the rate of the wire behind it: what arrives now is the path's rate.
                    if let Some(now_bps) = ack.rate.map(|sample| sample.rate.as_bps() as f64)
                        && now_bps * BUCKET < path.bandwidth_bps()
                    {
                        path.limit_bandwidth(now_bps * BUCKET_MARGIN);
                    }
                    Turn::Drain
                } else {
                    Turn::Stay
                }
            }
            // What was sent before goes on filling a queue of ours for a round trip: a delay that is gone sooner was some thread's.
            Self::Drain { since, search: Some(_) }
                // The least that is seen of a queue.
                if ack.now.since(*since) < path.min_rtt() && path.queue_delay() <= path.queue_threshold(32) =>
            {
                Turn::Resume
            }
            Self::Drain { since, .. } | Self::Down { since } => {
                // The least that is seen of a queue.
                let empty = ack.in_flight <= path.pipe() || path.queue_delay() <= path.queue_threshold(32);
                // The estimate still rises while the queue is there; a round trip after it is gone there is nothing to gain.
                let late = ack.now.since(*since) > path.min_rtt() * MAX_DRAIN_ROUNDS;
                if empty || late { Turn::Cruise } else { Turn::Stay }
            }
            Self::Cruise if stale => Turn::ProbeRtt,
            Self::Cruise if path.is_contested() => Turn::Contest,
            Self::Cruise if path.has_room() && !ack.rate.is_some_and(|sample| sample.app_limited) => Turn::Up,
            Self::Cruise if ack.now >= next_probe && (!path.overflows() || path.queue_delay() > path.standing_threshold()) => {
                Turn::Wait
            }
            Self::Cruise if ack.now >= next_probe && !ack.rate.is_some_and(|sample| sample.app_limited) => Turn::Up,
            Self::Up(up) => up.on_ack(ack, summary, path),
            Self::Contest(contest) => contest.on_ack(ack, path),
            Self::ProbeRtt { until, .. } if ack.now >= *until => Turn::Cruise,
            Self::ProbeRtt { empty, .. } if ack.now >= *empty => {
                path.forget_min_rtt();
                *empty = Time::NEVER;
                Turn::Stay
            }
            Self::Cruise | Self::ProbeRtt { .. } => Turn::Stay,
        }
    }

    /// The network marks many packets.
    pub(super) fn on_marks(&mut self, ecn: &EcnSample, path: &mut PathModel) -> Turn {
        match self {
            Self::Quick(_) | Self::Startup(_) => Turn::Drain,
            Self::Up(_) => Turn::Down,
            Self::Cruise => {
                path.hold_back();
                Turn::Stay
            }
            Self::Contest(contest) => {
                contest.on_marks(ecn.now, ecn.sent_at, path);
                Turn::Stay
            }
            _ => Turn::Stay,
        }
    }

    /// Part of the bandwidth to send at.
    pub(super) fn pacing_gain(&self, path: &PathModel) -> f64 {
        match self {
            Self::Quick(_) | Self::Startup(_) => STARTUP_GAIN,
            Self::Drain { .. } => DRAIN_GAIN,
            Self::Cruise => path.cruise_gain(),
            Self::Contest(_) => 1.0,
            Self::Up(up) => up.gain(),
            Self::Down { .. } | Self::ProbeRtt { .. } => DOWN_GAIN,
        }
    }

    /// Products of bandwidth and round-trip time that may be in flight.
    pub(super) fn window_gain(&self, path: &PathModel) -> f64 {
        match self {
            // The rate grows threefold a round trip (startup.rs); half a pipe more, so that the window does not rule.
            Self::Quick(_) | Self::Startup(_) | Self::Drain { .. } => 3.5,
            Self::Cruise | Self::Down { .. } | Self::Contest(_) => path.mode().window_gain(),
            Self::Up(up) => 1.0 + up.gain(),
            // Less than a pipe empties any queue of ours; half, as BBR has it, would cost more.
            Self::ProbeRtt { .. } => 0.75,
        }
    }

    /// What the model of the path has to know of it.
    pub(super) fn doing(&self) -> Doing {
        match self {
            Self::Quick(_) | Self::Startup(_) => Doing::Search,
            Self::Drain { .. } => Doing::Drain,
            Self::Cruise => Doing::Cruise,
            Self::Up(_) | Self::Down { .. } => Doing::Attempt,
            Self::Contest(contest) => Doing::Contest { less: contest.less() },
            Self::ProbeRtt { .. } => Doing::ProbeRtt,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Quick(quick) => quick.name(),
            Self::Startup(_) => "startup",
            Self::Drain { .. } => "drain",
            Self::Cruise => "cruise",
            Self::Up(_) => "up",
            Self::Down { .. } => "down",
            Self::ProbeRtt { .. } => "probe rtt",
            Self::Contest(_) => "contest",
        }
    }
}

/// What the quick start has found becomes the estimate.
fn on_verdict(verdict: Verdict, path: &mut PathModel) -> Turn {
    match verdict {
        Verdict::Continue => Turn::Stay,
        Verdict::Full(bps) => {
            path.raise_bandwidth(bps);
            Turn::Drain
        }
        Verdict::Search(bps) => {
            path.raise_bandwidth(bps);
            Turn::Startup
        }
        Verdict::Unknown => Turn::Startup,
    }
}

/// As BBR, version 1: 1 / 2.89.
const DRAIN_GAIN: f64 = 0.35;
/// As BBR, version 1, after an attempt.
const DOWN_GAIN: f64 = 0.75;
/// A queue of two products is gone after three at that gain; what stands after four is not ours.
const MAX_DRAIN_ROUNDS: u32 = 4;
