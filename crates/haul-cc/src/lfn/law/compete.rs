//! The competitive mode: an equal part beside elastic cross traffic, which keeps the queue full.
//!
//! A queue that does not fall although we send less is kept up by somebody who sends until packets drop; who goes on giving way to it
//! ends with nothing. So this does what the others do, at the pace at which CUBIC does it: a window that grows until the queue overflows and is
//! then cut. It grows by what would bring a CUBIC flow of the same window back to it in CUBIC's time K,
//!
//! ```text
//! a = (1 - beta) W / K,   K = cbrt(W (1 - beta) / C)        RFC 9438 4.2 Eq. 2, packets and seconds
//! ```
//!
//! evenly and without a memory of the old window, so that a flow with the smaller window regains more of its cut than one with the larger.
//! Each cut asks at the same time whether anybody is there: for two round trips the window is halved. Beside others our part of the
//! bottleneck falls with it; if it does not, or the queue is gone, the competition is over.
//!
//! A flow that is deaf to loss shows by its silences (`silence.rs`). Beside it the window is not cut but held (`hold`).

use std::time::Duration;

use haul_units::{Bytes, Time};

use super::Flow;
use super::hold::Hold;
use crate::lfn::cross_traffic;
use crate::{AckSample, LossSample};

/// Whether there is still somebody to compete with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::lfn) enum Outcome {
    /// There is, as far as is known.
    GoesOn,
    /// A cut has changed nothing: the queue was ours.
    Alone,
    /// The queue has been short for so long that the others are gone.
    Gone,
}

/// A competition that is under way.
#[derive(Debug, Clone)]
pub(in crate::lfn) struct Compete {
    /// What may be in flight and arrive.
    window: f64,
    round_trip: Duration,
    at: Time,
    /// Nothing is known of the others' part: fast growth until the queue overflows.
    searching: bool,
    /// When the queue was last long.
    long_at: Time,
    /// When the queue last overflowed, for anybody, and the mean time between.
    event_at: Time,
    period: Option<f64>,
    /// What was sent before belongs to the last cut.
    cut_at: Time,
    /// Longest queue since it last fell, and of late.
    highest: Duration,
    longest: Duration,
    /// Lost since `lost_since`, about a round trip.
    lost: Bytes,
    lost_since: Time,
    question: Option<Question>,
    /// The rival does not give way to loss.
    hold: Option<Hold>,
}

/// Is anybody there?
#[derive(Debug, Clone, Copy)]
struct Question {
    /// From here on what is delivered was sent after the cut.
    from: Time,
    /// Delivered then; unknown before.
    delivered: Option<Bytes>,
    until: Time,
    rate_before_bps: f64,
    /// Where the window goes on.
    window: f64,
}

impl Compete {
    pub(in crate::lfn) fn new(ack: &AckSample, flow: &Flow) -> Self {
        let round_trip = ack.smoothed_rtt;
        let newest = ack.rtt.map_or(round_trip, |rtt| rtt.min(round_trip));
        let (start_bps, is_equal) = flow.cross.part(flow.path.bandwidth_bps());
        let longest = round_trip.saturating_sub(flow.path.min_rtt());
        let mut new = Self {
            window: (start_bps / 8.0 * newest.as_secs_f64()).min(ack.in_flight.as_u64() as f64 * MOST_GROWTH),
            searching: !is_equal,
            long_at: ack.now,
            round_trip,
            at: ack.now,
            event_at: ack.now,
            period: None,
            cut_at: ack.now,
            highest: longest,
            longest,
            lost: Bytes::ZERO,
            lost_since: ack.now,
            question: None,
            hold: None,
        };
        new.on_silence(ack, flow);
        new
    }

    /// The receiver has made room for so much.
    pub(in crate::lfn) fn take_room(&mut self, bps: f64) {
        self.window = self.window.max(bps / 8.0 * self.round_trip_secs());
        self.searching = false;
    }

    /// Bytes by which less is in flight than a moment ago.
    pub(in crate::lfn) fn less(&self) -> f64 {
        if self.at < self.cut_at + self.round_trip { self.window * (1.0 - QUESTION_CUT) } else { 0.0 }
    }

