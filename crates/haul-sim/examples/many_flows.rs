//! How fast the simulator is: flows between random hosts of a fat tree, all at once, and events per second.
//!
//! `cargo run --release -p haul-sim --example many_flows -- FLOWS K KBYTES`, for instance `10000 16 1000`.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use haul_sim::{Flow, Path, Plan, Queue, Rng, Tcp, TcpConfig, Topology};
use haul_units::{BitRate, Bytes};

#[expect(clippy::disallowed_methods, reason = "measures")]
fn main() {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("a number"));
    let mut next = |default| arguments.next().unwrap_or(default);
    let (flows, k, kbytes) = (next(10_000), next(16), next(1_000));
    let path = |rate| Path::new(rate, Duration::from_micros(10)).queue(Queue::Bytes(Bytes(300_000)));
    let host = path(BitRate::gbps(10));
    let topology = Topology::FatTree { k: k as usize, crowding: 1, host, aggregation: host, core: host };
    let (mut rng, hosts) = (Rng::new(1), topology.hosts() as u64);
    let flows = (0..flows).map(|_| {
        let from = rng.below(hosts);
        let to = (from + 1 + rng.below(hosts - 1)) % hosts;
        let start = Duration::from_nanos(rng.below(20_000_000));
        Flow { start, ..Flow::bulk(TcpConfig::CUBIC, from as usize, to as usize, Bytes(kbytes * 1_000)) }
    });
    let flows = Cow::Owned(flows.collect());
    let plan = Plan { name: "many_flows", seed: 1, topology, flows, length: Duration::from_secs(10), checks: &[] };
    let start = Instant::now();
    let outcome =
        plan.run(|flow| (Tcp::sender(*flow.kind, flow.receiver, flow.start, flow.size), Tcp::receiver(*flow.kind, flow.size)));
    let took = start.elapsed().as_secs_f64();
    println!(
        "{} of {} flows complete, median {:?}, p99 {:?}; {:.1} million events in {took:.1} s: {:.2} million a second",
        outcome.completed.iter().flatten().count(),
        outcome.completed.len(),
        outcome.completion(0.5).unwrap_or_default(),
        outcome.completion(0.99).unwrap_or_default(),
        outcome.events as f64 / 1e6,
        outcome.events as f64 / 1e6 / took
    );
}
