use std::time::Duration;

use haul_units::{Bytes, Time};

use super::Cubic;
use crate::{AckSample, Controller, LossSample, PathStart, SentSample};

const PACKET: Bytes = Bytes(1_000);
const RTT: Duration = Duration::from_millis(100);

/// One round: the whole window is sent, then acknowledged.
fn round(cubic: &mut Cubic, now: &mut Time, number: u64) {
    let window = cubic.window();
    cubic.on_sent(&SentSample { now: *now, bytes: window, in_flight: window, app_limited: false });
    *now += RTT;
    let batches = 10;
    for n in 0..batches {
        let in_flight = Bytes(window.0 * (batches - 1 - n) / batches);
        cubic.on_ack(&ack(*now, Bytes(window.0 / batches), in_flight, number, n == 0));
    }
}

fn ack(now: Time, acked: Bytes, in_flight: Bytes, round: u64, round_start: bool) -> AckSample {
    AckSample {
        now,
        acked,
        delivered: acked,
        in_flight,
        rtt: Some(RTT),
        smoothed_rtt: RTT,
        min_rtt: RTT,
        queue_delay: None,
        rate: None,
        round,
        round_start,
        lost_total: Bytes::ZERO,
    }
}

fn loss(now: Time, sent_at: Time) -> LossSample {
    LossSample {
        now,
        lost: PACKET,
        runs: 1,
        in_flight: PACKET * 50,
        in_flight_at_send: PACKET * 50,
        sent_at,
        persistent: false,
        min_rtt: RTT,
    }
}

fn started() -> Cubic {
    Cubic::new(&PathStart::new(Time::ZERO, PACKET, 1))
}

#[test]
fn slow_start_doubles_each_round() {
    let (mut cubic, mut now) = (started(), Time::ZERO);
    for number in 0..5 {
        round(&mut cubic, &mut now, number);
    }
    assert_eq!(cubic.window(), PACKET * 320);
}

#[test]
fn one_cut_a_round_trip_and_undone_when_spurious() {
    let (mut cubic, mut now) = (started(), Time::ZERO);
    for number in 0..5 {
        round(&mut cubic, &mut now, number);
    }
    let before = cubic.window();
    cubic.on_loss(&loss(now, now.before(RTT)));
    assert_eq!(cubic.window(), Bytes(before.0 * 7 / 10));
    cubic.on_loss(&loss(now, now.before(RTT / 2)));
    assert_eq!(cubic.window(), Bytes(before.0 * 7 / 10));
    cubic.on_spurious(now, PACKET);
    assert_eq!(cubic.window(), Bytes(before.0 * 7 / 10), "one of two is not enough");
    cubic.on_spurious(now, PACKET);
    assert_eq!(cubic.window(), before);
}

#[test]
fn the_curve_returns_to_the_old_window_after_k() {
    let (mut cubic, mut now) = (started(), Time::ZERO);
    for number in 0..6 {
        round(&mut cubic, &mut now, number);
    }
    let before = cubic.window().0 as f64;
    cubic.on_loss(&loss(now, now));
    // RFC 9438 4.2 Eq. 2, in packets and seconds.
    let k = (before * 0.3 / 1_000.0 / 0.4).cbrt();
    for number in 0..(k / RTT.as_secs_f64()) as u64 {
        round(&mut cubic, &mut now, number);
    }
    let ratio = cubic.window().0 as f64 / before;
    assert!((0.98..1.02).contains(&ratio), "{ratio}");
}

#[test]
fn an_unused_window_does_not_grow() {
    let (mut cubic, mut now) = (started(), Time::ZERO);
    for number in 0..6 {
        round(&mut cubic, &mut now, number);
    }
    cubic.on_loss(&loss(now, now));
    let window = cubic.window();
    for number in 0..100 {
        now += RTT;
        cubic.on_sent(&SentSample { now, bytes: PACKET, in_flight: PACKET, app_limited: true });
        cubic.on_ack(&ack(now, PACKET, Bytes::ZERO, number, true));
    }
    assert_eq!(cubic.window(), window);
}
