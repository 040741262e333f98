//! The controller for long fat networks, in four modes; `fair` is the default.
//!
//! A model of the path decides, not single losses: the bandwidth that reaches the receiver, the smallest round-trip time, the part of the
//! packets that the path loses whatever the rate (base loss), and the queueing delay, by the receiver's clock. It has the phases of BBR:
//!
//! ```text
//! startup -> drain -> cruise <-> up, down         x3 a round trip until a queue forms; empty it; try for more where no queue forms
//!                      ^  ^----> compete          beside flows that keep the queue full (fair and quickstart only)
//!                      +-------> probe rtt        only if no sample near the smallest round-trip time came for 10 s
//! ```
//!
//! In cruise the rate follows what arrives, a little above it while the queue is shorter than the flow wants and a little below while it
//! is longer (`law/share.rs`): that is what makes flows of this kind equal, and what finds room.
//!
//! Congestion is a standing queue, a delivery rate that has stopped growing while more is sent, or loss beyond base loss together with
//! one of them. Random loss is none of these: it is made up for by pacing at bandwidth / (1 - base loss).
//!
//! It is built in layers, and each sees only those before it (`cargo xtask check`):
//!
//! | layer | question | answers with |
//! |---|---|---|
//! | `measure` | what is the path like? | numbers |
//! | `cross_traffic` | who else is on it? | one verdict: alone, elastic, deaf to loss |
//! | `law` | what follows? | a rate and a window |
//! | `phase` | and what is to be found out next? | gains, and the next phase |
//! | `start` | how does the first second begin, where the path can be measured by its first packets? | a rate to begin with |
//!
//! `mode.rs` has all that differs between the modes. docs/controllers/fair.md has the reasons, docs/controllers/numbers.md every number.
//!
//! Source: the structure of draft-ietf-ccwg-bbr (BBRv3).
//! DEVIATION: no loss threshold of 2 %, no bounds set by single losses, growth in factors instead of packets; at a rate of 10 Gbit/s
//! every round trip loses something, and a window that grows by packets never gets there.

mod cross_traffic;
mod law;
mod measure;
mod mode;
mod phase;
mod start;

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use self::law::{Doing, Flow};
pub use self::mode::Mode;
use self::phase::Phases;
use self::start::{Manner, Quick, Verdict};
use crate::pacer::quantum;
use crate::{
    AckSample, Company, Controller, DispersionSample, EcnSample, Learned, LossSample, PathStart, SentSample, Share, Snapshot,
};

/// The controller for long fat networks.
#[derive(Debug, Clone)]
pub struct Lfn {
    packet: Bytes,
    seed: u64,
    flow: Flow,
    /// Goes before the phases, where the mode has it.
    start: Option<Box<Quick>>,
    phases: Phases,
}

impl Lfn {
    /// A controller in startup; in cruise if the path is known.
    pub fn new(mode: Mode, start: &PathStart) -> Self {
        let mut new = Self {
            packet: start.packet,
            seed: start.seed,
            flow: Flow::new(mode, start.packet),
            start: None,
            phases: Phases::new(start.seed, start.now),
        };
        new.flow.path.begin_epoch(start.now);
        if let Some(learned) = &start.learned {
            new.flow.path.take_over(start.now, learned);
            new.phases.begin_known(start.now, &mut new.flow);
        } else if let Some(known) = start.joins.and_then(|beside| joining(start, beside)) {
            new.flow.path.take_over(start.now, &known);
            new.phases.begin_low(start.now, &mut new.flow);
        } else if let Some(manner) = manner(mode) {
            new.start = Some(Box::new(Quick::new(start, manner)));
        }
        new
    }

    /// What the quick start has found becomes the estimate, and a phase takes over.
    fn leave_start(&mut self, ack: &AckSample, verdict: Verdict) {
        match verdict {
            Verdict::Continue => return,
            Verdict::Full(bps) => {
                // Not what samples of trains on a short path, or of a token bucket's first bytes, have raised it to.
                self.flow.path.bandwidth.set(bps);
                self.phases.begin_measured(ack.now);
            }
            Verdict::Search(bps) => {
                self.flow.path.bandwidth.raise(bps);
                self.phases.note_trains(ack);
            }
            Verdict::Unknown => self.phases.note_trains(ack),
        }
        // Trains go up and down in the queue: what they have made of the delay is theirs.
        self.flow.path.forget_jitter();
        self.start = None;
    }
}

/// How a mode begins on a path of which nothing is known.
const fn manner(mode: Mode) -> Option<Manner> {
    match mode {
        Mode::Fair => Some(Manner::Gentle),
        Mode::Quickstart => Some(Manner::Quick),
        Mode::Modest | Mode::Aggressive => None,
    }
}

/// What to begin with beside another path of the connection, which carries so much: to double the rate each round trip would overshoot by what is the other's. So it is a small
/// window, and an attempt at more.
fn joining(start: &PathStart, beside: BitRate) -> Option<Learned> {
    let min_rtt = start.rtt.filter(|rtt| !rtt.is_zero())?;
    let bandwidth = BitRate::of(start.packet * JOIN_PKTS, min_rtt).min(beside.scaled(JOIN_PART));
    Some(Learned { bandwidth, min_rtt, base_loss: 0.0 })
}

