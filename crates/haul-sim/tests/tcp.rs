//! The TCP model against formulae, and in bad weather.

use std::borrow::Cow;
use std::time::Duration;

use haul_sim::{
    Check, CoDel, Discipline, EndpointId, Flow, LinkConfig, LossModel, Network, Outcome, Path, Plan, Queue, Reorder, Tcp,
    TcpConfig, TokenBucket, Topology,
};
use haul_units::{BitRate, Bytes, Ratio, Time};
use proptest::prelude::*;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn plan(path: Path, flows: Vec<Flow<TcpConfig>>, length: Duration) -> Plan<TcpConfig> {
    Plan { name: "tcp", seed: 1, topology: Topology::Dumbbell { pairs: 1, path }, flows: Cow::Owned(flows), length, checks: &[] }
}

fn run(plan: &Plan<TcpConfig>) -> Outcome {
    plan.run(|flow| (Tcp::sender(*flow.kind, flow.receiver, flow.start, flow.size), Tcp::receiver(*flow.kind, flow.size)))
}

/// Mean window in packets of an endless flow where every `every`th packet is lost, after a minute of settling.
fn mean_window(config: TcpConfig, rtt: Duration, every: u64) -> f64 {
    let there = LinkConfig {
        rate: BitRate::gbps(10),
        delay: rtt / 2,
        queue: Bytes::gib(1),
        loss: LossModel::Every(every),
        ..LinkConfig::default()
    };
    let back = LinkConfig { loss: LossModel::None, ..there };
    let (sender, receiver) = (Tcp::sender(config, EndpointId(1), Time::ZERO, None), Tcp::receiver(config, None));
    let mut network = Network::pair(sender, receiver, there, back);
    let received = |network: &Network<Tcp>| haul_sim::FlowEnd::received(network.endpoint(EndpointId(1))).as_u64() as f64;
    network.run(Time::ZERO + secs(60));
    let before = received(&network);
    network.run(Time::ZERO + secs(660));
    (received(&network) - before) / config.payload.as_u64() as f64 / 600.0 * rtt.as_secs_f64()
}

fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
    assert!((value / expected - 1.0).abs() <= tolerance, "{what}: {value:.2}, expected {expected:.2}");
}

/// Mathis, Semke, Mahdavi and Ott, "The macroscopic behavior of the TCP congestion avoidance algorithm" (1997): sqrt(3/2) / sqrt(p).
#[test]
fn reno_is_as_fast_as_mathis_says() {
    for (rtt, every) in [(ms(20), 500), (ms(20), 5_000), (ms(100), 300), (ms(100), 2_000)] {
        let window = mean_window(TcpConfig::RENO, rtt, every);
        assert_near(&format!("{rtt:?}, 1/{every}"), window, 1.2247 * (every as f64).sqrt(), 0.15);
    }
}

/// RFC 9438 5.1: 1.054 * (RTT / p)^(3/4) where the curve is above Reno's, else as Reno.
#[test]
fn cubic_is_as_fast_as_rfc_9438_says() {
    for (rtt, every) in [(ms(100), 10_000), (ms(100), 100_000), (ms(200), 3_000), (ms(20), 1_000), (ms(10), 3_000)] {
        let window = mean_window(TcpConfig::CUBIC, rtt, every);
        let curve = 1.054 * (rtt.as_secs_f64() * every as f64).powf(0.75);
        let reno = 1.2247 * (every as f64).sqrt();
        assert_near(&format!("{rtt:?}, 1/{every}"), window, curve.max(reno), 0.15);
    }
}

#[test]
fn random_loss_costs_what_the_formula_says() {
    for (percent, tolerance) in [(0.1, 0.15), (0.3, 0.15), (1.0, 0.2)] {
        let path = Path::new(BitRate::gbps(1), ms(50)).loss(percent / 100.0);
        let outcome = run(&plan(path, vec![Flow::endless(TcpConfig::RENO, 0, 1)], secs(600)));
        let mathis = 1448.0 * 8.0 / 0.05 * 1.2247 / (percent / 100.0_f64).sqrt();
        assert_near(&format!("{percent} %"), outcome.rates[0].as_bps() as f64, mathis, tolerance);
    }
}

