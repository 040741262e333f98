//! What was seen of a case, and whether its goals are met.

use std::time::Duration;

use haul_units::BitRate;

use super::cases::{Case, Goal, RATE, RTT, Who};
use crate::bench::Series;
use crate::experiment::Judged;

/// A case that has been run.
#[derive(Debug)]
pub struct Seen {
    /// Which.
    pub case: &'static Case,
    /// Which run of it, from 1.
    pub run: u32,
    /// How long.
    pub length: Duration,
    /// What arrived when, by flow, since the beginning of the case.
    pub series: Vec<Series>,
    /// When a flow that ends had arrived.
    pub ended: Vec<Option<Duration>>,
    /// 95th percentile of the wait in the second half, where it was seen.
    pub queue_p95: Option<Duration>,
    /// Part of the processors' time that the machine's host kept for others, where programs ran.
    pub stolen: Option<f64>,
}

impl Seen {
    /// What a person calls it.
    pub fn name(&self) -> String {
        if self.case.runs > 1 { format!("{}, run {}", self.case.name, self.run) } else { self.case.name.to_owned() }
    }

    /// When what counts begins and ends: the second half; beside one guest that leaves, the second half of its stay.
    fn counts(&self) -> (Duration, Duration) {
        let mut stays = self.case.parties.iter().zip(&self.ended).filter(|(party, _)| party.until.is_some());
        match (stays.next(), stays.next()) {
            (Some((party, Some(ended))), None) => {
                let from = self.length.mul_f64(party.from);
                ((from + *ended) / 2, *ended)
            }
            _ => (self.length / 2, self.length),
        }
    }

    /// A flow's rate while it counts.
    pub fn rate(&self, flow: usize) -> BitRate {
        let (from, to) = self.counts();
        self.series.get(flow).map_or(BitRate::ZERO, |series| series.mean_between(from, to))
    }

    fn rates(&self) -> Vec<f64> {
        (0..self.series.len()).map(|flow| self.rate(flow).as_bps() as f64).collect()
    }

    /// Jain's index of fairness: 1 when all rates are equal, 1/n when one has all.
    pub fn jain(&self) -> f64 {
        let rates = self.rates();
        let (sum, squares): (f64, f64) = (rates.iter().sum(), rates.iter().map(|rate| rate * rate).sum());
        if squares > 0.0 { sum * sum / squares / rates.len() as f64 } else { 0.0 }
    }

    /// Part of what the path carries of the flows' payload.
    pub fn used(&self) -> f64 {
        (0..self.series.len()).map(|flow| self.part_of_path(flow, self.rate(flow))).sum()
    }

    fn part_of_path(&self, flow: usize, rate: BitRate) -> f64 {
        let payload = match self.case.parties[flow].who {
            Who::Haul(_) => 1428.0,
            Who::Kernel(_) | Who::Cubic | Who::Bbr => 1448.0,
        };
        rate.as_bps() as f64 / (RATE.as_bps() as f64 * payload / 1500.0 * (1.0 - self.case.loss))
    }

    fn share(&self, flow: usize) -> f64 {
        let rates = self.rates();
        let all: f64 = rates.iter().sum();
        if all > 0.0 { rates[flow] / all } else { 0.0 }
    }

    /// Standard deviation by mean of the first flow's rate a second.
    fn variation(&self) -> Option<f64> {
        let series = self.series.first()?;
        let (from, to) = self.counts();
        let second = Duration::from_secs(1);
        let seconds = to.saturating_sub(from).as_secs() as u32;
        let rates: Vec<f64> =
            (0..seconds).map(|n| series.mean_between(from + second * n, from + second * (n + 1)).as_bps() as f64).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let squares = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64;
        (mean > 0.0).then(|| squares.sqrt() / mean)
    }

