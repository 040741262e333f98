//! The grid of the study, and what is measured of a cell.

use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_scenarios::Kind;
use haul_scenarios::fattree::{self, Contender, Found, Load, Pattern, Short, Study, Summary, Trace};
use haul_sim::{Scatter, TcpConfig, TcpControl, Ways};

use crate::experiment::Scale;
use crate::experiment::simulated::in_parallel;

/// Who sends short flows, who sends without end on which part of the hosts, and what.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    pub load: Load,
    pub crowd: f64,
    pub foreground: Contender,
    pub background: Option<Contender>,
}

/// A cell with what came of it, over all seeds.
#[derive(Debug, Clone)]
pub struct Measured {
    pub cell: Cell,
    pub shorts: Vec<Short>,
    /// Of each flow without end, in Mbit/s.
    pub longs_mbps: Vec<f64>,
    /// Of what a long flow sent, what its busiest path had.
    pub busiest: f64,
    pub core_use: f64,
    pub events: u64,
}

impl Cell {
    fn study(&self, seed: u64, scale: Scale) -> Study {
        Study {
            k: 4,
            foreground: self.foreground,
            background: self.background,
            crowd: self.crowd,
            load: self.load,
            length: scale.pick(Duration::from_millis(800), LENGTH),
            seed,
            mark_above: None,
        }
    }

    pub fn background_title(&self) -> &'static str {
        self.background.map_or("nobody", |background| background.title)
    }
}

impl Measured {
    fn of(cell: Cell, found: &[Found]) -> Self {
        let longs = || found.iter().flat_map(|found| &found.longs);
        let (all, busiest) = longs().fold((0, 0), |(all, busiest), long| {
            let bytes = long.sent.iter().map(|sent| sent.as_u64());
            (all + bytes.clone().sum::<u64>(), busiest + bytes.max().unwrap_or_default())
        });
        Self {
            cell,
            shorts: found.iter().flat_map(|found| found.shorts.iter().cloned()).collect(),
            longs_mbps: longs().map(|long| long.rate.as_bps() as f64 / 1e6).collect(),
            busiest: busiest as f64 / all.max(1) as f64,
            core_use: found.iter().map(|found| found.core_use).sum::<f64>() / found.len().max(1) as f64,
            events: found.iter().map(|found| found.events).sum(),
        }
    }

    pub fn times(&self) -> Summary {
        Summary::of(&self.shorts)
    }

    /// Part of the short flows of a pattern.
    pub fn part(&self, pattern: Pattern) -> f64 {
        self.shorts.iter().filter(|short| short.pattern() == pattern).count() as f64 / self.shorts.len().max(1) as f64
    }

    pub fn timeouts(&self) -> u64 {
        self.shorts.iter().map(|short| short.timeouts).sum()
    }

    pub fn mean_long_mbps(&self) -> f64 {
        self.longs_mbps.iter().sum::<f64>() / self.longs_mbps.len().max(1) as f64
    }
}

/// All cells.
pub fn grid(scale: Scale) -> Vec<Cell> {
    let crowds: &[f64] = scale.pick(&[0.33], &CROWDS);
    let loads: &[Load] = scale.pick(&[Load::REPRODUCTION], &LOADS);
    let mut cells = Vec::new();
    for &load in loads {
        for &crowd in crowds {
            let mut add = |foreground, background| cells.push(Cell { load, crowd, foreground, background });
            for background in [None, Some(TCP), Some(LIA), Some(HAUL), Some(HAUL_4)] {
                let foregrounds: &[Contender] = scale.pick(&[TCP, HAUL], &FOREGROUNDS);
                for &foreground in foregrounds {
                    add(foreground, background);
                }
            }
            let others: &[Contender] = scale.pick(&[], &OTHER_BACKGROUNDS);
            for &background in others {
                add(TCP, Some(background));
            }
        }
    }
    cells
}

/// Runs every cell with every seed, on all processors.
pub fn run(cells: &[Cell], scale: Scale) -> Vec<Measured> {
    let seeds = scale.pick(1, SEEDS);
    let studies: Vec<Study> = cells.iter().flat_map(|cell| (1..=seeds).map(|seed| cell.study(seed, scale))).collect();
    let found = in_parallel(&studies, fattree::run);
    cells.iter().zip(found.chunks(seeds as usize)).map(|(cell, found)| Measured::of(*cell, found)).collect()
}

