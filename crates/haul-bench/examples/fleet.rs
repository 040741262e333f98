//! A fleet's plan over the transport itself, in virtual time, each half second: `fleet SERVERS [FILES] [SEED] [own|twice] [KILLED_S] [dynamic|round-robin] [CONTROLLER]`.
//!
//! Five lines as fast as the client's link of 1 Gbit/s and eight of a tenth of it, 150 ms, files of 12.5 MB. `<`: told to be no faster; `^`: that there is room.

use std::time::Duration;

use haul_bench::experiment::over_transport::{Job, Word, play};
use haul_plan::Policy;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let arg = |at: usize, otherwise: &str| args.get(at).cloned().unwrap_or_else(|| otherwise.to_owned());
    let number = |at: usize, otherwise: &str| arg(at, otherwise).parse::<f64>().expect("a number");
    let mut job = Job::of(number(0, "13") as usize, number(1, "12") as usize, number(2, "1") as u64);
    job.twice = arg(3, "own") == "twice";
    job.killed = Some(number(4, "0")).filter(|at| *at > 0.0).map(Duration::from_secs_f64);
    job.policy = if arg(5, "dynamic") == "dynamic" { Policy::Dynamic } else { Policy::RoundRobin };
    job.controller = arg(6, "fair").parse().expect("a controller");
    let mbps = |rate: haul_units::BitRate| rate.as_bps() as f64 / 1e6;
    let ended = play(&job, |look| {
        let word = |word: Option<Word>| match word {
            Some(Word::Limit(Some(limit))) => format!("<{:.0}", mbps(limit)),
            Some(Word::Room(rate)) => format!("^{:.0}", mbps(rate)),
            _ => String::new(),
        };
        let each: Vec<String> =
            look.rates.iter().zip(&look.told).map(|(rate, told)| format!("{:4.0}{:<5}", mbps(*rate), word(*told))).collect();
        let all: f64 = look.rates.iter().map(|rate| mbps(*rate)).sum();
        let (now, queue) = (look.now.as_secs_f64(), look.queue.as_millis());
        println!("{now:5.1} s {all:4.0} Mbit/s queue {queue:3} ms dropped {:5} |{}", look.dropped_pkts, each.join(" "));
    });
    println!(
        "{:.2} s after the first order, {:.0} Mbit/s of the link after 10 RTT, {} packets dropped",
        ended.seconds,
        mbps(ended.steady),
        ended.dropped_pkts
    );
}
