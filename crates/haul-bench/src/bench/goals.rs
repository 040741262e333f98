//! What haul is to reach, as grids: every row with its path, its work and its bars.
//!
//! Limits are those of [`Path::limit`]; what others reached before is not in here, for a figure counts beside another one of the same run only.

use std::time::Duration;

use haul_lab::{LinkOptions, QueueSize};
use haul_units::{BitRate, Bytes, Ratio};

use super::plan::{Bar, Candidate, FileSet, Grid, Path, Row, Work};
use super::tool::{Kind, Tool};

/// How much of the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// A quarter of the time and a fifth of the bytes: whether everything works, and about where it stands.
    Quick,
    /// All of it.
    Full,
}

/// Which of the goals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GoalSet {
    /// Memory to memory.
    Memory,
    /// Files.
    Files,
    /// Files where a firewall drops UDP.
    Carriers,
}

/// A row of the goals.
struct Goal {
    name: &'static str,
    path: GoalPath,
    work: GoalWork,
    who: Who,
    bars: &'static [GoalBar],
}

enum GoalPath {
    Loopback,
    /// Mbit/s, ms, percent.
    Wan(u64, u64, f64),
}

enum GoalWork {
    Seconds(u64),
    /// Bytes, and seconds at most.
    Bytes(u64, u64),
    /// How many, their size, and seconds at most.
    Files(u32, u64, u64),
}

enum Who {
    /// Everybody who moves bytes in memory, and haul in its mode quickstart.
    Memory,
    /// Everybody who copies files.
    Copiers,
    /// The same, and haul in its mode quickstart to a host that it knows.
    CopiersAndAgain,
    /// haul, and who has no time to lose: rsync here, tar on a path without delay.
    TarWithoutDelay,
    /// What people have: haul, scp, rsync.
    Everyday,
    /// haul over TCP and through ssh, over UDP to compare with, and who needs nothing but ssh.
    WithoutUdp,
}

enum GoalBar {
    SecondHalf(f64),
    TimesIdeal(f64, f64),
    Within(f64),
    WithinBy(Tool, f64),
    TimesBestOther(f64),
    TimesBestOtherBy(Tool, f64),
    TimesRateOf(Tool, f64),
    Started(Tool, f64),
    Memory,
}

const GB: u64 = 1_000_000_000;

/// Memory to memory, one connection, encrypted.
const MEMORY: &[Goal] = &[
    Goal {
        name: "loopback, no emulator",
        path: GoalPath::Loopback,
        work: GoalWork::Seconds(10),
        who: Who::Memory,
        // 85 % of what sending, sealing and receiving alone reach; 76 % of that were 2.8 times quinn's rate.
        bars: &[GoalBar::TimesRateOf(Tool::QuicCubic, 3.1)],
    },
    ten_gigabytes("10 Gbit/s, 200 ms, no loss", 0.0),
    ten_gigabytes("10 Gbit/s, 200 ms, 0.1 % loss", 0.1),
    ten_gigabytes("10 Gbit/s, 200 ms, 1 % loss", 1.0),
    steady("10 Gbit/s, 200 ms, 5 % loss", GoalPath::Wan(10_000, 200, 5.0), 20, &[GoalBar::SecondHalf(0.93), GoalBar::Memory]),
    steady("1 Gbit/s, 150 ms, 0.01 % loss", GoalPath::Wan(1000, 150, 0.01), 20, &[GoalBar::SecondHalf(0.97), GoalBar::Memory]),
    steady("1 Gbit/s, 100 ms, 5 % loss", GoalPath::Wan(1000, 100, 5.0), 20, &[GoalBar::SecondHalf(0.93), GoalBar::Memory]),
    steady("1 Gbit/s, 100 ms, 10 % loss", GoalPath::Wan(1000, 100, 10.0), 20, &[GoalBar::SecondHalf(0.9), GoalBar::Memory]),
    steady("1 Gbit/s, 500 ms, 10 % loss", GoalPath::Wan(1000, 500, 10.0), 40, &[GoalBar::SecondHalf(0.9), GoalBar::Memory]),
];

