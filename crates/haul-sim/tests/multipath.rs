//! Connections with several subflows: what they add up to, what they share, what they leave to others.

use std::borrow::Cow;
use std::time::Duration;

use haul_sim::{
    EndpointId, Flow, FlowEnd, LossModel, Outcome, Path, Plan, Queue, Scatter, Scene, Tcp, TcpConfig, TcpControl, Topology, Ways,
};
use haul_units::{BitRate, Bytes, Ratio, Time};

const RTT: Duration = Duration::from_millis(20);
const TEN: Path = Path::new(BitRate::mbps(10), RTT);
const ONE_PATH: Topology = Topology::Parallel { pairs: 1, paths: &[TEN] };
const TWO_PATHS: Topology = Topology::Parallel { pairs: 1, paths: &[TEN, TEN] };
/// A way that loses a packet of fifty beside one that loses nothing but what its queue drops.
const GOOD_AND_BAD: Topology = Topology::Parallel { pairs: 1, paths: &[TEN, TEN.loss(0.02)] };

const COUPLED: [TcpControl; 3] = [TcpControl::Lia, TcpControl::Olia, TcpControl::Balia];

fn plan(topology: &Topology, flows: Vec<Flow<TcpConfig>>, length: Duration) -> Plan<TcpConfig> {
    Plan { name: "multipath", seed: 5, topology: *topology, flows: Cow::Owned(flows), length, checks: &[] }
}

fn build(plan: &Plan<TcpConfig>) -> Scene<Tcp> {
    plan.build(|flow| Tcp::pair(*flow.kind, flow))
}

fn run(topology: &Topology, flows: Vec<Flow<TcpConfig>>, length: Duration) -> Outcome {
    let plan = plan(topology, flows, length);
    plan.play(&mut build(&plan))
}

fn coupled(control: TcpControl, ways: Ways) -> Flow<TcpConfig> {
    Flow { ways, ..Flow::endless(TcpConfig { control, ..TcpConfig::MPTCP }, 0, 1) }
}

fn reno(path: u16) -> Flow<TcpConfig> {
    Flow { ways: Ways::Only(path), ..Flow::endless(TcpConfig::RENO, 0, 1) }
}

fn mbps(outcome: &Outcome, flow: usize) -> f64 {
    outcome.rates[flow].as_bps() as f64 / 1e6
}

#[test]
fn disjoint_ways_add_up() {
    for control in COUPLED {
        let outcome = run(&TWO_PATHS, vec![coupled(control, Ways::Apart(2))], Duration::from_secs(60));
        assert!(mbps(&outcome, 0) > 17.0, "{control:?}: {:?}", outcome.rates);
    }
}

/// RFC 6356's second goal, and what subflows that do not know each other do instead.
#[test]
fn on_one_path_coupled_subflows_are_one_flow() {
    let share = |control| {
        let outcome = run(&ONE_PATH, vec![coupled(control, Ways::Hashed(4)), reno(0)], Duration::from_secs(300));
        outcome.share(0)
    };
    for control in COUPLED {
        let share = share(control);
        assert!((0.35..0.65).contains(&share), "{control:?} takes {share:.2}");
    }
    let uncoupled = share(TcpControl::Reno);
    assert!(uncoupled > 0.7, "four flows take {uncoupled:.2}");
}

/// Its third goal: away from the way that loses, so that another flow there has nearly all of it.
#[test]
fn traffic_moves_off_the_bad_way() {
    for control in [TcpControl::Lia, TcpControl::Olia] {
        let plan = plan(&GOOD_AND_BAD, vec![coupled(control, Ways::Apart(2))], Duration::from_secs(60));
        let mut scene = build(&plan);
        let outcome = plan.play(&mut scene);
        assert!(mbps(&outcome, 0) > 8.5, "{control:?}: at least the good way alone: {:?}", outcome.rates);
        let mut sent: Vec<u64> =
            scene.network.endpoint(EndpointId(0)).subflow_stats().iter().map(|stats| stats.sent_pkts).collect();
        sent.sort_unstable();
        assert!(sent[0] * 2 < sent[1], "{control:?}: {sent:?}");
    }
}

#[test]
fn what_a_dead_way_holds_goes_by_the_other() {
    let size = Bytes(5_000_000);
    let flow = Flow { size: Some(size), ..coupled(TcpControl::Lia, Ways::Apart(2)) };
    let plan = plan(&TWO_PATHS, vec![flow], Duration::from_secs(30));
    let mut scene = build(&plan);
    scene.network.run(Time::ZERO + Duration::from_secs(1));
    let links: Vec<_> = scene.fabric.links().take(2).collect();
    for link in links {
        let now = scene.network.now();
        scene.network.link_mut(link).set_loss(now, LossModel::Random(Ratio::ONE));
    }
    let done = scene
        .network
        .run_until(Time::ZERO + Duration::from_secs(20), |network| network.endpoint(EndpointId(1)).completed_at().is_some());
    assert!(done, "{:?}", scene.network.endpoint(EndpointId(0)).subflow_stats());
    assert_eq!(scene.network.endpoint(EndpointId(1)).received(), size);
}

/// 70 kB over eight subflows is a few packets each, and the loss of one waits for a timer; one subflow recovers by what comes after.
#[test]
fn a_short_flow_pays_for_its_subflows() {
    let path = Path::new(BitRate::mbps(100), Duration::from_millis(1)).loss(0.02).queue(Queue::Bytes(Bytes(100_000)));
    let topology = Topology::Dumbbell { pairs: 1, path };
    let mean = |config: TcpConfig, ways| {
        let flow =
            |number: u32| Flow { start: Duration::from_millis(300) * number, ways, ..Flow::bulk(config, 0, 1, Bytes(70_000)) };
        let outcome = run(&topology, (0..200).map(flow).collect(), Duration::from_secs(90));
        let times: Vec<f64> = outcome.completed.iter().flatten().map(Duration::as_secs_f64).collect();
        assert_eq!(times.len(), 200);
        times.iter().sum::<f64>() / 200.0
    };
    let (one, eight) = (mean(TcpConfig::RENO, Ways::Hashed(1)), mean(TcpConfig::MPTCP, Ways::Hashed(8)));
    assert!(eight > one, "{eight:.4} s with eight, {one:.4} s with one");
}

#[test]
fn scattered_packets_take_all_ways_and_long_flows_go_on_with_subflows() {
    let scatter = Scatter { pkts: 70, reordering_pkts: 12 };
    let config = TcpConfig { scatter: Some(scatter), ..TcpConfig::MPTCP };
    for (size, subflows) in [(Bytes(70_000), 1), (Bytes(3_000_000), 3)] {
        let flow = Flow { ways: Ways::Apart(2), ..Flow::bulk(config, 0, 1, size) };
        let plan = plan(&TWO_PATHS, vec![flow], Duration::from_secs(20));
        let mut scene = build(&plan);
        let outcome = plan.play(&mut scene);
        assert!(outcome.completed[0].is_some(), "{size}");
        let used = scene.network.endpoint(EndpointId(0)).subflow_stats().iter().filter(|stats| stats.sent_pkts > 0).count();
        assert_eq!(used, subflows, "{size}");
        let carried: Vec<u64> = scene.fabric.links().step_by(2).map(|link| scene.network.link(link).stats().sent_pkts).collect();
        assert!(carried.iter().all(|pkts| *pkts > 15), "both ways are used: {carried:?}");
    }
}
