//! The jump to what the trains say: legs, what shows that one was too much, and the retreat.

use haul_units::{BitRate, Bytes};

use super::leg::{GAUGED, Leg, Span, part_of};
use super::trains::least_bps;
use super::{Manner, Quick, REACH, Stage, TRAINS, Verdict};
use crate::AckSample;
use crate::lfn::measure::{Path, Queue, behind_bucket};

impl Quick {
    /// RFC 9959, Unvalidated Phase: at most half of what was saved. All of it where the trains were as much as the path holds: so much has come through in a round trip, which
    /// is what the half is to find out.
    fn first_bps(&self, path: &Path, target_bps: f64) -> f64 {
        let goal_bps = if self.trains_bps >= target_bps { target_bps } else { target_bps * JUMP };
        self.within_reach(path, goal_bps, self.trains_bps)
    }

    /// From what has been measured to what is sent.
    pub(super) fn jump(&mut self, ack: &AckSample, path: &Path, target_bps: f64) -> Verdict {
        let sent = if self.scout.is_some() { self.train() * TRAINS as u64 } else { self.scout() };
        self.trains_bps = BitRate::of(sent, path.min_rtt()).as_bps() as f64;
        self.stage = Stage::Jump(Leg::new(ack, self.first_bps(path, target_bps)));
        self.jumped_at = ack.now;
        Verdict::Continue
    }

    /// No more than so many times what has come through before: a token bucket lets the first bytes pass at the rate of the wire behind it, whatever the trains said. And no
    /// less than the least: trains that a stall of seconds has stretched say next to nothing, and to find that out takes some packets.
    fn within_reach(&self, path: &Path, goal_bps: f64, before_bps: f64) -> f64 {
        let reach_bps = if self.manner == Manner::Gentle { goal_bps.min(before_bps * REACH) } else { goal_bps };
        reach_bps.max(least_bps(path))
    }

    pub(super) fn validate(&mut self, ack: &AckSample, path: &Path, leg: Leg) -> Verdict {
        let Some((target_bps, known)) = self.target(path) else { return Verdict::Unknown };
        let settled = leg.settled(ack);
        let leg = leg.with(ack);
        if settled == Bytes::ZERO {
            if self.has_lost_trains(ack, path) {
                return Verdict::Unknown;
            }
            if self.is_refused_late(ack, path, leg) {
                return self.retreat(path, leg);
            }
            // Trains that came later correct the first one.
            let goal_bps = if leg.before.is_some() { leg.goal_bps } else { self.first_bps(path, target_bps) };
            self.stage = Stage::Jump(Leg { goal_bps, rate_bps: goal_bps, ..leg });
            return Verdict::Continue;
        }
        if self.is_refused(ack, path, leg.span) {
            return self.retreat(path, leg);
        }
        // docs/controllers/quickstart.md: a sixteenth of a round trip has arrived, in several reports.
        let enough = leg.rate().bytes_in(path.min_rtt() / 16).max(self.packet * LEAST_LEG_PKTS);
        self.stage = Stage::Jump(leg);
        // Delays seen before the leg say nothing about it.
        if settled < enough || leg.acks <= Queue::MEMORY {
            return Verdict::Continue;
        }
        if !leg.is_limited() && leg.arrived_bps(ack) < leg.rate_bps * LEAST_ARRIVED {
            // An application's pause is over after a quarter of a round trip, or limits the leg.
            let is_clear = self.manner == Manner::Quick || settled >= leg.rate().bytes_in(path.min_rtt() / 4);
            return match self.long_since {
                _ if !is_clear => Verdict::Continue,
                Some(_) => self.retreat(path, leg),
                None => Verdict::Full(self.arrived_bps(path, leg)),
            };
        }
        let goal_bps = if known { target_bps } else { target_bps * JUMP };
        if !known && leg.goal_bps >= goal_bps {
            return Verdict::Search(leg.rate_bps);
        }
        let reach_bps = self.within_reach(path, goal_bps, leg.goal_bps);
        let next = Leg { before: Some(leg.span), begun: true, ..Leg::new(ack, reach_bps) };
        self.stage = if known && reach_bps >= target_bps { Stage::Full(next) } else { Stage::Jump(next) };
        self.gauge.best_bps = 0.0;
        Verdict::Continue
    }