/// Cardwell et al. 2016, figure 8: full rate, less headers and the pacing margin, up to a few per cent of loss, and no standing queue.
#[test]
fn bbr_fills_a_path_that_loses_packets_and_keeps_its_queue_short() {
    for (percent, least) in [(0.0, 0.94), (1.0, 0.92), (5.0, 0.85)] {
        let path = Path::new(BitRate::mbps(100), ms(50)).queue(Queue::Bdp(4.0)).loss(percent / 100.0);
        let outcome = run(&plan(path, vec![Flow::endless(TcpConfig::BBR, 0, 1)], secs(60)));
        let used = outcome.rates[0].as_bps() as f64 / 100e6 / (1.0 - percent / 100.0);
        assert!(used > least, "{percent} %: {used:.3}");
        assert!(outcome.queue_p95 < ms(25), "{percent} %: {:?}", outcome.queue_p95);
    }
}

#[test]
fn a_short_flow_takes_its_round_trips() {
    // Handshake, then windows of 10, 20, 40: 70 packets in three round trips, and half of one for the last to arrive.
    let path = Path::new(BitRate::gbps(10), ms(100));
    for (pkts, rtts) in [(1, 1.5), (10, 1.5), (11, 2.5), (30, 2.5), (31, 3.5), (70, 3.5)] {
        let outcome = run(&plan(path, vec![Flow::bulk(TcpConfig::CUBIC, 0, 1, Bytes(1448 * pkts))], secs(5)));
        let took = outcome.completed[0].expect("complete").as_secs_f64() / 0.1;
        assert!((took - rtts).abs() < 0.05, "{pkts} packets took {took} round trips");
    }
}

#[test]
fn a_lost_last_packet_waits_for_the_timeout() {
    let config = LinkConfig { rate: BitRate::gbps(1), delay: ms(5), ..LinkConfig::default() };
    // The SYN and nine packets of ten pass.
    let lossy = LinkConfig { loss: LossModel::Every(11), ..config };
    let size = Some(Bytes(14_480));
    let ends = (Tcp::sender(TcpConfig::CUBIC, EndpointId(1), Time::ZERO, size), Tcp::receiver(TcpConfig::CUBIC, size));
    let mut network = Network::pair(ends.0, ends.1, lossy, config);
    network.run(Time::ZERO + secs(5));
    let at = haul_sim::FlowEnd::completed_at(network.endpoint(EndpointId(1))).expect("complete");
    // The timer was set when the acknowledgement of the ninth came.
    assert!((ms(225)..ms(240)).contains(&(at - Time::ZERO)), "{at}");
    assert_eq!(network.endpoint(EndpointId(0)).stats().timeouts, 1);
}

const FILLS: &[Check] = &[Check::UtilisationAtLeast(0.97), Check::JainAtLeast(0.9)];

#[test]
fn flows_fill_a_link_and_share_it() {
    for config in [TcpConfig::RENO, TcpConfig::CUBIC] {
        let flows = (0..4).map(|n| Flow { start: secs(n), ..Flow::endless(config, 0, 1) }).collect();
        let plan = Plan { checks: FILLS, ..plan(Path::new(BitRate::mbps(50), ms(40)), flows, secs(240)) };
        let outcome = run(&plan);
        plan.check(&outcome, "cargo test -p haul-sim --test tcp").unwrap_or_else(|failure| panic!("{failure}"));
    }
}

#[test]
fn codel_and_marks_keep_the_queue_short() {
    let path = Path::new(BitRate::mbps(50), ms(40)).queue(Queue::Bdp(4.0));
    let flows = |config| vec![Flow::endless(config, 0, 1); 2];
    let tail = run(&plan(path, flows(TcpConfig::CUBIC), secs(60)));
    let codel = run(&plan(path.discipline(Discipline::CoDel(CoDel::DEFAULT)), flows(TcpConfig::CUBIC), secs(60)));
    let ecn = CoDel { ecn: true, ..CoDel::DEFAULT };
    let ecn_flows = flows(TcpConfig { ecn: true, ..TcpConfig::CUBIC });
    let marks = run(&plan(path.discipline(Discipline::CoDel(ecn)), ecn_flows, secs(60)));
    assert!(tail.queue_p95 > ms(120), "{:?}", tail.queue_p95);
    assert!(codel.queue_p95 < ms(30) && codel.utilisation > 0.9, "{codel:?}");
    assert!(marks.queue_p95 < ms(30) && marks.utilisation > 0.9 && marks.dropped == 0.0 && marks.marked_pkts > 0);
}