    /// Bytes that may be in flight and arrive.
    pub(in crate::lfn) fn window(&self) -> f64 {
        if self.question.is_some() { self.window * QUESTION_CUT } else { self.window }
    }

    /// Bits per second that keep the window full.
    pub(in crate::lfn) fn rate_bps(&self) -> f64 {
        self.rate_of(self.window()) * PACING_AHEAD
    }

    /// Bits per second that a window of so many bytes makes.
    fn rate_of(&self, window: f64) -> f64 {
        window * 8.0 / self.round_trip_secs()
    }

    fn round_trip_secs(&self) -> f64 {
        self.round_trip.as_secs_f64().max(1e-4)
    }

    pub(in crate::lfn) fn on_ack(&mut self, ack: &AckSample, flow: &mut Flow) -> Outcome {
        let passed = ack.now.since(self.at).min(MAX_STEP);
        (self.at, self.round_trip) = (ack.now, ack.smoothed_rtt);
        let queue = self.round_trip.saturating_sub(flow.path.min_rtt());
        self.highest = self.highest.max(queue);
        self.longest = self.longest.mul_f64(1.0 - passed.as_secs_f64() / LONGEST_MEMORY).max(queue);
        self.on_silence(ack, flow);
        let app_limited = ack.rate.is_some_and(|sample| sample.app_limited);
        if app_limited {
            // What arrives over a pause of the application answers nothing.
            if let Some(question) = self.question.take() {
                self.go_on(&question, queue);
            }
            return Outcome::GoesOn;
        }
        if let Some(question) = &mut self.question {
            if ack.now >= question.from && question.delivered.is_none() {
                question.delivered = Some(ack.delivered);
            }
            if ack.now >= question.until {
                let delivered = ack.delivered - question.delivered.unwrap_or(ack.delivered);
                let rate_bps = delivered.as_u64() as f64 * 8.0 / question.until.since(question.from).as_secs_f64();
                let alone = rate_bps > question.rate_before_bps * ALONE;
                let question = *question;
                self.go_on(&question, queue);
                return if alone { Outcome::Alone } else { Outcome::GoesOn };
            }
            return Outcome::GoesOn;
        }
        // The smallest round-trip time of the last 10 s: the path may have become longer.
        if self.round_trip.saturating_sub(ack.min_rtt) > flow.path.long_queue() / 2 {
            self.long_at = ack.now;
        }
        self.notice_cuts_of_others(ack.now, queue);
        if self.hold.is_some() {
            self.keep(ack, passed, flow);
        } else if ack.now.since(self.cut_at.max(self.event_at)) > (self.round_trip * ASK_ROUNDS).max(LEAST_ASK) {
            self.ask(ack.now, flow, 1.0);
            return Outcome::GoesOn;
        } else if ack.in_flight.as_u64() as f64 > self.window * USED {
            // RFC 9002 7.8: a window that is not used does not grow.
            self.grow(passed, flow);
        }
        if ack.now.since(self.long_at) > (self.round_trip * QUIET_ROUNDS).max(LEAST_QUIET) {
            flow.path.base_delay.renew(ack.now, ack.min_rtt);
            // A question that was asked just now has halved what arrived.
            flow.path.bandwidth.raise(self.rate_of(self.window));
            return Outcome::Gone;
        }
        Outcome::GoesOn
    }

    /// A question is answered, or given up.
    fn go_on(&mut self, question: &Question, queue: Duration) {
        self.question = None;
        self.window = question.window;
        self.highest = queue;
    }

    /// A moment in which somebody was silent shows how long the queue is, and what the bottleneck carries.
    fn on_silence(&mut self, ack: &AckSample, flow: &Flow) {
        let Some(silence) = flow.cross.silence() else { return };
        self.longest = self.longest.max(silence.level);
        match &mut self.hold {
            Some(hold) => hold.on_silence(ack.now, &silence, self.window, self.longest, &flow.path),
            None if flow.cross.verdict(&flow.path) == cross_traffic::Verdict::Deaf => {
                self.hold = Hold::new(ack, &silence, self.window, self.longest, &flow.path);
            }
            None => {}
        }
    }

