//! Scenarios with what must hold.

use std::borrow::Cow;
use std::time::Duration;

use haul_cc::ControllerChoice::{Cubic, Fair};
use haul_sim::{Change, Check, Flow, LossModel, Path, Plan, Queue, TcpConfig, TokenBucket, Topology};
use haul_units::{BitRate, Bytes};

use crate::{Kind, run};

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

const FAIR: Kind = Kind::Haul(Fair);

/// One flow on one path.
const fn bulk(
    name: &'static str,
    path: Path,
    flows: &'static [Flow<Kind>],
    length: Duration,
    checks: &'static [Check],
) -> Plan<Kind> {
    let topology = Topology::Dumbbell { pairs: 1, path };
    Plan { name, seed: 1, topology, flows: Cow::Borrowed(flows), length, checks }
}

// 100 MB take 0.84 s at 1 Gbit/s.
const QUARTER_BDP_QUEUE: Plan<Kind> = bulk(
    "quarter_bdp_queue",
    Path::new(BitRate::gbps(1), ms(80)).queue(Queue::Bdp(0.25)),
    &[Flow::bulk(FAIR, 0, 1, Bytes(100_000_000))],
    secs(10),
    &[Check::CompletesWithin(ms(1500))],
);

#[test]
fn quarter_bdp_queue() {
    run(&QUARTER_BDP_QUEUE);
}

const BURSTS_OF_LOSS: Plan<Kind> = bulk(
    "bursts_of_loss",
    Path { loss: 0.02, burst_pkts: 20.0, ..Path::new(BitRate::mbps(200), ms(100)) },
    &[Flow::endless(FAIR, 0, 1)],
    secs(15),
    &[Check::UtilisationAtLeast(0.93)],
);

#[test]
fn bursts_of_loss() {
    run(&BURSTS_OF_LOSS);
}

const OUTAGE: Plan<Kind> = bulk(
    "outage",
    Path { changes: &[(secs(3), Change::Down), (secs(5), Change::Up)], ..Path::new(BitRate::mbps(100), ms(50)) },
    &[Flow::endless(FAIR, 0, 1)],
    secs(14),
    &[Check::UtilisationAtLeast(0.95)],
);

#[test]
fn outage() {
    run(&OUTAGE);
}

const A_TENTH_OF_THE_RATE: Plan<Kind> = bulk(
    "a_tenth_of_the_rate",
    Path { changes: &[(secs(5), Change::Rate(BitRate::mbps(10)))], ..Path::new(BitRate::mbps(100), ms(50)) },
    &[Flow::endless(FAIR, 0, 1)],
    secs(30),
    &[Check::UtilisationAtLeast(0.95), Check::QueueDelayP95AtMost(ms(60))],
);

#[test]
fn a_tenth_of_the_rate() {
    run(&A_TENTH_OF_THE_RATE);
}

const POLICED: Plan<Kind> = bulk(
    "policed",
    Path {
        policer: Some(TokenBucket { rate: BitRate::mbps(50), bucket: Bytes(200_000) }),
        ..Path::new(BitRate::mbps(500), ms(50))
    },
    &[Flow::endless(FAIR, 0, 1)],
    secs(30),
    // Of 50 Mbit/s.
    &[Check::UtilisationAtLeast(0.09), Check::DroppedAtMost(0.15)],
);

#[test]
fn policed() {
    run(&POLICED);
}

const FOUR_SERVERS_ONE_CLIENT: Plan<Kind> = Plan {
    name: "four_servers_one_client",
    seed: 1,
    topology: Topology::Star { hosts: 5, path: Path::new(BitRate::mbps(200), ms(10)) },
    flows: Cow::Borrowed(&[
        Flow::bulk(FAIR, 0, 4, Bytes(10_000_000)),
        Flow::bulk(FAIR, 1, 4, Bytes(10_000_000)),
        Flow::bulk(FAIR, 2, 4, Bytes(10_000_000)),
        Flow::bulk(FAIR, 3, 4, Bytes(10_000_000)),
    ]),
    length: secs(20),
    // 1.68 s of payload and headers.
    checks: &[Check::CompletesWithin(ms(2600))],
};

#[test]
fn four_servers_one_client() {
    run(&FOUR_SERVERS_ONE_CLIENT);
}

const THROUGH_A_FAT_TREE: Plan<Kind> = Plan {
    name: "through_a_fat_tree",
    seed: 1,
    topology: Topology::FatTree { k: 4, crowding: 1, host: LEAF, aggregation: LEAF, core: LEAF },
    flows: Cow::Borrowed(&[
        Flow::bulk(FAIR, 0, 15, Bytes(5_000_000)),
        Flow::bulk(Kind::Haul(Cubic), 1, 14, Bytes(5_000_000)),
        Flow::bulk(Kind::Tcp(TcpConfig::CUBIC), 2, 13, Bytes(5_000_000)),
        Flow::bulk(FAIR, 12, 3, Bytes(5_000_000)),
    ]),
    length: secs(10),
    checks: &[Check::CompletesWithin(ms(1000))],
};

const LEAF: Path = Path::new(BitRate::mbps(500), Duration::from_micros(200)).queue(Queue::Bytes(Bytes(150_000)));

#[test]
fn through_a_fat_tree() {
    run(&THROUGH_A_FAT_TREE);
}

/// The same plan twice: whatever is random in a connection does not show.
#[test]
fn repeatable() {
    const FLOWS: &[Flow<Kind>] = &[
        Flow::bulk(FAIR, 0, 1, Bytes(5_000_000)),
        Flow::endless(Kind::Haul(Cubic), 0, 1),
        Flow::endless(Kind::Tcp(TcpConfig::RENO), 0, 1),
    ];
    const PLAN: Plan<Kind> = bulk(
        "repeatable",
        Path {
            jitter: ms(3),
            reorder: 0.01,
            duplicate: 0.01,
            corrupt: 0.01,
            changes: &[(secs(2), Change::Loss(LossModel::Every(50)))],
            ..Path::new(BitRate::mbps(50), ms(40)).loss(0.01)
        },
        FLOWS,
        secs(5),
        &[],
    );
    assert_eq!(run(&PLAN), run(&PLAN));
}