/// A flow of each pattern, TCP among TCP, looked at all the time: that with the middle time of its kind.
pub fn typical(scale: Scale) -> Vec<(Pattern, Trace)> {
    let cell = Cell { load: Load::REPRODUCTION, crowd: CROWDS[0], foreground: TCP, background: Some(TCP) };
    let study = cell.study(1, scale);
    let shorts = fattree::run(&study).shorts;
    let middle = |pattern: Pattern| {
        let mut of: Vec<usize> = (0..shorts.len()).filter(|&number| shorts[number].pattern() == pattern).collect();
        of.sort_by_key(|&number| shorts[number].took);
        of.get(of.len() / 2).copied()
    };
    let named = [Pattern::FullWindow, Pattern::Intensive, Pattern::DelayWithLoss, Pattern::Extreme];
    named.into_iter().filter_map(|pattern| Some((pattern, fattree::trace(&study, middle(pattern)?)?))).collect()
}

const fn tcp(title: &'static str, config: TcpConfig) -> Contender {
    Contender { title, kind: Kind::Tcp(config), ways: Ways::Hashed(1) }
}

const fn multipath(title: &'static str, control: TcpControl) -> Contender {
    Contender { title, kind: Kind::Tcp(TcpConfig { control, ..TcpConfig::MPTCP }), ways: Ways::Apart(PATHS) }
}

const fn haul(title: &'static str, mode: ControllerChoice, paths: u16) -> Contender {
    let ways = if paths > 1 { Ways::Apart(paths) } else { Ways::Hashed(1) };
    Contender { title, kind: Kind::Haul(mode), ways }
}

/// As the study has it: a subflow on each of the four paths between pods.
const PATHS: u16 = 4;
const TCP: Contender = tcp("TCP", TcpConfig::CUBIC);
const QUICK_TIMER: Contender = tcp("TCP, 10 ms timer", TcpConfig { min_timeout: Duration::from_millis(10), ..TcpConfig::CUBIC });
const LIA: Contender = multipath("MPTCP, LIA", TcpControl::Lia);
const OLIA: Contender = multipath("MPTCP, OLIA", TcpControl::Olia);
const BALIA: Contender = multipath("MPTCP, BALIA", TcpControl::Balia);
/// 100 kB scattered, as MMPTCP has it; what three packets on each way may overtake is not lost.
const SCATTER: Contender = Contender {
    title: "scatter, MPTCP",
    kind: Kind::Tcp(TcpConfig { scatter: Some(Scatter { pkts: 70, reordering_pkts: 3 * PATHS as u32 }), ..TcpConfig::MPTCP }),
    ways: Ways::Apart(PATHS),
};
const HAUL: Contender = haul("haul, fair", ControllerChoice::Fair, 1);
const HAUL_4: Contender = haul("haul, fair, 4 paths", ControllerChoice::Fair, PATHS);

const FOREGROUNDS: [Contender; 7] = [TCP, QUICK_TIMER, LIA, OLIA, BALIA, SCATTER, HAUL];
const OTHER_BACKGROUNDS: [Contender; 8] = [
    OLIA,
    BALIA,
    haul("haul, quickstart", ControllerChoice::Quickstart, 1),
    haul("haul, quickstart, 4 paths", ControllerChoice::Quickstart, PATHS),
    haul("haul, modest", ControllerChoice::Modest, 1),
    haul("haul, modest, 4 paths", ControllerChoice::Modest, PATHS),
    haul("haul, aggressive", ControllerChoice::Aggressive, 1),
    haul("haul, aggressive, 4 paths", ControllerChoice::Aggressive, PATHS),
];
const LOADS: [Load; 3] = [Load::REPRODUCTION, Load::Messages, Load::Queries];
const CROWDS: [f64; 2] = [0.33, 0.5];
const SEEDS: u64 = 5;
/// With eleven hosts and a flow each half second: 1,100 flows in five seeds.
const LENGTH: Duration = Duration::from_secs(10);