impl Controller for Lfn {
    fn on_sent(&mut self, sent: &SentSample) {
        if let Some(start) = &mut self.start {
            start.on_sent(sent);
        }
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if let Some(start) = &mut self.start {
            self.flow.on_ack(ack, Doing::Search);
            let verdict = start.on_ack(ack, &self.flow.path);
            self.leave_start(ack, verdict);
        } else {
            let summary = self.flow.on_ack(ack, self.phases.doing());
            self.phases.on_ack(ack, summary.as_ref(), &mut self.flow);
        }
    }

    fn on_loss(&mut self, loss: &LossSample) {
        if loss.persistent {
            self.start = None;
            self.phases.on_outage(loss.now, &mut self.flow);
        } else if let Some(start) = &mut self.start {
            start.on_loss(loss);
        } else {
            self.phases.on_loss(loss, &self.flow);
        }
    }

    fn on_spurious(&mut self, _now: Time, bytes: Bytes) {
        if let Some(start) = &mut self.start {
            start.on_spurious(bytes);
        }
    }

    fn on_ecn(&mut self, ecn: &EcnSample) {
        // Fewer marks are what is left of a queue of others.
        if ecn.marked_pkts.saturating_mul(10) <= ecn.reported_pkts {
            return;
        }
        if self.start.take().is_some() {
            self.phases.begin_full(ecn.now, &mut self.flow);
        } else {
            self.phases.on_marks(ecn, &mut self.flow);
        }
    }

    fn on_idle(&mut self, now: Time) {
        self.flow.on_idle(now);
    }

    fn on_mtu(&mut self, packet: Bytes) {
        self.packet = packet;
        self.flow.path.set_packet(packet);
        if let Some(start) = &mut self.start {
            start.set_packet(packet);
        }
    }

    fn on_path_change(&mut self, now: Time, rtt: Option<Duration>) {
        *self = Self::new(self.flow.mode(), &PathStart { rtt, ..PathStart::new(now, self.packet, self.seed) });
    }

    fn window(&self) -> Bytes {
        // Three trains, as the offload budget of draft-ietf-ccwg-bbr.
        self.start
            .as_ref()
            .map_or_else(|| self.phases.window(&self.flow) + self.burst() * 3, |start| start.window(&self.flow.path))
    }

    fn rate(&self) -> BitRate {
        self.start.as_ref().map_or_else(|| self.phases.rate(&self.flow), |start| start.rate())
    }

    fn burst(&self) -> Bytes {
        self.start.as_ref().map_or_else(|| quantum(self.rate(), self.packet), |start| start.burst())
    }

    fn on_dispersion(&mut self, sample: &DispersionSample) {
        if let Some(start) = &mut self.start {
            start.on_dispersion(sample);
        }
    }

    fn filler(&self) -> Option<(Time, Bytes)> {
        self.start.as_ref().and_then(|start| start.filler())
    }

    fn on_filler(&mut self, sent: &SentSample) {
        if let Some(start) = &mut self.start {
            start.on_filler(sent);
        }
    }

    fn on_room(&mut self, now: Time, rate: BitRate) {
        // A start finds its rate by itself.
        if self.start.is_none() {
            self.phases.on_room(now, rate, &mut self.flow);
        }
    }

    fn learned(&self) -> Option<Learned> {
        self.flow.path.learned()
    }

    fn share(&self) -> Option<Share> {
        self.flow.share()
    }

    fn on_company(&mut self, company: &Company) {
        self.flow.set_part(company.part());
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            algorithm: self.flow.mode().name(),
            phase: self.start.as_ref().map_or_else(|| self.phases.name(), |start| start.name()),
            is_starting: self.start.is_some() || matches!(self.phases.doing(), Doing::Search),
            bandwidth: Some(self.flow.path.bandwidth()),
            base_loss: Some(self.flow.path.base_loss()),
            ssthresh: None,
        }
    }
}

/// RFC 6928: the initial window of ten packets, here in a round trip.
const JOIN_PKTS: u64 = 10;
/// And of what another path carries: an attempt at more begins with as much, an eighth.
const JOIN_PART: f64 = 0.125;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_pauses_at_half_the_rate_goes_on_at_the_whole() {
        let learned = Learned { bandwidth: BitRate::mbps(100), min_rtt: Duration::from_millis(100), base_loss: 0.1 };
        let start = PathStart { learned: Some(learned), ..PathStart::new(Time::ZERO, Bytes(1472), 1) };
        let mut controller = Lfn::new(Mode::Fair, &start);
        // What is believed is tried at once.
        assert!(controller.rate() < BitRate::mbps(60), "{}", controller.rate());
        controller.on_idle(Time::ZERO + Duration::from_millis(10));
        assert!(controller.rate() > BitRate::mbps(100), "{}", controller.rate());
    }
}
