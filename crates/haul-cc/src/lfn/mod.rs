//! The controller for long fat networks, in four modes; `fair` is the default.
//!
//! A model of the path decides, not single losses: the bandwidth that reaches the receiver, the smallest round-trip time, the part of the
//! packets that the path loses whatever the rate (base loss), and the queueing delay, by the receiver's clock. It has the phases of BBR:
//!
//! ```text
//! startup -> drain -> cruise <-> up, down         x3 a round trip until a queue forms; empty it; try for more where no queue forms
//!                      ^  ^----> contest          beside flows that keep the queue full (fair and quickstart only)
//!                      +-------> probe rtt        only if no sample near the smallest round-trip time came for 10 s
//! ```
//!
//! In cruise the rate follows what arrives, a little above it while the queue is shorter than the flow wants and a little below while it
//! is longer (`share`): that is what makes flows of this kind equal, and what finds room.
//!
//! Congestion is a standing queue, a delivery rate that has stopped growing while more is sent, or loss beyond base loss together with
//! one of them. Random loss is none of these: it is made up for by pacing at bandwidth / (1 - base loss).
//! Source: the structure of draft-ietf-ccwg-bbr (BBRv3).
//! DEVIATION: no loss threshold of 2 %, no bounds set by single losses, growth in factors instead of packets; at a rate of 10 Gbit/s
//! every round trip loses something, and a window that grows by packets never gets there.

mod company;
mod contest;
mod epoch;
mod filler;
mod hold;
mod jitter;
mod loss;
mod lull;
mod mode;
mod path;
mod phase;
mod quick;
mod rivals;
mod share;
mod startup;
mod swell;
mod trials;
mod turn;
mod up;

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use self::contest::Contest;
pub use self::mode::Mode;
use self::path::PathModel;
use self::phase::Phase;
use self::quick::Quick;
use self::startup::Startup;
use self::turn::Turn;
use self::up::Up;
use crate::pacer::quantum;
use crate::{
    AckSample, Company, Controller, DispersionSample, EcnSample, Learned, LossSample, PathStart, SentSample, Share, Snapshot,
};

/// The controller for long fat networks.
#[derive(Debug, Clone)]
pub struct Lfn {
    mode: Mode,
    packet: Bytes,
    path: PathModel,
    phase: Phase,
    /// State of the generator that spreads the probes of flows that share a path.
    seed: u64,
    next_probe: Time,
}

impl Lfn {
    /// A controller in startup; in cruise if the path is known.
    pub fn new(mode: Mode, start: &PathStart) -> Self {
        let mut new = Self {
            mode,
            packet: start.packet,
            path: PathModel::new(mode, start.packet),
            phase: if mode == Mode::Quickstart {
                Phase::Quick(Box::new(Quick::new(start)))
            } else {
                Phase::Startup(Startup::new())
            },
            seed: start.seed,
            next_probe: start.now,
        };
        if let Some(learned) = &start.learned {
            new.path.take_over(start.now, learned);
            new.turn(start.now, Turn::Cruise);
        } else if let Some(beside) = start.joins {
            new.join(start, beside);
        }
        new
    }

    /// Goes where the phase says; a phase that ends is left at once, so that the new gains hold from this acknowledgement on.
    fn turn(&mut self, now: Time, turn: Turn) {
        let min_rtt = self.path.min_rtt();
        match turn {
            Turn::Stay | Turn::Contest => {}
            Turn::Startup => self.phase = Phase::Startup(Startup::new()),
            Turn::Resume => {
                if let Phase::Drain { search: Some(search), .. } = &self.phase {
                    self.phase = Phase::Startup(search.clone().after_stall(&self.path));
                }
            }
            Turn::Drain => {
                self.path.end_search(now);
                let search = match &self.phase {
                    Phase::Startup(search) => {
                        self.path.expect_room();
                        search.has_seen_delay().then(|| search.clone())
                    }
                    _ => None,
                };
                self.phase = Phase::Drain { since: now, search };
            }
            Turn::Cruise => {
                // Where much was gained there may be more, and the estimate that startup left may be low.
                let quick = matches!(self.phase, Phase::Drain { .. }) || self.path.has_gained();
                self.phase = Phase::Cruise;
                let wait = if quick { min_rtt * 2 + SOON } else { self.probe_interval(min_rtt) };
                self.next_probe = now + wait;
                self.path.enter_cruise(now);
            }
            Turn::Wait => {
                self.next_probe = now + self.probe_interval(min_rtt);
                self.path.test_loss(now);
            }
            Turn::Up => {
                self.path.enter_up(now);
                self.phase = Phase::Up(Up::new(&self.path));
            }
            Turn::Down => self.phase = Phase::Down { since: now },
            Turn::ProbeRtt => {
                // The queue drains for a round trip; what comes then is the path.
                self.phase = Phase::ProbeRtt { empty: now + min_rtt, until: now + min_rtt + min_rtt.max(PROBE_RTT_TIME) };
            }
        }
    }

