//! The grid of the study, and what is measured of a cell.

use std::time::Duration;

use haul_cc::ControllerChoice;
use haul_scenarios::Kind;
use haul_scenarios::fattree::{self, Contender, Found, Load, Pattern, Short, Study, Summary, Trace, Tree};
use haul_sim::{Scatter, TcpConfig, TcpControl, Ways};
use haul_units::Bytes;

use crate::experiment::Scale;
use crate::experiment::simulated::in_parallel;

/// Who sends short flows, who sends without end on which part of the hosts, and what.
#[derive(Debug, Clone, Copy)]
pub struct Cell {
    pub tree: Tree,
    pub load: Load,
    pub crowd: f64,
    pub foreground: Contender,
    pub background: Option<Contender>,
    /// Queues mark above 30 KB.
    pub marked: bool,
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
    /// How many times slower than in the study everything was, its times longer by as much.
    pub slower: u32,
    /// The part of the processors' time that was not idle, where that matters.
    pub machine_busy: Option<f64>,
}

impl Cell {
    pub fn study(&self, seed: u64, scale: Scale) -> Study {
        Study {
            tree: self.tree,
            k: self.ports(),
            foreground: self.foreground,
            background: self.background,
            crowd: self.crowd,
            load: self.load,
            length: scale.pick(Duration::from_millis(800), self.length()),
            seed,
            mark_above: self.marked.then_some(MARK_ABOVE),
        }
    }

    fn ports(&self) -> usize {
        match self.tree {
            Tree::Study => 4,
            Tree::Crowded => 8,
        }
    }

    /// How long short flows begin, so that there are 1,000 of them in all seeds.
    fn length(&self) -> Duration {
        match (self.tree, self.load) {
            (Tree::Crowded, _) => CROWDED_LENGTH,
            (_, Load::Queries) => QUERIES_LENGTH,
            _ => LENGTH,
        }
    }

    fn seeds(&self, scale: Scale) -> u64 {
        match self.tree {
            Tree::Study => scale.pick(1, SEEDS),
            Tree::Crowded => 1,
        }
    }

    pub fn background_title(&self) -> &'static str {
        self.background.map_or("nobody", |background| background.title)
    }
}

impl Measured {
    pub fn of(cell: Cell, found: &[Found]) -> Self {
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
            slower: 1,
            machine_busy: None,
        }
    }

    pub fn times(&self) -> Summary {
        Summary::of(&self.shorts)
    }

    /// Part of the short flows of a pattern, which goes by the study's times.
    pub fn part(&self, pattern: Pattern) -> f64 {
        let as_there = |short: &Short| Short { took: short.took.map(|took| took / self.slower), ..short.clone() };
        let of = self.shorts.iter().filter(|short| as_there(short).pattern() == pattern);
        of.count() as f64 / self.shorts.len().max(1) as f64
    }

    pub fn timeouts(&self) -> u64 {
        self.shorts.iter().map(|short| short.timeouts).sum()
    }

    pub fn mean_long_mbps(&self) -> f64 {
        self.longs_mbps.iter().sum::<f64>() / self.longs_mbps.len().max(1) as f64
    }

    /// What that takes of a link: of a packet of 1500 bytes haul has 72 for headers, which encrypt, and TCP 52.
    pub fn mean_wire_mbps(&self) -> f64 {
        let payload = match self.cell.background.map(|background| background.kind) {
            Some(Kind::Tcp(config)) => config.payload.as_u64(),
            _ => HAUL_PAYLOAD,
        };
        self.mean_long_mbps() * 1500.0 / payload as f64
    }
}

/// All cells. Messages, which are mostly time on the line, are tried among fewer.
pub fn grid(scale: Scale) -> Vec<Cell> {
    let crowds: &[f64] = scale.pick(&[0.33], &CROWDS);
    let loads: &[Load] = scale.pick(&[Load::REPRODUCTION], &LOADS);
    let mut cells = Vec::new();
    for &load in loads {
        let is_all = load != Load::Messages;
        for &crowd in &crowds[..if is_all { crowds.len() } else { 1 }] {
            let mut add = |foregrounds: &[Contender], background, marked| {
                let cell = |&foreground| Cell { tree: Tree::Study, load, crowd, foreground, background, marked };
                cells.extend(foregrounds.iter().map(cell));
            };
            for background in [None, Some(TCP), Some(LIA), Some(HAUL), Some(HAUL_4)] {
                add(if scale == Scale::Full && is_all { &FOREGROUNDS } else { &PLAIN }, background, false);
            }
            if scale == Scale::Full && is_all && alike(crowd, CROWDS[0]) {
                for &background in &OTHER_BACKGROUNDS {
                    add(&PLAIN, Some(background), false);
                }
                for &background in &MARKED {
                    add(&PLAIN, Some(background), true);
                }
            }
        }
    }
    if scale == Scale::Full {
        cells.extend(CROWDED.map(|contender| Cell {
            tree: Tree::Crowded,
            load: CROWDED_LOAD,
            crowd: CROWDS[0],
            foreground: contender,
            background: Some(contender),
            marked: false,
        }));
    }
    cells
}