const fn ten_gigabytes(name: &'static str, loss_percent: f64) -> Goal {
    const BARS: &[GoalBar] = &[
        GoalBar::TimesIdeal(1.15, 4.0),
        GoalBar::SecondHalf(0.97),
        GoalBar::Started(Tool::Haul, 10.0),
        GoalBar::Started(Tool::HaulQuickstart, 4.0),
        GoalBar::Memory,
    ];
    let path = GoalPath::Wan(10_000, 200, loss_percent);
    Goal { name, path, work: GoalWork::Bytes(10 * GB, 30), who: Who::Memory, bars: BARS }
}

const fn steady(name: &'static str, path: GoalPath, seconds: u64, bars: &'static [GoalBar]) -> Goal {
    Goal { name, path, work: GoalWork::Seconds(seconds), who: Who::Memory, bars }
}

/// RAM disk to RAM disk, logging in by ssh included.
const FILES: &[Goal] = &[
    copied(
        "1 GB, 1 Gbit/s, 100 ms",
        GoalPath::Wan(1000, 100, 0.0),
        GoalWork::Files(1, GB, 70),
        &[GoalBar::Within(11.0), BESIDE_GRIDFTP],
    ),
    copied(
        "1 GB, 1 Gbit/s, 100 ms, 0.1 % loss",
        GoalPath::Wan(1000, 100, 0.1),
        GoalWork::Files(1, GB, 70),
        &[GoalBar::Within(11.0), BESIDE_GRIDFTP],
    ),
    copied_twice("1 GB, 10 Gbit/s, 100 ms", 0.0),
    copied_twice("1 GB, 10 Gbit/s, 100 ms, 0.1 % loss", 0.1),
    copied(
        "2,000 files of 8 KiB, 1 Gbit/s, 100 ms",
        GoalPath::Wan(1000, 100, 0.0),
        GoalWork::Files(2000, 8192, 60),
        &[GoalBar::Within(2.0), BESIDE_GRIDFTP],
    ),
    Goal {
        name: "100,000 files of 1.5 KB, 1 Gbit/s, 200 ms",
        path: GoalPath::Wan(1000, 200, 0.0),
        work: GoalWork::Files(100_000, 1500, 120),
        who: Who::TarWithoutDelay,
        bars: &[GoalBar::Within(4.2), GoalBar::TimesBestOther(1.5)],
    },
    easy("1 GB over loopback", GoalWork::Files(1, GB, 60)),
    easy("2,000 files of 8 KiB over loopback", GoalWork::Files(2000, 8192, 60)),
];

/// Without a login, as the fastest of the others has none.
const BESIDE_GRIDFTP: GoalBar = GoalBar::TimesBestOtherBy(Tool::HaulCpDaemon, 1.0);

/// Where UDP does not pass: TCP's rules, which loss slows down, carry haul as they carry everybody else.
const CARRIERS: &[Goal] = &[
    carried("1 GB, 1 Gbit/s, 100 ms", 0.0, GoalWork::Files(1, GB, 70)),
    carried("1 GB, 1 Gbit/s, 100 ms, 0.1 % loss", 0.1, GoalWork::Files(1, GB, 70)),
    carried("2,000 files of 8 KiB, 1 Gbit/s, 100 ms", 0.0, GoalWork::Files(2000, 8192, 60)),
    carried("2,000 files of 8 KiB, 1 Gbit/s, 100 ms, 0.1 % loss", 0.1, GoalWork::Files(2000, 8192, 60)),
];

const fn carried(name: &'static str, loss_percent: f64, work: GoalWork) -> Goal {
    let bars = &[GoalBar::TimesBestOtherBy(Tool::HaulCpTcp, 1.0), GoalBar::TimesBestOtherBy(Tool::HaulCpSsh, 1.0)];
    Goal { name, path: GoalPath::Wan(1000, 100, loss_percent), work, who: Who::WithoutUdp, bars }
}

