//! Delivery rate from the receiver's clock and byte counter.
//!
//! ```text
//! sender    R sent ........ P sent
//!             \    R's ack /    \                  sample of P:  received bytes between the acks of R and P
//! receiver     R arrives .......... P arrives                    over the time between the arrivals of R and P
//! ```
//!
//! When train P leaves, R is the newest packet acknowledged so far. Both ends of the interval are read from the receiver's clock, so
//! acknowledgements that queue up or bunch on their way back do no harm. The rate at which the bytes between R and P were sent caps it:
//! a network cannot deliver faster than that for long, and a peer that lies cannot claim more. Before there is an R (at the start, and
//! after a pause with nothing in flight) the interval is the round trip by our own clock: a lower bound.
//!
//! A sample is limited by the application where more than an eighth of the time between the departures of R and P passed with nothing to
//! send. A wait of a millisecond in a round trip of 200 ms takes nothing from the rate that is worth ignoring the sample for.
//! DEVIATION: the draft (4.5.2.4) marks a whole round trip for any such wait.
//! Source: the structure of draft-ietf-ccwg-bbr 4.5.2 (delivery rate samples).

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

/// A measurement of the delivery rate, over about one round trip.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateSample {
    /// Bytes that arrived over the time they took to arrive by the receiver's clock, never more than the rate at which they were sent.
    pub rate: BitRate,
    /// The rate at which they were sent: where it is no larger, more might have arrived.
    pub sent: BitRate,
    /// The interval measured.
    pub interval: Duration,
    /// The sender ran out of data or credit in it: a lower bound only.
    pub app_limited: bool,
    /// In flight when the newest packet of the sample left.
    pub in_flight_at_send: Bytes,
    /// Declared lost since the newest packet of the sample left.
    pub lost: Bytes,
    /// Delivered since the newest packet of the sample left (the length of the sample in bytes).
    pub delivered: Bytes,
}

/// What the transport keeps with each train in flight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SentState {
    /// When the train left.
    pub sent_at: Time,
    /// In flight when it had left, itself included.
    pub in_flight: Bytes,
    /// The newest packet acknowledged when it left.
    reference: Reference,
    sent_total: Bytes,
    lost_total: Bytes,
    app_limited: bool,
    /// For how long there had been nothing to send, in all.
    limited_us: u64,
}

/// An acknowledgement, as far as rates are concerned. `receiver_bytes` and `receiver_time` come from the peer and may be anything.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AckReport {
    /// When it is processed.
    pub now: Time,
    /// Bytes received on the path, by the receiver's count.
    pub receiver_bytes: Bytes,
    /// Arrival of the largest packet acknowledged, by the receiver's clock.
    pub receiver_time: Time,
    /// Total declared lost so far, spurious ones taken off.
    pub lost_total: Bytes,
    /// Smallest round-trip time of the last 10 s.
    pub min_rtt: Duration,
}

/// Measures the delivery rate of one path.
///
/// `on_sent` for every train that counts against the window, its result kept with the train; `on_app_limited` when there is nothing more
/// to send although window and pacer allow it; `on_ack` for each acknowledgement whose largest packet is newly acknowledged, with the
/// state of the train that carried it.
#[derive(Debug, Clone)]
pub struct RateSampler {
    reference: Reference,
    sent_total: Bytes,
    lost_total: Bytes,
    /// There is nothing to send, since then.
    limited_since: Option<Time>,
    /// For how long there has been nothing to send, in all, and when the reference left.
    limited_us: u64,
    reference_limited_us: u64,
    min_rtt: Duration,
    /// After a pause samples are app-limited until a packet sent beyond this total has been acknowledged.
    app_limited_until: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Reference {
    sent_at: Time,
    sent_total: Bytes,
    receiver_bytes: Bytes,
    /// Unknown at the start and after a pause.
    receiver_time: Option<Time>,
}

impl RateSampler {
    /// Nothing sent yet.
    pub fn new(now: Time) -> Self {
        let reference = Reference { sent_at: now, sent_total: Bytes::ZERO, receiver_bytes: Bytes::ZERO, receiver_time: None };
        Self {
            reference,
            sent_total: Bytes::ZERO,
            lost_total: Bytes::ZERO,
            limited_since: None,
            limited_us: 0,
            reference_limited_us: 0,
            min_rtt: Duration::ZERO,
            app_limited_until: None,
        }
    }