/// Whether two parts of the hosts are the same one.
pub fn alike(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

/// Runs every cell with every seed, on all processors.
pub fn run(cells: &[Cell], scale: Scale) -> Vec<Measured> {
    let studies: Vec<Study> = cells.iter().flat_map(|cell| (1..=cell.seeds(scale)).map(|seed| cell.study(seed, scale))).collect();
    let mut found = in_parallel(&studies, fattree::run).into_iter();
    let mut of = |cell: &Cell| found.by_ref().take(cell.seeds(scale) as usize).collect::<Vec<_>>();
    cells.iter().map(|cell| Measured::of(*cell, &of(cell))).collect()
}

/// A flow of each pattern, TCP among TCP, looked at all the time: that with the middle time of its kind.
pub fn typical(scale: Scale) -> Vec<(Pattern, Trace)> {
    let (foreground, background) = (TCP, Some(TCP));
    let cell = Cell { tree: Tree::Study, load: Load::REPRODUCTION, crowd: CROWDS[0], foreground, background, marked: false };
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

const fn scattered(title: &'static str, paths: u16) -> Contender {
    let scatter = Some(Scatter { pkts: 70, reordering_pkts: 3 * paths as u32 });
    Contender { title, kind: Kind::Tcp(TcpConfig { scatter, ..TcpConfig::MPTCP }), ways: Ways::Apart(paths) }
}

/// As the study has it: a subflow on each of the four paths between pods.
const PATHS: u16 = 4;
/// As MMPTCP's paper has it.
const CROWDED_PATHS: u16 = 8;
pub const TCP: Contender = tcp("TCP", TcpConfig::CUBIC);
const QUICK_TIMER: Contender = tcp("TCP, 10 ms timer", TcpConfig { min_timeout: Duration::from_millis(10), ..TcpConfig::CUBIC });
const LIA: Contender = multipath("MPTCP, LIA", TcpControl::Lia);
const OLIA: Contender = multipath("MPTCP, OLIA", TcpControl::Olia);
const BALIA: Contender = multipath("MPTCP, BALIA", TcpControl::Balia);
/// 100 kB scattered, as MMPTCP has it; what three packets on each way may overtake is not lost.
const SCATTER: Contender = scattered("scatter, MPTCP", PATHS);
pub const HAUL: Contender = haul("haul, fair", ControllerChoice::Fair, 1);
pub const HAUL_4: Contender = haul("haul, fair, 4 paths", ControllerChoice::Fair, PATHS);

const FOREGROUNDS: [Contender; 8] = [TCP, QUICK_TIMER, LIA, OLIA, BALIA, SCATTER, HAUL, HAUL_4];
/// Among whom every kind of long flows is compared.
const PLAIN: [Contender; 2] = [TCP, HAUL];
/// Where queues mark, those who heed marks.
const MARKED: [Contender; 3] = [
    tcp("TCP with ECN, marked", TcpConfig { ecn: true, ..TcpConfig::CUBIC }),
    haul("haul, fair, marked", ControllerChoice::Fair, 1),
    haul("haul, fair, marked, 4 paths", ControllerChoice::Fair, PATHS),
];
/// In MMPTCP's tree, short and long flows of one kind.
const CROWDED: [Contender; 5] = [
    TCP,
    Contender { ways: Ways::Apart(CROWDED_PATHS), ..LIA },
    scattered("scatter, MPTCP", CROWDED_PATHS),
    HAUL,
    haul("haul, fair, 8 paths", ControllerChoice::Fair, CROWDED_PATHS),
];
/// 342 hosts, and 256 flows a second from all of them.
const CROWDED_LOAD: Load = Load::Short(Bytes(70_000), Duration::from_millis(1336));
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
pub const CROWDS: [f64; 2] = [0.33, 0.5];
const SEEDS: u64 = 5;
/// With eight hosts, where half of them send without end, and a flow each half second: 1,120 in five seeds; eleven have 1,540.
const LENGTH: Duration = Duration::from_secs(14);
/// As many, with one each 200 ms.
const QUERIES_LENGTH: Duration = Duration::from_millis(5600);
/// 1,280 flows.
const CROWDED_LENGTH: Duration = Duration::from_secs(5);
/// A third of a queue, as data centres have it.
const MARK_ABOVE: Bytes = Bytes(30_000);
const HAUL_PAYLOAD: u64 = 1428;
