//! Bulk transfers: everything arrives once and right, in the time that the path allows.

use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_proto::TransportConfig;
use haul_units::BitRate;

use crate::harness::{CLIENT, Path, SERVER, connected, ms, pair, upload};

fn fixed(rate: BitRate) -> TransportConfig {
    TransportConfig { controller: ControllerChoice::Fixed(rate.scaled(0.99)), max_packet: 1472, ..TransportConfig::default() }
}

fn plain() -> TransportConfig {
    TransportConfig { max_packet: 1472, ..TransportConfig::default() }
}

/// Uploads at a fixed rate and checks the time against the path's own.
fn completes(path: Path, bytes: u64, factor: f64, rtts: u32) {
    let mut network = pair(path, &fixed(path.rate));
    let ideal = path.ideal(bytes, 1472);
    let took = upload(&mut network, bytes, ideal * 10 + path.rtt * 50);
    let now = network.now();
    let stats = network.endpoint_mut(CLIENT).connection().stats(now).unwrap();
    assert!(took <= ideal.mul_f64(factor) + path.rtt * rtts, "{path:?}: took {took:?}, ideal {ideal:?}; {stats:?}");
}

#[test]
fn a_clean_path_is_filled() {
    completes(Path::new(BitRate::mbps(1000), ms(100)), 50 << 20, 1.04, 2);
}

#[test]
fn loss_costs_what_is_lost_and_little_more() {
    for (loss, factor) in [(0.001, 1.05), (0.01, 1.06), (0.05, 1.08), (0.10, 1.10)] {
        completes(Path::new(BitRate::mbps(1000), ms(100)).loss(loss), 50 << 20, factor, 5);
    }
}

#[test]
fn reordering_does_not_look_like_loss_for_long() {
    let path = Path { reorder: 0.02, ..Path::new(BitRate::mbps(500), ms(50)) };
    let mut network = pair(path, &fixed(path.rate));
    upload(&mut network, 40 << 20, Duration::from_secs(60));
    let now = network.now();
    let stats = network.endpoint_mut(CLIENT).connection().stats(now).unwrap();
    assert!(stats.spurious_pkts * 1000 < stats.sent_pkts * 5, "{stats:?}");
}

#[test]
fn duplicates_and_corruption_do_no_harm() {
    let path = Path { duplicate: 0.05, corrupt: 0.02, reorder: 0.01, ..Path::new(BitRate::mbps(200), ms(40)).loss(0.01) };
    completes(path, 20 << 20, 1.15, 6);
}

/// The same as the default controller has it, whose start takes its round trips.
fn completes_by_default(path: Path, bytes: u64, factor: f64, rtts: u32) {
    let mut network = pair(path, &plain());
    let ideal = path.ideal(bytes, 1472);
    let took = upload(&mut network, bytes, ideal * 10);
    assert!(took <= ideal.mul_f64(factor) + path.rtt * rtts, "{path:?}: took {took:?}, ideal {ideal:?}");
}

#[test]
fn of_packets_that_all_come_twice_each_counts_once() {
    let path = Path { duplicate: 1.0, ..Path::new(BitRate::mbps(200), ms(40)) };
    completes(path, 20 << 20, 1.01, 1);
    completes_by_default(path, 100 << 20, 1.01, 4);
}

#[test]
fn a_round_trip_of_three_seconds_costs_round_trips_and_no_rate() {
    let path = Path::new(BitRate::mbps(20), ms(3000));
    completes(path, 40 << 20, 1.01, 1);
    completes(path.loss(0.01), 40 << 20, 1.02, 3);
    completes_by_default(path, 80 << 20, 1.05, 10);
}

/// Longer than the round trip: what comes so late has been sent again, so a third more is sent, and a third of that.
#[test]
fn a_third_that_comes_much_later_is_sent_again_and_ends_nothing() {
    for rtt in [40, 150] {
        let path = Path { reorder: 0.3, reorder_by: Some(ms(200)), ..Path::new(BitRate::mbps(200), ms(rtt)) };
        completes(path, 20 << 20, 1.46, 5);
        completes_by_default(path, 100 << 20, 1.7, 4);
    }
}

#[test]
fn the_default_controller_fills_long_fat_lossy_paths() {
    for (rate, rtt, loss, bytes) in [(1000, 100, 0.0, 200u64 << 20), (1000, 100, 0.01, 200 << 20), (1000, 50, 0.05, 200 << 20)] {
        let path = Path::new(BitRate::mbps(rate), ms(rtt)).loss(loss);
        let mut network = pair(path, &plain());
        let ideal = path.ideal(bytes, 1472);
        let took = upload(&mut network, bytes, ideal * 10);
        // The start takes its round trips.
        assert!(took <= ideal.mul_f64(1.2) + path.rtt * 14, "{path:?}: took {took:?}, ideal {ideal:?}");
    }
}

