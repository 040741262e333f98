//! Quick starts, what is learned, and controllers that take over, on the real transport.

use std::time::Duration;

use haul_cc::{ControllerChoice, Learned};
use haul_proto::TransportConfig;
use haul_scenarios::End;
use haul_sim::Network;
use haul_units::BitRate;

use crate::harness::{CLIENT, Path, SERVER, connected, ms, pair, upload, upload_from};

const BYTES: u64 = 50 << 20;

fn with(controller: ControllerChoice, remembered: Option<Learned>) -> TransportConfig {
    TransportConfig { controller, remembered, max_packet: 1472, ..TransportConfig::default() }
}

/// How many round trips an upload took beyond what its bytes need, and what was learned.
fn lost_rounds(path: Path, transport: &TransportConfig) -> (f64, Learned) {
    let mut network = pair(path, transport);
    let took = upload(&mut network, BYTES, path.ideal(BYTES, 1472) * 20 + path.rtt * 50);
    let learned = network.endpoint_mut(CLIENT).connection().learned().expect("fifty megabytes teach something");
    ((took.as_secs_f64() - path.ideal(BYTES, 1472).as_secs_f64()) / path.rtt.as_secs_f64(), learned)
}

#[test]
fn a_quick_start_saves_round_trips() {
    for queue_bdp in [0.25, 1.0] {
        let path = Path { queue_bdp, ..Path::new(BitRate::mbps(1000), ms(100)) };
        let (fair, _) = lost_rounds(path, &with(ControllerChoice::Fair, None));
        let (quick, learned) = lost_rounds(path, &with(ControllerChoice::Quickstart, None));
        assert!(quick <= 3.5 && quick + 2.0 <= fair, "{quick} round trips, fair {fair}");
        let part = learned.bandwidth.ratio_to(path.rate).as_f64();
        assert!((0.9..=1.0).contains(&part) && learned.min_rtt < ms(103), "{learned:?}");
        let (again, _) = lost_rounds(path, &with(ControllerChoice::Quickstart, Some(learned)));
        assert!(again <= quick + 0.3, "{again} round trips the second time, {quick} the first");
    }
}

#[test]
fn who_sent_only_credit_has_learned_no_rate() {
    let path = Path::new(BitRate::mbps(100), ms(20));
    for choice in [ControllerChoice::Quickstart, ControllerChoice::Fair, ControllerChoice::Cubic, ControllerChoice::Bbr] {
        let mut network = pair(path, &with(choice, None));
        upload(&mut network, BYTES, path.ideal(BYTES, 1472) * 20 + path.rtt * 50);
        let near = network.endpoint_mut(CLIENT).connection().learned();
        assert!(near.is_some_and(|learned| learned.bandwidth > BitRate::mbps(10)), "{choice}: {near:?} by data");
        assert_eq!(network.endpoint_mut(SERVER).connection().learned(), None, "{choice}: by credit alone");
    }
}

/// A connection that has been idle for two round trips, and how many bytes have left by then.
fn greeted(path: Path, filler: bool) -> (Network<End>, u64) {
    let transport = TransportConfig { filler, ..with(ControllerChoice::Quickstart, None) };
    let mut network = pair(path, &transport);
    let start = connected(&mut network) + path.rtt * 2;
    network.run(start);
    let sent = network.endpoint_mut(CLIENT).connection().stats(start).expect("connected").sent;
    (network, sent.as_u64())
}

/// How many round trips an upload took that began then.
fn lost_rounds_after_a_greeting(path: Path, filler: bool) -> (f64, u64) {
    let (mut network, sent) = greeted(path, filler);
    let start = network.now();
    let took = upload_from(&mut network, start, BYTES, path.ideal(BYTES, 1472) * 20 + path.rtt * 50);
    ((took.as_secs_f64() - path.ideal(BYTES, 1472).as_secs_f64()) / path.rtt.as_secs_f64(), sent)
}

#[test]
fn filler_measures_the_path_of_an_application_that_has_nothing_to_say_yet() {
    for path in [Path::new(BitRate::mbps(1000), ms(100)), Path::new(BitRate::mbps(200), ms(50)).loss(0.01)] {
        let (plain, little) = lost_rounds_after_a_greeting(path, false);
        let (filled, filler) = lost_rounds_after_a_greeting(path, true);
        assert!(filled + 0.6 <= plain, "{filled} round trips with filler, {plain} without");
        assert!(little < 10_000 && filler < 800_000, "{filler} bytes of filler, {little} without");
    }
}

#[test]
fn filler_does_not_fill_a_slow_path() {
    let (_, filler) = greeted(Path::new(BitRate::mbps(1), ms(100)), true);
    assert!(filler < 30_000, "{filler} bytes");
    // A scout of 24 kB and three trains of 20 ms each.
    let (_, filler) = greeted(Path::new(BitRate::mbps(60), ms(100)), true);
    assert!((400_000..500_000).contains(&filler), "{filler} bytes");
}

#[test]
fn what_is_remembered_of_another_path_does_no_harm() {
    let path = Path::new(BitRate::mbps(100), ms(50));
    let (plain, _) = lost_rounds(path, &with(ControllerChoice::Quickstart, None));
    for remembered in [
        Learned { bandwidth: BitRate::gbps(10), min_rtt: ms(50), base_loss: 0.0 },
        Learned { bandwidth: BitRate::gbps(10), min_rtt: ms(1), base_loss: 0.1 },
        Learned { bandwidth: BitRate::mbps(1), min_rtt: ms(50), base_loss: 0.0 },
    ] {
        let (wrong, _) = lost_rounds(path, &with(ControllerChoice::Quickstart, Some(remembered)));
        assert!(wrong <= plain + 1.0, "{wrong} round trips with {remembered:?}, {plain} without");
    }
}

#[test]
fn a_controller_takes_over_in_full_flight() {
    let path = Path::new(BitRate::mbps(500), ms(100));
    let mut network = pair(path, &with(ControllerChoice::Fair, None));
    let start = connected(&mut network);
    network.endpoint_mut(CLIENT).start_bulk(1 << 30, false);
    let mut until = start;
    for choice in [ControllerChoice::Cubic, ControllerChoice::Fair, ControllerChoice::Quickstart] {
        until += Duration::from_secs(3);
        network.run(until);
        let now = network.now();
        let before = network.endpoint_mut(CLIENT).connection().stats(now).expect("connected");
        network.endpoint_mut(CLIENT).connection().set_controller(now, choice);
        network.run(until + ms(600));
        let now = network.now();
        let after = network.endpoint_mut(CLIENT).connection().stats(now).expect("connected");
        assert_eq!(after.controller.algorithm, choice.name());
        let rate = BitRate::of(after.acknowledged - before.acknowledged, ms(600));
        assert!(rate.ratio_to(path.rate).as_f64() > 0.8, "{rate} after {} gave way to {choice}", before.controller.algorithm);
    }
}
