//! Paths of one connection beside another flow, by hand: `paths MODE N RIVAL [SECONDS] [MBPS] [RTT_MS] [QUEUE_BDP] [LINKS] [SEED]`.
//!
//! RIVAL: cubic, bbr, reno, a mode of haul, or -. LINKS: 1 for one bottleneck, or as many disjoint ones as paths.

use std::borrow::Cow;
use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_scenarios::Kind;
use haul_sim::{EndpointId, Flow, Mixed, Path, Plan, Queue, TcpConfig, Topology, Ways};
use haul_units::{BitRate, Bytes, Time};

fn kind(name: &str) -> Option<Kind> {
    match name {
        "-" => None,
        "cubic-tcp" => Some(Kind::Tcp(TcpConfig::CUBIC)),
        "bbr-tcp" => Some(Kind::Tcp(TcpConfig::BBR)),
        "reno-tcp" => Some(Kind::Tcp(TcpConfig::RENO)),
        mode => Some(Kind::Haul(mode.parse::<ControllerChoice>().expect("a mode"))),
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |at: usize, otherwise: &str| args.get(at).cloned().unwrap_or_else(|| otherwise.to_owned());
    let number = |at: usize, otherwise: &str| arg(at, otherwise).parse::<f64>().expect("a number");
    let count = number(1, "4") as u16;
    let rtt = Duration::from_secs_f64(number(5, "40") / 1e3);
    let path = Path::new(BitRate::mbps(number(4, "50") as u64), rtt).queue(Queue::Bdp(number(6, "1")));
    let links = number(7, "1") as usize;
    let topology = if links == 1 {
        Topology::Dumbbell { pairs: 1, path }
    } else {
        Topology::Parallel { pairs: 1, paths: Vec::leak(vec![path; links]) }
    };
    let ways = if links == 1 { Ways::Hashed(count) } else { Ways::Apart(count) };
    let mut flows = vec![Flow { ways, ..Flow::endless(kind(&arg(0, "fair")).expect("a mode"), 0, 1) }];
    if let Some(rival) = kind(&arg(2, "cubic-tcp")) {
        flows.push(Flow { start: Duration::from_secs(5), ..Flow::endless(rival, 0, 1) });
    }
    let seconds = number(3, "60") as u64;
    let length = Duration::from_secs(seconds);
    let plan = Plan { name: "paths", seed: number(8, "7") as u64, topology, flows: Cow::Owned(flows), length, checks: &[] };
    let mut scene = plan.build(haul_scenarios::any_ends);
    let mut before = vec![0u64; usize::from(count) + plan.flows.len()];
    for second in 1..=seconds {
        let now = Time::ZERO + Duration::from_secs(second);
        scene.network.run(now);
        let mut totals = Vec::new();
        if let Mixed::First(end) = scene.network.endpoint(EndpointId(0)) {
            totals.extend(end.acknowledged_by_path().into_iter().map(Bytes::as_u64));
        }
        totals.resize(usize::from(count), 0);
        for flow in 0..plan.flows.len() {
            totals.push(haul_sim::FlowEnd::received(scene.network.endpoint(EndpointId(flow * 2 + 1))).as_u64());
        }
        let rates: Vec<String> =
            totals.iter().zip(&before).map(|(total, before)| format!("{:6.2}", (total - before) as f64 * 8e-6)).collect();
        let queue = scene.network.link_mut(scene.fabric.bottleneck(1)).queue_delay(now);
        println!("{second:>3} s {} queue {queue:?}", rates.join(" "));
        before = totals;
    }
}