    /// A train of `bytes` leaves; `in_flight` includes it.
    pub fn on_sent(&mut self, now: Time, bytes: Bytes, in_flight: Bytes) -> SentState {
        if let Some(since) = self.limited_since.take() {
            self.limited_us += now.since(since).as_micros() as u64;
        }
        if in_flight <= bytes {
            self.reference.sent_at = now;
            self.reference.sent_total = self.sent_total;
            self.reference.receiver_time = None;
            self.reference_limited_us = self.limited_us;
        }
        self.sent_total += bytes;
        let app_limited = self.is_app_limited_at(now);
        SentState {
            sent_at: now,
            in_flight,
            reference: self.reference,
            sent_total: self.sent_total,
            lost_total: self.lost_total,
            app_limited,
            limited_us: self.limited_us,
        }
    }

    /// There is nothing more to send although there is room: what is in flight says nothing about the path's limit.
    pub fn on_app_limited(&mut self, now: Time) {
        self.limited_since.get_or_insert(now);
        self.app_limited_until = Some(self.sent_total);
    }

    /// All that was in flight is taken for lost because it went elsewhere: nothing that leaves from now on has lost it.
    pub const fn restart(&mut self, lost_total: Bytes) {
        self.lost_total = lost_total;
    }

    /// There was nothing to send since the last acknowledgement that says something of the path.
    pub const fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }

    /// Whether a train that leaves now gives an app-limited sample.
    fn is_app_limited_at(&self, now: Time) -> bool {
        if self.reference.receiver_time.is_none() || self.min_rtt < LONG_PATH {
            // The first round trip after a pause: its interval counts from the reference's departure on, and the pause is before that.
            return self.is_app_limited();
        }
        let limited = Duration::from_micros(self.limited_us - self.reference_limited_us);
        limited * LIMITED_PART > now.since(self.reference.sent_at)
    }

    /// The largest packet of an acknowledgement is newly acknowledged; `newest` belongs to its train.
    ///
    /// No sample comes of it if the counters went backwards or the interval is too short to mean anything.
    pub fn on_ack(&mut self, newest: &SentState, report: &AckReport) -> Option<RateSample> {
        self.lost_total = report.lost_total;
        self.min_rtt = report.min_rtt;
        if newest.sent_total < self.reference.sent_total {
            return None;
        }
        if self.app_limited_until.is_some_and(|until| newest.sent_total > until) {
            self.app_limited_until = None;
        }
        // Also where its counters went backwards: one report that lies would otherwise be the measure of all that follow.
        self.reference = Reference {
            sent_at: newest.sent_at,
            sent_total: newest.sent_total,
            receiver_bytes: report.receiver_bytes,
            receiver_time: Some(report.receiver_time),
        };
        self.reference_limited_us = newest.limited_us;
        sample(newest, report)
    }
}

fn sample(newest: &SentState, report: &AckReport) -> Option<RateSample> {
    let start = &newest.reference;
    let delivered = Bytes(report.receiver_bytes.0.checked_sub(start.receiver_bytes.0)?);
    let interval = match start.receiver_time {
        Some(time) => report.receiver_time.since(time),
        None => report.now.since(newest.sent_at),
    };
    // An interval spans a round trip; a much shorter one comes of reordering, or of a lie. So does one that is longer than from the departure of R until now.
    if interval < report.min_rtt / 2 || interval.is_zero() || interval > report.now.since(start.sent_at) {
        return None;
    }
    let sent = newest.sent_total.saturating_sub(start.sent_total);
    let sending_time = newest.sent_at.since(start.sent_at);
    let sent_rate = if start.receiver_time.is_some() {
        BitRate::of(sent, sending_time)
    } else {
        BitRate::of(sent, sending_time.max(report.min_rtt))
    };
    Some(RateSample {
        rate: BitRate::of(delivered, interval).min(sent_rate),
        sent: sent_rate,
        interval,
        app_limited: newest.app_limited,
        in_flight_at_send: newest.in_flight,
        lost: report.lost_total.saturating_sub(newest.lost_total),
        delivered: delivered.min(sent + newest.in_flight),
    })
}