    fn keep(&mut self, ack: &AckSample, passed: Duration, flow: &Flow) {
        let rounds = passed.as_secs_f64() / self.round_trip_secs();
        if let Some(window) = self.hold.as_mut().and_then(|hold| hold.on_ack(ack, self.window, rounds, &flow.path)) {
            self.window = window;
        } else {
            // As after a cut.
            (self.hold, self.event_at, self.cut_at) = (None, ack.now, ack.now);
        }
    }

    fn grow(&mut self, passed: Duration, flow: &Flow) {
        let packet = flow.path.packet_bytes();
        // The whole connection's window grows as one flow's, and this path's part of it.
        let part = flow.part();
        let window = (self.window / part / packet).max(1.0);
        if self.searching {
            self.window *= (passed.as_secs_f64() / self.round_trip_secs() * SEARCH.ln()).exp();
            return;
        }
        let own_k = (window * (1.0 - BETA) / C).cbrt();
        let since = self.at.since(self.event_at).as_secs_f64();
        let period = self.period.unwrap_or(own_k).max(since).clamp(own_k / MOST_FASTER, own_k * MOST_OFF);
        let cubic = C * period * period;
        // RFC 9438 4.3: where Reno is faster, as Reno.
        let reno = 3.0 * (1.0 - BETA) / (1.0 + BETA) / self.round_trip_secs();
        self.window += part * cubic.max(reno) * passed.as_secs_f64() * packet;
    }

    pub(in crate::lfn) fn on_loss(&mut self, loss: &LossSample, flow: &Flow) {
        if loss.sent_at < self.cut_at || self.hold.is_some() {
            return;
        }
        if loss.now.since(self.lost_since) > self.round_trip {
            (self.lost, self.lost_since) = (Bytes::ZERO, loss.now);
        }
        self.lost += loss.lost;
        let usual = flow.path.base_loss() * self.window;
        let random = if flow.path.base_loss() < NO_LOSS { 0.0 } else { 2.0 * usual + 2.0 * flow.path.packet_bytes() };
        if self.lost.as_u64() as f64 > random
            && self.round_trip.saturating_sub(flow.path.min_rtt()) >= self.highest.mul_f64(FULL_QUEUE)
        {
            self.cut(loss.now, flow);
        }
    }

    /// Marks by the network.
    pub(in crate::lfn) fn on_marks(&mut self, now: Time, sent_at: Time, flow: &Flow) {
        if sent_at >= self.cut_at {
            self.cut(now, flow);
        }
    }

    /// A queue that falls by itself has overflowed for others only.
    fn notice_cuts_of_others(&mut self, now: Time, queue: Duration) {
        if queue < self.highest.mul_f64(FALLEN) {
            if now.since(self.event_at) > self.round_trip * SAME_EVENT {
                self.event(now);
            }
            self.highest = queue;
        }
    }

    fn event(&mut self, now: Time) {
        self.searching = false;
        let passed = now.since(self.event_at).as_secs_f64();
        self.event_at = now;
        self.period = Some(self.period.map_or(passed, |period| period.midpoint(passed)));
    }

    fn cut(&mut self, now: Time, flow: &Flow) {
        if now.since(self.event_at) > self.round_trip * SAME_EVENT {
            self.event(now);
        }
        self.ask(now, flow, CUT);
    }

    /// Halves the window for two round trips; afterwards it goes on with this part of what it was.
    fn ask(&mut self, now: Time, flow: &Flow, part: f64) {
        let rate_before_bps = flow.path.bandwidth_bps();
        let from = now + self.round_trip;
        let until = from + self.round_trip;
        self.question = Some(Question { from, delivered: None, until, rate_before_bps, window: self.window * part });
        self.cut_at = until;
    }
}

