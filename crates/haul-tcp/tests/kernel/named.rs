//! The named algorithms, as they run in the kernel, against their papers: windows after counted acknowledgements and losses, and packets that wait in a queue.

use std::cell::Cell;
use std::time::Duration;

use haul_tcp::Law;

use crate::line::Line;
use crate::rig::{Rig, own};
use crate::stage::{Flow, Stage, now};

/// A flow of this law that has doubled up to a window, and lost a packet there: that window, and the threshold.
fn fallen(stage: &Stage<'_>, law: Law, window: u32) -> (Flow, u32) {
    let mut flow = stage.connect(law, Duration::ZERO);
    stage.grow(&mut flow, window);
    assert_eq!(flow.window(), window, "each acknowledgement of a start adds a packet");
    let threshold = stage.lose(&mut flow);
    assert_eq!(flow.window(), threshold, "where it has fallen to");
    (flow, threshold)
}

fn on(rig: &Rig, law: Law) -> Stage<'_> {
    rig.tcp.on(&own(law), &rig.scope()).expect("on");
    Stage::set(rig)
}

/// RFC 3649 5, Low_Window 38, High_Window 83000, High_P 1e-7, High_Decrease 0.1.
fn highspeed(window: u32) -> (f64, f64) {
    let w = f64::from(window);
    if window <= 38 {
        return (1.0, 0.5);
    }
    let fall = (0.1 - 0.5) * (w.ln() - 38_f64.ln()) / (83_000_f64.ln() - 38_f64.ln()) + 0.5;
    let loss = 0.078 / w.powf(1.2);
    (w * w * loss * 2.0 * fall / (2.0 - fall), fall)
}

#[test]
fn highspeed_rises_by_a_and_falls_by_b() {
    let Some(rig) = Rig::open() else { return };
    let stage = on(&rig, Law::Highspeed);
    for window in [30, 120, 500, 1_500, 3_000] {
        let (mut flow, threshold) = fallen(&stage, Law::Highspeed, window);
        let wanted = f64::from(window) * (1.0 - highspeed(window).1);
        // The table of its appendix has one value until the next whole a(w).
        assert!((f64::from(threshold) - wanted).abs() <= 1.0 + wanted / 50.0, "from {window} to {threshold}, not {wanted:.1}");
        stage.round(&mut flow);
        let before = flow.window();
        (0..8).for_each(|_| stage.round(&mut flow));
        let (rise, least, most) = (flow.window() - before, highspeed(before).0, highspeed(flow.window()).0);
        // The table has the whole numbers below, and the window is a whole number.
        let bounds = 8.0 * (least - 1.0).max(1.0) - 1.5..=8.0 * most + 1.5;
        assert!(bounds.contains(&f64::from(rise)), "in eight round trips from {before}: {rise}, not {bounds:?}");
    }
}

/// 0.01 for each acknowledgement, an eighth for a loss: a loss is made up for in ln(8/7) / ln(1.01) = 13.4 round trips at any window.
#[test]
fn scalable_recovers_in_the_same_number_of_round_trips() {
    let Some(rig) = Rig::open() else { return };
    let stage = on(&rig, Law::Scalable);
    for window in [200, 1_000, 2_000] {
        let (mut flow, threshold) = fallen(&stage, Law::Scalable, window);
        assert_eq!(threshold, window - window / 8);
        let mut rounds = 0;
        while flow.window() < window {
            let before = flow.window();
            stage.round(&mut flow);
            let rise = f64::from(flow.window() - before) / f64::from(before);
            assert!((rise - 0.01).abs() < 1.1 / f64::from(before) + 0.0005, "{rise:.4} of {before} in a round trip");
            rounds += 1;
        }
        assert!((13..=15).contains(&rounds), "{rounds} round trips at {window} packets");
    }
}

/// An eighth for a loss, then half of what is left to the last maximum in a round trip, 32 packets at the most; above it, it feels its way.
#[test]
fn bic_searches_its_last_maximum_by_halving() {
    let Some(rig) = Rig::open() else { return };
    let stage = on(&rig, Law::Bic);
    for window in [400, 1_200] {
        let (mut flow, threshold) = fallen(&stage, Law::Bic, window);
        assert_eq!(threshold, window - window / 8);
        stage.round(&mut flow);
        let mut last = 0;
        while flow.window() + 3 < window {
            let before = flow.window();
            stage.round(&mut flow);
            let (left, rise) = (f64::from(window - before), flow.window() - before);
            assert!(rise > 0, "it stands still at {before}");
            // It halves acknowledgement by acknowledgement: 1 - exp(-1/2) of what is left in a round trip.
            let wanted = if left > 96.0 { 32.0 } else { (left * 0.39).min(32.0) };
            assert!((f64::from(rise) - wanted).abs() <= 2.0 + left / 20.0, "{left} packets below: {rise}, not {wanted:.1}");
            assert!(rise <= 33, "{rise} packets in a round trip");
            last = rise;
        }
        assert!(last <= 3, "it comes slowly to its maximum: {last} packets");
        // Beyond: slowly at first, then faster.
        let rounds = (0..100).take_while(|_| {
            stage.round(&mut flow);
            flow.window() < window + 2
        });
        assert!(rounds.count() < 100, "it stands still at {}", flow.window());
        let rises: Vec<u32> = (0..6)
            .map(|_| {
                let before = flow.window();
                stage.round(&mut flow);
                flow.window() - before
            })
            .collect();
        assert!(rises[0] < 8 && rises[5] > 2 * rises[0] && rises.iter().all(|rise| *rise <= 33), "{rises:?}");
    }
}

