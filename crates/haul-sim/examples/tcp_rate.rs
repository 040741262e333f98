//! The TCP model on one path: the same figures as a kernel's TCP through an emulator of the same link.
//!
//! ```text
//! cargo run --release -p haul-sim --example tcp_rate -- --rate 100M --rtt 50ms --loss 0.1% --queue 1 --control cubic --seconds 60
//! ```
//!
//! Loss applies each way, the queue is in bandwidth-delay products. Beside a kernel: `iperf3 -c HOST -t 60 -C cubic` through a link set
//! up alike; compare the goodput over the whole run.

use std::borrow::Cow;
use std::time::Duration;

use haul_sim::{Flow, Path, Plan, Queue, Tcp, TcpConfig, Topology};
use haul_units::{BitRate, Ratio, parse_duration};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut path = Path::new(BitRate::mbps(100), Duration::from_millis(50));
    let (mut config, mut length, mut flows, mut seed) = (TcpConfig::CUBIC, Duration::from_secs(60), 1, 1);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or_else(|| format!("{name} wants a value"))?;
        match name.as_str() {
            "--rate" => path.rate = value.parse()?,
            "--rtt" => path.rtt = parse_duration(&value)?,
            "--loss" => path.loss = value.parse::<Ratio>()?.as_f64(),
            "--queue" => path.queue = Queue::Bdp(value.parse()?),
            "--seconds" => length = Duration::from_secs_f64(value.parse()?),
            "--flows" => flows = value.parse()?,
            "--seed" => seed = value.parse()?,
            "--control" if value == "reno" => config = TcpConfig::RENO,
            "--control" if value == "cubic" => config = TcpConfig::CUBIC,
            "--control" if value == "bbr" => config = TcpConfig::BBR,
            _ => return Err(format!("`{name} {value}` is not understood").into()),
        }
    }
    let plan = Plan {
        name: "tcp_rate",
        seed,
        topology: Topology::Dumbbell { pairs: 1, path },
        flows: Cow::Owned(vec![Flow::endless(config, 0, 1); flows]),
        length,
        checks: &[],
    };
    let mut scene =
        plan.build(|flow| (Tcp::sender(*flow.kind, flow.receiver, flow.start, flow.size), Tcp::receiver(*flow.kind, flow.size)));
    let outcome = plan.play(&mut scene);
    for (number, received) in outcome.received.iter().enumerate() {
        let stats = scene.network.endpoint(haul_sim::EndpointId(number * 2)).stats();
        println!(
            "flow {number}: {} over all, {} in the second half; {} packets, {} sent again, {} cuts, {} timeouts, rtt {:?}",
            BitRate::of(*received, outcome.length),
            outcome.rates[number],
            stats.sent_pkts,
            stats.resent_pkts,
            stats.cuts,
            stats.timeouts,
            stats.rtt,
        );
    }
    println!(
        "link: {:.1} % used in the second half, {:.3} % dropped, p95 wait {:?}",
        outcome.utilisation * 100.0,
        outcome.dropped * 100.0,
        outcome.queue_p95
    );
    Ok(())
}
