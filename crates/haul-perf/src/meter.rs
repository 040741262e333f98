//! Reads a flow's counters at the ends of intervals.
//!
//! ```text
//!   start      omitted            counts                        end
//!   |-----------------------|-----------|-----------|-------...-|
//!   0   interval   interval   0
//! ```
//! The clock starts by [`Event::Begin`]: a receiver's when it is told to or when the first byte is there, for the word that starts it may be lost and come again.
//! What is omitted is told in intervals of its own; then time starts again from zero. A measurement by time ends at its time; one by bytes when
//! all streams have ended, and its time is that of the last byte.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use haul::{Distribution, Distributions};

use super::flow::{Event, Flow};
use super::plan::{Direction, Plan, Role};
use super::results::{Interval, Total};
use super::sample::{PathSample, micros};
use super::spread::{Spread, Spreads};
use crate::clock;

/// One role of one direction, being measured.
pub struct Meter<'a> {
    /// Which flow.
    pub direction: Direction,
    /// Which end of it.
    pub role: Role,
    /// What to follow.
    pub plan: &'a Plan,
    /// Its counters.
    pub flow: &'a dyn Flow,
    /// What the flow and others have to say.
    pub events: &'a Receiver<Event>,
}

/// Counters at a moment.
struct Mark {
    at: Instant,
    bytes: Vec<u64>,
    paths: Vec<PathSample>,
}

/// Why a wait was over.
enum Woken {
    Time,
    Ended,
    Failed(String),
}

impl Woken {
    /// What an event ends, with so many streams left.
    fn by(event: Event, streams_left: &mut usize) -> Option<Self> {
        match event {
            Event::Begin => None,
            Event::StreamEnded => {
                *streams_left = streams_left.saturating_sub(1);
                (*streams_left == 0).then_some(Self::Ended)
            }
            Event::Stop => Some(Self::Ended),
            Event::Failed(why) => Some(Self::Failed(why)),
        }
    }

    fn given_up() -> Self {
        Self::Failed("the measurement was given up".to_owned())
    }
}

impl Meter<'_> {
    /// Measures until the end, which it brings about if the time does; `tell` gets each interval.
    pub fn run(self, mut tell: impl FnMut(Interval)) -> Total {
        let mut streams_left = usize::from(self.plan.streams);
        let mut at_once = self.wait_for_begin(&mut streams_left);
        // What has arrived before the clock started is part of the measurement too; what the path has counted until then is not.
        let start = Mark { bytes: vec![0; self.plan.streams.into()], ..self.mark() };
        let counted_from = start.at + self.plan.omit();
        let end = self.plan.time().map(|time| counted_from + time);
        let (mut index, mut error) = (0, None);
        let mut base = Mark { at: start.at, bytes: start.bytes.clone(), paths: start.paths.clone() };
        let mut distributions = self.flow.distributions();
        let mut last = start;
        loop {
            let omitted = last.at < counted_from;
            let phase_start = if omitted { base.at } else { counted_from };
            let phase_end = if omitted { Some(counted_from) } else { end };
            let boundary = next_boundary(last.at, phase_start, self.plan.interval(), phase_end);
            let woken = at_once.take().unwrap_or_else(|| self.wait_until(boundary, &mut streams_left));
            let over = !matches!(woken, Woken::Time) || end.is_some_and(|end| boundary >= end);
            let mut now = self.mark();
            if matches!(woken, Woken::Time) {
                // The counters are read a little late; the interval is as long as it was meant to be, so that intervals join.
                now.at = boundary;
            }
            if now.at > last.at {
                tell(self.interval(index, omitted, phase_start, &last, &now));
                index += 1;
            }
            if omitted && now.at >= counted_from {
                base = Mark { at: now.at, bytes: now.bytes.clone(), paths: now.paths.clone() };
                distributions = self.flow.distributions();
            }
            last = now;
            if let Woken::Failed(why) = woken {
                error = Some(why);
            }
            if over {
                break;
            }
        }
        if last.at < counted_from {
            // It ended within what is omitted: nothing counts.
            base = Mark { at: last.at, bytes: last.bytes.clone(), paths: last.paths.clone() };
            distributions = self.flow.distributions();
        }
        let congestion = self.flow.congestion();
        let spreads = self.flow.distributions().zip(distributions).map(|(now, before)| self.spreads(&now, &before));
        if end.is_some() || error.is_some() {
            self.flow.stop();
        }
        Total {
            direction: self.direction,
            role: self.role,
            time_us: micros(last.at.saturating_duration_since(base.at.max(counted_from))),
            bytes: difference(&last.bytes, &base.bytes),
            paths: last.paths.iter().zip(&base.paths).map(|(now, before)| now.since(before)).collect(),
            spreads,
            congestion: congestion.map(Into::into),
            error: error.map(Into::into),
        }
    }

    /// What each end knows: the sender times and the receiver numbers.
    fn spreads(&self, now: &Distributions, before: &Distributions) -> Spreads {
        let since = |get: fn(&Distributions) -> &Distribution| Spread::from(&get(now).since(get(before)));
        match self.role {
            Role::Sender => {
                Spreads { rtt_us: since(|d| &d.rtt_us), queue_delay_us: since(|d| &d.queue_delay_us), ..Spreads::default() }
            }
            Role::Receiver => {
                Spreads { gaps_pkts: since(|d| &d.gaps_pkts), late_pkts: since(|d| &d.late_pkts), ..Spreads::default() }
            }
        }
    }

    fn mark(&self) -> Mark {
        Mark { at: clock::now(), bytes: self.flow.bytes(), paths: self.flow.paths() }
    }

    /// What ends it before it has begun ends it at once.
    fn wait_for_begin(&self, streams_left: &mut usize) -> Option<Woken> {
        self.events.recv().map_or_else(|_| Some(Woken::given_up()), |event| Woken::by(event, streams_left))
    }

    fn wait_until(&self, boundary: Instant, streams_left: &mut usize) -> Woken {
        loop {
            let left = boundary.saturating_duration_since(clock::now());
            match self.events.recv_timeout(left).map(|event| Woken::by(event, streams_left)) {
                Ok(None) => {}
                Ok(Some(woken)) => return woken,
                Err(RecvTimeoutError::Timeout) => return Woken::Time,
                Err(RecvTimeoutError::Disconnected) => return Woken::given_up(),
            }
        }
    }

    fn interval(&self, index: u32, omitted: bool, phase_start: Instant, last: &Mark, now: &Mark) -> Interval {
        Interval {
            direction: self.direction,
            role: self.role,
            index,
            start_us: micros(last.at.saturating_duration_since(phase_start)),
            end_us: micros(now.at.saturating_duration_since(phase_start)),
            omitted,
            bytes: difference(&now.bytes, &last.bytes),
            paths: now.paths.iter().zip(&last.paths).map(|(now, before)| now.since(before)).collect(),
        }
    }
}