    /// 2 to 3 s, on long paths eight round trips, on short ones, where trying costs little, 200, with a chance part so that flows do not probe in step.
    fn probe_interval(&mut self, min_rtt: Duration) -> Duration {
        // Knuth's MMIX generator; the high bits are the good ones.
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let chance = (self.seed >> 40) as f64 / (1u64 << 24) as f64;
        let least = (min_rtt * 200).clamp(PROBE_INTERVAL_SHORT, PROBE_INTERVAL);
        (min_rtt * 8).clamp(least, PROBE_INTERVAL_MAX).mul_f64(1.0 + chance / 2.0)
    }
}

impl Controller for Lfn {
    fn on_sent(&mut self, sent: &SentSample) {
        if let Phase::Quick(quick) = &mut self.phase {
            quick.on_sent(sent);
        }
    }

    fn on_ack(&mut self, ack: &AckSample) {
        let summary = self.path.on_ack(ack, self.phase.doing());
        let turn = self.phase.on_ack(ack, summary.as_ref(), &mut self.path, self.next_probe);
        if turn == Turn::Contest {
            self.phase = Phase::Contest(Contest::new(ack, &self.path));
        }
        self.turn(ack.now, turn);
    }

    fn on_loss(&mut self, loss: &LossSample) {
        if loss.persistent {
            // After an outage: somewhat less than before, and from there an attempt at more. In startup it stays startup.
            self.path.on_outage();
            match self.phase {
                Phase::Startup(_) => {}
                Phase::Quick(_) => self.turn(loss.now, Turn::Startup),
                _ => self.turn(loss.now, Turn::Up),
            }
        } else if let Phase::Contest(contest) = &mut self.phase {
            contest.on_loss(loss, &self.path);
        } else if let Phase::Quick(quick) = &mut self.phase {
            quick.on_loss(loss);
        }
    }

    fn on_spurious(&mut self, _now: Time, bytes: Bytes) {
        if let Phase::Quick(quick) = &mut self.phase {
            quick.on_spurious(bytes);
        }
    }

    fn on_ecn(&mut self, ecn: &EcnSample) {
        // Fewer marks are what is left of a queue of others.
        if ecn.marked_pkts.saturating_mul(10) > ecn.reported_pkts {
            let turn = self.phase.on_marks(ecn, &mut self.path);
            self.turn(ecn.now, turn);
        }
    }

    fn on_idle(&mut self, now: Time) {
        self.path.restart_epoch(now);
    }

    fn on_mtu(&mut self, packet: Bytes) {
        self.packet = packet;
        self.path.set_packet(packet);
        if let Phase::Quick(quick) = &mut self.phase {
            quick.set_packet(packet);
        }
    }

    fn on_path_change(&mut self, now: Time) {
        *self = Self::new(self.mode, &PathStart::new(now, self.packet, self.seed));
    }

    fn window(&self) -> Bytes {
        let window = match &self.phase {
            Phase::Quick(quick) => return quick.window(&self.path),
            Phase::Contest(contest) => self.path.made_up(contest.window()),
            phase => self.path.window(phase.window_gain(&self.path)),
        };
        // Three trains, as the offload budget of draft-ietf-ccwg-bbr.
        window + self.burst() * 3
    }

    fn rate(&self) -> BitRate {
        match &self.phase {
            Phase::Quick(quick) => quick.rate(),
            Phase::Contest(contest) => self.path.pacing_rate_of(contest.rate_bps()),
            phase @ Phase::Startup(_) => self.path.pacing_rate(phase.pacing_gain(&self.path)).max(self.path.least_startup_rate()),
            phase => self.path.pacing_rate(phase.pacing_gain(&self.path)),
        }
    }

    fn burst(&self) -> Bytes {
        if let Phase::Quick(quick) = &self.phase {
            return quick.burst();
        }
        quantum(self.rate(), self.packet)
    }

    fn on_dispersion(&mut self, sample: &DispersionSample) {
        if let Phase::Quick(quick) = &mut self.phase {
            quick.on_dispersion(sample);
        }
    }

    fn filler(&self) -> Option<(Time, Bytes)> {
        match &self.phase {
            Phase::Quick(quick) => quick.filler(),
            _ => None,
        }
    }

    fn on_filler(&mut self, sent: &SentSample) {
        if let Phase::Quick(quick) = &mut self.phase {
            quick.on_filler(sent);
        }
    }

    fn learned(&self) -> Option<Learned> {
        self.path.learned()
    }

    fn share(&self) -> Option<Share> {
        self.path.share()
    }

    fn on_company(&mut self, company: &Company) {
        self.path.set_part(company.part());
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            algorithm: self.mode.name(),
            phase: self.phase.name(),
            bandwidth: Some(self.path.bandwidth()),
            base_loss: Some(self.path.base_loss()),
            ssthresh: None,
        }
    }
}

/// Time for an epoch of cruise.
const SOON: Duration = Duration::from_millis(100);
/// Two epochs of cruise.
const PROBE_INTERVAL_SHORT: Duration = Duration::from_millis(200);
/// draft-ietf-ccwg-bbr 5.3.3.5.3: BBR tries for more as often.
const PROBE_INTERVAL: Duration = Duration::from_secs(2);
/// Reached at round trips of 1.25 s, eight of which are otherwise waited for.
const PROBE_INTERVAL_MAX: Duration = Duration::from_secs(10);
/// draft-ietf-ccwg-bbr 5.3.4.3: ProbeRTTDuration
const PROBE_RTT_TIME: Duration = Duration::from_millis(200);