const fn copied(name: &'static str, path: GoalPath, work: GoalWork, bars: &'static [GoalBar]) -> Goal {
    Goal { name, path, work, who: Who::Copiers, bars }
}

const fn copied_twice(name: &'static str, loss_percent: f64) -> Goal {
    let path = GoalPath::Wan(10_000, 100, loss_percent);
    let bars = &[GoalBar::Within(3.5), GoalBar::WithinBy(Tool::HaulCpAgain, 3.0), BESIDE_GRIDFTP];
    Goal { name, path, work: GoalWork::Files(1, GB, 60), who: Who::CopiersAndAgain, bars }
}

const fn easy(name: &'static str, work: GoalWork) -> Goal {
    Goal { name, path: GoalPath::Loopback, work, who: Who::Everyday, bars: &[GoalBar::TimesBestOther(1.0)] }
}

/// The rows of some of the goals; only these tools, where any are named.
pub fn goals(which: GoalSet, effort: Effort, tools: &[Tool], repeat: u32) -> Grid {
    let (name, goals) = match which {
        GoalSet::Memory => ("goals-memory", MEMORY),
        GoalSet::Files => ("goals-files", FILES),
        GoalSet::Carriers => ("goals-carriers", CARRIERS),
    };
    Grid { name: name.to_owned(), rows: goals.iter().map(|goal| goal.row(effort, tools)).collect(), repeat }
}

impl Goal {
    fn row(&self, effort: Effort, tools: &[Tool]) -> Row {
        let mut candidates = self.who.candidates();
        candidates.retain(|candidate| tools.is_empty() || tools.contains(&candidate.tool));
        Row {
            name: self.name.to_owned(),
            path: self.path.path(),
            work: self.work.work(effort),
            candidates,
            bars: self.bars.iter().filter_map(|bar| bar.bar(effort)).collect(),
        }
    }
}

impl GoalPath {
    fn path(&self) -> Path {
        match *self {
            Self::Loopback => Path::Loopback,
            Self::Wan(mbps, ms, percent) => Path::Wan(LinkOptions {
                rate: BitRate::mbps(mbps),
                rtt: Duration::from_millis(ms),
                loss: Ratio::percent(percent),
                ..LinkOptions::default()
            }),
        }
    }
}

impl GoalWork {
    fn work(&self, effort: Effort) -> Work {
        let (of_time, of_bytes) = if effort == Effort::Quick { (4, 5) } else { (1, 1) };
        let seconds = Duration::from_secs;
        match *self {
            Self::Seconds(time) => Work::Time(seconds(time) / of_time),
            Self::Bytes(bytes, at_most) => Work::Bytes { bytes: Bytes(bytes / of_bytes), at_most: seconds(at_most) / of_time },
            Self::Files(count, size, at_most) => {
                let count = if count == 1 { 1 } else { count / of_bytes as u32 };
                let size = if count == 1 { size / of_bytes } else { size };
                Work::Files { files: FileSet { count, size: Bytes(size) }, at_most: seconds(at_most) / of_time }
            }
        }
    }
}

