//! A path for unit tests of controllers with a window: round trip by round trip, without a queue, with losses where they are wanted.

use std::time::Duration;

use haul_units::{Bytes, Time};

use crate::window::{Law, Windowed};
use crate::{AckSample, Company, Controller, LossSample, PathStart, SentSample};

pub(crate) const PACKET: Bytes = Bytes(1_000);

/// A controller, and what it is told.
pub(crate) struct Rounds<L: Law> {
    pub(crate) controller: Windowed<L>,
    pub(crate) now: Time,
    base_rtt: Duration,
    /// Delay of a queue: what round-trip times exceed the smallest by.
    pub(crate) queue: Duration,
    delivered: Bytes,
    lost: Bytes,
    round: u64,
}

impl<L: Law> Rounds<L> {
    pub(crate) fn new(base_rtt: Duration) -> Self {
        Self {
            controller: Windowed::new(&PathStart::new(Time::ZERO, PACKET, 1)),
            now: Time::ZERO,
            base_rtt,
            queue: Duration::ZERO,
            delivered: Bytes::ZERO,
            lost: Bytes::ZERO,
            round: 0,
        }
    }

    /// Past slow start, with a window of so many packets.
    pub(crate) fn avoiding(window: f64, base_rtt: Duration) -> Self {
        let mut path = Self::new(base_rtt);
        path.controller.leave_slow_start(window);
        path.send(Bytes((window * PACKET.as_u64() as f64) as u64));
        path
    }

    /// In packets.
    pub(crate) fn window(&self) -> f64 {
        self.controller.window().as_u64() as f64 / PACKET.as_u64() as f64
    }

    /// What was in flight is acknowledged, bit by bit, and the window filled again each time.
    pub(crate) fn round(&mut self) {
        let whole = PACKET * (self.controller.window().as_u64() / PACKET.as_u64()).max(1);
        self.send(whole);
        self.now += self.base_rtt + self.queue;
        let batches = (whole.as_u64() / PACKET.as_u64()).clamp(1, BATCHES);
        for batch in 0..batches {
            let acked = Bytes(whole.as_u64() / batches);
            self.acknowledge(acked, self.controller.window().saturating_sub(acked), batch == 0);
            self.send(self.controller.window());
        }
    }

    /// So much is in flight now.
    pub(crate) fn send(&mut self, in_flight: Bytes) {
        self.controller.on_sent(&SentSample { now: self.now, bytes: PACKET, in_flight, app_limited: false });
    }

    pub(crate) fn acknowledge(&mut self, acked: Bytes, in_flight: Bytes, round_start: bool) {
        self.delivered += acked;
        self.round += u64::from(round_start);
        let rtt = self.base_rtt + self.queue;
        self.controller.on_ack(&AckSample {
            now: self.now,
            acked,
            delivered: self.delivered,
            in_flight,
            rtt: Some(rtt),
            smoothed_rtt: rtt,
            min_rtt: self.base_rtt,
            queue_delay: Some(self.queue),
            rate: None,
            round: self.round,
            round_start,
            lost_total: self.lost,
        });
    }

    /// A packet of the last round is lost, and the round trip that is spent on coming down to the new window passes.
    pub(crate) fn lose(&mut self) {
        self.report_loss(Duration::ZERO, false);
        // Past the round trip of recovery, in which windows do not grow.
        self.now += self.base_rtt * 2 + self.queue * 2;
        self.acknowledge(PACKET, Bytes::ZERO, true);
    }

    /// A packet that left so long ago is lost.
    pub(crate) fn report_loss(&mut self, ago: Duration, persistent: bool) {
        self.lost += PACKET;
        self.now += Duration::from_nanos(1);
        self.controller.on_loss(&LossSample {
            now: self.now,
            lost: PACKET,
            runs: 1,
            in_flight: self.controller.window(),
            in_flight_at_send: self.controller.window(),
            sent_at: self.now.before(ago),
            persistent,
            min_rtt: self.base_rtt,
        });
    }
}

/// The mean window of a law where each 1 / loss packets one is lost, in packets.
pub(crate) fn mean_window<L: Law>(loss: f64) -> f64 {
    mean_window_at::<L>(loss, Duration::from_millis(100))
}

/// The same at a round-trip time. Sawteeth of the steady state: the first half does not count.
pub(crate) fn mean_window_at<L: Law>(loss: f64, rtt: Duration) -> f64 {
    mean_window_of(Rounds::<L>::avoiding(100.0, rtt), loss, |_| ())
}

/// The same beside so many paths of the connection that are like this one.
pub(crate) fn mean_window_beside<L: Law>(loss: f64, others: usize) -> f64 {
    mean_window_of(Rounds::<L>::avoiding(100.0, Duration::from_millis(100)), loss, |path| {
        if let Some(share) = path.controller.share() {
            path.controller.on_company(&Company::new(share, std::iter::repeat_n(share, others)));
        }
    })
}

fn mean_window_of<L: Law>(mut path: Rounds<L>, loss: f64, mut tell: impl FnMut(&mut Rounds<L>)) -> f64 {
    let (mut since_loss, mut losses) = (0.0, 0);
    let (mut sum, mut rounds) = (0.0, 0.0);
    while losses < SAWTEETH {
        let window = path.window();
        tell(&mut path);
        path.round();
        since_loss += window;
        if losses >= SAWTEETH / 2 {
            sum += window;
            rounds += 1.0;
        }
        if since_loss * loss >= 1.0 {
            since_loss -= 1.0 / loss;
            losses += 1;
            path.lose();
        }
    }
    sum / rounds
}

/// Round trips from a loss at this window until it is reached again.
pub(crate) fn rounds_to_recover<L: Law>(window: f64) -> u32 {
    let mut path = Rounds::<L>::avoiding(window, Duration::from_millis(100));
    path.lose();
    (1..100_000)
        .find(|_| {
            path.round();
            path.window() >= window
        })
        .expect("it grows")
}

const BATCHES: u64 = 32;
const SAWTEETH: u32 = 60;
