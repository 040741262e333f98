//! The legs of a jump: stretches at one rate, and what has become of their packets.

use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use crate::lfn::measure::BaseLoss;
use crate::{AckSample, SentSample};

/// A stretch at one rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leg {
    /// What is to arrive, and what is sent for it.
    pub(super) goal_bps: f64,
    pub(super) rate_bps: f64,
    /// What it sent, and what the leg before did.
    pub(super) span: Span,
    pub(super) before: Option<Span>,
    /// Data has left that is more than the messages of an application that waits for answers.
    pub(super) begun: bool,
    /// What has left as such messages: no more than a train.
    pub(super) messages: Bytes,
    /// Acknowledgements of the leg.
    pub(super) acks: u32,
    /// When the first of them came, and what had been delivered then.
    pub(super) first: Option<(Time, Bytes)>,
    /// The application did not give enough for the leg's rate: what arrives says nothing about the path.
    pub(super) limited: bool,
    /// What has left of it, and when last, as long as acknowledgements came in time.
    pub(super) sent: Bytes,
    pub(super) sent_until: Time,
    /// More is in flight than a path without a queue holds at its rate: the window holds it back, not the application.
    pub(super) held_back: bool,
}

/// As much of a rate sample may be limited by the application.
const LIMITED_PART: u64 = 8;

/// The packets sent from a time on, and what was lost of them: losses of trains show when a leg's first packets have arrived already.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) sent_from: Time,
    /// Bytes settled, delivered or lost, when its first packet is the next to be.
    pub(super) from: Bytes,
    pub(super) lost: Bytes,
}

impl Span {
    pub(super) fn new(ack: &AckSample) -> Self {
        Self { sent_from: ack.now, from: ack.delivered + ack.lost_total + ack.in_flight, lost: Bytes::ZERO }
    }

    /// Bytes of it, and of what was sent later, that have been delivered or lost.
    pub(super) fn settled(&self, ack: &AckSample) -> Bytes {
        (ack.delivered + ack.lost_total).saturating_sub(self.from)
    }
}

impl Leg {
    pub(super) fn new(ack: &AckSample, rate_bps: f64) -> Self {
        let span = Span::new(ack);
        Self {
            goal_bps: rate_bps,
            rate_bps,
            span,
            before: None,
            begun: false,
            messages: Bytes::ZERO,
            acks: 0,
            first: None,
            limited: false,
            sent: Bytes::ZERO,
            sent_until: ack.now,
            held_back: false,
        }
    }

    /// What leaves now is not of it: it begins after that.
    pub(super) fn put_off(&mut self, sent: &SentSample) {
        self.span.sent_from = sent.now + Duration::from_nanos(1);
        self.span.from += sent.bytes;
    }

    /// Data of it leaves, of which the window lets so much go.
    pub(super) fn on_sent(&mut self, sent: &SentSample, window: Bytes) {
        // A path without a queue holds half of that, and half as much again is late: three quarters.
        self.held_back |= sent.in_flight > Bytes(window.as_u64() / 4 * 3);
        if !self.held_back {
            (self.sent, self.sent_until) = (self.sent + sent.bytes, sent.now);
        }
    }

    /// Bytes that may be in flight: two round trips' worth, but no less than the trains were.
    pub(super) fn window(&self, min_rtt: Duration, trains: Bytes) -> Bytes {
        self.rate().bytes_in(min_rtt * 2).max(trains)
    }

    /// Whether the application gave too little for its rate: at once, or by waiting now and then.
    pub(super) fn is_limited(&self) -> bool {
        let full = BitRate::from_bps(self.goal_bps as u64).bytes_in(self.sent_until.since(self.span.sent_from));
        self.limited || full.saturating_sub(self.sent) > Bytes(full.as_u64() / LIMITED_PART)
    }

    /// With one more acknowledgement, if it is of the leg.
    pub(super) fn with(self, ack: &AckSample) -> Self {
        if self.settled(ack) == Bytes::ZERO {
            return self;
        }
        Self { acks: self.acks + 1, first: self.first.or(Some((ack.now, ack.delivered))), ..self }
    }

    /// The rate at which the leg has arrived, by its acknowledgements.
    pub(super) fn arrived_bps(&self, ack: &AckSample) -> f64 {
        self.first.map_or(0.0, |(since, delivered)| {
            BitRate::of(ack.delivered.saturating_sub(delivered), ack.now.since(since)).as_bps() as f64
        })
    }

    /// Sends so much more as was lost of the leg before.
    pub(super) fn made_up(self, ack: &AckSample) -> Self {
        let loss = self.before.map_or(0.0, |before| part_of(before.lost, before.settled(ack)));
        Self { rate_bps: self.goal_bps / (1.0 - loss.min(BaseLoss::UNTRIED)), ..self }
    }

    pub(super) fn rate(&self) -> BitRate {
        BitRate::from_bps(self.rate_bps as u64)
    }

    /// Bytes of the leg that have been delivered or lost.
    pub(super) fn settled(&self, ack: &AckSample) -> Bytes {
        self.span.settled(ack)
    }

    /// The span of a packet that left at a time.
    pub(super) fn span_of(&mut self, sent_at: Time) -> Option<&mut Span> {
        if sent_at >= self.span.sent_from { Some(&mut self.span) } else { self.before.as_mut() }
            .filter(|span| sent_at >= span.sent_from)
    }
}

/// What the longest train takes.
pub(super) const GAUGED: Duration = Duration::from_micros(500);

pub(super) fn part_of(lost: Bytes, settled: Bytes) -> f64 {
    lost.as_u64() as f64 / settled.as_u64().max(1) as f64
}

/// The rate at which acknowledgements come, over parts of a round trip: it tells of a leg long before a sample over a round trip does.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Gauge {
    pub(super) since: Option<(Time, Bytes)>,
    /// The largest so far, and the newest.
    pub(super) best_bps: f64,
    pub(super) newest_bps: Option<f64>,
}

impl Gauge {
    pub(super) fn on_ack(&mut self, ack: &AckSample, rtt: Duration) {
        let (since, delivered) = *self.since.get_or_insert((ack.now, ack.delivered));
        let passed = ack.now.since(since);
        if passed >= (rtt / 8).max(GAUGED) {
            let bps = BitRate::of(ack.delivered.saturating_sub(delivered), passed).as_bps() as f64;
            self.best_bps = self.best_bps.max(bps);
            self.newest_bps = Some(bps);
            self.since = Some((ack.now, ack.delivered));
        }
    }
}