impl Who {
    fn candidates(&self) -> Vec<Candidate> {
        let here = |tool| Candidate { tool, elsewhere: None };
        match self {
            Self::Memory => {
                [Tool::Haul, Tool::HaulQuickstart].into_iter().chain(Tool::usual(Kind::Memory).skip(1)).map(here).collect()
            }
            Self::Copiers => {
                [Tool::HaulCp, Tool::HaulCpDaemon].into_iter().chain(Tool::usual(Kind::Files).skip(1)).map(here).collect()
            }
            Self::CopiersAndAgain => [Tool::HaulCp, Tool::HaulCpAgain, Tool::HaulCpDaemon]
                .into_iter()
                .chain(Tool::usual(Kind::Files).skip(1))
                .map(here)
                .collect(),
            Self::WithoutUdp => {
                [Tool::HaulCpTcp, Tool::HaulCpSsh, Tool::HaulCp, Tool::Scp, Tool::Mscp, Tool::Rsync, Tool::Tar, Tool::Sftp]
                    .into_iter()
                    .map(here)
                    .collect()
            }
            Self::Everyday => [Tool::HaulCp, Tool::Scp, Tool::Rsync].into_iter().map(here).collect(),
            Self::TarWithoutDelay => {
                // A queue of one product would have no room.
                let link = LinkOptions {
                    rate: BitRate::gbps(1),
                    rtt: Duration::ZERO,
                    queue: QueueSize::Bytes(Bytes::mib(4)),
                    ..LinkOptions::default()
                };
                let tar = Candidate { tool: Tool::Tar, elsewhere: Some(Path::Wan(link)) };
                vec![here(Tool::HaulCp), tar, here(Tool::Rsync)]
            }
        }
    }
}

impl GoalBar {
    /// Nothing where less work makes it meaningless.
    fn bar(&self, effort: Effort) -> Option<Bar> {
        match *self {
            Self::SecondHalf(share) => Some(Bar::SecondHalfOfLimit(Ratio::new(share))),
            Self::TimesIdeal(times, rtts) => Some(Bar::TimesIdealAndRtts(times, rtts)),
            Self::Within(seconds) => (effort == Effort::Full).then(|| Bar::Within(Duration::from_secs_f64(seconds))),
            Self::WithinBy(tool, seconds) => {
                (effort == Effort::Full).then(|| Bar::WithinBy(tool, Duration::from_secs_f64(seconds)))
            }
            Self::TimesBestOther(times) => Some(Bar::TimesBestOther(times)),
            Self::TimesBestOtherBy(tool, times) => Some(Bar::TimesBestOtherBy(tool, times)),
            Self::TimesRateOf(tool, times) => Some(Bar::TimesRateOf(tool, times)),
            Self::Started(tool, rtts) => Some(Bar::StartedWithin(tool, rtts)),
            Self::Memory => Some(Bar::MemoryOfEachSide),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_goal_has_a_bar_and_somebody_to_reach_it() {
        let sets = [(GoalSet::Memory, Kind::Memory, 8), (GoalSet::Files, Kind::Files, 8), (GoalSet::Carriers, Kind::Files, 4)];
        for (which, kind, rows) in sets {
            let grid = goals(which, Effort::Full, &[], 3);
            assert!(grid.rows.len() >= rows);
            for row in &grid.rows {
                assert!(!row.bars.is_empty() && row.candidates.len() >= 3, "{}", row.name);
                assert!(
                    row.candidates[0].tool.is_haul() && row.candidates.iter().all(|one| one.tool.kind() == kind),
                    "{}",
                    row.name
                );
            }
            assert!(grid.cells().count() >= 3 * 3 * grid.rows.len());
        }
    }

    #[test]
    fn a_host_that_is_known_is_a_goal_of_its_own() {
        let rows = goals(GoalSet::Files, Effort::Full, &[], 1).rows;
        let bar = Bar::WithinBy(Tool::HaulCpAgain, Duration::from_secs(3));
        let with: Vec<_> = rows.iter().filter(|row| row.bars.contains(&bar)).collect();
        assert_eq!(with.len(), 2, "without loss, and with");
        assert!(with.iter().all(|row| row.candidates[1].tool == Tool::HaulCpAgain), "{with:?}");
    }

    #[test]
    fn a_quick_look_takes_a_quarter_of_the_time() {
        let time =
            |effort| goals(GoalSet::Memory, effort, &[Tool::Haul], 1).rows.iter().map(|row| row.work.at_most()).sum::<Duration>();
        assert_eq!(time(Effort::Full), time(Effort::Quick) * 4);
        let only = goals(GoalSet::Files, Effort::Quick, &[Tool::HaulCp], 1);
        assert!(only.rows.iter().all(|row| row.candidates.len() == 1));
    }
}