/// Of the line: packets a second, and the round trip of an empty queue. 40 packets are under way at once.
const RATE: u32 = 2_000;
const ROUND_TRIP: Duration = Duration::from_millis(20);
const UNDER_WAY: u32 = 40;

/// After a loss the window is the bandwidth estimate times the smallest round-trip time: what is under way without a queue, however long the queue was.
#[test]
fn westwood_falls_to_what_the_path_holds() {
    let Some(rig) = Rig::open() else { return };
    let stage = on(&rig, Law::Westwood);
    let mut flows = [stage.connect(Law::Westwood, ROUND_TRIP)];
    let mut line = Line::new(&stage, RATE, ROUND_TRIP);
    // The first loss ends the start. Reno's growth has the estimate settle then: an eighth of each round trip's.
    let mut thresholds = Vec::new();
    for (window, rounds) in [(60, 0), (130, 20)] {
        line.carry(&mut flows, |flows| flows[0].window() < window, |_, _| false);
        let mut lost = false;
        line.carry(&mut flows, |flows| flows[0].threshold_in_recovery().is_none(), |_, _| !std::mem::replace(&mut lost, true));
        let threshold = flows[0].threshold_in_recovery().expect("it recovers");
        thresholds.push(threshold);
        line.carry(&mut flows, |flows| flows[0].threshold_in_recovery().is_some(), |_, _| false);
        assert!(rounds == 0 || threshold.abs_diff(UNDER_WAY) <= 8, "{thresholds:?}, not {UNDER_WAY}: half of {window} is Reno's");
    }
}

/// Reno's growth, a packet for a window: also where 1/1024 of a packet is more than an acknowledgement's part of it.
#[test]
fn westwood_grows_by_a_packet_a_round_trip_at_any_window() {
    let Some(rig) = Rig::open() else { return };
    let stage = on(&rig, Law::Westwood);
    // Acknowledged at once, the path holds hardly anything: the window of a start is given to Westwood after a loss by the law before it.
    let mut flow = stage.connect(Law::Scalable, Duration::ZERO);
    stage.grow(&mut flow, 2_000);
    stage.lose(&mut flow);
    flow.give(Law::Westwood);
    stage.round(&mut flow);
    let before = flow.window();
    (0..6).for_each(|_| stage.round(&mut flow));
    let rise = flow.window() - before;
    assert!(before > 1_600 && (5..=7).contains(&rise), "{rise} packets in six round trips at {before}");
}

/// In equilibrium alpha packets of each flow wait in the queue, however many flows there are.
#[test]
fn fast_keeps_alpha_packets_of_each_flow_waiting() {
    let Some(rig) = Rig::open() else { return };
    let stage = on(&rig, Law::Fast);
    for (alpha, count) in [(20, 1), (60, 1), (20, 2)] {
        rig.tcp.set(&format!("fast-alpha={alpha}")).expect("set");
        let mut flows: Vec<Flow> = (0..count).map(|_| stage.connect(Law::Fast, ROUND_TRIP)).collect();
        let mut line = Line::new(&stage, RATE, ROUND_TRIP);
        let begun = now();
        let seen = Cell::new(0);
        let mut waiting: Vec<(u16, usize)> = Vec::new();
        // Four seconds of the line; what waits is looked at in its second half.
        let packets = RATE * 4;
        line.carry(
            &mut flows,
            |_| begun.elapsed() < Duration::from_secs(30) && seen.get() < packets,
            |packet, before| {
                seen.set(seen.get() + 1);
                if seen.get() > packets / 2 {
                    waiting.push((packet.port, before));
                }
                false
            },
        );
        for flow in &flows {
            let mut own: Vec<usize> = waiting.iter().filter(|(port, _)| *port == flow.port).map(|(_, before)| *before).collect();
            own.sort_unstable();
            let median = own.get(own.len() / 2).copied().expect("it sends");
            println!("alpha {alpha}, {count} flows: {median} wait, window {}", flow.window());
            assert!(median.abs_diff(alpha) <= 5 + alpha / 5, "{median} packets wait, not {alpha}, of {count} flows");
        }
    }
}