/// The part of the time in which there may be nothing to send.
const LIMITED_PART: u32 = 8;
/// On shorter paths the wait of a thread is no moment, and a few round trips take no time.
pub(crate) const LONG_PATH: Duration = Duration::from_millis(5);

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);
    const TRAIN: Bytes = Bytes(10_000);
    const STEP: Duration = Duration::from_millis(10);

    fn report(now: Time, trains: u64, receiver_time: Time) -> AckReport {
        AckReport { now, receiver_bytes: TRAIN * trains, receiver_time, lost_total: Bytes::ZERO, min_rtt: RTT }
    }

    /// One train each 10 ms: 8 Mbit/s.
    fn steady(trains: u64, receive: impl Fn(Time) -> Time) -> (RateSampler, Vec<Option<RateSample>>) {
        let mut sampler = RateSampler::new(Time::ZERO);
        let (mut states, mut samples) = (Vec::new(), Vec::new());
        for n in 0..trains {
            let now = Time::ZERO + STEP * n as u32;
            if n >= 10 {
                let acked = n - 10;
                let arrived = receive(Time::ZERO + STEP * acked as u32 + RTT / 2);
                samples.push(sampler.on_ack(&states[acked as usize], &report(now, acked + 1, arrived)));
            }
            states.push(sampler.on_sent(now, TRAIN, TRAIN * n.min(10)));
        }
        (sampler, samples)
    }

    #[test]
    fn steady_sending_is_measured_exactly() {
        let (_, samples) = steady(40, |t| t);
        let last = samples.last().copied().flatten().expect("a sample for each acknowledgement");
        assert_eq!(last.rate, BitRate::mbps(8));
        assert!(!last.app_limited);
        assert_eq!(last.interval, RTT);
    }

    #[test]
    fn the_send_rate_caps_a_lying_receiver() {
        let mut sampler = RateSampler::new(Time::ZERO);
        let first = sampler.on_sent(Time::ZERO, TRAIN, TRAIN);
        let mut lie = report(Time::ZERO + RTT, 1, Time::ZERO);
        sampler.on_ack(&first, &lie);
        let second = sampler.on_sent(Time::ZERO + RTT, TRAIN, TRAIN + TRAIN);
        lie = AckReport { now: Time::ZERO + RTT * 2, receiver_bytes: Bytes(u64::MAX), receiver_time: Time::ZERO + RTT, ..lie };
        let sample = sampler.on_ack(&second, &lie).expect("interval long enough");
        assert_eq!(sample.rate, BitRate::of(TRAIN, RTT));
    }

    #[test]
    fn counters_that_go_back_give_nothing() {
        let (mut sampler, _) = steady(20, |t| t);
        let state = sampler.on_sent(Time::ZERO + STEP * 20, TRAIN, TRAIN * 11);
        assert_eq!(sampler.on_ack(&state, &report(Time::ZERO + RTT * 3, 0, Time::ZERO)), None);
        // The same receiver time again: no interval, no sample, no division by it.
        let (mut sampler, samples) = steady(30, |_| Time::ZERO);
        assert!(samples.iter().skip(11).all(Option::is_none));
        let state = sampler.on_sent(Time::ZERO + STEP * 30, TRAIN, TRAIN * 11);
        assert_eq!(sampler.on_ack(&state, &report(Time::ZERO + RTT * 4, 31, Time::ZERO)), None);
    }

    /// Whether each of 60 reports gave a sample, one each 10 ms, of which the twentieth tells so much, by this clock.
    fn samples_after(bytes: u64, clock: Time) -> Vec<bool> {
        let mut sampler = RateSampler::new(Time::ZERO);
        let (mut states, mut samples) = (Vec::<SentState>::new(), Vec::new());
        for n in 0..70 {
            let now = Time::ZERO + STEP * n as u32;
            if n >= 10 {
                let honest = report(now, n - 9, now.before(RTT / 2));
                let lie = AckReport { receiver_bytes: Bytes(bytes), receiver_time: clock, ..honest };
                let sample = sampler.on_ack(&states[n as usize - 10], if n == 30 { &lie } else { &honest });
                assert!(sample.is_none_or(|sample| n < 20 || n == 30 || sample.rate == BitRate::mbps(8)), "{n}: {sample:?}");
                samples.push(sample.is_some());
            }
            states.push(sampler.on_sent(now, TRAIN, TRAIN * n.min(10)));
        }
        samples
    }

    #[test]
    fn a_lie_is_forgotten_within_two_round_trips() {
        let (bytes, clock) = (TRAIN.as_u64() * 21, Time::ZERO + STEP * 25);
        for (bytes, clock) in [(u64::MAX, clock), (bytes, Time::NEVER), (0, clock), (bytes, Time::ZERO)] {
            let samples = samples_after(bytes, clock);
            let deaf: Vec<_> = (20..60).filter(|&n| !samples[n]).collect();
            assert!(deaf.iter().all(|&n| n < 40), "{bytes} bytes at {clock}: nothing of reports {deaf:?}");
        }
    }

    /// One train each 10 ms, with nothing to send for `wait` after the thirtieth; whether each sample is app-limited.
    fn limited_by(wait: Duration) -> Vec<bool> {
        let mut sampler = RateSampler::new(Time::ZERO);
        let (mut states, mut limited) = (Vec::<SentState>::new(), Vec::new());
        for n in 0..60 {
            let late = if n > 30 { wait } else { Duration::ZERO };
            let now = Time::ZERO + STEP * n as u32 + late;
            if n >= 10 {
                let acked = states[n as usize - 10];
                let sample = sampler.on_ack(&acked, &report(now, n - 9, acked.sent_at + RTT / 2));
                limited.push(sample.expect("an interval of a round trip").app_limited);
            }
            states.push(sampler.on_sent(now, TRAIN, TRAIN * n.min(10)));
            if n == 30 {
                sampler.on_app_limited(now + STEP);
            }
        }
        limited
    }

    #[test]
    fn a_wait_that_counts_marks_the_round_trip_around_it() {
        let limited = limited_by(Duration::from_millis(20));
        // Trains 31 to 40 have left with the wait between them and the newest one acknowledged then; of train n tells sample n.
        let marked: Vec<_> = limited.iter().enumerate().filter(|(_, limited)| **limited).map(|(n, _)| n).collect();
        assert_eq!(marked, (31..=40).collect::<Vec<_>>());
    }

    #[test]
    fn a_wait_of_a_moment_marks_nothing() {
        assert!(!limited_by(Duration::from_millis(5)).contains(&true));
    }

    #[test]
    fn a_pause_marks_the_round_trip_after_it() {
        let (mut sampler, _) = steady(20, |t| t);
        sampler.on_app_limited(Time::ZERO + STEP * 20);
        let later = Time::ZERO + RTT * 10;
        let state = sampler.on_sent(later, TRAIN, TRAIN);
        let sample = sampler.on_ack(&state, &report(later + RTT, 11, later + RTT / 2)).expect("sample");
        assert!(sample.app_limited);
        let next = sampler.on_sent(later + RTT, TRAIN, TRAIN * 2);
        assert!(!sampler.on_ack(&next, &report(later + RTT * 2, 12, later + RTT * 3 / 2)).expect("sample").app_limited);
    }

    #[test]
    fn a_pause_starts_a_new_interval() {
        let (mut sampler, _) = steady(20, |t| t);
        let later = Time::ZERO + RTT * 1_000;
        let state = sampler.on_sent(later, TRAIN, TRAIN);
        let sample = sampler.on_ack(&state, &report(later + RTT, 11, later + RTT / 2)).expect("sample");
        assert_eq!(sample.interval, RTT, "the pause does not count");
    }
}
