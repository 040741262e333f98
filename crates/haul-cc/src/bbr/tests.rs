use std::time::Duration;

use haul_units::{BitRate, Bytes, Time};

use super::Bbr;
use super::state::State;
use crate::{AckSample, Controller, LossSample, PathStart, RateSample, SentSample};

const PACKET: Bytes = Bytes(1_250);
const RTT: Duration = Duration::from_millis(100);
/// A packet each millisecond.
const LINK: BitRate = BitRate::mbps(10);

/// A link with a long queue, in steps of a millisecond: what the pacing rate sends, the link delivers a round trip later.
struct Link {
    bbr: Bbr,
    now: Time,
    queued: f64,
    in_flight: f64,
    delivered: f64,
    lost: f64,
    /// Sent in each of the last steps, and delivered in total when it was.
    pipe: std::collections::VecDeque<(f64, f64)>,
    round: u64,
    round_ends: f64,
    states: Vec<State>,
}

impl Link {
    fn new() -> Self {
        let bbr = Bbr::new(&PathStart::new(Time::ZERO, PACKET, 1));
        Self {
            bbr,
            now: Time::ZERO,
            queued: 0.0,
            in_flight: 0.0,
            delivered: 0.0,
            lost: 0.0,
            pipe: std::collections::VecDeque::new(),
            round: 0,
            round_ends: 0.0,
            states: vec![State::Startup],
        }
    }

    /// A millisecond passes, of what is delivered then this part is lost on the way.
    fn step(&mut self, loss: f64, link: BitRate) {
        let step = Duration::from_millis(1);
        self.now += step;
        let room = self.bbr.window().as_u64() as f64 - self.in_flight;
        let sent = (self.bbr.rate().bytes_per_second() as f64 * 1e-3).min(room.max(0.0));
        self.in_flight += sent;
        self.queued += sent;
        self.bbr.on_sent(&SentSample {
            now: self.now,
            bytes: Bytes(sent as u64),
            in_flight: Bytes(self.in_flight as u64),
            app_limited: false,
        });
        let served = self.queued.min(link.bytes_per_second() as f64 * 1e-3);
        self.queued -= served;
        self.pipe.push_back((served, self.delivered));
        if self.pipe.len() <= RTT.as_millis() as usize {
            return;
        }
        let Some((arrived, prior)) = self.pipe.pop_front() else { return };
        if arrived < 1.0 {
            return;
        }
        let wait = Duration::from_secs_f64(self.queued / link.bytes_per_second() as f64);
        let lost = arrived * loss;
        let tx_in_flight = Bytes(self.in_flight as u64);
        self.in_flight -= arrived;
        self.delivered += arrived - lost;
        self.lost += lost;
        let in_flight = Bytes(self.in_flight as u64);
        if lost > 0.0 {
            let sent_at = self.now.before(RTT + wait);
            let bytes = Bytes(lost.ceil() as u64);
            let loss = LossSample {
                now: self.now,
                lost: bytes,
                runs: 1,
                in_flight,
                in_flight_at_send: tx_in_flight,
                sent_at,
                persistent: false,
                min_rtt: RTT,
            };
            self.bbr.on_loss(&loss);
        }
        let round_start = prior >= self.round_ends;
        if round_start {
            self.round += 1;
            self.round_ends = self.delivered;
        }
        let delivered = self.delivered - prior;
        let sample = RateSample {
            rate: BitRate::of(Bytes(delivered as u64), RTT + step),
            sent: BitRate::MAX,
            interval: RTT,
            app_limited: false,
            in_flight_at_send: tx_in_flight,
            lost: Bytes((delivered * loss) as u64),
            delivered: Bytes(delivered as u64),
        };
        self.bbr.on_ack(&AckSample {
            now: self.now,
            acked: Bytes(arrived as u64),
            delivered: Bytes(self.delivered as u64),
            in_flight,
            rtt: Some(RTT + wait),
            smoothed_rtt: RTT + wait,
            min_rtt: RTT,
            queue_delay: Some(wait),
            rate: Some(sample),
            round: self.round,
            round_start,
            lost_total: Bytes(self.lost as u64),
        });
        if self.states.last() != Some(&self.bbr.state) {
            self.states.push(self.bbr.state);
        }
    }

