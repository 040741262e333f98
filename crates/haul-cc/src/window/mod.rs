//! The frame that controllers with a window share: what is the same whatever law makes the window grow and shrink.
//!
//! A [`Law`] says how far the window grows for what is acknowledged and how far it shrinks on congestion; its [`SlowStart`] says how the
//! first window is found. The frame does the rest, once for all of them:
//!
//! ```text
//! growth      counted in bytes acknowledged, not in acknowledgements (RFC 3465)
//! reduction   once a round trip: what left before the last cut belongs to it (RFC 6582, 9002 7.3.2)
//! recovery    spread over the round trip after a cut (RFC 6937), window 2 packets after silence (RFC 9002 7.6)
//! undo        when all that was lost turns up after all (RFC 4015)
//! marks       cut less deep than losses (RFC 3168, 8511)
//! unused      a window that is not filled does not grow, and a cut starts from what was used (RFC 7661, 9002 7.8)
//! ```
//!
//! Windows are kept in packets of the full size, as the laws are written; a new packet size keeps the bytes. Pacing is at window /
//! smoothed round-trip time times a gain: 2 in slow start, 1.25 after, so that the window rules and bursts do not.

mod hystart;
mod law;
mod recovery;
mod whole;

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

pub(crate) use self::hystart::HyStart;
pub(crate) use self::law::{AVOIDANCE_GAIN, Acked, Cause, Law, MIN_WINDOW, SlowStart, Verdict};
use self::recovery::Recovery;
use self::whole::Whole;
use crate::pacer::quantum;
use crate::{AckSample, Company, Controller, EcnSample, LossSample, PathStart, SentSample, Share, Snapshot};

/// A controller that keeps a window by a law.
#[derive(Debug, Clone)]
pub(crate) struct Windowed<L: Law> {
    packet: Bytes,
    state: State<L>,
    start: L::Start,
    first: bool,
    /// Something has been acknowledged, or the path is known.
    begun: bool,
    /// What was sent before belongs to the cut made then.
    last_cut: Option<Time>,
    recovery: Option<Recovery>,
    undo: Option<Undo<L>>,
    /// Everything was lost and nothing has been acknowledged since.
    silent: bool,
    smoothed_rtt: Option<Duration>,
    in_flight: Bytes,
    /// Most bytes in flight in the round before and in this one: a window that is not used does not grow.
    used: [Bytes; 2],
    /// In these rounds the application had nothing more to send.
    app_limited: [bool; 2],
    /// Other paths of the connection.
    whole: Whole,
}

/// What an undo restores. Windows in packets.
#[derive(Debug, Clone)]
struct State<L> {
    window: f64,
    ssthresh: f64,
    law: L,
}

/// How to take back a cut if all losses that caused it turn out spurious.
#[derive(Debug, Clone)]
struct Undo<L> {
    before: State<L>,
    first: bool,
    lost: Bytes,
    spurious: Bytes,
}

impl<L: Law> Windowed<L> {
    /// A controller in slow start; past it if the path is known.
    pub(crate) fn new(start: &PathStart) -> Self {
        let known = start.learned_window().map(|window| window.as_u64() as f64 / start.packet.as_u64().max(1) as f64);
        let window = known.unwrap_or(L::INITIAL_WINDOW).clamp(MIN_WINDOW, MAX_WINDOW_PKTS);
        let rtt = start.learned.map(|learned| learned.min_rtt).or(start.rtt);
        Self {
            packet: start.packet,
            state: State { window, ssthresh: if known.is_some() { window } else { f64::INFINITY }, law: L::default() },
            start: L::Start::default(),
            first: known.is_none(),
            begun: known.is_some(),
            last_cut: None,
            recovery: None,
            undo: None,
            silent: false,
            smoothed_rtt: rtt,
            in_flight: Bytes::ZERO,
            used: [Bytes::ZERO; 2],
            app_limited: [false; 2],
            whole: Whole::default(),
        }
    }

    fn in_slow_start(&self) -> bool {
        self.state.window < self.state.ssthresh
    }

    fn packets(&self, bytes: Bytes) -> f64 {
        bytes.as_u64() as f64 / self.packet.as_u64().max(1) as f64
    }

    fn is_app_limited(&self) -> bool {
        self.app_limited[0] || self.app_limited[1]
    }

    /// The most that was in flight lately, in packets.
    fn used_packets(&self) -> f64 {
        self.packets(self.used[0].max(self.used[1]))
    }