/// RFC 9438 4.6 and 5.
const BETA: f64 = 0.7;
/// A little less than CUBIC's, for the question costs as much again.
const CUT: f64 = 0.75;
/// RFC 9438 5: of the curve, in packets over cubic seconds.
const C: f64 = 0.4;
/// A round trip.
const SEARCH: f64 = 1.2;
/// As long without a long queue, and the others are gone.
const QUIET_ROUNDS: u32 = 4;
const LEAST_QUIET: Duration = Duration::from_secs(1);
/// Seconds.
const LONGEST_MEMORY: f64 = 20.0;
/// Nobody takes back more at once.
const MOST_GROWTH: f64 = 2.0;
/// Without an overflow for so long, the question is asked all the same.
const ASK_ROUNDS: u32 = 10;
/// Ten round trips of a short path are too soon: each question costs half of what is sent meanwhile.
const LEAST_ASK: Duration = Duration::from_secs(5);
const QUESTION_CUT: f64 = 0.5;
/// Part of the old rate above which the cut has changed nothing.
const ALONE: f64 = 0.95;
/// The window decides; pacing only spreads it. Bursts into a full queue are what is dropped: TCP sends when its packets have left the queue.
const PACING_AHEAD: f64 = 1.02;
/// Round trips in which all that overflows belongs together.
const SAME_EVENT: u32 = 5;
/// Part of the longest queue.
const FALLEN: f64 = 0.7;
/// The cubes of these bound how much smaller and larger others are taken to be.
const MOST_FASTER: f64 = 1.26;
const MOST_OFF: f64 = 2.0;
/// Part of the window that is in flight while the application gives enough; below it the window does not grow.
const USED: f64 = 0.7;
/// Part of the longest queue at which a loss can be an overflow.
const FULL_QUEUE: f64 = 0.6;
/// A path that loses less by chance than one packet in 2000: a loss on it is an overflow.
const NO_LOSS: f64 = 0.0005;
/// A pause of the acknowledgements is no time to grow in.
const MAX_STEP: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use haul_units::BitRate;

    use super::*;
    use crate::RateSample;
    use crate::lfn::law::Doing;
    use crate::lfn::mode::Mode;

    const RTT: Duration = Duration::from_millis(40);

    /// What has been delivered by then at 100 Mbit/s, told in bytes of a twentieth of a round trip.
    fn ack(now: Time, app_limited: bool) -> AckSample {
        let (rate, acked) = (BitRate::mbps(100), BitRate::mbps(100).bytes_in(RTT / 20));
        let sample = RateSample {
            rate,
            sent: rate,
            interval: RTT,
            app_limited,
            in_flight_at_send: rate.bytes_in(RTT),
            lost: Bytes::ZERO,
            delivered: rate.bytes_in(RTT),
        };
        AckSample {
            now,
            acked,
            delivered: rate.bytes_in(now.since(Time::ZERO)),
            in_flight: rate.bytes_in(RTT),
            rtt: Some(RTT),
            smoothed_rtt: RTT,
            min_rtt: RTT,
            queue_delay: Some(Duration::ZERO),
            rate: Some(sample),
            round: 0,
            round_start: false,
            lost_total: Bytes::ZERO,
        }
    }

    #[test]
    fn a_question_over_which_the_application_pauses_is_not_answered() {
        for pauses in [false, true] {
            let mut flow = Flow::new(Mode::Fair, Bytes(1472));
            let mut now = Time::ZERO;
            for _ in 0..40 {
                now += RTT / 20;
                flow.on_ack(&ack(now, false), Doing::Search);
            }
            let mut compete = Compete::new(&ack(now, false), &flow);
            let window = compete.window();
            compete.ask(now, &flow, 1.0);
            let outcomes: Vec<_> = (0..50)
                .map(|n| {
                    now += RTT / 20;
                    compete.on_ack(&ack(now, pauses && (25..45).contains(&n)), &mut flow)
                })
                .collect();
            // As much arrives as before the cut.
            assert_eq!(outcomes.contains(&Outcome::Alone), !pauses, "{outcomes:?}");
            assert!(compete.window() >= window, "the question is over: {} of {window}", compete.window());
        }
    }
}
