//! Tables, goals and charts of the runs on real sockets: those of the simulated half, and one of subflows.

use haul_scenarios::fattree::Found;
use haul_units::Bytes;

use super::play::{Came, SLOWER, spec};
use crate::experiment::comparison::{mbps, short};
use crate::experiment::fattree::cells::{Cell, Measured};
use crate::experiment::fattree::show::{completion, data, load_title, longs, patterns, times, verdicts};
use crate::experiment::{Report, Scale, Table};

/// A cell with the runs of it, by their seeds.
pub struct Gathered {
    pub cell: Cell,
    pub came: Vec<(u64, Came)>,
}

impl Gathered {
    pub fn nothing_of(cell: Cell) -> Self {
        Self { cell, came: Vec::new() }
    }

    fn measured(&self) -> Measured {
        let found: Vec<Found> = self.came.iter().map(|(_, came)| came.found.clone()).collect();
        let busy: Option<Vec<f64>> = self.came.iter().map(|(_, came)| came.machine_busy).collect();
        let machine_busy = busy.map(|busy| busy.iter().sum::<f64>() / busy.len().max(1) as f64);
        Measured { slower: SLOWER, machine_busy, ..Measured::of(self.cell, &found) }
    }
}

pub fn report(all: &[Gathered], mut notes: Vec<String>, scale: Scale) -> Report {
    let cells: Vec<Measured> = all.iter().map(Gathered::measured).collect();
    let tree = spec(1);
    let rates = [tree.host, tree.aggregation, tree.core].map(|rate| format!("{:.0}", mbps(rate))).join(", ");
    let flows: usize = cells.iter().map(|cell| cell.shorts.len()).sum();
    notes.extend(remarks(&rates));
    Report {
        heading: format!(
            "FatTree of network namespaces, real sockets: k = 4, {rates} Mbit/s, buffers of {} KB, least timeout of TCP {} ms; {flows} short flows in {} cells",
            tree.buffer.as_u64() / 1000,
            tree.least_timeout.as_millis(),
            cells.len()
        ),
        verdicts: scale.pick(Vec::new(), verdicts(&cells)),
        tables: vec![times(&cells), patterns(&cells), longs(&cells), subflows(all)],
        charts: completion(&cells, "FatTree of namespaces"),
        notes,
        data: data(&cells),
        ..Report::default()
    }
}

/// What is scaled, and what is not as in simulation.
fn remarks(rates: &str) -> [String; 7] {
    [
        format!(
            "everything is {SLOWER} times slower than in the study, so that this machine holds it: rates ({rates} Mbit/s), the times between flows, TCP's least timeout; packets and buffers \
             have their size. Times are as measured: divided by {SLOWER} they stand beside the simulated ones; patterns are told by times so divided"
        ),
        "not scaled: delayed acknowledgements, the first timeout of a handshake (1 s), haul's timers, which follow round-trip times; and there is no delay but what packets take on lines and in buffers".to_owned(),
        "short and long flows are those of the simulated half for the same seeds: the same hosts, at the same times".to_owned(),
        "paths are chosen by a hash of addresses and ports, in each switch by a seed: subflows and paths of a flow may coincide, where those of the simulation are apart".to_owned(),
        "the kernel's MPTCP does not couple its subflows: each has CUBIC for itself; LIA, OLIA and BALIA are in simulation only".to_owned(),
        "a host's own TCP does not fill the buffer of its own line: the kernel holds back what waits there (TCP small queues); haul's datagrams may fill it".to_owned(),
        "a short flow of haul has a handshake of its own, as one of TCP; the clock runs from before it to the last byte at the receiver".to_owned(),
    ]
}