#[test]
fn a_policer_without_a_bucket_for_bursts_costs_dearly() {
    let policed = |bucket| {
        let policer = Some(TokenBucket { rate: BitRate::mbps(20), bucket: Bytes(bucket) });
        let path = Path { policer, ..Path::new(BitRate::mbps(100), ms(40)) };
        run(&plan(path, vec![Flow::endless(TcpConfig::RENO, 0, 1)], secs(60))).rates[0]
    };
    let (deep, shallow) = (policed(200_000), policed(10_000));
    assert!(deep > BitRate::mbps(17) && deep < BitRate::mbps(20), "{deep}");
    assert!(shallow < BitRate::mbps(16), "{shallow}");
}

#[test]
fn a_failure_names_the_seed_and_the_command() {
    const IMPOSSIBLE: &[Check] = &[Check::CompletesWithin(ms(1)), Check::UtilisationAtLeast(0.0)];
    let path = Path::new(BitRate::mbps(10), ms(10));
    let plan = Plan { checks: IMPOSSIBLE, seed: 77, ..plan(path, vec![Flow::bulk(TcpConfig::RENO, 0, 1, Bytes(100))], secs(5)) };
    let failure = plan.check(&run(&plan), "cargo test -p x").expect_err("too slow").to_string();
    assert!(failure.contains("seed 77") && failure.contains("again: HAUL_SEED=77 cargo test -p x"), "{failure}");
    assert!(failure.contains("within 1ms") && !failure.contains("utilisation"), "{failure}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn everything_arrives_whatever_the_weather(
        (pkts, control, ecn) in (1u64..3_000, 0usize..3, any::<bool>()),
        (loss, burst) in (0.0..0.2, 0.5..10.0),
        (reorder, duplicate, corrupt) in (0.0..0.1, 0.0..0.1, 0.0..0.05),
        (rate, rtt_ms, queue) in (1u64..200, 1u64..200, 5_000u64..100_000),
        seed: u64,
    ) {
        let config = TcpConfig { ecn, ..[TcpConfig::RENO, TcpConfig::CUBIC, TcpConfig::BBR][control] };
        let model = LossModel::Bursts { ratio: Ratio::new(loss), mean_pkts: burst };
        let there = LinkConfig {
            rate: BitRate::mbps(rate),
            delay: ms(rtt_ms) / 2,
            queue: Bytes(queue),
            loss: model,
            reorder: Reorder { ratio: Ratio::new(reorder), extra: ms(rtt_ms) / 4 },
            duplicate: Ratio::new(duplicate),
            corrupt: Ratio::new(corrupt),
            discipline: Discipline::CoDel(CoDel { ecn, ..CoDel::DEFAULT }),
            seed,
            ..LinkConfig::default()
        };
        let bytes = Bytes(pkts * 1448 - 7);
        let size = Some(bytes);
        let (sender, receiver) = (Tcp::sender(config, EndpointId(1), Time::ZERO, size), Tcp::receiver(config, size));
        let mut network = Network::pair(sender, receiver, there, LinkConfig { seed: seed ^ 1, ..there });
        // A burst counts packets, so that it may last for many timeouts of a minute.
        let done = network.run_until(Time::ZERO + secs(1_000_000), |network| {
            haul_sim::FlowEnd::completed_at(network.endpoint(EndpointId(1))).is_some()
        });
        prop_assert!(done, "{:?}", network.endpoint(EndpointId(0)));
        prop_assert_eq!(haul_sim::FlowEnd::received(network.endpoint(EndpointId(1))), bytes);
        let stats = network.endpoint(EndpointId(0)).stats();
        prop_assert!(stats.sent_pkts - stats.resent_pkts == pkts);
    }
}
