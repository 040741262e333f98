//! A cell of the FatTree study, by hand: `fattree FOREGROUND BACKGROUND LOAD [CROWD] [SEEDS] [K] [SECONDS] [MARK_KB]`.
//!
//! K: ports of a switch, 4 by itself; 8x4 is MMPTCP's tree, with four hosts for each port upwards. MARK_KB: queues mark above so many KB.
//! Contenders: tcp, tcp10 (least timeout 10 ms), lia:N, olia:N, balia:N, scatter:N, or a mode of haul as fair, fair:N (N paths); - for no
//! background; tcp-ecn and fair heed marks. Loads: 70k, messages, queries, 70k/MS for a flow of each host every so many milliseconds.

use std::time::{Duration, Instant};

use haul_cc::ControllerChoice;
use haul_scenarios::Kind;
use haul_scenarios::fattree::{self, Contender, Load, Pattern, Study, Summary, Tree};
use haul_sim::{Scatter, TcpConfig, TcpControl, Ways};
use haul_units::Bytes;

fn contender(name: &str) -> Option<Contender> {
    let (law, ways) = name.split_once(':').map_or((name, 1), |(law, ways)| (law, ways.parse().expect("a number of ways")));
    let mptcp = |control| Kind::Tcp(TcpConfig { control, ..TcpConfig::MPTCP });
    let kind = match law {
        "-" => return None,
        "tcp" => Kind::Tcp(TcpConfig::CUBIC),
        "tcp-ecn" => Kind::Tcp(TcpConfig { ecn: true, ..TcpConfig::CUBIC }),
        "reno" => Kind::Tcp(TcpConfig::RENO),
        "tcp10" => Kind::Tcp(TcpConfig { min_timeout: Duration::from_millis(10), ..TcpConfig::CUBIC }),
        "lia" => mptcp(TcpControl::Lia),
        "olia" => mptcp(TcpControl::Olia),
        "balia" => mptcp(TcpControl::Balia),
        "scatter" => {
            let scatter = Some(Scatter { pkts: 70, reordering_pkts: 3 * u32::from(ways) });
            Kind::Tcp(TcpConfig { scatter, ..TcpConfig::MPTCP })
        }
        mode => Kind::Haul(mode.parse::<ControllerChoice>().expect("a contender")),
    };
    Some(Contender { title: "", kind, ways: if ways > 1 { Ways::Apart(ways) } else { Ways::Hashed(1) } })
}

/// The most memory that this process has had, in MB.
fn peak_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or_default() / 1000
}

#[expect(clippy::disallowed_methods, reason = "measures")]
fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |at: usize, otherwise: &str| args.get(at).cloned().unwrap_or_else(|| otherwise.to_owned());
    let load = match arg(2, "70k").as_str() {
        "messages" => Load::Messages,
        "queries" => Load::Queries,
        short => short.split_once('/').map_or(Load::REPRODUCTION, |(_, every)| {
            Load::Short(Bytes(70_000), Duration::from_millis(every.parse().expect("milliseconds")))
        }),
    };
    let ports = arg(5, "4");
    let (tree, ports) = ports.strip_suffix("x4").map_or((Tree::Study, &ports[..]), |ports| (Tree::Crowded, ports));
    let k: usize = ports.parse().expect("ports of a switch");
    let seconds: f64 = arg(6, "10").parse().expect("a number of seconds");
    let mark_above = args.get(7).map(|kb| Bytes(kb.parse::<u64>().expect("a number of KB") * 1000));
    let begin = Instant::now();
    let crowd: f64 = arg(3, "0.33").parse().expect("a part of the hosts");
    let seeds: u64 = arg(4, "5").parse().expect("a number");
    let (mut shorts, mut patterns, mut longs) = (Vec::new(), std::collections::BTreeMap::new(), Vec::new());
    let (mut events, mut core) = (0, 0.0);
    for seed in 1..=seeds {
        let study = Study {
            tree,
            k,
            foreground: contender(&arg(0, "tcp")).expect("somebody sends short flows"),
            background: contender(&arg(1, "tcp")),
            crowd,
            load,
            length: Duration::from_secs_f64(seconds),
            seed,
            mark_above,
        };
        let found = fattree::run(&study);
        for short in &found.shorts {
            *patterns.entry(short.pattern()).or_insert(0) += 1;
        }
        shorts.extend(found.shorts);
        longs.extend(found.longs.iter().map(|long| long.rate.as_bps() as f64 / 1e6));
        events += found.events;
        core += found.core_use / seeds as f64;
    }
    let times = Summary::of(&shorts);
    let at = |part| times.quantile_ms(part);
    println!(
        "{args:?}: n {} never {} mean {:.1} sd {:.1} p50 {:.1} p95 {:.1} p99 {:.1} max {:.1} ms; long {:.1} Mbit/s; core {:.0} %",
        times.ended_ms().len(),
        times.never,
        times.mean_ms,
        times.sd_ms,
        at(0.5),
        at(0.95),
        at(0.99),
        at(1.0),
        longs.iter().sum::<f64>() / longs.len().max(1) as f64,
        core * 100.0
    );
    let parts: Vec<String> =
        Pattern::ALL.iter().map(|p| format!("{} {}", p.title(), patterns.get(p).copied().unwrap_or(0))).collect();
    let took = begin.elapsed().as_secs_f64();
    println!(
        "   {}; {:.1} million events in {took:.1} s, {:.2} million a second; at most {} MB",
        parts.join(", "),
        events as f64 / 1e6,
        events as f64 / 1e6 / took,
        peak_mb()
    );
}