    /// How long after the second flow's end the first had this part of the path, over a second.
    fn back_at(&self, part: f64) -> Option<Duration> {
        let ended = (*self.ended.get(1)?)?;
        let series = self.series.first()?;
        let second = Duration::from_secs(1);
        let mut ends = series.intervals().iter().map(|interval| interval.end).filter(|end| *end >= ended + second);
        let back = ends.find(|end| self.part_of_path(0, series.mean_between(end.saturating_sub(second), *end)) >= part)?;
        Some(back.saturating_sub(ended))
    }
}

/// Each goal with its value and verdict, over all runs of its case; the runs of a case stand together.
pub fn judge(seen: &[Seen]) -> Vec<Judged> {
    let runs = seen.chunk_by(|one, next| one.case.name == next.case.name);
    runs.flat_map(|runs| runs[0].case.goals.iter().map(|goal| judge_one(runs, *goal))).collect()
}

/// The mean of what the runs say, if all of them do.
fn mean(runs: &[Seen], value: impl Fn(&Seen) -> Option<f64>) -> Option<f64> {
    let sum: Option<f64> = runs.iter().map(value).sum();
    sum.map(|sum| sum / runs.len() as f64)
}

fn judge_one(runs: &[Seen], goal: Goal) -> Judged {
    let who = runs[0].case.name;
    let percent = |value: f64| format!("{:.1} %", value * 100.0);
    let index = |value: f64| format!("{value:.3}");
    let ran = |seen: &Seen| seen.rates().iter().sum::<f64>() > 0.0;
    let value = |value: &dyn Fn(&Seen) -> f64| mean(runs, |seen| ran(seen).then(|| value(seen)));
    let share = |flow: usize| value(&move |seen| seen.share(flow));
    match goal {
        Goal::JainAtLeast(least) => Judged::at_least(who, "Jain's index", value(&Seen::jain), least, index),
        Goal::UsedAtLeast(least) => Judged::at_least(who, "used", value(&Seen::used), least, percent),
        Goal::ShareAtMost(flow, most) => spread(Judged::at_most(who, "share", share(flow), most, percent), runs, flow),
        Goal::ShareAtLeast(flow, least) => spread(Judged::at_least(who, "share", share(flow), least, percent), runs, flow),
        Goal::ShareWithin(flow, least, most) => {
            let share = share(flow);
            let goal = format!("share {} to {}", percent(least), percent(most));
            let text = share.map_or_else(|| "not measured".to_owned(), percent);
            let met = share.map(|share| (least..=most).contains(&share));
            spread(Judged { who: who.to_owned(), goal, value: text, met }, runs, flow)
        }
        Goal::VariationAtMost(most) => {
            Judged::at_most(who, "variation of the rate per second", mean(runs, Seen::variation), most, percent)
        }
        Goal::QueueAtMost(most) => {
            let queue = |seen: &Seen| seen.queue_p95.map(|queue| queue.as_secs_f64() / RTT.as_secs_f64());
            Judged::at_most(who, "standing queue (p95)", mean(runs, queue), most, |value| format!("{value:.2} BDP"))
        }
        Goal::BackAt(part, within) => {
            let what = format!("back at {} after CUBIC has left in", percent(part));
            let back = |seen: &Seen| match seen.back_at(part) {
                // It left, and the first never came back.
                None if seen.ended.get(1).is_some_and(Option::is_some) => Some(f64::INFINITY),
                back => back.map(|time| time.as_secs_f64()),
            };
            Judged::at_most(who, &what, mean(runs, back), within.as_secs_f64(), |value| {
                if value.is_finite() { format!("{value:.1} s") } else { "never".to_owned() }
            })
        }
    }
}

/// With the shares of the single runs, where there are several.
fn spread(judged: Judged, runs: &[Seen], flow: usize) -> Judged {
    if runs.len() < 2 || judged.met.is_none() {
        return judged;
    }
    let shares: Vec<String> = runs.iter().map(|seen| format!("{:.0}", seen.share(flow) * 100.0)).collect();
    Judged { value: format!("{} ({})", judged.value, shares.join(", ")), ..judged }
}

#[cfg(test)]
mod tests {
    use haul_units::Bytes;

    use super::super::cases::CASES;
    use super::*;

