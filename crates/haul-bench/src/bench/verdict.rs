//! Whether haul reached what it is to reach.

use std::fmt;
use std::time::Duration;

use haul_units::{BitRate, Bytes};

use super::measurement::{Measurement, Outcome, RowResults};
use super::plan::Bar;
use super::tool::Tool;

/// A bar, and what haul did.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// What was to be reached.
    pub bar: Bar,
    /// What haul did, as the worst of its turns, in the bar's measure; not known where haul or whom it is compared with has no figures.
    pub reached: Option<f64>,
    /// What it should be: at least this for rates, at most this for times.
    pub wanted: Option<f64>,
    /// Whether it is.
    pub met: bool,
}

/// Who is judged where a bar names no tool.
const HAUL: [Tool; 2] = [Tool::Haul, Tool::HaulCp];

impl RowResults {
    /// The best tool on the row that is not haul, by its mean over its turns.
    pub fn best_other(&self) -> Option<(Tool, BitRate)> {
        let others = self.row.candidates.iter().map(|candidate| candidate.tool).filter(|tool| !tool.is_haul());
        others.filter_map(|tool| Some((tool, self.mean_of(tool, |turn| Some(turn.mean))?))).max_by_key(|&(_, rate)| rate)
    }

    /// Each bar of the row.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.row.bars.iter().map(|&bar| self.verdict(bar)).collect()
    }

    fn verdict(&self, bar: Bar) -> Verdict {
        let limit = self.row.path.limit();
        let haul = || HAUL.into_iter().flat_map(|tool| self.of(tool));
        let slowest = || haul().map(|turn| turn.time).max();
        let (reached, wanted) = match bar {
            Bar::SecondHalfOfLimit(share) => {
                let limit = limit.map(|limit| limit.as_bps() as f64);
                let least = haul().filter_map(|turn| turn.second_half).min().map(|rate| rate.as_bps() as f64);
                (least.zip(limit).map(|(least, limit)| least / limit), Some(share.as_f64()))
            }
            Bar::TimesIdealAndRtts(times, rtts) => {
                let ideal = limit.zip(self.row.work.bytes()).map(|(limit, bytes)| limit.time_for(bytes));
                let wanted = ideal.map(|ideal| ideal.as_secs_f64() * times + self.row.path.rtt().as_secs_f64() * rtts);
                (slowest().map(seconds), wanted)
            }
            Bar::Within(time) => (slowest().map(seconds), Some(seconds(time))),
            Bar::WithinBy(tool, time) => {
                (self.of(tool).map(|turn| seconds(turn.time)).max_by(f64::total_cmp), Some(seconds(time)))
            }
            Bar::TimesBestOther(times) => (slowest().map(seconds), self.fastest_other().map(|time| seconds(time) * times)),
            Bar::TimesBestOtherBy(tool, times) => (
                self.of(tool).map(|turn| seconds(turn.time)).max_by(f64::total_cmp),
                self.fastest_other().map(|time| seconds(time) * times),
            ),
            Bar::TimesRateOf(tool, times) => {
                let least = haul().map(|turn| turn.mean).min().map(|rate| rate.as_bps() as f64);
                let other = self.mean_of(tool, |turn| Some(turn.mean)).map(|rate| rate.as_bps() as f64);
                (least.zip(other).map(|(least, other)| least / other.max(1.0)), Some(times))
            }
            Bar::StartedWithin(tool, rtts) => {
                let starts: Option<Vec<Duration>> = self.of(tool).map(|turn| turn.startup).collect();
                let slowest = starts.and_then(|starts| starts.into_iter().max());
                // Who never got there has no figure; that it was measured is enough to have missed it.
                let never = self.of(tool).next().map(|_| f64::INFINITY);
                (slowest.map(|time| seconds(time) / seconds(self.row.path.rtt()).max(1e-6)).or(never), Some(rtts))
            }
            Bar::MemoryOfEachSide => {
                let most = haul().flat_map(|turn| [turn.sender.memory, turn.receiver.memory]).flatten().max();
                let bdp = self.row.path.link().map(|link| link.rate.bytes_in(link.rtt));
                let mib = |bytes: Bytes| bytes.0 as f64 / f64::from(1 << 20);
                (most.map(mib), bdp.map(|bdp| mib(bdp * 2 + Bytes::mib(128))))
            }
        };
        let met = reached.zip(wanted).is_some_and(|(reached, wanted)| match bar {
            Bar::SecondHalfOfLimit(_) | Bar::TimesRateOf(..) => reached >= wanted,
            Bar::StartedWithin(..) | Bar::MemoryOfEachSide | Bar::WithinBy(..) => reached <= wanted,
            Bar::TimesBestOtherBy(tool, _) => reached <= wanted && self.of(tool).all(Measurement::done),
            Bar::TimesIdealAndRtts(..) | Bar::Within(_) | Bar::TimesBestOther(_) => {
                reached <= wanted && haul().all(Measurement::done)
            }
        });
        // A turn that failed has no figure to be the worst, and is worse than any.
        let has_failed = match bar {
            Bar::WithinBy(tool, _) | Bar::TimesBestOtherBy(tool, _) | Bar::StartedWithin(tool, _) => self.has_failed(tool),
            Bar::SecondHalfOfLimit(_)
            | Bar::TimesRateOf(..)
            | Bar::MemoryOfEachSide
            | Bar::TimesIdealAndRtts(..)
            | Bar::Within(_)
            | Bar::TimesBestOther(_) => HAUL.into_iter().any(|tool| self.has_failed(tool)),
        };
        Verdict { bar, reached, wanted, met: met && !has_failed }
    }

    fn has_failed(&self, tool: Tool) -> bool {
        let of = |turn: &&Measurement| turn.tool == tool && turn.path == self.row.path;
        self.measurements.iter().filter(of).any(|turn| matches!(turn.outcome, Outcome::Failed(_)))
    }

    /// The shortest mean time of the others; on their own path where they have one.
    fn fastest_other(&self) -> Option<Duration> {
        let mean = |tool: Tool| {
            let times: Vec<Duration> =
                self.measurements.iter().filter(|turn| turn.tool == tool && turn.done()).map(|turn| turn.time).collect();
            (!times.is_empty()).then(|| times.iter().sum::<Duration>() / times.len() as u32)
        };
        self.row.candidates.iter().map(|candidate| candidate.tool).filter(|tool| !tool.is_haul()).filter_map(mean).min()
    }
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = if self.met { "MET" } else { "NOT MET" };
        let (Some(reached), Some(wanted)) = (self.reached, self.wanted) else {
            return write!(f, "haul: {}: not known, a figure is missing", self.bar);
        };
        match self.bar {
            Bar::SecondHalfOfLimit(_) => {
                write!(f, "haul: {word}: {}, reached {:.1} %", self.bar, reached * 100.0)
            }
            Bar::TimesRateOf(..) => write!(f, "haul: {word}: {}, reached {reached:.2}", self.bar),
            Bar::StartedWithin(..) if reached.is_infinite() => write!(f, "haul: {word}: {}, never got there", self.bar),
            Bar::StartedWithin(..) => write!(f, "haul: {word}: {}, took {reached:.1}", self.bar),
            Bar::MemoryOfEachSide => write!(f, "haul: {word}: {} ({wanted:.0} MiB), took {reached:.0} MiB", self.bar),
            Bar::TimesIdealAndRtts(..)
            | Bar::Within(_)
            | Bar::WithinBy(..)
            | Bar::TimesBestOther(_)
            | Bar::TimesBestOtherBy(..) => {
                let part = reached / wanted.max(1e-9) * 100.0;
                write!(f, "haul: {word}: {} ({wanted:.2} s), took {reached:.2} s, {part:.0} % of that", self.bar)
            }
        }
    }
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SecondHalfOfLimit(share) => write!(f, "second half at least {share} of the limit"),
            Self::TimesIdealAndRtts(times, rtts) => write!(f, "at most {times} x ideal + {rtts} RTT"),
            Self::Within(time) => write!(f, "at most {} s", time.as_secs_f64()),
            Self::WithinBy(tool, time) => write!(f, "{}: at most {} s", tool.title(), time.as_secs_f64()),
            Self::TimesBestOther(times) => write!(f, "at most {times} x the fastest other"),
            Self::TimesBestOtherBy(tool, times) => write!(f, "{}: at most {times} x the fastest other", tool.title()),
            Self::TimesRateOf(tool, times) => write!(f, "at least {times} x the rate of {tool}"),
            Self::StartedWithin(tool, rtts) => write!(f, "{}: 80 % of the limit within {rtts} RTT", tool.title()),
            Self::MemoryOfEachSide => f.write_str("each side's memory at most 2 BDP + 128 MiB"),
        }
    }
}
