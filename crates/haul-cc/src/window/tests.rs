use std::time::Duration;

use haul_units::Bytes;

use super::{Acked, Cause, Law};
use crate::reno::Reno;
use crate::rounds::{PACKET, Rounds};
use crate::{Controller, EcnSample, SentSample};

const RTT: Duration = Duration::from_millis(100);

fn reno() -> Rounds<Reno> {
    Rounds::avoiding(100.0, RTT)
}

#[test]
fn slow_start_doubles_each_round() {
    let mut path = Rounds::<Reno>::new(RTT);
    for _ in 0..5 {
        path.round();
    }
    assert_eq!(path.controller.window(), PACKET * 320);
}

#[test]
fn one_cut_a_round_trip_and_undone_when_spurious() {
    let mut path = reno();
    path.report_loss(RTT, false);
    path.report_loss(RTT / 2, false);
    assert!((path.controller.state.window - 50.0).abs() < 1e-9);
    path.controller.on_spurious(path.now, PACKET);
    assert!((path.controller.state.window - 50.0).abs() < 1e-9, "one of two is not enough");
    path.controller.on_spurious(path.now, PACKET);
    assert_eq!(path.controller.window(), PACKET * 100);
}

#[test]
fn the_flight_comes_down_evenly() {
    let mut path = reno();
    path.report_loss(Duration::ZERO, false);
    let mut in_flight = 99;
    let mut sent = Vec::new();
    for _ in 0..9 {
        path.now += RTT / 20;
        in_flight -= 10;
        path.acknowledge(PACKET * 10, PACKET * in_flight, false);
        let room = path.controller.window().saturating_sub(PACKET * in_flight).as_u64() / PACKET.as_u64();
        path.controller.on_sent(&SentSample {
            now: path.now,
            bytes: PACKET * room,
            in_flight: PACKET * (in_flight + room),
            app_limited: false,
        });
        in_flight += room;
        sent.push(room);
    }
    // RFC 6937: one for two delivered.
    assert!(sent.iter().take(8).all(|packets| (4..=6).contains(packets)), "{sent:?}");
    assert!((50..=56).contains(&in_flight), "{in_flight}");
}

#[test]
fn an_unused_window_does_not_grow_and_is_not_believed() {
    let mut path = reno();
    for _ in 0..20 {
        path.controller.on_sent(&SentSample { now: path.now, bytes: PACKET, in_flight: PACKET * 20, app_limited: true });
        path.now += RTT;
        path.acknowledge(PACKET * 20, Bytes::ZERO, true);
    }
    assert!((path.window() - 100.0).abs() < 0.5, "{}", path.window());
    path.report_loss(Duration::ZERO, false);
    assert!(path.controller.state.window <= 14.0, "{}", path.controller.state.window);
}

#[test]
fn marks_cut_less_than_losses() {
    let mut path = reno();
    let sent_at = path.now;
    path.controller.on_ecn(&EcnSample { now: path.now, marked_pkts: 1, reported_pkts: 10, sent_at });
    assert!((path.controller.state.window - 80.0).abs() < 1e-9);
}

#[test]
fn silence_keeps_the_threshold() {
    let mut path = reno();
    path.report_loss(Duration::ZERO, true);
    for _ in 0..10 {
        path.now += RTT * 10;
        path.report_loss(Duration::ZERO, true);
    }
    assert_eq!(path.controller.window(), PACKET * 2);
    for _ in 0..6 {
        path.round();
    }
    // Slow start to half of what there was, then a packet a round trip.
    assert!((50.0..54.0).contains(&path.window()), "{}", path.window());
}

#[test]
fn a_new_packet_size_keeps_the_bytes() {
    let mut path = reno();
    path.round();
    let before = path.controller.window().as_u64();
    path.controller.on_mtu(PACKET * 2);
    assert!(path.controller.window().as_u64().abs_diff(before) < 2_000);
}

/// A law that answers nonsense.
#[derive(Debug, Clone, Default)]
struct Broken;

impl Law for Broken {
    const NAME: &'static str = "broken";
    type Start = super::HyStart;

    fn grow(&mut self, _window: f64, _ack: &Acked<'_>) -> f64 {
        f64::NAN
    }

    fn cut(&mut self, _window: f64, _cause: Cause) -> f64 {
        -1.0
    }
}

#[test]
fn no_law_breaks_the_window() {
    let mut path = Rounds::<Broken>::avoiding(100.0, RTT);
    path.round();
    assert_eq!(path.controller.window(), PACKET * 100);
    path.lose();
    assert_eq!(path.controller.window(), PACKET * 2);
}