    fn slow_start(&mut self, ack: &Acked<'_>) {
        match self.start.on_ack(self.state.window, ack) {
            // RFC 9002 7.8: twice what is used, for the window doubles in a round trip.
            Verdict::Grow(share) if self.state.window < 2.0 * self.used_packets() => {
                self.state.window = (self.state.window + share * ack.packets).min(self.state.ssthresh.max(self.state.window));
            }
            Verdict::Grow(_) => {}
            Verdict::Leave(window) => {
                let now = ack.sample.now;
                if window < self.state.window {
                    // What overflowed the queue before this was seen is not congestion once more.
                    self.last_cut = Some(now);
                    self.recovery = Some(Recovery::new(now, self.bytes(window), self.in_flight, self.packet));
                }
                self.state.window = window.max(MIN_WINDOW);
                self.state.ssthresh = self.state.window;
            }
        }
    }

    fn avoid(&mut self, ack: &Acked<'_>) {
        let window = self.state.window;
        // What came back with this acknowledgement, and a train or two, may be missing in a window that is full.
        let slack = self.packets(self.burst() * 2) + ack.packets;
        let unused = self.used_packets() + slack <= window;
        let paused = unused && self.is_app_limited();
        let law = &mut self.state.law;
        if paused {
            law.pause();
        }
        let part = if L::COUPLED { 1.0 } else { self.whole.part() };
        let ack = &Acked { sample: &self.whole.slowed(ack.sample, part), ..*ack };
        let grown = part * if unused { law.grow_unused(window / part, ack) } else { law.grow(window / part, ack) };
        // A law that was fed nonsense does not break the window.
        let grown = if grown.is_finite() { grown } else { window };
        self.state.window = grown.clamp(MIN_WINDOW, MAX_WINDOW_PKTS);
        self.state.ssthresh = self.state.ssthresh.min(self.state.window);
    }

    /// Cuts the window, unless the newest packet concerned left before the last cut.
    fn cut(&mut self, now: Time, sent_at: Time, cause: Cause, flight: Bytes) -> bool {
        if self.last_cut.is_some_and(|cut| sent_at <= cut) {
            return false;
        }
        self.undo = Some(Undo { before: self.state.clone(), first: self.first, lost: Bytes::ZERO, spurious: Bytes::ZERO });
        // RFC 7661 4.4.1: a window that the application did not use is no measure of the path. One that losses have emptied is.
        let used = self.used_packets() + self.packets(self.burst() * 3);
        let base = if self.is_app_limited() { used.min(self.state.window) } else { self.state.window };
        let part = if L::COUPLED { 1.0 } else { self.whole.part() };
        self.state.window = (part * self.state.law.cut(base / part, cause)).clamp(MIN_WINDOW, MAX_WINDOW_PKTS);
        self.state.ssthresh = self.state.window;
        self.first = false;
        self.last_cut = Some(now);
        self.whole.on_cut();
        self.recovery = Some(Recovery::new(now, self.window_bytes(), flight, self.packet));
        true
    }

    /// As after a slow start that found this window.
    #[cfg(test)]
    pub(crate) fn leave_slow_start(&mut self, window: f64) {
        self.state.window = window;
        self.state.ssthresh = window;
    }

    #[cfg(test)]
    pub(crate) fn law(&mut self) -> &mut L {
        &mut self.state.law
    }

    fn bytes(&self, packets: f64) -> Bytes {
        Bytes((packets * self.packet.as_u64() as f64) as u64).clamp(self.packet, MAX_WINDOW)
    }

    fn window_bytes(&self) -> Bytes {
        self.bytes(self.state.window)
    }
}

impl<L: Law> Controller for Windowed<L> {
    fn on_sent(&mut self, sent: &SentSample) {
        self.used[1] = self.used[1].max(sent.in_flight);
        self.app_limited[1] |= sent.app_limited;
        self.in_flight = sent.in_flight;
        if let Some(recovery) = &mut self.recovery {
            recovery.on_sent(sent.bytes);
        }
    }

    fn on_ack(&mut self, ack: &AckSample) {
        self.silent = false;
        self.begun = true;
        self.smoothed_rtt = Some(ack.smoothed_rtt);
        self.in_flight = ack.in_flight;
        self.whole.on_acked(ack.acked);
        if ack.round_start {
            self.used = [self.used[1], ack.in_flight];
            self.app_limited = [self.app_limited[1], false];
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.on_ack(ack);
            if !recovery.is_over(ack) {
                return;
            }
            self.recovery = None;
        }
        let company = *self.whole.company();
        let acked =
            Acked { packets: self.packets(ack.acked), first: self.first, sample: ack, packet: self.packet, company: &company };
        if self.in_slow_start() {
            self.slow_start(&acked);
        } else {
            self.avoid(&acked);
        }
    }

