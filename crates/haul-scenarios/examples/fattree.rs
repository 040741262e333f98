//! A cell of the FatTree study, by hand: `fattree FOREGROUND BACKGROUND LOAD [CROWD] [SEEDS]`.
//!
//! Contenders: tcp, tcp10 (least timeout 10 ms), lia:N, olia:N, balia:N, scatter:N, or a mode of haul as fair, fair:N (N paths); - for no
//! background. Loads: 70k, messages, queries.

use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_scenarios::Kind;
use haul_scenarios::fattree::{self, Contender, Load, Pattern, Study, Summary};
use haul_sim::{Scatter, TcpConfig, TcpControl, Ways};

fn contender(name: &str) -> Option<Contender> {
    let (law, ways) = name.split_once(':').map_or((name, 1), |(law, ways)| (law, ways.parse().expect("a number of ways")));
    let mptcp = |control| Kind::Tcp(TcpConfig { control, ..TcpConfig::MPTCP });
    let kind = match law {
        "-" => return None,
        "tcp" => Kind::Tcp(TcpConfig::CUBIC),
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

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |at: usize, otherwise: &str| args.get(at).cloned().unwrap_or_else(|| otherwise.to_owned());
    let load = match arg(2, "70k").as_str() {
        "messages" => Load::Messages,
        "queries" => Load::Queries,
        _ => Load::REPRODUCTION,
    };
    let crowd: f64 = arg(3, "0.33").parse().expect("a part of the hosts");
    let seeds: u64 = arg(4, "5").parse().expect("a number");
    let (mut shorts, mut patterns, mut longs) = (Vec::new(), std::collections::BTreeMap::new(), Vec::new());
    let (mut events, mut core) = (0, 0.0);
    for seed in 1..=seeds {
        let study = Study {
            k: 4,
            foreground: contender(&arg(0, "tcp")).expect("somebody sends short flows"),
            background: contender(&arg(1, "tcp")),
            crowd,
            load,
            length: Duration::from_secs(10),
            seed,
            mark_above: None,
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
    println!("   {}; {events} events", parts.join(", "));
}