#[test]
fn an_ordered_stream_fills_the_path_too() {
    let path = Path::new(BitRate::mbps(500), ms(100)).loss(0.005);
    let mut network = pair(path, &fixed(path.rate));
    let start = connected(&mut network);
    let bytes = 40u64 << 20;
    let stream = network.endpoint_mut(CLIENT).start_bulk(bytes, true);
    let done = network.run_until(start + Duration::from_secs(60), |network| {
        network.endpoint(SERVER).read.iter().any(|&(id, at, ended)| id == stream && at == bytes && ended)
    });
    assert!(done, "{:?}", network.endpoint(SERVER).read);
    assert_eq!(network.endpoint(SERVER).wrong, 0);
    let took = network.now() - start;
    assert!(took <= path.ideal(bytes, 1472).mul_f64(1.1) + path.rtt * 5, "{took:?}");
}

#[test]
fn little_memory_limits_the_rate_and_nothing_else() {
    let path = Path::new(BitRate::mbps(1000), ms(100));
    let transport = TransportConfig { memory: haul_units::Bytes::mib(4), ..fixed(path.rate) };
    let mut network = pair(path, &transport);
    let bytes = 20u64 << 20;
    let took = upload(&mut network, bytes, Duration::from_secs(30));
    assert!(took < Duration::from_secs(2), "{took:?}: about a memory a round trip");
    assert!(took > Duration::from_millis(400), "{took:?}: faster than its memory");
}

#[test]
fn keys_change_on_the_way() {
    let path = Path { reorder: 0.01, ..Path::new(BitRate::mbps(500), ms(20)).loss(0.01) };
    let transport = TransportConfig { packets_per_key: 500, ..fixed(path.rate) };
    let mut network = pair(path, &transport);
    upload(&mut network, 20 << 20, Duration::from_secs(30));
    let client = network.endpoint(CLIENT);
    // One for 500 packets, but no more than one a round trip of some 900: the peer must have the one before. Epochs are counted modulo 256.
    let (keys, packets) = (client.epochs.len() as u64, client.packets);
    assert!(
        (10..256).contains(&keys) && (packets / 1000..=packets / 500 + 1).contains(&keys),
        "{keys} keys for {packets} packets"
    );
    // Reports are packets as well.
    assert!(network.endpoint(SERVER).epochs.len() > 1, "{:?}", network.endpoint(SERVER).epochs);
}

#[test]
fn jumbo_packets_are_found() {
    let path = Path::new(BitRate::mbps(1000), ms(20));
    let mut network = pair(path, &TransportConfig { max_packet: 8972, ..fixed(path.rate) });
    upload(&mut network, 40 << 20, Duration::from_secs(30));
    let now = network.now();
    assert_eq!(network.endpoint_mut(CLIENT).connection().stats(now).unwrap().packet_size.as_u64(), 8972);
}

#[test]
fn random_loss_is_no_black_hole() {
    // Larger packets begin while many small ones are in flight, and are lost: the size must stay.
    let path = Path::new(BitRate::mbps(1000), ms(100)).loss(0.02);
    let mut network = pair(path, &plain());
    let start = connected(&mut network);
    network.endpoint_mut(CLIENT).start_bulk(100 << 20, false);
    let mut sizes = Vec::new();
    for tick in 1..40 {
        network.run(start + ms(tick * 25));
        let now = network.now();
        sizes.push(network.endpoint_mut(CLIENT).connection().stats(now).unwrap().packet_size.as_u64());
    }
    assert!(sizes.is_sorted() && sizes.last() == Some(&1472), "{sizes:?}");
}

/// Sends at 700 Mbit/s through a link of 1 Gbit/s with a queue of so many bandwidth-delay products, 20 packets at least; tells the loss in the second
/// 300 ms and the 99th percentile of the bursts.
fn burst_loss(queue_bdp: f64, loss: f64) -> (f64, u64) {
    let path = Path { queue_bdp, ..Path::new(BitRate::gbps(1), ms(20)).loss(loss) };
    let transport = TransportConfig { controller: ControllerChoice::Fixed(BitRate::mbps(700)), ..fixed(path.rate) };
    let mut network = pair(path, &transport);
    connected(&mut network);
    network.endpoint_mut(CLIENT).start_bulk(100 << 20, false);
    let mut after = |time| {
        let deadline = network.now() + time;
        network.run_until(deadline, |_| false);
        let now = network.now();
        network.endpoint_mut(CLIENT).connection().stats(now).unwrap()
    };
    let (half, end) = (after(ms(300)), after(ms(300)));
    ((end.lost_pkts - half.lost_pkts) as f64 / (end.sent_pkts - half.sent_pkts) as f64, end.burst_p99_pkts)
}

/// Trains of 700 Mbit/s have 29 packets, which leave at once.
#[test]
fn trains_get_shorter_where_their_tails_are_lost_and_only_there() {
    let (lost, burst) = burst_loss(1.0, 0.0);
    assert!(lost == 0.0 && (29..60).contains(&burst), "a clean path: {lost}, {burst} packets");
    let (lost, burst) = burst_loss(1.0, 0.05);
    assert!((0.04..0.06).contains(&lost) && burst >= 29, "random loss: {lost}, {burst} packets");
    let (lost, _) = burst_loss(0.0, 0.0);
    assert!(lost < 0.005, "a queue of 20 packets: {lost}");
}