    fn run(&mut self, seconds: u64, loss: f64) {
        for _ in 0..seconds * 1_000 {
            self.step(loss, LINK);
        }
    }

    fn bandwidth(&self) -> f64 {
        self.bbr.model.bw() / LINK.as_bps() as f64
    }
}

#[test]
fn startup_ends_on_a_plateau_and_the_queue_is_drained() {
    let mut link = Link::new();
    link.run(3, 0.0);
    // Down is passed at once where the queue is empty already.
    assert_eq!(link.states[..3], [State::Startup, State::Drain, State::Cruise], "{:?}", link.states);
    assert!((0.97..1.03).contains(&link.bandwidth()), "{}", link.bandwidth());
    assert!(link.queued < 0.2 * LINK.bytes_in(RTT).as_u64() as f64, "{} queued", link.queued);
}

#[test]
fn the_cycle_probes_and_the_round_trip_is_measured() {
    let mut link = Link::new();
    link.run(20, 0.0);
    let after =
        |state, next: &[State]| link.states.windows(2).filter(|pair| pair[0] == state).all(|pair| next.contains(&pair[1]));
    assert!(after(State::Cruise, &[State::Refill, State::ProbeRtt]), "{:?}", link.states);
    assert!(after(State::Refill, &[State::Up, State::ProbeRtt]), "{:?}", link.states);
    assert!(after(State::Up, &[State::Down, State::ProbeRtt]), "{:?}", link.states);
    let ups = link.states.iter().filter(|state| **state == State::Up).count();
    assert!((4..=12).contains(&ups), "{ups} attempts in 20 s, 2 to 3 s apart");
    assert!((0.97..1.05).contains(&link.bandwidth()), "{}", link.bandwidth());
}

#[test]
fn a_path_twice_as_fast_is_found() {
    let mut link = Link::new();
    link.run(5, 0.0);
    for _ in 0..12_000 {
        link.step(0.0, BitRate::mbps(20));
    }
    assert!(link.bandwidth() > 1.9, "{}", link.bandwidth());
}

#[test]
fn loss_of_more_than_two_per_cent_bounds_what_is_in_flight() {
    let mut link = Link::new();
    link.run(5, 0.0);
    assert!(link.bbr.model.inflight_longterm.is_infinite());
    link.run(5, 0.05);
    assert!(link.bbr.model.inflight_longterm.is_finite());
    let mut little = Link::new();
    little.run(10, 0.01);
    assert!((0.8..1.05).contains(&little.bandwidth()), "{} at 1 %", little.bandwidth());
}

#[test]
fn gains_of_the_draft() {
    // draft-ietf-ccwg-bbr 5.6.1
    for (state, gains) in [
        (State::Startup, (2.77, 2.0)),
        (State::Drain, (0.5, 2.0)),
        (State::Down, (0.9, 2.0)),
        (State::Cruise, (1.0, 2.0)),
        (State::Refill, (1.0, 2.0)),
        (State::Up, (1.25, 2.25)),
        (State::ProbeRtt, (1.0, 0.5)),
    ] {
        assert_eq!(state.gains(), gains, "{state:?}");
    }
}

#[test]
fn a_spurious_loss_is_undone() {
    let mut link = Link::new();
    link.run(3, 0.0);
    // Until the end of a round with loss lowers the bounds, before the next loss saves them anew.
    let saved = (0..1_000)
        .find_map(|_| {
            link.step(0.01, LINK);
            link.bbr.undo.filter(|undo| undo.bw_shortterm > link.bbr.model.bw_shortterm)
        })
        .expect("loss lowers the bounds");
    link.bbr.on_spurious(link.now, saved.lost);
    assert!(link.bbr.model.bw_shortterm >= saved.bw_shortterm);
    assert!(link.bbr.undo.is_none());
}
