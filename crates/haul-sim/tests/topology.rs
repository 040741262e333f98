//! Ways through networks.

use std::borrow::Cow;
use std::collections::HashSet;
use std::time::Duration;

use haul_sim::{Fabric, Flow, LinkId, Network, Outcome, Path, Plan, Tcp, TcpConfig, Topology};
use haul_units::{BitRate, Bytes};
use proptest::prelude::*;

const LEAF: Path = Path::new(BitRate::gbps(1), Duration::from_micros(20));

fn tree(k: usize) -> Topology {
    Topology::FatTree { k, crowding: 1, host: LEAF, aggregation: LEAF, core: LEAF }
}

fn run(topology: &Topology, flows: Vec<Flow<TcpConfig>>, length: Duration) -> Outcome {
    let plan = Plan { name: "topology", seed: 3, topology: *topology, flows: Cow::Owned(flows), length, checks: &[] };
    plan.run(|flow| (Tcp::sender(*flow.kind, flow.receiver, flow.start, flow.size), Tcp::receiver(*flow.kind, flow.size)))
}

fn built(topology: &Topology) -> Fabric {
    let mut network: Network<Tcp> = Network::new();
    topology.build(&mut network, 1)
}

proptest! {
    #[test]
    fn ways_through_a_fat_tree(half in 1usize..6, from: prop::sample::Index, to: prop::sample::Index, choice: u8) {
        let k = half * 2;
        let fabric = built(&tree(k));
        let hosts = fabric.topology().hosts();
        prop_assert_eq!(hosts, k * k * k / 4);
        prop_assert_eq!(fabric.links().count(), hosts * 6);
        let (from, to) = (from.index(hosts), to.index(hosts));
        let (there, back) = (fabric.path(from, to, usize::from(choice)), fabric.path(to, from, usize::from(choice)));
        let hops = match () {
            () if from == to => 0,
            () if from / half == to / half => 2,
            () if from / half / half == to / half / half => 4,
            () => 6,
        };
        prop_assert_eq!(there.len(), hops);
        // The same wires in both directions: links come in pairs.
        let wires = |path: &[LinkId]| path.iter().map(|link| link.0 / 2).collect::<Vec<_>>();
        prop_assert_eq!(wires(&there), wires(&back).into_iter().rev().collect::<Vec<_>>());
        // Up, then down.
        let ups = there.iter().map(|link| link.0 % 2).collect::<Vec<_>>();
        prop_assert!(ups.is_sorted() && ups.iter().filter(|up| **up == 0).count() == hops / 2);
    }
}

#[test]
fn a_crowded_tree_has_more_hosts_and_the_same_switches() {
    let fabric = built(&Topology::FatTree { k: 8, crowding: 4, host: LEAF, aggregation: LEAF, core: LEAF });
    assert_eq!((fabric.topology().hosts(), fabric.links().count() / 2), (512, 512 + 2 * 128));
    let hops = |to| fabric.path(0, to, 3).len();
    // Sixteen hosts at a switch, four of these in a pod.
    assert_eq!([1, 15, 16, 63, 64, 511].map(hops), [2, 2, 4, 4, 6, 6]);
    assert_eq!([15, 16, 511].map(|to| fabric.choices(0, to)), [1, 4, 16]);
    let ends = |to: usize| [fabric.path(0, to, 3)[0].0, fabric.path(0, to, 3).last().expect("hops").0];
    assert_eq!(ends(511), [0, 511 * 2 + 1], "a link of its own to every host");
}

#[test]
fn flows_choose_among_all_cores() {
    let fabric = built(&tree(8));
    let last = fabric.topology().hosts() - 1;
    assert_eq!(fabric.choices(0, last), 16);
    let wires: HashSet<usize> = (0..16).map(|choice| fabric.path(0, last, choice)[2].0).collect();
    assert_eq!(wires.len(), 16);
}

#[test]
fn every_pair_of_a_small_tree_is_connected() {
    let pairs = (0..16).flat_map(|from| (0..16).map(move |to| (from, to))).filter(|(from, to)| from != to);
    let flows = pairs.map(|(from, to)| Flow::bulk(TcpConfig::CUBIC, from, to, Bytes(20_000))).collect();
    let outcome = run(&tree(4), flows, Duration::from_secs(5));
    assert!(outcome.completed.iter().all(Option::is_some), "{:?}", outcome.completed);
}

#[test]
fn a_parking_lot_favours_short_ways() {
    let path = Path::new(BitRate::mbps(50), Duration::from_millis(20));
    let flows = vec![
        Flow::endless(TcpConfig::RENO, 0, 3),
        Flow::endless(TcpConfig::RENO, 0, 1),
        Flow::endless(TcpConfig::RENO, 1, 2),
        Flow::endless(TcpConfig::RENO, 2, 3),
    ];
    let outcome = run(&Topology::ParkingLot { segments: 3, path }, flows, Duration::from_secs(120));
    let mbps = |flow: usize| outcome.rates[flow].as_bps() / 1_000_000;
    for flow in 1..4 {
        assert!((mbps(0) + mbps(flow)) > 44 && mbps(flow) > 2 * mbps(0), "{:?}", outcome.rates);
    }
    assert!(mbps(0) > 1);
}

#[test]
fn many_servers_share_the_link_of_one_client() {
    let path = Path::new(BitRate::mbps(100), Duration::from_millis(4));
    let flows = (0..20).map(|server| Flow::bulk(TcpConfig::CUBIC, server, 20, Bytes(500_000))).collect();
    let outcome = run(&Topology::Star { hosts: 21, path }, flows, Duration::from_secs(30));
    let last = outcome.completion(1.0).expect("all complete");
    // 10 MB at 100 Mbit/s take 0.83 s with headers; some lose their last packets and wait for a timeout.
    assert!((0.82..2.5).contains(&last.as_secs_f64()), "{last:?}");
}

#[test]
fn farther_hosts_get_less() {
    let path = Path::new(BitRate::mbps(50), Duration::from_millis(10));
    let far = Flow { extra_rtt: Duration::from_millis(90), ..Flow::endless(TcpConfig::RENO, 0, 1) };
    let flows = vec![Flow::endless(TcpConfig::RENO, 0, 1), far];
    let outcome = run(&Topology::Dumbbell { pairs: 1, path }, flows, Duration::from_secs(120));
    assert!(outcome.share(1) < 0.3 && outcome.share(1) > 0.01, "{:?}", outcome.rates);
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    let again = || {
        let path =
            Path { jitter: Duration::from_millis(3), reorder: 0.01, ..Path::new(BitRate::mbps(50), Duration::from_millis(20)) };
        let topology = Topology::Dumbbell { pairs: 2, path: path.loss(0.01) };
        let flows = (0..20).map(|n| Flow::bulk(TcpConfig::CUBIC, n % 2, 2 + n % 2, Bytes(300_000))).collect();
        run(&topology, flows, Duration::from_secs(30))
    };
    assert_eq!(again(), again());
}