    fn on_loss(&mut self, loss: &LossSample) {
        self.in_flight = loss.in_flight;
        // RFC 5681 3.1: what is lost again after a timeout does not lower the threshold again.
        if self.silent {
            return;
        }
        self.cut(loss.now, loss.sent_at, Cause::Loss, loss.in_flight + loss.lost);
        if let Some(undo) = &mut self.undo {
            undo.lost += loss.lost;
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.on_loss(loss.in_flight);
        }
        if loss.persistent {
            // RFC 9002 7.6.2: persistent congestion collapses the window to the minimum.
            self.state.window = MIN_WINDOW;
            self.state.law.collapse();
            self.first = false;
            self.silent = true;
            self.recovery = None;
        }
    }

    fn on_spurious(&mut self, _now: Time, bytes: Bytes) {
        let Some(undo) = &mut self.undo else { return };
        undo.spurious += bytes;
        if undo.spurious < undo.lost {
            return;
        }
        // RFC 4015, RFC 9438 4.9: restore what the spurious event took, unless the window has passed it since.
        if let Some(undo) = self.undo.take()
            && undo.before.window > self.state.window
        {
            self.state = undo.before;
            self.first = undo.first;
            self.recovery = None;
        }
    }

    fn on_ecn(&mut self, ecn: &EcnSample) {
        if self.cut(ecn.now, ecn.sent_at, Cause::Mark, self.in_flight) {
            self.undo = None;
        }
    }

    fn on_idle(&mut self, _now: Time) {
        self.state.law.pause();
        self.recovery = None;
        self.used = [Bytes::ZERO; 2];
    }

    fn on_mtu(&mut self, packet: Bytes) {
        let packet = packet.max(Bytes(1));
        let factor = self.packet.as_u64() as f64 / packet.as_u64() as f64;
        self.packet = packet;
        if !self.begun {
            return;
        }
        self.state.window = (self.state.window * factor).clamp(MIN_WINDOW, MAX_WINDOW_PKTS);
        self.state.ssthresh *= factor;
        self.state.law.rescale(factor);
        // What it would restore is in packets of the old size.
        self.undo = None;
    }

    fn on_path_change(&mut self, now: Time, rtt: Option<Duration>) {
        *self = Self::new(&PathStart { rtt, ..PathStart::new(now, self.packet, 0) });
    }

    fn window(&self) -> Bytes {
        let window = self.window_bytes();
        self.recovery.as_ref().map_or(window, Recovery::limit).max(self.packet * 2)
    }

    fn rate(&self) -> BitRate {
        let gain = if self.in_slow_start() { SLOW_START_GAIN } else { self.state.law.pacing_gain() };
        let over = self.smoothed_rtt.unwrap_or(UNMEASURED_RTT).max(Duration::from_micros(1));
        BitRate::of(self.window_bytes(), over).scaled(gain).max(LEAST_RATE)
    }

    fn burst(&self) -> Bytes {
        quantum(self.rate(), self.packet)
    }

    fn share(&self) -> Option<Share> {
        let rtt = self.smoothed_rtt?.as_secs_f64();
        Some(Share::of_window(self.window_bytes().as_u64() as f64, rtt, self.whole.unlost_bytes()))
    }

    fn on_company(&mut self, company: &Company) {
        self.whole.set(company);
    }

    fn snapshot(&self) -> Snapshot {
        let threshold = self.state.ssthresh * self.packet.as_u64() as f64;
        Snapshot {
            algorithm: L::NAME,
            phase: match (&self.recovery, self.in_slow_start()) {
                (Some(_), _) => "recovery",
                (None, true) => "slow start",
                (None, false) => self.state.law.phase(),
            },
            is_starting: self.recovery.is_none() && self.in_slow_start(),
            bandwidth: None,
            base_loss: None,
            ssthresh: threshold.is_finite().then_some(Bytes(threshold as u64)),
        }
    }
}

/// Beyond any path.
const MAX_WINDOW: Bytes = Bytes::gib(1024);
const MAX_WINDOW_PKTS: f64 = 1e9;
/// Room for the window to rule, not the pacer.
const SLOW_START_GAIN: f64 = 2.0;
/// The first window leaves within this time.
const UNMEASURED_RTT: Duration = Duration::from_millis(1);
/// So that a path that has stood still for an hour is tried again.
const LEAST_RATE: BitRate = BitRate::from_bps(8_000);

#[cfg(test)]
mod tests;