    pub(super) fn confirm(&mut self, ack: &AckSample, path: &Path, leg: Leg) -> Verdict {
        let settled = leg.settled(ack);
        let leg = leg.with(ack);
        if settled == Bytes::ZERO {
            if self.is_refused_late(ack, path, leg) {
                return self.retreat(path, leg);
            }
            // The jump made no queue: what was lost of it the path loses whatever the rate.
            self.stage = Stage::Full(leg.made_up(ack));
            return Verdict::Continue;
        }
        self.stage = Stage::Full(leg);
        if self.is_refused(ack, path, leg.span) {
            return self.retreat(path, leg);
        }
        let enough = leg.rate().bytes_in((path.min_rtt() / 2).max(GAUGED * LEAST_GAUGES)).max(self.packet * LEAST_LEG_PKTS);
        if settled < enough {
            return Verdict::Continue;
        }
        // What was lost at once settles before a queue has stood for long.
        if self.long_since.is_some() && !leg.is_limited() && leg.arrived_bps(ack) < leg.rate_bps * LEAST_ARRIVED {
            return self.retreat(path, leg);
        }
        if leg.is_limited() && self.remembered.is_none() {
            // What has arrived is what the application gave; what the trains say has met no queue.
            return Verdict::Full(leg.goal_bps);
        }
        Verdict::Full(self.gauge.best_bps.clamp(leg.goal_bps / 2.0, leg.goal_bps))
    }

    /// RFC 9959, Reconnaissance Phase: no jump onto a path that is congested already.
    pub(super) fn has_lost_trains(&self, ack: &AckSample, path: &Path) -> bool {
        self.is_lossy(path, ack.delivered + ack.lost_total, ack.lost_total)
    }

    /// Of what was sent much more is lost than the path loses whatever the rate, and more than chance makes of half as much.
    fn is_lossy(&self, path: &Path, settled: Bytes, lost: Bytes) -> bool {
        let base = self.remembered.map_or(0.0, |learned| learned.base_loss).max(path.base_loss());
        let half = base + REFUSED_LOSS / 2.0;
        let packets = settled.as_u64() as f64 / path.packet_bytes();
        // Three standard deviations.
        let by_chance = half + 3.0 * (half * (1.0 - half) / packets.max(1.0)).sqrt();
        packets > LEAST_LOSSY_PKTS && part_of(lost, settled) > by_chance.max(base + REFUSED_LOSS)
    }

    /// The rest of the leg before has met what its first part had not.
    fn is_refused_late(&mut self, ack: &AckSample, path: &Path, leg: Leg) -> bool {
        self.manner == Manner::Gentle && leg.before.is_some_and(|before| self.is_refused(ack, path, before))
    }

    /// A queue forms, or much is lost.
    fn is_refused(&mut self, ack: &AckSample, path: &Path, span: Span) -> bool {
        let lossy = self.is_lossy(path, span.settled(ack), span.lost);
        // A hiccup of some thread passes; a queue of our making stays.
        let long = path.queue_delay() > path.queue_threshold(8).max(path.jitter() * 2);
        let since = long.then(|| self.long_since.unwrap_or(ack.now));
        self.long_since = since;
        // docs/controllers/quickstart.md: a queue that stands for a sixteenth of a round trip.
        lossy || since.is_some_and(|since| ack.now.since(since) >= path.min_rtt() / 16)
    }

    /// RFC 9959, Safe Retreat Phase: back to what is known to have come through. What comes through now counts more, where it is so much less that a token bucket let the first
    /// bytes pass.
    fn retreat(&self, path: &Path, leg: Leg) -> Verdict {
        let arrived_bps = self.arrived_bps(path, leg);
        Verdict::Full(self.gauge.newest_bps.and_then(|now_bps| behind_bucket(arrived_bps, now_bps)).unwrap_or(arrived_bps))
    }

    fn arrived_bps(&self, path: &Path, leg: Leg) -> f64 {
        let least_bps = if leg.is_limited() { leg.goal_bps / 2.0 } else { path.bandwidth_bps() };
        self.gauge.best_bps.min(leg.goal_bps).max(least_bps)
    }
}

/// RFC 9959: the jump is at most half of what was saved.
const JUMP: f64 = 0.5;
/// Less of the jump than this, and it has met a limit.
const LEAST_ARRIVED: f64 = 0.6;
/// Beyond the path's own loss; a policer or a queue that overflows takes more.
const REFUSED_LOSS: f64 = 0.2;
/// Of fewer a rate is that of two reports.
const LEAST_LEG_PKTS: u64 = 32;
/// The largest of so many rates is what arrives; one alone has the pacer's pauses in it.
const LEAST_GAUGES: u32 = 4;
/// Of fewer, three standard deviations of a tenth are more than another tenth.
const LEAST_LOSSY_PKTS: f64 = 48.0;