/// What each long flow sent by its subflows, and what short ones did on average.
fn subflows(all: &[Gathered]) -> Table {
    let columns = ["flows", "load", "by", "among or beside", "seed", "from", "to", "Mbit/s", "bytes by subflow or path"];
    let mut table = Table::new("subflows", "Bytes by each subflow or path, from a flow's beginning to its end", &columns);
    for Gathered { cell, came } in all {
        let load = load_title(cell.load);
        for (seed, came) in came {
            let row = |what: &str, by: &str, beside: &str, rest: [String; 5]| {
                let names = [what, load, by, beside].map(str::to_owned).into_iter();
                names.chain(rest).collect::<Vec<_>>()
            };
            for long in &came.longs {
                let [from, to] = [long.from, long.to].map(|host| (host + 1).to_string());
                let rest = [seed.to_string(), from, to, short(mbps(long.rate)), listed(&long.by_subflow)];
                table.rows.push(row("long", cell.background_title(), cell.foreground.title, rest));
            }
            let rest = [seed.to_string(), "-".to_owned(), "-".to_owned(), "-".to_owned(), listed(&means(&came.shorts))];
            table.rows.push(row("short, mean", cell.foreground.title, cell.background_title(), rest));
        }
    }
    table
}

fn listed(bytes: &[Bytes]) -> String {
    if bytes.is_empty() {
        "-".to_owned()
    } else {
        bytes.iter().map(|bytes| bytes.as_u64().to_string()).collect::<Vec<_>>().join(" ")
    }
}

/// Of the first subflows, the second ones and so on, over all flows.
fn means(flows: &[Vec<Bytes>]) -> Vec<Bytes> {
    let most = flows.iter().map(Vec::len).max().unwrap_or(0);
    let sum = |at: usize| flows.iter().filter_map(|flow| flow.get(at)).map(|bytes| bytes.as_u64()).sum::<u64>();
    (0..most).map(|at| Bytes(sum(at) / flows.len().max(1) as u64)).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use haul_scenarios::fattree::{Long, Short};
    use haul_units::BitRate;

    use super::super::cells::grid;
    use super::super::play::Carried;
    use super::*;

    fn came(took_ms: u64) -> Came {
        let by_subflow = vec![Bytes(3_000_000), Bytes(1_000_000)];
        let short = Short { size: Bytes(70_000), took: Some(Duration::from_millis(took_ms)), resent_pkts: 0, timeouts: 0 };
        let rate = BitRate::mbps(16);
        Came {
            found: Found { shorts: vec![short], longs: vec![Long { rate, sent: by_subflow.clone() }], core_use: 0.1, events: 0 },
            longs: vec![Carried { from: 0, to: 15, rate, by_subflow }],
            shorts: vec![vec![Bytes(70_000)], vec![Bytes(60_000), Bytes(10_000)]],
            machine_busy: Some(0.25),
            failed: None,
        }
    }

    #[test]
    fn tables_have_subflows_the_machine_and_the_study_s_patterns() {
        let of = |cell: Cell| Gathered { cell, came: vec![(1, came(u64::from(SLOWER) * 29))] };
        let all: Vec<Gathered> = grid(Scale::Full).into_iter().map(of).collect();
        let report = report(&all, Vec::new(), Scale::Full);
        let text = report.text();
        let table = |name: &str| report.tables.iter().find(|table| table.name == name).expect("a table");
        let cell = |name: &str, row: usize, head: &str| {
            let table = table(name);
            let at = table.columns.iter().position(|column| column == head).unwrap_or_else(|| panic!("no {head}: {text}"));
            table.rows[row][at].clone()
        };
        assert_eq!(cell("times", 0, "machine busy %"), "25");
        assert_eq!(cell("times", 0, "> 1000 ms"), "0");
        // 29 ms in the study's time.
        assert_eq!(cell("patterns", 0, "full window"), "100.0");
        assert_eq!(cell("subflows", 0, "bytes by subflow or path"), "3000000 1000000");
        assert_eq!(cell("subflows", 1, "bytes by subflow or path"), "65000 5000");
        assert_eq!(cell("longs", 0, "on the busiest path %"), "75");
        assert!(report.verdicts.iter().any(|judged| judged.goal.contains("takes of the wire")), "{text}");
    }
}