    /// Rates in Mbit/s, each for a second.
    fn series(rates: impl IntoIterator<Item = u64>) -> Series {
        rates.into_iter().enumerate().map(|(n, rate)| (Duration::from_secs(n as u64 + 1), Bytes(rate * 125_000))).collect()
    }

    fn case(name: &str) -> &'static Case {
        CASES.iter().find(|case| case.name == name).expect("there is such a case")
    }

    fn seen(name: &str, series: Vec<Series>, ended: Option<Duration>) -> Seen {
        let ended = (0..series.len()).map(|flow| ended.filter(|_| flow == 1)).collect();
        Seen { case: case(name), run: 1, length: Duration::from_secs(10), ended, queue_p95: None, stolen: None, series }
    }

    fn met(seen: &Seen) -> Vec<Option<bool>> {
        judge(std::slice::from_ref(seen)).iter().map(|judged| judged.met).collect()
    }

    #[test]
    fn only_the_second_half_counts() {
        let (first, second) = ([90, 90, 90, 90, 90, 46, 46, 46, 46, 46], [0, 0, 0, 0, 0, 48, 48, 48, 48, 48]);
        assert_eq!(met(&seen("2 fair", vec![series(first), series(second)], None)), [Some(true), Some(true)]);
        let (greedy, poor) = ([80; 10], [12; 10]);
        assert_eq!(met(&seen("2 fair", vec![series(greedy), series(poor)], None)), [Some(false), Some(true)]);
        assert_eq!(met(&seen("fair, CUBIC", vec![series(greedy), series(poor)], None)), [Some(false)]);
    }

    #[test]
    fn the_mean_of_the_runs_counts() {
        let run = |run, ours, theirs| Seen { run, ..seen("fair, CUBIC", vec![series([ours; 10]), series([theirs; 10])], None) };
        let runs = [run(1, 24, 76), run(2, 50, 50), run(3, 46, 54)];
        let judged = judge(&runs);
        assert_eq!(judged.len(), 1);
        assert_eq!((judged[0].value.as_str(), judged[0].met), ("40.0 % (24, 50, 46)", Some(true)));
        assert_eq!(runs[1].name(), "fair, CUBIC, run 2");
        assert_eq!(met(&runs[0]), [Some(false)]);
        let failed = judge(&[run(1, 50, 50), run(2, 0, 0)]);
        assert_eq!((failed[0].value.as_str(), failed[0].met), ("not measured", None));
    }

    #[test]
    fn a_rate_that_swings_is_seen() {
        let steady = seen("modest alone", vec![series([90; 10])], None);
        assert_eq!(met(&steady), [Some(true), Some(true), None]);
        let swinging = seen("modest alone", vec![series([90, 90, 90, 90, 90, 95, 80, 95, 80, 95])], None);
        assert_eq!(met(&swinging), [Some(true), Some(false), None]);
    }

    #[test]
    fn coming_back_is_timed_from_the_guests_end() {
        let guest = series([85, 85, 85, 85, 0, 0, 0, 0, 0, 0]);
        let at = Some(Duration::from_secs(4));
        let back = seen("modest, CUBIC that leaves", vec![series([5, 5, 5, 5, 20, 50, 90, 92, 92, 92]), guest.clone()], at);
        assert_eq!(back.back_at(0.9), Some(Duration::from_secs(3)));
        assert_eq!(met(&back), [Some(true), Some(true)]);
        let never = seen("modest, CUBIC that leaves", vec![series([5; 10]), guest.clone()], at);
        assert_eq!(met(&never), [Some(true), Some(false)]);
        assert_eq!(judge(std::slice::from_ref(&never))[1].value, "never");
        let still_there = seen("modest, CUBIC that leaves", vec![series([30; 10]), guest], None);
        assert_eq!(met(&still_there)[1], None);
    }

    #[test]
    fn nothing_that_arrived_is_nothing_measured() {
        assert_eq!(met(&seen("2 fair", vec![Series::default(), Series::default()], None)), [None, None]);
    }
}