/// The end of the interval that begins at `from`.
fn next_boundary(from: Instant, phase_start: Instant, interval: Duration, phase_end: Option<Instant>) -> Instant {
    let whole = from.saturating_duration_since(phase_start).as_nanos() / interval.as_nanos().max(1);
    let next = phase_start + interval * u32::try_from(whole + 1).unwrap_or(u32::MAX);
    phase_end.map_or(next, |end| next.min(end))
}

fn difference(now: &[u64], before: &[u64]) -> Vec<u64> {
    now.iter().zip(before).map(|(now, before)| now.saturating_sub(*before)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::sync::mpsc;

    use super::*;
    use crate::plan::{Amount, Ways};

    /// Counts ten bytes a look.
    #[derive(Default)]
    struct Steady(AtomicU64, AtomicBool);

    impl Flow for Steady {
        fn bytes(&self) -> Vec<u64> {
            vec![self.0.fetch_add(10, Ordering::Relaxed)]
        }
        fn stop(&self) {
            self.1.store(true, Ordering::Relaxed);
        }
    }

    fn measure(amount: Amount, omit_us: u64, events: &Receiver<Event>) -> (Vec<Interval>, Total, bool) {
        let plan = Plan {
            ways: Ways::Up,
            streams: 1,
            block_bytes: 1,
            amount,
            omit_us,
            interval_us: 10_000,
            rate_bps: None,
            mode: "".into(),
            tcp: None,
        };
        let flow = Steady::default();
        let mut intervals = Vec::new();
        let meter = Meter { direction: Direction::Up, role: Role::Receiver, plan: &plan, flow: &flow, events };
        let total = meter.run(|interval| intervals.push(interval));
        (intervals, total, flow.1.into_inner())
    }

    #[test]
    fn intervals_join_and_add_up_to_the_total_without_what_is_omitted() {
        let (tell, events) = mpsc::channel();
        tell.send(Event::Begin).unwrap();
        let (intervals, total, stopped) = measure(Amount::Time(25_000), 15_000, &events);
        let times: Vec<_> = intervals.iter().map(|i| (i.start_us, i.end_us, i.omitted)).collect();
        let expected =
            [(0, 10_000, true), (10_000, 15_000, true), (0, 10_000, false), (10_000, 20_000, false), (20_000, 25_000, false)];
        assert_eq!(times, expected);
        let counted: u64 = intervals.iter().filter(|i| !i.omitted).map(|i| i.bytes[0]).sum();
        assert_eq!((total.time_us, total.bytes[0]), (25_000, counted));
        assert!(stopped && total.error.is_none());
    }

    #[test]
    fn what_ends_within_what_is_omitted_has_counted_nothing() {
        let (tell, events) = mpsc::channel();
        tell.send(Event::Begin).unwrap();
        tell.send(Event::Stop).unwrap();
        let (intervals, total, _) = measure(Amount::Time(25_000), 60_000_000, &events);
        assert!(intervals.iter().all(|interval| interval.omitted && interval.bytes[0] > 0), "{intervals:?}");
        assert_eq!((total.time_us, total.bytes[0]), (0, 0));
    }

    #[test]
    fn bytes_end_with_their_streams_and_failures_at_once() {
        let (tell, events) = mpsc::channel();
        tell.send(Event::StreamEnded).unwrap();
        let (intervals, total, stopped) = measure(Amount::Bytes(10), 0, &events);
        assert_eq!((intervals.len(), total.bytes[0], stopped), (1, 10, false));
        tell.send(Event::Failed("gone".into())).unwrap();
        let (_, total, stopped) = measure(Amount::Time(60_000_000), 0, &events);
        assert_eq!((total.error.as_deref(), stopped), (Some("gone"), true));
    }
}
