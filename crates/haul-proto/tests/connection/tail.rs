//! The last packet of a message is lost: nothing that comes later tells so, and a timer asks. On short round trips too that costs about two of them, while a host that stands still for a
//! few milliseconds costs a probe and no path.

use std::time::Duration;

use haul_proto::TransportConfig;
use haul_scenarios::End;
use haul_sim::{LinkId, LossModel, Network};
use haul_units::BitRate;

use crate::harness::{CLIENT, Path, SERVER, connected, ms, pair};

/// From a client to its server, and back, as [`pair`] makes them.
const LINKS: [LinkId; 2] = [LinkId(0), LinkId(1)];
/// What a report may wait for on a short round trip, and what timers are not asked to tell apart.
const GRAIN: Duration = Duration::from_micros(750);

fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}

/// A connection that has carried some messages, and is idle.
fn warm(rtt: Duration) -> Network<End> {
    let transport = TransportConfig { max_packet: 1472, ..TransportConfig::default() };
    let mut network = pair(Path::new(BitRate::mbps(1000), rtt), &transport);
    connected(&mut network);
    for turn in 1..=8 {
        let start = network.now();
        network.endpoint_mut(CLIENT).start_bulk(20_000, false);
        network.run(start + rtt * 30 + ms(20));
        assert_eq!(arrived(&network), 20_000 * turn);
    }
    network
}

fn arrived(network: &Network<End>) -> u64 {
    network.endpoint(SERVER).placed.lock().unwrap().bytes
}

fn set_loss(network: &mut Network<End>, loss: LossModel) {
    let now = network.now();
    for link in LINKS {
        network.link_mut(link).set_loss(now, loss);
    }
}

/// How long a message of one packet takes of which nothing passes for so long.
fn takes_with_an_outage(rtt: Duration, outage: Duration) -> Duration {
    let mut network = warm(rtt);
    let start = network.now();
    set_loss(&mut network, LossModel::All);
    network.endpoint_mut(CLIENT).start_bulk(1000, false);
    network.run(start + outage);
    set_loss(&mut network, LossModel::None);
    let before = arrived(&network);
    let done = network.run_until(start + ms(2000), |network| arrived(network) > before);
    assert!(done, "{rtt:?}: it came at all");
    network.now() - start
}

#[test]
fn a_lost_last_packet_costs_about_two_round_trips() {
    for rtt in [us(200), us(500), ms(5), ms(50)] {
        let took = takes_with_an_outage(rtt, rtt / 4);
        // The timer, and the way of the packet that it sends.
        let bound = rtt * 2 + GRAIN;
        println!("{rtt:?}: {took:?}");
        assert!(took > rtt && took <= bound, "{rtt:?}: {took:?}, bound {bound:?}");
    }
}

#[test]
fn a_probe_that_is_lost_too_is_followed_by_others_soon() {
    let took = takes_with_an_outage(us(500), ms(8));
    assert!(took <= ms(18), "{took:?}: timers double from below two milliseconds");
}

/// Nothing passes for 30 ms, as when a thread of either end waits for its processor: probes leave, nothing is taken for lost.
#[test]
fn a_host_that_stands_still_for_a_moment_has_lost_nothing() {
    let mut network = warm(us(500));
    let start = network.now();
    let lost = |network: &mut Network<End>| {
        let now = network.now();
        network.endpoint_mut(CLIENT).connection().stats(now).expect("connected").lost_pkts
    };
    let before = lost(&mut network);
    set_loss(&mut network, LossModel::All);
    network.endpoint_mut(CLIENT).start_bulk(1000, false);
    network.run(start + ms(30));
    assert_eq!(lost(&mut network), before, "30 ms");
    network.run(start + ms(150));
    assert!(lost(&mut network) > before, "150 ms: that is silence");
}
